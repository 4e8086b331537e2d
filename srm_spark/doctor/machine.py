"""Checks of this machine: Python, Java, Spark, the jars, the Kafka client. Imports no pyspark, which may be missing."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable

from srm_spark.core.wording import count
from srm_spark.doctor.report import Finding, failed, ok, unknown, warned
from srm_spark.errors import SetupError
from srm_spark.jars import DRIVERS, fetch, find_java, unfit_java_home
from srm_spark.jars.fetch import cached
from srm_spark.jars.manifest import DRIVER, line_of
from srm_spark.jars.sparks import OURS, REMEDY, core_jar, driver_jars
from srm_spark.kafka.access import librdkafka_version
from srm_spark.kafka.batches.ways import why_interpreted
from srm_spark.kafka.librdkafka import why_unknown

OLDEST_PYTHON = (3, 10)
_NO_DISTUTILS = (3, 12)


def check_machine() -> list[Finding]:
    """Every check that needs no configuration."""
    checks: list[Callable[[], Finding]] = [check_python, check_java, check_spark, check_jars, check_scala, check_client]
    return [check() for check in checks]


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """The interpreter that runs this."""
    running = ".".join(str(part) for part in version)
    if version < OLDEST_PYTHON:
        return failed("Python", f"{running}, expected 3.10 or newer", "make setup PYTHON=/path/to/python3.10")
    return ok("Python", running)


def check_java() -> Finding:
    """Java for Spark."""
    try:
        java = find_java()
    except SetupError as error:
        return failed("Java", error.found, error.remedy)
    running = f"{java.version} at {java.home}"
    if unfit := unfit_java_home():
        return warned("Java", f"{running}; {unfit}", f"export JAVA_HOME={java.home}")
    return ok("Java", running)


def check_spark(python: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """The pyspark package, and whether it will be the Spark that runs."""
    version = package_version("pyspark")
    if version is None:
        return failed("pyspark", "is not installed", REMEDY)
    if line_of(version) not in DRIVERS:
        return failed("pyspark", f"{version}, expected {OURS}: jars are made for one of them", REMEDY)
    if version.startswith("3.") and python >= _NO_DISTUTILS:
        return failed("pyspark", f"{version} imports what Python 3.12 lacks", REMEDY)
    core = core_jar()
    if core is None:
        return unknown("pyspark", f"{version}; no Spark jars beside it (a Spark Connect client has none)")
    if f"-{version}.jar" not in core.name:
        return failed("pyspark", f"{version}, but SPARK_HOME holds {core.name}", "unset SPARK_HOME")
    return ok("pyspark", version)


def check_jars() -> Finding:
    """The driver's jars and their checksums."""
    try:
        if not cached(DRIVER):
            return warned("driver jars", "the first start will download them", "python -m srm_spark.jars driver")
        jars = fetch(DRIVER)
    except SetupError as error:
        return failed("driver jars", error.found, error.remedy)
    return ok("driver jars", f"{count(len(jars), 'jar')} with the right checksums in {jars[0].parent}")


def check_scala() -> Finding:
    """Scala of the jars against Scala of Spark: another suffix gives NoSuchMethodError in the middle of a run."""
    try:
        jar_set = driver_jars()
    except SetupError as error:
        return failed("Scala", error.found, error.remedy)
    if core_jar() is None:
        return unknown("Scala", f"jars for {jar_set.scala}; no Spark jars to compare with")
    return ok("Scala", f"{jar_set.scala} in Spark and in the jars")


def check_client() -> Finding:
    """confluent-kafka and the librdkafka inside."""
    version = package_version("confluent-kafka")
    if version is None:
        return failed("confluent-kafka", "is not installed", "pip install 'confluent-kafka>=2.16.1,<3'")
    reason, unknown_library = why_interpreted(), why_unknown()
    way = "records in batches, by compiled loops" if reason is None else f"records by Spark's source: {reason}"
    names = f"; names of headers that are not UTF-8 are not kept where it moves records: {unknown_library}"
    found = f"{version}, librdkafka {librdkafka_version()}; {way}{names if unknown_library else ''}"
    return ok("confluent-kafka", found)


def package_version(name: str) -> str | None:
    """Version of an installed package."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
