"""Downloads with the Apache Ivy of the pyspark wheel: `resolve` finds out what a set needs, `download` gets it.

Resolving 94 jars reads some 200 POM files one after the other, which takes minutes. It is done once, by `--pin`; what
everybody runs is `download`, which asks for the pinned jars alone.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.sax.saxutils import quoteattr

from srm_spark.errors import SetupError
from srm_spark.jars.manifest import Dependency, JarSet

REPOSITORY_VARIABLE = "SRM_SPARK_MAVEN_REPO"

_ATTEMPTS = 3
"""A repository drops a connection now and then; Ivy's cache lets the next attempt go on from there."""

_PROCESSES = 4
"""Ivy has one request under way at a time; four of it halve the time of one, more bring nothing."""

_SMALLEST_SHARE = 10
"""Jars that are worth a JVM of their own."""


def resolve(jar_set: JarSet, java: str, work: Path) -> dict[Dependency, Path]:
    """Every jar that belongs to the set, with a downloaded copy under `work`."""
    # `runtime(*),master(*)` is Ivy's reading of Maven's runtime scope: the jar itself and what it needs to run.
    mapping = "runtime(*),master(*)" if jar_set.transitive else "default"
    module = _module_xml(jar_set.dependencies, jar_set.transitive, mapping)
    destination = work / "resolved"
    _run_ivy(
        java, work, module, settings_xml(with_poms=True), destination / "[organisation]:[artifact]:[revision].[ext]"
    )
    return {Dependency.parse(jar.stem): jar for jar in destination.glob("*.jar")}


def download(dependencies: Sequence[Dependency], java: str, work: Path, destination: Path) -> None:
    """Get exactly these jars into `destination`; `work` holds Ivy's files and caches."""
    processes = max(1, min(_PROCESSES, len(dependencies) // _SMALLEST_SHARE))

    def get_share(number: int) -> None:
        module = _module_xml(dependencies[number::processes], transitive=False, mapping="default")
        pattern = destination / "[artifact]-[revision].[ext]"
        _run_ivy(java, work / str(number), module, settings_xml(with_poms=False), pattern)

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(get_share, range(processes)))


def _run_ivy(java: str, work: Path, module: str, settings: str, pattern: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    (work / "settings.xml").write_text(settings)
    (work / "ivy.xml").write_text(module)
    command = [java, "-XX:TieredStopAtLevel=1", "-jar", str(_ivy_jar()), "-cache", str(work / "cache")]
    command += ["-settings", str(work / "settings.xml"), "-ivy", str(work / "ivy.xml"), "-confs", "jars"]
    command += ["-retrieve", str(pattern)]
    for _ in range(_ATTEMPTS):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
    raise failure_of(done.stdout + done.stderr)


def _ivy_jar() -> Path:
    # pyspark is looked up, not imported: importing it costs a second, and only srm_spark.spark may.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("pyspark is not installed, and its wheel carries Apache Ivy", "run: make setup")
    candidates = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    if not candidates:
        raise SetupError(f"no ivy-*.jar in {Path(spec.origin).parent / 'jars'}: pyspark must come from its PyPI wheel")
    return candidates[-1]


def settings_xml(*, with_poms: bool) -> str:
    """What Ivy is told of the repository."""
    repository = os.environ.get(REPOSITORY_VARIABLE, "")
    root = f" root={quoteattr(_repository_url(repository))}" if repository else ""
    # The repository's own checksums are not asked for where ours decide.
    poms = "" if with_poms else ' usepoms="false" checksums=""'
    return (
        '<ivysettings><settings defaultResolver="maven"/>'
        f'<resolvers><ibiblio name="maven" m2compatible="true"{poms}{root}/></resolvers></ivysettings>\n'
    )


def _repository_url(repository: str) -> str:
    url = repository if "://" in repository else Path(repository).expanduser().resolve().as_uri()
    return url.rstrip("/") + "/"


def _module_xml(dependencies: Sequence[Dependency], transitive: bool, mapping: str) -> str:
    lines = "".join(
        f"<dependency org={quoteattr(dependency.group)} name={quoteattr(dependency.artifact)}"
        f' rev={quoteattr(dependency.version)} transitive="{str(transitive).lower()}" conf="jars->{mapping}"/>\n'
        for dependency in dependencies
    )
    return (
        '<ivy-module version="2.0"><info organisation="srm-spark" module="jars"/>\n'
        f'<configurations><conf name="jars"/></configurations>\n<dependencies>\n{lines}</dependencies></ivy-module>\n'
    )


def failure_of(output: str) -> SetupError:
    """What went wrong, by what Ivy printed."""
    missing = sorted({f"{g}:{a}:{v}" for g, a, v in re.findall(r":: (\S+)#(\S+?);(\S+): not found", output)})
    reasons = re.findall(r"Server access error at url \S+ \((.+?)\)\s*$", output, flags=re.MULTILINE)
    where = os.environ.get(REPOSITORY_VARIABLE, "") or "Maven Central"
    if reasons:
        what = f"{where} does not answer ({reasons[0]})"
    elif missing:
        what = f"{where} does not hold {', '.join(missing)}"
    else:
        what = f"Apache Ivy says:\n{output.strip()[-2000:]}\n"
    remedy = f"check the network, or set {REPOSITORY_VARIABLE} to a Maven repository that is reachable"
    return SetupError(f"cannot download jars: {what}", f"{remedy} (URL or directory)")
