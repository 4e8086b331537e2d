"""A bundle of Databricks with a job that runs for ever: a continuous job, on a cluster of its own.

Secrets come from a scope of the workspace by environment variables of the cluster; stores lie in a volume.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from srm_spark import __version__
from srm_spark.config.load import Loaded
from srm_spark.config.secrets import SPARK_SETTINGS
from srm_spark.deploy.configuration import CONFIGURATION, Configuration, configuration_of, variable_of
from srm_spark.deploy.manifests import Manifest, as_yaml
from srm_spark.deploy.report import Deployment, Need, NeedKind
from srm_spark.deploy.spark import JOB, JOB_TEXT, check_word
from srm_spark.errors import Problem

PLATFORM = "databricks"
WHEEL = f"srm_spark-{__version__}-py3-none-any.whl"
_VOLUME = re.compile(r"/Volumes(/[^/\s,]+){3,}")
_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SESSION = {"spark.speculation": "false", **SPARK_SETTINGS}
"""What a cluster must start with; a runtime of Databricks has tables, Kafka and checkpoints of its own."""


@dataclass(frozen=True)
class Wanted:
    """What the command line says."""

    runtime: str
    """A version of the runtime, as `databricks clusters spark-versions` calls it."""
    node_type: str
    name: str = "srm-spark"
    workers: int = 2
    scope: str = "srm-spark"
    volume: str = ""
    """A folder of a volume; needed where the configuration names files."""

    def problems(self) -> list[Problem]:
        """Everything that Databricks would refuse."""
        named = (("--runtime", self.runtime), ("--node-type", self.node_type))
        found = [
            Problem(option, "", f"got {text!r}; allowed letters, digits, `.`, `_` and `-`")
            for option, text in named
            if not _TYPE.fullmatch(text)
        ]
        found += [*check_word("--name", self.name), *check_word("--scope", self.scope)]
        if self.volume and not _VOLUME.fullmatch(self.volume):
            message = f"got {self.volume!r}; allowed a folder of a volume, /Volumes/catalog/schema/volume or below"
            found.append(Problem("--volume", "", message))
        return found


@dataclass(frozen=True)
class _Workspace:
    """Where a workspace has what no file holds."""

    volume: str

    def secret(self, name: str) -> str:
        """See Places."""
        return f"${{env:{variable_of(name)}}}"

    def file(self, name: str) -> str:
        """See Places."""
        return f"{self.volume}/{name}"


def problems_of(loaded: Loaded, wanted: Wanted) -> list[Problem]:
    """What the options leave open for this configuration."""
    needs = configuration_of(loaded, _Workspace(wanted.volume)).needs
    files = [need.origin for need in needs if need.kind is NeedKind.FILE]
    if not files or wanted.volume:
        return []
    return [Problem("--volume", "", f"is missing; the configuration names {', '.join(files)}")]


def deploy(loaded: Loaded, wanted: Wanted) -> Deployment:
    """The bundle that runs `loaded`."""
    configuration = configuration_of(loaded, _Workspace(wanted.volume))
    files = {
        "databricks.yml": as_yaml(PLATFORM, _bundle(wanted, configuration)),
        CONFIGURATION: configuration.text,
        JOB: JOB_TEXT,
    }
    steps = tuple(_steps(wanted, configuration))
    return Deployment(PLATFORM, files, configuration.needs, configuration.notes, steps)


def _bundle(wanted: Wanted, configuration: Configuration) -> Manifest:
    return {
        "bundle": {"name": wanted.name},
        "resources": {"jobs": {re.sub(r"[^A-Za-z0-9]", "_", wanted.name): _job(wanted, configuration)}},
        "targets": {"main": {"default": True}},
    }


def _job(wanted: Wanted, configuration: Configuration) -> Manifest:
    task = {
        "task_key": "srm-driver",
        "job_cluster_key": "cluster",
        "spark_python_task": {
            "python_file": f"./{JOB}",
            "parameters": ["--config", f"${{workspace.file_path}}/{CONFIGURATION}"],
        },
        # On the nodes of the executors, too: records are read and written there.
        "libraries": [{"whl": f"./{WHEEL}"}, {"pypi": {"package": "numba>=0.63"}}],
    }
    return {
        "name": wanted.name,
        "continuous": {"pause_status": "UNPAUSED"},
        "max_concurrent_runs": 1,
        "tasks": [task],
        "job_clusters": [{"job_cluster_key": "cluster", "new_cluster": _cluster(wanted, configuration.needs)}],
    }


def _cluster(wanted: Wanted, needs: tuple[Need, ...]) -> Manifest:
    secrets = [need.name for need in needs if need.kind is NeedKind.SECRET]
    cluster: Manifest = {
        "spark_version": wanted.runtime,
        "node_type_id": wanted.node_type,
        "num_workers": wanted.workers,
        # A driver reads the checkpoints of its queries, and those lie on its own disk.
        "data_security_mode": "SINGLE_USER",
        "spark_conf": dict(_SESSION),
    }
    if secrets:
        scope = {variable_of(name): f"{{{{secrets/{wanted.scope}/{name}}}}}" for name in secrets}
        cluster["spark_env_vars"] = scope
    return cluster


def _steps(wanted: Wanted, configuration: Configuration) -> list[str]:
    secrets = [need.name for need in configuration.needs if need.kind is NeedKind.SECRET]
    files = [need.name for need in configuration.needs if need.kind is NeedKind.FILE]
    steps = [f"put {WHEEL} into {{out}} (pip wheel --no-deps)"]
    if secrets:
        steps.append(f"$ databricks secrets create-scope {wanted.scope}")
        steps.append("for each, which asks for the value:")
        steps += [f"$ databricks secrets put-secret {wanted.scope} {name}" for name in secrets]
    if files:
        steps.append("copy what is listed above, each under its name:")
        steps += [f"$ databricks fs cp {name} dbfs:{wanted.volume}/{name}" for name in files]
    return [*steps, "$ cd {out} && databricks bundle validate && databricks bundle deploy"]
