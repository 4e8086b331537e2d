"""A job of YARN: a script that submits it in cluster mode, beside the files that it takes along.

YARN starts a driver anew that ends; what a node unpacks lies in the folder in which driver and executors start.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from srm_spark import __version__
from srm_spark.config.load import Loaded
from srm_spark.deploy.configuration import CONFIGURATION, Configuration, Folder, configuration_of
from srm_spark.deploy.report import Deployment
from srm_spark.deploy.spark import (
    ENVIRONMENT,
    JOB,
    JOB_TEXT,
    NEWEST,
    UNPACKED,
    Spark,
    as_options,
    check_memory,
    check_word,
)
from srm_spark.errors import Problem

PLATFORM = "yarn"
SCRIPT = "submit.sh"
LASTING = {
    # A driver that ends is started anew; a site may allow fewer. Failures of long ago do not count.
    "spark.yarn.maxAppAttempts": "4",
    "spark.yarn.am.attemptFailuresValidityInterval": "1h",
    "spark.executor.failuresValidityInterval": "1h",
    # The job has no end that somebody could wait for.
    "spark.yarn.submit.waitAppCompletion": "false",
}
"""For a job of YARN that runs for ever."""


@dataclass(frozen=True)
class Wanted:
    """What the command line says."""

    name: str = "srm-spark"
    queue: str = "default"
    driver_memory: str = "4g"
    executors: int = 2
    executor_cores: int = 2
    executor_memory: str = "4g"
    spark: Spark = NEWEST

    def problems(self) -> list[Problem]:
        """Everything that spark-submit would refuse."""
        return [
            *check_word("--name", self.name),
            *check_word("--queue", self.queue),
            *check_memory("--driver-memory", self.driver_memory),
            *check_memory("--executor-memory", self.executor_memory),
        ]

    def sizes(self) -> list[tuple[str, str]]:
        """As options of spark-submit."""
        return [
            ("--driver-memory", self.driver_memory),
            ("--num-executors", str(self.executors)),
            ("--executor-cores", str(self.executor_cores)),
            ("--executor-memory", self.executor_memory),
        ]


def deploy(loaded: Loaded, wanted: Wanted) -> Deployment:
    """The files of a job that runs `loaded`."""
    configuration = configuration_of(loaded, Folder("."))
    files = {CONFIGURATION: configuration.text, JOB: JOB_TEXT, SCRIPT: _script(wanted, configuration)}
    return Deployment(
        PLATFORM,
        files,
        configuration.needs,
        configuration.notes,
        tuple(_steps(configuration, wanted)),
        frozenset({SCRIPT}),
    )


def _script(wanted: Wanted, configuration: Configuration) -> str:
    needs = [f"$SRM_SECRETS/{need.name}" for need in configuration.needs]
    options = [
        ("--name", wanted.name),
        ("--master", "yarn"),
        ("--deploy-mode", "cluster"),
        ("--queue", wanted.queue),
        *wanted.sizes(),
        *as_options({**wanted.spark.session, **UNPACKED, **LASTING}),
    ]
    lines = [f"{option} {shlex.quote(value)}" for option, value in options]
    lines += [
        '--archives "$SRM_ENVIRONMENT#environment"',
        '--jars "$SRM_JARS"',
        f'--files "{",".join([f"$here/{CONFIGURATION}", *needs])}"',
        '"$@"',
        f'"$here/{JOB}"',
        f"--config {CONFIGURATION}",
    ]
    return "\n".join(
        [*_head(wanted, has_needs=bool(needs)), " \\\n  ".join(['exec "$SPARK_HOME/bin/spark-submit"', *lines]), ""]
    )


def _head(wanted: Wanted, *, has_needs: bool) -> Sequence[str]:
    secrets = ': "${SRM_SECRETS:?is to name the folder with what you have created}"'
    return [
        "#!/bin/sh",
        f"# Written by srm-control deploy yarn of srm-spark {__version__}; options of yours go to spark-submit.",
        "set -eu",
        'here=$(cd "$(dirname "$0")" && pwd)',
        ': "${SPARK_HOME:?is to name the Spark of the cluster}"',
        f': "${{SRM_ENVIRONMENT:?is to name {ENVIRONMENT}, the Python of the job}}"',
        *([secrets] if has_needs else []),
        f"SRM_JARS=${{SRM_JARS:-$(python3 -m srm_spark.jars {wanted.spark.jar_set} --classpath)}}",
    ]


def environment_steps() -> list[str]:
    """How the Python of the job comes to be; pyspark is that of the platform."""
    return [
        "pack the Python of the job, on a machine like those of the cluster (every node needs that python3):",
        "$ python3 -m venv environment && environment/bin/pip install 'srm-spark[compiled]'",
        f"$ environment/bin/pip uninstall -y pyspark pip && tar -czf {ENVIRONMENT} -C environment .",
    ]


def secret_steps(configuration: Configuration) -> list[str]:
    """How a folder with what the configuration refers to comes to be."""
    if not configuration.needs:
        return []
    folder = "make a folder `secrets` that only you may read, with a file for each that is listed above:"
    return [folder, *(f"  secrets/{need.name}" for need in configuration.needs)]


def _steps(configuration: Configuration, wanted: Wanted) -> list[str]:
    secrets = "SRM_SECRETS=secrets " if configuration.needs else ""
    return [
        *environment_steps(),
        *secret_steps(configuration),
        "where Hadoop has Kerberos, add --principal NAME --keytab FILE, so that YARN can start the job anew:",
        f"$ {secrets}SRM_ENVIRONMENT={ENVIRONMENT} {{out}}/{SCRIPT}",
        f"$ yarn application -list -appStates RUNNING  # {wanted.name}",
    ]
