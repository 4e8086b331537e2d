"""How fast records are copied from a backlog: the contenders in turn, some rounds, on the same two brokers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from srm_spark.bench.contenders import CONTENDERS, EXACTLY_ONCE, LIMIT, OURS, Job, build_loop
from srm_spark.bench.figures import spreads
from srm_spark.bench.fill import fill
from srm_spark.bench.link import Link
from srm_spark.bench.measure import Run, measure
from srm_spark.bench.same import check_same
from srm_spark.bench.workloads import Workload
from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import SetupError, SrmError
from srm_spark.kafka.compare import compare_topics
from srm_spark.testing import LocalKafka
from srm_spark.testing.ports import free_ports

_DELETE = ("org.apache.kafka.tools.TopicCommand", "--delete", "--topic")


@dataclass(frozen=True)
class Bench:
    """The brokers of one comparison, and the way to the source when it is far away."""

    folder: Path
    source: LocalKafka
    target: LocalKafka
    far_port: int
    """The source's listener behind the delaying proxy."""
    link_port: int


@contextmanager
def bench() -> Iterator[Bench]:
    """Two single-node brokers."""
    far_port, link_port = free_ports(2)
    loopback = "127.0.0.1"
    listeners = {
        "listeners": f"PLAINTEXT://{loopback}:{{port}},FAR://{loopback}:{far_port},"
        f"CONTROLLER://{loopback}:{{controller_port}}",
        "advertised.listeners": f"PLAINTEXT://{loopback}:{{port}},FAR://{loopback}:{link_port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,FAR:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    with (
        tempfile.TemporaryDirectory(prefix="srm-bench-") as folder,
        LocalKafka("source", heap="1g", jvm_options=(), overrides=listeners) as source,
        LocalKafka("target", heap="1g", jvm_options=()) as target,
    ):
        yield Bench(Path(folder), source, target, far_port, link_port)


def measure_workloads(
    workloads: Sequence[Workload], contenders: Iterable[str], rounds: int, scale: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each workload with what it was, and contender → figure → median, min and max."""
    with bench() as on:
        runnable = [name for name in contenders if name != LIMIT or _has_loop(on.folder)]
        for workload in workloads:
            yield workload.name, _measured(on, workload, runnable, rounds, scale)


def check_copy(source: str, target: str, topics: Mapping[str, str]) -> None:
    """Compare every record of `topics` (source topic → its copy). Raises SrmError on the first difference."""
    ends = ClusterSettings("source", source), ClusterSettings("target", target)
    for row in compare_topics(*ends, topics):
        if row.difference:
            raise SrmError(f"{row.remote_topic}-{row.partition} is not a copy: {row.difference}")


def _has_loop(folder: Path) -> bool:
    try:
        build_loop(folder)
    except SetupError as error:
        click.echo(f"the {LIMIT} is left out: {error}", err=True)
        return False
    return True


def _measured(on: Bench, workload: Workload, contenders: Sequence[str], rounds: int, scale: float) -> dict[str, Any]:
    records = max(1, int(workload.records * scale))
    fill(on.source.bootstrap_servers, workload, records)
    chosen = [name for name in contenders if name != EXACTLY_ONCE or workload.in_all_modes]
    runs: dict[str, list[Run]] = {name: [] for name in chosen}
    with ExitStack() as stack:
        source = on.source.bootstrap_servers
        if workload.round_trip_ms:
            link = Link(on.link_port, on.far_port, workload.round_trip_ms / 1000)
            source = stack.enter_context(link).address
        for number in range(rounds):
            for name in chosen:
                alias = f"r{number}{name[0].lower()}{workload.short_name}"
                target = on.target.bootstrap_servers
                job = Job(alias, workload.topic, source, target, on.folder, workload.codec)
                runs[name].append(run := _run(on, job, name, records, is_first=number == 0))
                click.echo(f"{workload.name:>15} round {number + 1} {name:<14} {_line(run)}", err=True)
    on.source.tool(*_DELETE, workload.topic)
    return {
        "measured": f"{datetime.now(tz=timezone.utc):%Y-%m-%d}",
        "description": workload.described(),
        "records": records,
        "record_bytes": workload.record_bytes,
        "rounds": rounds,
        "contenders": {name: spreads(several) for name, several in runs.items()},
    }


def _run(on: Bench, job: Job, name: str, records: int, *, is_first: bool) -> Run:
    run = measure(CONTENDERS[name], job, records, has_markers=name == EXACTLY_ONCE)
    if is_first and name in (OURS, EXACTLY_ONCE):
        check_copy(on.source.bootstrap_servers, job.target, {job.topic: job.remote_topic})
    else:
        check_same(on.source.bootstrap_servers, job.target, job.topic, job.remote_topic)
    on.target.tool(*_DELETE, job.remote_topic)
    return run


def _line(run: Run) -> str:
    return (
        f"{run.backlog_rate:10,.0f} rec/s {run.backlog_cpu:7.2f} µs/rec from a backlog, "
        f"{run.steady_rate:10,.0f} rec/s {run.steady_cpu:7.2f} µs/rec in its second half, {run.memory_mib:6,.0f} MiB"
    )
