"""`make bench`: the contenders in turn, some rounds, on the same two brokers; a table, JSON, docs/benchmarks.md."""

from __future__ import annotations

import json
import platform
import statistics
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import psutil

from srm_spark import __version__
from srm_spark.bench.contenders import CONTENDERS, Job
from srm_spark.bench.groups import Size, measure_groups
from srm_spark.bench.measure import Run, measure
from srm_spark.bench.page import OURS, render
from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import SourceUnavailable, SrmError
from srm_spark.kafka.cluster import Cluster, TopicSpec
from srm_spark.kafka.compare import compare_topics
from srm_spark.testing import LocalKafka

PARTITIONS = 6
WORKLOADS = {100: 8_000_000, 1000: 2_000_000}
"""Record size in bytes → records; enough for a second half in which both run warm."""


@click.command()
@click.option("--rounds", default=3, show_default=True, help="Runs of each contender and workload.")
@click.option("--scale", default=1.0, show_default=True, help="Share of the records, for a quick look.")
@click.option("--groups/--no-groups", default=True, show_default=True, help="Rounds over consumer groups as well.")
@click.option("--page", type=click.Path(path_type=Path), help="Write the Markdown page here, and JSON beside it.")
def bench(rounds: int, scale: float, groups: bool, page: Path | None) -> None:
    """Compare srm-spark with MirrorMaker 2."""
    found: dict[str, dict[str, list[Run]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="srm-bench-") as folder,
        LocalKafka("source", heap="1g", jvm_options=()) as source,
        LocalKafka("target", heap="1g", jvm_options=()) as target,
    ):
        for size, full in WORKLOADS.items():
            records, topic, name = int(full * scale), f"bench-{size}", f"{size} B"
            _fill(source, topic, records, size)
            found[name] = {contender: [] for contender in CONTENDERS}
            for number in range(rounds):
                for contender, start in CONTENDERS.items():
                    alias = f"r{number}{contender[0].lower()}{size}"
                    servers = source.bootstrap_servers, target.bootstrap_servers
                    job = Job(alias, topic, *servers, Path(folder))
                    run = measure(start, job, records)
                    if contender == OURS and number == 0:
                        _check(job)
                    found[name][contender].append(run)
                    click.echo(f"{name:>7} round {number + 1} {contender:<14} {_line(run)}", err=True)
                    target.tool("org.apache.kafka.tools.TopicCommand", "--delete", "--topic", job.remote_topic)
            source.tool("org.apache.kafka.tools.TopicCommand", "--delete", "--topic", topic)
    result: dict[str, Any] = {"machine": _machine(), "workloads": {n: _plain(runs) for n, runs in found.items()}}
    if groups:
        many = Size(topics=max(1, int(100 * scale)), partitions=100, groups=max(1, int(1000 * scale)))
        result["groups"] = {**asdict(many), **asdict(measure_groups(many))}
    text = render(result)
    click.echo(text)
    if page is not None:
        page.write_text(text)
        page.with_suffix(".json").write_text(json.dumps(result, indent=2) + "\n")


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
