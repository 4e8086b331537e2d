"""srm-driver on a small Spark cluster of this machine: executors are processes of their own, which can be killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark

from srm_spark.cli.submit import build_command, parse
from srm_spark.jars import fetch, java_home
from srm_spark.python_workers import DAEMON, DAEMON_KEY

ROOT = Path(__file__).parents[2]
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
QUICK = tuple(
    word
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.executor.extraJavaOptions": QUICK_JVM,
        DAEMON_KEY: DAEMON,
    }.items()
    for word in ("--conf", f"{key}={value}")
)
"""Options of spark-submit for JVMs and workers that live for a minute."""


def spark_home(folder: Path) -> Path:
    """The wheel's Spark under another path: its workers write below SPARK_HOME."""
    home = folder / "spark"
    home.mkdir(parents=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return home


def submit_command(config: Path, master: str, home: Path) -> list[str]:
    """spark-submit without spark-submit.sh in front of it; executors take the Python of this process."""
    request = parse(
        ["--config", str(config), "--master", master, "--conf", f"spark.pyspark.python={sys.executable}", *QUICK]
    )
    command = build_command(request, home, Path(sys.executable), fetch("driver"))
    if "--archives" in command:  # on this machine nobody needs a packed environment
        at = command.index("--archives")
        del command[at : at + 2]
    return command


def submit_environment(home: Path) -> dict[str, str]:
    """What spark-submit needs to know beside its command."""
    return {**os.environ, "SPARK_HOME": str(home), "JAVA_HOME": str(java_home())}
