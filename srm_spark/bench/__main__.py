"""`make bench`: the contenders in turn, some rounds, on the same two brokers; a table, JSON, docs/benchmarks.md."""

from __future__ import annotations

import json
import platform
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import psutil

from srm_spark import __version__
from srm_spark.bench.contenders import CONTENDERS, TRANSACTIONAL, Job
from srm_spark.bench.groups import Size, measure_groups
from srm_spark.bench.measure import Run, measure
from srm_spark.bench.page import OURS, THEIRS, render
from srm_spark.bench.regression import ratios, regressions
from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import SourceUnavailable, SrmError
from srm_spark.kafka.cluster import Cluster, TopicSpec
from srm_spark.kafka.compare import compare_topics
from srm_spark.testing import LocalKafka

PARTITIONS = 6
WORKLOADS = {100: 8_000_000, 1000: 2_000_000}
"""Record size in bytes → records; enough for a second half in which both run warm."""


QUICK_SCALE = 0.15
_QUICK_ROUNDS = 1
PAGE = Path("docs/benchmarks.md")


@click.command()
@click.option("--rounds", default=3, show_default=True, help="Runs of each contender and workload.")
@click.option("--scale", default=1.0, show_default=True, help="Share of the records, for a quick look.")
@click.option("--records/--no-records", default=True, show_default=True, help="How fast records are copied.")
@click.option("--groups/--no-groups", default=True, show_default=True, help="Rounds over consumer groups.")
@click.option("--page", type=click.Path(path_type=Path), help="Bring this page, and the JSON beside it, up to date.")
@click.option("--quick", is_flag=True, help=f"Few records; fails where the ratios are worse than those beside {PAGE}.")
def bench(*, rounds: int, scale: float, records: bool, groups: bool, page: Path | None, quick: bool) -> None:
    """Compare srm-spark with MirrorMaker 2."""
    if quick:
        _quick(page)
        return
    found: dict[str, Any] = {"machine": _machine()}
    if records:
        found["workloads"] = _measure(rounds, scale, tuple(CONTENDERS))
    if groups:
        many = Size(topics=max(1, int(100 * scale)), partitions=100, groups=max(1, int(1000 * scale)))
        found["groups"] = {**asdict(many), **asdict(measure_groups(many))}
    click.echo(render(found))
    if page is not None:
        _keep(page, found)
        page.write_text(render(_kept(page)))


def _quick(page: Path | None) -> None:
    found = ratios(_measure(_QUICK_ROUNDS, QUICK_SCALE, (THEIRS, OURS)))
    click.echo(json.dumps(found, indent=2))
    if page is not None:
        _keep(page, {"quick": found})
        return
    known = _kept(PAGE).get("quick")
    if known is None:
        raise click.ClickException(f"{PAGE.with_suffix('.json')} has no quick run; --quick --page {PAGE} keeps one")
    if worse := list(regressions(found, known)):
        raise click.ClickException("\n".join(worse))


def _keep(page: Path, part: Mapping[str, Any]) -> None:
    page.with_suffix(".json").write_text(json.dumps({**_kept(page), **part}, indent=2) + "\n")


def _kept(page: Path) -> dict[str, Any]:
    path = page.with_suffix(".json")
    return json.loads(path.read_text()) if path.exists() else {}


def _measure(rounds: int, scale: float, contenders: Sequence[str]) -> dict[str, Any]:
    """Workload → contender → figure → median, min and max."""
    found: dict[str, dict[str, list[Run]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="srm-bench-") as folder,
        LocalKafka("source", heap="1g", jvm_options=()) as source,
        LocalKafka("target", heap="1g", jvm_options=()) as target,
    ):
        for size, full in WORKLOADS.items():
            records, topic, name = int(full * scale), f"bench-{size}", f"{size} B"
            _fill(source, topic, records, size)
            found[name] = {contender: [] for contender in contenders}
            for number in range(rounds):
                for contender in contenders:
                    alias = f"r{number}{contender[0].lower()}{size}"
                    job = Job(alias, topic, source.bootstrap_servers, target.bootstrap_servers, Path(folder))
                    run = measure(CONTENDERS[contender], job, records, has_markers=contender in TRANSACTIONAL)
                    if contender != THEIRS and number == 0:
                        _check(job)
                    found[name][contender].append(run)
                    click.echo(f"{name:>7} round {number + 1} {contender:<14} {_line(run)}", err=True)
                    target.tool("org.apache.kafka.tools.TopicCommand", "--delete", "--topic", job.remote_topic)
            source.tool("org.apache.kafka.tools.TopicCommand", "--delete", "--topic", topic)
    return {name: _plain(runs) for name, runs in found.items()}


def _fill(source: LocalKafka, topic: str, records: int, size: int) -> None:
    settings = ClusterSettings("source", source.bootstrap_servers)
    refused = Cluster(settings, SourceUnavailable).create([TopicSpec(topic, PARTITIONS, 1, {})])
    if reason := refused[topic]:
        raise SrmError(f"topic {topic} cannot be created: {reason}")
    what = ("--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1")
    source.tool("org.apache.kafka.tools.ProducerPerformance", *what, timeout=600)


def _check(job: Job) -> None:
    source, target = ClusterSettings("source", job.source), ClusterSettings("target", job.target)
    for row in compare_topics(source, target, {job.topic: job.remote_topic}):
        if row.difference:
            raise SrmError(f"{job.remote_topic}-{row.partition} is not a copy: {row.difference}")


def _plain(runs: dict[str, list[Run]]) -> dict[str, dict[str, dict[str, float]]]:
    """Contender → figure → median, min and max."""
    return {
        contender: {
            figure: {
                "median": statistics.median(values),
                "min": min(values),
                "max": max(values),
            }
            for figure in asdict(several[0])
            for values in [[asdict(run)[figure] for run in several]]
        }
        for contender, several in runs.items()
    }


def _line(run: Run) -> str:
    return (
        f"{run.backlog_rate:10,.0f} rec/s {run.backlog_cpu:6.2f} µs/rec from a backlog, "
        f"{run.steady_rate:10,.0f} rec/s {run.steady_cpu:6.2f} µs/rec in its second half"
    )


def _machine() -> dict[str, str]:
    memory = psutil.virtual_memory().total / 2**30
    return {
        "cores": str(psutil.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "python": platform.python_version(),
        "srm-spark": __version__,
    }


if __name__ == "__main__":
    bench()
