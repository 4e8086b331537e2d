"""Which Spark would run here, and the jars that are made for it. Imports no pyspark, which may be missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from pathlib import Path

from srm_spark.errors import SetupError
from srm_spark.jars.manifest import DRIVERS, NEWEST_SPARK, JarSet, line_of

OURS = ", ".join(list(DRIVERS)[:-1]) + f" or {NEWEST_SPARK}"
"""The Sparks that there are jars for, in words."""
REMEDY = f"pip install 'pyspark=={NEWEST_SPARK}.*'"
_CORE = re.compile(r"spark-core_(?P<scala>\d+\.\d+)-(?P<spark>(?P<line>\d+\.\d+)\..+)\.jar")


def core_jar() -> Path | None:
    """`spark-core` of the Spark that would run: that of SPARK_HOME, else of the pyspark package."""
    home = os.environ.get("SPARK_HOME")
    if not home:
        spec = importlib.util.find_spec("pyspark")
        home = next(iter(spec.submodule_search_locations or ()), None) if spec else None
    return next(iter(sorted(Path(home).glob("jars/spark-core_*.jar"))), None) if home else None


def scala_of(core: Path) -> str | None:
    """The Scala that Spark is built with, by the name of its jar."""
    found = _CORE.fullmatch(core.name)
    return found and found["scala"]


def spark_version() -> str | None:
    """Of the Spark that would run; None without any."""
    core = core_jar()
    if core is not None and (found := _CORE.fullmatch(core.name)):
        return found["spark"]
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return None


def driver_jars(version: str | None = None) -> JarSet:
    """The jars for a Spark of this version; without one, for the Spark that would run here.

    Raises SetupError where there are none.
    """
    core = core_jar() if version is None else None
    version = version or spark_version()
    if version is None:
        return DRIVERS[NEWEST_SPARK]  # to be fetched before Spark is there
    if (jar_set := DRIVERS.get(line_of(version))) is None:
        raise SetupError(f"Spark {version} is here, and there are jars for {OURS}", REMEDY)
    if core is not None and (theirs := scala_of(core)) != jar_set.scala:
        # It would end with NoSuchMethodError in the middle of a run.
        raise SetupError(f"jars for Scala {jar_set.scala}, but Spark {version} is built with {theirs}", REMEDY)
    return jar_set
