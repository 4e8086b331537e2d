"""How fast records are copied from a backlog: the contenders in turn, some rounds, on the same two brokers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from srm_spark.bench.contenders import CONTENDERS, EXACTLY_ONCE, LIMIT, OURS, THEIRS, Job, build_loop
from srm_spark.bench.figures import spreads, went
from srm_spark.bench.fill import fill
from srm_spark.bench.link import Link
from srm_spark.bench.measure import BenchRun, measure
from srm_spark.bench.same import check_same
from srm_spark.bench.ways import Ways, ways_of
from srm_spark.bench.workloads import Workload
from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import SetupError, SrmError
from srm_spark.kafka.compare import compare_topics
from srm_spark.testing import LocalKafka
from srm_spark.testing.ports import free_ports

Measured = dict[str, Any]
"""What was found of one workload, as it is kept in JSON."""
_MORE = 2
"""MirrorMaker 2 copies as many records as a workload says, and the others so many times as many of the same topic: they
are that much faster, and while the JVM of our driver starts it does not run warm.
"""
DELETE = ("org.apache.kafka.tools.TopicCommand", "--delete", "--topic")


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
    workloads: Sequence[Workload],
    contenders: Iterable[str],
    rounds: int,
    scale: float,
    failed: list[str] | None = None,
) -> Iterator[tuple[str, Measured]]:
    """Each workload with what it was, and contender → figure → median, min and max.

    One that cannot be measured is added to `failed`, and the others go on; without it SrmError is raised.
    """
    with bench() as on:
        runnable = [name for name in contenders if name != LIMIT or _has_loop(on.folder)]
        yield from each(workloads, lambda workload: _measured(on, workload, runnable, rounds, scale), failed)


def each(
    workloads: Iterable[Workload], measured: Callable[[Workload], Measured], failed: list[str] | None
) -> Iterator[tuple[str, Measured]]:
    """Measure them one after the other; what hours have brought is not lost for one of them."""
    for workload in workloads:
        try:
            found = measured(workload)
        except SrmError as error:
            if failed is None:
                raise
            click.echo(f"{workload.name} is not measured: {error}", err=True)
            failed.append(workload.name)
        else:
            yield workload.name, found


def check_copy(source: str, target: str, topics: Mapping[str, str]) -> None:
    """Compare every record of `topics` (source topic → its copy). Raises SrmError on the first difference."""
    for row in compare_topics(ClusterSettings("source", source), ClusterSettings("target", target), topics):
        if row.difference:
            raise SrmError(f"{row.remote_topic}-{row.partition} is not a copy: {row.difference}")


def _has_loop(folder: Path) -> bool:
    try:
        build_loop(folder)
    except SetupError as error:
        click.echo(f"the {LIMIT} is left out: {error}", err=True)
        return False
    return True


def _measured(on: Bench, workload: Workload, contenders: Sequence[str], rounds: int, scale: float) -> Measured:
    filled = fill(on.source, workload, max(1, int(_MORE * workload.records * scale)))
    chosen = [name for name in contenders if name != EXACTLY_ONCE or workload.in_all_modes]
    runs: dict[str, list[BenchRun]] = {name: [] for name in chosen}
    ways: list[Ways] = []
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
                runs[name].append(run := _run(on, job, name, filled.records, is_first=number == 0))
                click.echo(f"{workload.name:>18} round {number + 1} {name:<14} {_line(run)}", err=True)
                if name == OURS:
                    ways.append(ways_of(job))
                    click.echo(f"{'':>18} records went: {went(asdict(ways[-1]))}", err=True)
    on.source.tool(*DELETE, workload.topic)
    return {
        "measured": f"{datetime.now(tz=timezone.utc):%Y-%m-%d}",
        "description": workload.described(),
        "records": filled.records,
        "record_bytes": workload.record_bytes,
        "batch": {"bytes": filled.middle.size, "records": filled.middle.records},
        "rounds": rounds,
        "ways": spreads(ways) if ways else {},
        "contenders": {name: spreads(several) for name, several in runs.items()},
    }


def _run(on: Bench, job: Job, name: str, records: int, *, is_first: bool) -> BenchRun:
    brokers = on.source.pid, on.target.pid
    is_part = name == THEIRS
    share = records // _MORE if is_part else records
    is_exact = name == EXACTLY_ONCE
    run = measure(CONTENDERS[name], job, share, brokers=brokers, has_markers=is_exact, is_part=is_part)
    if is_first and name in (OURS, EXACTLY_ONCE):
        check_copy(on.source.bootstrap_servers, job.target, {job.topic: job.remote_topic})
    else:
        check_same(on.source.bootstrap_servers, job.target, job.topic, job.remote_topic, is_part=is_part)
    on.target.tool(*DELETE, job.remote_topic)
    return run


def _line(run: BenchRun) -> str:
    return (
        f"{run.backlog_rate:10,.0f} rec/s {run.backlog_cpu:7.2f} µs/rec from a backlog, "
        f"{run.steady_rate:10,.0f} rec/s {run.steady_cpu:7.2f} µs/rec in its second half "
        f"({run.cores:.2f} cores, brokers {run.broker_cores:.2f}), {run.memory_mib:6,.0f} MiB"
    )
