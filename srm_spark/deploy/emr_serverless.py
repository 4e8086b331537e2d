"""A streaming job of EMR Serverless: the request that starts it. EMR Serverless starts it anew where it fails.

It puts archives into the folder in which driver and executors start, so the configuration and what it refers to travel
as one, beside the Python of the job.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass

from srm_spark.config.load import Loaded
from srm_spark.deploy import yarn
from srm_spark.deploy.configuration import CONFIGURATION, Configuration, Folder, configuration_of
from srm_spark.deploy.report import Deployment
from srm_spark.deploy.s3 import Prefix, check_prefix
from srm_spark.deploy.spark import ENVIRONMENT, JOB, JOB_TEXT, NEWEST, Spark, as_options, check_memory, check_word
from srm_spark.errors import Problem

PLATFORM = "emr-serverless"
REQUEST = "start-job-run.json"
FOLDER = "configuration"
ARCHIVE = "srm-spark-configuration.tar.gz"
_APPLICATION = re.compile(r"[0-9a-z]{1,64}")
_ROLE = re.compile(r"arn:aws[a-zA-Z0-9-]*:iam::[0-9]{12}:role/[\w+=,.@/-]+")
_TRIES = 10
"""Failures within an hour, the most that may be asked for."""
_PYTHON = "./environment/bin/python"


@dataclass(frozen=True)
class Wanted:
    """What the command line says."""

    application_id: str
    role: str
    s3: str
    name: str = "srm-spark"
    driver_memory: str = "4g"
    executors: int = 2
    executor_cores: int = 2
    executor_memory: str = "4g"
    spark: Spark = NEWEST

    def problems(self) -> list[Problem]:
        """Everything that EMR Serverless or spark-submit would refuse."""
        found = [
            *check_prefix("--s3", self.s3),
            *check_word("--name", self.name),
            *check_memory("--driver-memory", self.driver_memory),
            *check_memory("--executor-memory", self.executor_memory),
        ]
        if not _APPLICATION.fullmatch(self.application_id):
            message = f"got {self.application_id!r}; allowed the id of an application, as 00f1abc"
            found.append(Problem("--application-id", "", message))
        if not _ROLE.fullmatch(self.role):
            message = f"got {self.role!r}; allowed a role, as arn:aws:iam::123456789012:role/srm-spark"
            found.append(Problem("--role", "", message))
        return found


def deploy(loaded: Loaded, wanted: Wanted) -> Deployment:
    """The request that starts a job which runs `loaded`."""
    configuration = configuration_of(loaded, Folder(FOLDER))
    prefix = Prefix(wanted.s3)
    request = {
        "applicationId": wanted.application_id,
        "executionRoleArn": wanted.role,
        "name": wanted.name,
        "mode": "STREAMING",
        "retryPolicy": {"maxFailedAttemptsPerHour": _TRIES},
        "jobDriver": {
            "sparkSubmit": {
                "entryPoint": prefix.at(JOB),
                "entryPointArguments": ["--config", f"{FOLDER}/{CONFIGURATION}"],
                "sparkSubmitParameters": _parameters(wanted, prefix),
            }
        },
        "configurationOverrides": {
            "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": prefix.at("logs/")}}
        },
    }
    files = {CONFIGURATION: configuration.text, JOB: JOB_TEXT, REQUEST: json.dumps(request, indent=2) + "\n"}
    return Deployment(
        PLATFORM, files, configuration.needs, configuration.notes, tuple(_steps(prefix, wanted.spark, configuration))
    )


def _parameters(wanted: Wanted, prefix: Prefix) -> str:
    archives = f"{prefix.at(ENVIRONMENT)}#environment,{prefix.at(ARCHIVE)}#{FOLDER}"
    settings = {
        **wanted.spark.session,
        "spark.archives": archives,
        "spark.jars": prefix.jars(wanted.spark),
        "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON": _PYTHON,
        "spark.emr-serverless.driverEnv.PYSPARK_PYTHON": _PYTHON,
        "spark.executorEnv.PYSPARK_PYTHON": _PYTHON,
        "spark.driver.memory": wanted.driver_memory,
        "spark.executor.instances": str(wanted.executors),
        "spark.executor.cores": str(wanted.executor_cores),
        "spark.executor.memory": wanted.executor_memory,
        # As many as were asked for: a flow that waits for records is not idle.
        "spark.dynamicAllocation.enabled": "false",
    }
    return " ".join(f"{option} {shlex.quote(value)}" for option, value in as_options(settings))


def _steps(prefix: Prefix, spark: Spark, configuration: Configuration) -> list[str]:
    secrets = yarn.secret_steps(configuration)
    alone = f"$ tar -czf {ARCHIVE} -C {{out}} {CONFIGURATION}"
    together = f"$ cp {{out}}/{CONFIGURATION} secrets/ && tar -czf {ARCHIVE} -C secrets ."
    return [
        *yarn.environment_steps(),
        *prefix.steps(spark),
        *secrets,
        together if secrets else alone,
        f"$ aws s3 cp --sse aws:kms {ARCHIVE} {prefix.at(ARCHIVE)}",
        f"$ aws s3 cp {{out}}/{JOB} {prefix.at(JOB)}",
        f"$ aws emr-serverless start-job-run --cli-input-json file://{{out}}/{REQUEST}",
    ]
