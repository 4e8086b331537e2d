"""Which Java runs Spark and the brokers: `JAVA_HOME`, else `PATH`, else this system's folders, else our cache.

Only 17 and 21 are taken: Spark 4 needs 17 and is not released for what is newer than 21, Spark 3.5 not beyond 17.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from srm_spark.errors import SetupError
from srm_spark.jars.cache import cache_dir, locked
from srm_spark.jars.manifest import line_of
from srm_spark.jars.sparks import spark_version

log = logging.getLogger(__name__)

_SUPPORTED = (17, 21)
_BEFORE_4 = "3.5"
REMEDY = "install a JDK 17 and set JAVA_HOME to it, or as root run: apt-get install openjdk-17-jdk-headless"

SYSTEM_FOLDERS = ("/usr/lib/jvm/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")
"""Where systems have their Javas."""
_CJDK = "cjdk>=0.4,<1"


@dataclass(frozen=True)
class JavaRuntime:
    """A Java that was found and asked for its version."""

    home: Path
    version: int
    """Feature release: 17, 21; 8 for `1.8.0_402`."""

    @property
    def command(self) -> Path:
        """The `java` executable."""
        return self.home / "bin" / "java"

    @property
    def has_compiler(self) -> bool:
        """Whether this is a JDK, which can run a `.java` file directly."""
        return (self.home / "bin" / "javac").exists()


def supported() -> tuple[int, ...]:
    """Releases that the Spark that is here runs on."""
    return _SUPPORTED[:1] if line_of(spark_version() or "") == _BEFORE_4 else _SUPPORTED


def java_home() -> Path:
    """Home of the Java to use; give it to Spark as `JAVA_HOME`, whose scripts look nowhere else but `PATH`."""
    return find_java().home


def java_command() -> str:
    """Path of the `java` executable to use."""
    return str(find_java().command)


def find_java() -> JavaRuntime:
    """The first suitable Java; a SetupError that names what was found otherwise."""
    refused: dict[Path, int] = {}
    for candidate in _candidates():
        runtime = _ask(candidate)
        if runtime is None:
            continue
        if runtime.version in supported():
            return runtime
        refused.setdefault(runtime.home, runtime.version)
    if not refused:
        raise SetupError(f"no Java found (looked at JAVA_HOME, PATH and {cache_dir() / 'java'})", REMEDY)
    seen = ", ".join(f"Java {version} at {home}" for home, version in refused.items())
    needed = " or ".join(map(str, supported()))
    raise SetupError(f"Java {needed} is needed, found only {seen}", REMEDY)


def unfit_java_home() -> str | None:
    """What JAVA_HOME names, where that is not taken; None where it is taken or not set."""
    named = os.environ.get("JAVA_HOME")
    if not named:
        return None
    runtime = _ask(Path(named) / "bin" / "java")
    if runtime is None:
        return f"JAVA_HOME is {named}, where no Java answers"
    return None if runtime.version in supported() else f"JAVA_HOME is {named}, which is Java {runtime.version}"


def ensure_java() -> JavaRuntime:
    """`find_java`, and where there is none, download one into our cache; nothing is installed into the system."""
    try:
        return find_java()
    except SetupError as error:
        log.info("%s", error)
    download_java()
    return find_java()


def parse_version(output: str) -> int | None:
    """Feature release in what `java -version` prints, None when this isn't Java's answer."""
    match = re.search(r'version "(\d+)(?:\.(\d+))?', output)
    if match is None:
        return None
    # Until Java 8 the feature release came second: "1.8.0_402".
    return int(match[2]) if match[1] == "1" and match[2] else int(match[1])


def _candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    yield cache_dir() / "java" / "bin" / "java"
    for pattern in SYSTEM_FOLDERS:
        for home in sorted(Path("/").glob(pattern[1:])):
            yield home / "bin" / "java"


@functools.cache
def _ask(command: Path) -> JavaRuntime | None:
    """Asked once a process: a JVM takes a tenth of a second to say its name."""
    try:
        done = subprocess.run(
            [str(command), "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = parse_version(done.stderr)
    # `java` on the PATH is often a link or a shim, so the JVM says itself where its home is.
    home = re.search(r"^\s*java\.home = (.+)$", done.stderr, flags=re.MULTILINE)
    if done.returncode != 0 or version is None or home is None:
        return None
    path = Path(home[1].strip())
    # Java 8 answers with the jre inside its JDK.
    return JavaRuntime(path.parent if path.name == "jre" else path, version)


def download_java() -> None:
    """Temurin into our cache. cjdk itself is installed only here: most machines have a Java."""
    link = cache_dir() / "java"
    cjdk = [sys.executable, "-m", "cjdk"]
    with locked(cache_dir()):
        log.info("downloading a JDK with cjdk to %s", cache_dir())
        _run([sys.executable, "-m", "pip", "install", "-q", _CJDK])
        done = subprocess.run(
            [*cjdk, "--jdk", "temurin:17", "--cache-dir", str(cache_dir() / "cjdk"), "java-home"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
            raise SetupError(f"no Java 17 or 21 here, and cjdk could not download one ({reason[0]})", REMEDY)
        link.unlink(missing_ok=True)
        link.symlink_to(done.stdout.strip().splitlines()[-1])
    _ask.cache_clear()


def _run(command: list[str], environment: dict[str, str] | None = None) -> bool:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode != 0:
        log.warning("%s failed: %s", " ".join(command), (done.stderr or done.stdout).strip()[-500:])
    return done.returncode == 0
