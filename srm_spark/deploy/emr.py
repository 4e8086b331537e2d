"""A step of EMR on EC2: the request that adds it, with the command of `spark-submit` for YARN in it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from srm_spark.config.load import Loaded
from srm_spark.deploy import yarn
from srm_spark.deploy.configuration import CONFIGURATION, Configuration, Folder, configuration_of
from srm_spark.deploy.report import Deployment
from srm_spark.deploy.s3 import Prefix, check_prefix
from srm_spark.deploy.spark import ENVIRONMENT, JOB, JOB_TEXT, UNPACKED, as_options
from srm_spark.errors import Problem

PLATFORM = "emr"
REQUEST = "add-job-flow-steps.json"
_CLUSTER = re.compile(r"j-[A-Z0-9]{1,253}")


@dataclass(frozen=True)
class Wanted:
    """What the command line says."""

    cluster_id: str
    s3: str
    sizes: yarn.Wanted = field(default_factory=yarn.Wanted)

    def problems(self) -> list[Problem]:
        """Everything that EMR or spark-submit would refuse."""
        found = [*check_prefix("--s3", self.s3), *self.sizes.problems()]
        if not _CLUSTER.fullmatch(self.cluster_id):
            found.append(
                Problem("--cluster-id", "", f"got {self.cluster_id!r}; allowed the id of a cluster, as j-1ABC")
            )
        return found


def deploy(loaded: Loaded, wanted: Wanted) -> Deployment:
    """The request that adds a step which runs `loaded`."""
    configuration = configuration_of(loaded, Folder("."))
    request = {
        "JobFlowId": wanted.cluster_id,
        "Steps": [
            {
                "Name": wanted.sizes.name,
                "ActionOnFailure": "CONTINUE",
                "HadoopJarStep": {"Jar": "command-runner.jar", "Args": _command(wanted, configuration)},
            }
        ],
    }
    files = {CONFIGURATION: configuration.text, JOB: JOB_TEXT, REQUEST: json.dumps(request, indent=2) + "\n"}
    return Deployment(PLATFORM, files, configuration.needs, configuration.notes, tuple(_steps(wanted, configuration)))


def _command(wanted: Wanted, configuration: Configuration) -> list[str]:
    prefix = Prefix(wanted.s3)
    taken = [prefix.at(CONFIGURATION), *(prefix.at(f"secrets/{need.name}") for need in configuration.needs)]
    options = [
        ("--name", wanted.sizes.name),
        ("--master", "yarn"),
        ("--deploy-mode", "cluster"),
        ("--queue", wanted.sizes.queue),
        *wanted.sizes.sizes(),
        *as_options({**wanted.sizes.spark.session, **UNPACKED, **yarn.LASTING}),
        ("--archives", f"{prefix.at(ENVIRONMENT)}#environment"),
        ("--jars", prefix.jars(wanted.sizes.spark)),
        ("--files", ",".join(taken)),
    ]
    words = [word for option in options for word in option]
    return ["spark-submit", *words, prefix.at(JOB), "--config", CONFIGURATION]


def _steps(wanted: Wanted, configuration: Configuration) -> list[str]:
    prefix = Prefix(wanted.s3)
    add = f"import boto3, json; print(boto3.client('emr').add_job_flow_steps(**json.load(open('{{out}}/{REQUEST}'))))"
    copied = [f"$ aws s3 cp {{out}}/{name} {prefix.at(name)}" for name in (CONFIGURATION, JOB)]
    secrets = f"$ aws s3 cp --recursive --sse aws:kms secrets {prefix.at('secrets')}"
    return [
        *yarn.environment_steps(),
        *prefix.steps(wanted.sizes.spark),
        *yarn.secret_steps(configuration),
        *([secrets] if configuration.needs else []),
        *copied,
        f'$ python3 -c "{add}"',
    ]
