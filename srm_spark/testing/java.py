"""Short Java runs, by default with the `kafka` jar set: Kafka's own tools, and single-file judges of our topics."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from srm_spark.errors import SetupError
from srm_spark.jars import KAFKA, fetch, find_java, java_command
from srm_spark.jars.archive import archive_options
from srm_spark.jars.java import REMEDY

QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData")
"""A JVM that lives for seconds spends them on compiling well and on GC threads unless it is told not to."""


def java_arguments(
    main: str,
    arguments: Sequence[str],
    *,
    jvm_options: Sequence[str] = QUICK_START,
    log_levels: Mapping[str, str] | None = None,
    jar_set: str = KAFKA.name,
) -> list[str]:
    """The command that runs a main class, or a `.java` file, with a set of jars on its class path."""
    # The folder, not 94 paths: the command stays readable in `ps` and in messages.
    class_path = str(fetch(jar_set)[0].parent / "*")
    is_recorded = any(option.startswith("-XX:ArchiveClassesAtExit") for option in jvm_options)
    options = (*jvm_options, *(() if is_recorded else archive_options(jar_set)))
    return [java_command(), *options, *_logging(log_levels or {}), "-cp", class_path, main, *arguments]


def _logging(levels: Mapping[str, str]) -> list[str]:
    options = {
        "defaultLogLevel": "warn",
        "showDateTime": "true",
        "dateTimeFormat": "HH:mm:ss.SSS",
        **{f"log.{name}": level for name, level in levels.items()},
    }
    return [f"-Dorg.slf4j.simpleLogger.{key}={value}" for key, value in options.items()]


def run_java(
    main: str,
    *arguments: str,
    stdin: str = "",
    timeout: float = 60,
    check: bool = True,
    jar_set: str = KAFKA.name,
) -> subprocess.CompletedProcess[str]:
    """Run a main class to its end, for example `org.apache.kafka.tools.TopicCommand`; logs are on stderr."""
    command = java_arguments(main, arguments, jar_set=jar_set)
    what = f"{main} {' '.join(arguments)}"
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        said = b"".join(text for text in (error.stdout, error.stderr) if text).decode(errors="replace")
        raise SetupError(f"{what} did not end within {timeout:.0f} s; it printed:\n{said[-2000:]}") from error
    if check and done.returncode != 0:
        raise SetupError(f"{what} ended with {done.returncode}; it printed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done


def run_java_source(
    source: Path, *arguments: str, stdin: str = "", timeout: float = 120, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Compile and run one `.java` file in memory; needs a JDK, a SetupError says so where there is only a JRE."""
    runtime = find_java()
    if not runtime.has_compiler:
        raise SetupError(f"{source.name} needs a JDK, {runtime.home} is a JRE: {REMEDY}")
    return run_java(str(source), *arguments, stdin=stdin, timeout=timeout, check=check)
