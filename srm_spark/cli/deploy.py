"""`srm-control deploy`: the files of a job for a platform; writes files, asks no cluster and no platform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from srm_spark.cli.manual import manual, overview
from srm_spark.cli.options import DEFINES, FILE, OUTPUT, loaded, print_json, several, told
from srm_spark.cli.options import config as config_option
from srm_spark.config.load import Loaded
from srm_spark.deploy import databricks, emr, emr_serverless, kubernetes, spark_operator, yarn
from srm_spark.deploy.checking import problems_of
from srm_spark.deploy.report import Deployment
from srm_spark.deploy.spark import Spark
from srm_spark.deploy.writing import Outcome, write
from srm_spark.errors import ConfigError, Problem
from srm_spark.jars.manifest import DRIVERS, NEWEST_SPARK
from srm_spark.jars.sparks import OURS

_FOLDER = click.Path(path_type=Path, file_okay=False)
_COMMON = several(
    config_option("As for srm-driver; repeatable.", required=False),
    click.option(
        "--from",
        "resources",
        multiple=True,
        type=FILE,
        help="A KafkaMirrorMaker2 of Strimzi, or KafkaConnectors as of CSM Operator, to translate; repeatable.",
    ),
    DEFINES,
    click.option("--out", required=True, type=_FOLDER, metavar="DIR", help="The folder for the files."),
    click.option("--force", is_flag=True, help="Replace files that are there and differ."),
    OUTPUT,
)
_ERROR = "the files or options cannot be used, or a file is there and differs; nothing was written"
_NAME = click.option("--name", default="srm-spark", show_default=True, help="How the job is called there.")
_READS = "the files; no cluster, no platform."
_WRITES = "files below --out, without a secret in them."


@overview("srm-control deploy kubernetes --config srm.properties --out deploy --image registry.example/srm-spark:0.1.0")
@click.group()
def deploy() -> None:
    """Writes the files of a job that runs a configuration on a platform."""


@manual(
    "srm-control deploy kubernetes --config srm.properties --out deploy --image registry.example/srm-spark:0.1.0",
    reads=_READS,
    writes=_WRITES,
    error=_ERROR,
)
@deploy.command("kubernetes")
@_COMMON
@_NAME
@click.option("--image", required=True, help="An image with srm-spark in it.")
@click.option("--namespace", default="default", show_default=True, help="Where it runs.")
@click.option("--replicas", default=2, show_default=True, type=click.IntRange(1), help="Pods; all but one stand by.")
@click.option("--cpu", default="2", show_default=True, help="What a pod asks for.")
@click.option("--memory", default="4Gi", show_default=True, help="What a pod gets.")
@click.option("--metrics-from", default="monitoring", show_default=True, help="The namespace of Prometheus.")
def kubernetes_(**options: Any) -> None:
    """A Deployment, with ConfigMap, Service, PodDisruptionBudget, NetworkPolicy and ServiceMonitor."""
    _deploy(options, kubernetes.Wanted, kubernetes.deploy)


_QUEUE = click.option("--queue", default="default", show_default=True, help="The queue of YARN.")
_SIZES = several(
    click.option(
        "--spark",
        default=NEWEST_SPARK,
        show_default=True,
        type=click.Choice([*DRIVERS]),
        callback=lambda _, __, line: Spark(line),
        help="The Spark of the platform.",
    ),
    click.option("--driver-memory", default="4g", show_default=True, help="Memory of the driver."),
    click.option("--executors", default=2, show_default=True, type=click.IntRange(1), help="How many executors."),
    click.option("--executor-cores", default=2, show_default=True, type=click.IntRange(1), help="Tasks of each."),
    click.option("--executor-memory", default="4g", show_default=True, help="Memory of each."),
)


@manual(
    "srm-control deploy yarn --config srm.properties --out deploy --queue replication",
    reads=_READS,
    writes=_WRITES,
    error=_ERROR,
)
@deploy.command("yarn")
@_COMMON
@_NAME
@_QUEUE
@_SIZES
def yarn_(**options: Any) -> None:
    """A script that submits the job in cluster mode, and the files that it takes along."""
    _deploy(options, yarn.Wanted, yarn.deploy)


_OPERATOR = click.Choice([one.value for one in spark_operator.Operator])


@manual(
    "srm-control deploy spark-operator --operator apache --config srm.properties --out deploy --image srm-spark:0.1.0",
    reads=_READS,
    writes=_WRITES,
    error=_ERROR,
)
@deploy.command("spark-operator")
@_COMMON
@_NAME
@click.option("--operator", required=True, type=_OPERATOR, help="Apache's Spark Kubernetes Operator, or Kubeflow's.")
@click.option("--image", required=True, help="An image of Spark with srm-spark in it.")
@click.option("--namespace", default="default", show_default=True, help="Where it runs.")
@click.option(
    "--service-account", default="", help="Who starts executors; by default as the operator's chart calls it."
)
@_SIZES
def spark_operator_(*, operator: str, **options: Any) -> None:
    """A SparkApplication of Apache's or of Kubeflow's operator, and its ConfigMap."""
    _deploy(options, partial(spark_operator.Wanted, spark_operator.Operator(operator)), spark_operator.deploy)


@manual(
    "srm-control deploy databricks --config srm.properties --out d --runtime 18.2.x-scala2.13 --node-type i3.xlarge",
    reads=_READS,
    writes=_WRITES,
    error=_ERROR,
)
@deploy.command("databricks")
@_COMMON
@_NAME
@click.option("--runtime", required=True, metavar="VERSION", help=f"Of the cluster; one that has Spark {OURS}.")
@click.option("--node-type", required=True, metavar="TYPE", help="Of its nodes.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help="Its nodes beside the driver's.")
@click.option("--scope", default="srm-spark", show_default=True, help="The scope of secrets.")
@click.option("--volume", default="", metavar="PATH", help="A folder of a volume, for stores that are named.")
def databricks_(**options: Any) -> None:
    """A bundle with a continuous job on a cluster of its own."""
    _deploy(options, databricks.Wanted, databricks.deploy, databricks.problems_of)


_S3 = click.option("--s3", required=True, metavar="s3://…", help="The prefix for everything that the job takes along.")


@manual(
    "srm-control deploy emr --config srm.properties --out deploy --cluster-id j-1ABCDEFGHIJKL --s3 s3://bucket/srm-spark",
    reads=_READS,
    writes=_WRITES,
    error=_ERROR,
)
@deploy.command("emr")
@_COMMON
@_NAME
@click.option("--cluster-id", required=True, metavar="ID", help="The cluster that runs the step.")
@_S3
@_QUEUE
@_SIZES
def emr_(*, cluster_id: str, s3: str, **options: Any) -> None:
    """The request that adds a step to a cluster of EMR."""
    _deploy(options, lambda **own: emr.Wanted(cluster_id, s3, yarn.Wanted(**own)), emr.deploy)


@manual(
    "srm-control deploy emr-serverless --config srm.properties --out deploy --application-id 00f1abcdefgh "
    "--role arn:aws:iam::123456789012:role/srm-spark --s3 s3://bucket/srm-spark",
    reads=_READS,
    writes=_WRITES,
    error=_ERROR,
)
@deploy.command("emr-serverless")
@_COMMON
@_NAME
@click.option("--application-id", required=True, metavar="ID", help="The application that runs the job.")
@click.option("--role", required=True, metavar="ARN", help="Whose rights the job has.")
@_S3
@_SIZES
def emr_serverless_(**options: Any) -> None:
    """The request that starts a streaming job of EMR Serverless."""
    _deploy(options, emr_serverless.Wanted, emr_serverless.deploy)


class _Checked(Protocol):
    def problems(self) -> Sequence[Problem]: ...


_W = TypeVar("_W", bound=_Checked)


def _deploy(
    options: dict[str, Any],
    wanted_of: Callable[..., _W],
    deployment_of: Callable[[Loaded, _W], Deployment],
    more: Callable[[Loaded, _W], Sequence[Problem]] = lambda _, __: (),
) -> None:
    """What every platform has in common; what of `options` is not `_COMMON` is that platform's own."""
    resources, files, defines = (options.pop(name) for name in ("resources", "files", "defines"))
    out, force, output = (options.pop(name) for name in ("out", "force", "output"))
    wanted = wanted_of(**options)
    with told():
        if not resources and not files:
            raise click.UsageError("write --config FILE, --from FILE, or both")
        found = loaded([*resources, *files], defines, keeps_secrets=True)
        problems, unchecked = problems_of(found)
        others = (*_no_resources(resources, found), *wanted.problems(), *more(found, wanted))
        if all_problems := [*problems, *others]:
            raise ConfigError(all_problems)
        _warn(found, unchecked)
        _tell(deployment_of(found, wanted), out, found, force=force, output=output)


def _warn(found: Loaded, unchecked: Sequence[str]) -> None:
    for warning in found.report.warnings:
        if not warning.startswith(tuple(f"{each}: " for each in unchecked)):
            click.echo(f"warning: {warning}", err=True)
    for each in unchecked:
        click.echo(f"not checked, what it refers to is not on this machine: {each}", err=True)


def _no_resources(resources: Sequence[Path], found: Loaded) -> list[Problem]:
    """The files of --from in which there is nothing to translate."""
    read = {
        entry.place.rpartition(":")[0]
        for entry in (*found.sources.entries.values(), *found.sources.lost)
        if entry.is_resource
    }
    told_already = {one.location.partition(":")[0] for one in found.report.problems}
    hint = "name a configuration of srm-spark by --config"
    return [
        Problem(str(path), "", "holds no KafkaMirrorMaker2 and no KafkaConnector", hint)
        for path in resources
        if str(path) not in read | told_already
    ]


def _tell(deployment: Deployment, out: Path, found: Loaded, *, force: bool, output: str) -> None:
    """Writes the files, and says what was written and what there is to do."""
    outcomes = write(deployment, out, force=force)
    steps = [step.replace("{out}", str(out)) for step in deployment.steps]
    if output == "json":
        print_json(_as_json(deployment, out, outcomes, steps, found))
        return
    for path, outcome in outcomes.items():
        click.echo(f"{outcome.value}: {out / path}")
    for note in deployment.notes:
        click.echo(f"note: {note}")
    if deployment.needs:
        click.echo("to be created by you, no file holds it:")
    for need in deployment.needs:
        place = f", which the Secret {need.kept[0]} has already" if need.kept else ""
        click.echo(f"  {need.name} ({need.kind.value}): {need.origin}{place}")
    click.echo("next:")
    for step in steps:
        click.echo(f"  {step}")


def _as_json(
    deployment: Deployment, out: Path, outcomes: dict[str, Outcome], steps: Sequence[str], found: Loaded
) -> dict[str, object]:
    needs = [
        {"kind": need.kind.value, "name": need.name, "origin": need.origin, "secret": need.kept and need.kept[0]}
        for need in deployment.needs
    ]
    return {
        "platform": deployment.platform,
        "flows": [str(flow.flow) for flow in found.settings.flows],
        "files": [{"path": str(out / path), "outcome": outcome.value} for path, outcome in outcomes.items()],
        "needs": needs,
        "notes": list(deployment.notes),
        "warnings": list(found.report.warnings),
        "steps": list(steps),
    }
