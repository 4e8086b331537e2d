"""What every job of `spark-submit` has in common: the script that it runs, the settings of its session, its jars."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from srm_spark.config.checkpoint_files import checkpoint_settings
from srm_spark.config.secrets import SPARK_SETTINGS
from srm_spark.errors import Problem
from srm_spark.jars import DELTA_SETTINGS
from srm_spark.jars.manifest import DRIVERS, NEWEST_SPARK

JOB = "srm_driver.py"
JOB_TEXT = '''"""What Spark runs: `srm-driver`, in the session and with the jars that Spark gives it."""

from srm_spark.cli.driver import main

if __name__ == "__main__":
    main()
'''
ENVIRONMENT = "srm-spark-env.tar.gz"
"""The Python of the job, as `venv` makes it."""
_SESSION: Mapping[str, str] = {
    # With it a task runs twice at the same time, and a driver refuses to start.
    "spark.speculation": "false",
    "spark.log.level": "WARN",
    # It listens on every interface without a login.
    "spark.ui.enabled": "false",
    **SPARK_SETTINGS,
    **DELTA_SETTINGS,
}
"""As in the command of `spark-submit.sh`."""
UNPACKED: Mapping[str, str] = {"spark.pyspark.python": "./environment/bin/python"}
"""Where an archive `…#environment` has its Python."""
_MEMORY = re.compile(r"[1-9][0-9]*[kmgt]", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Spark:
    """The Spark of a platform, by what jars are made for."""

    line: str = NEWEST_SPARK
    """One of `DRIVERS`."""

    @property
    def version(self) -> str:
        """Of the line the one whose Kafka source is used."""
        return DRIVERS[self.line].dependencies[0].version

    @property
    def scala(self) -> str | None:
        """What it is built with."""
        return DRIVERS[self.line].scala

    @property
    def jar_set(self) -> str:
        """As which `python -m srm_spark.jars` gets its jars."""
        return DRIVERS[self.line].name

    @property
    def jar_names(self) -> list[str]:
        """The files of these."""
        return [one.file_name for one in DRIVERS[self.line].dependencies]

    @property
    def session(self) -> dict[str, str]:
        """Settings that a session has from its start."""
        return {**_SESSION, **checkpoint_settings(self.version)}


NEWEST = Spark()


def check_memory(option: str, text: str) -> list[Problem]:
    """The problem of an amount of memory that Spark does not take."""
    if _MEMORY.fullmatch(text):
        return []
    return [Problem(option, "", f"got {text!r}; allowed an amount of Spark, such as 4g or 512m")]


def check_word(option: str, text: str) -> list[Problem]:
    """The problem of a name that would not be one word of a command."""
    if _NAME.fullmatch(text):
        return []
    return [Problem(option, "", f"got {text!r}; allowed letters, digits, `.`, `_` and `-`, at most 64")]


def as_options(settings: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Settings as options of spark-submit."""
    return (("--conf", f"{key}={value}") for key, value in settings.items())
