"""`python -m srm_spark.bench.idle`: what a flow costs that has nothing to copy, and how soon a new topic flows."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import click

from srm_spark.bench.contenders import Job, srm_spark
from srm_spark.bench.processes import cpu_by_process
from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import SourceUnavailable, SrmError, TargetUnavailable
from srm_spark.kafka.cluster import Cluster, TopicSpec
from srm_spark.kafka.control import ControlRecord, ControlWriter
from srm_spark.model import TopicPartition
from srm_spark.testing import LocalKafka

ALIAS, COPIED, OTHER = "source", "copied", "other"
_POLL_SECONDS = 0.1
_LONGEST_SECONDS = 900.0


class Bed:
    """A source with its topics, and a target."""

    def __init__(self, source: str, target: str) -> None:
        settings = ClusterSettings(ALIAS, source)
        self._source = Cluster(settings, SourceUnavailable)
        self._target = Cluster(ClusterSettings("target", target), TargetUnavailable)
        self._writer = ControlWriter(settings, {}, "idle", SourceUnavailable, 60.0)

    def create(self, names: Sequence[str], partitions: int) -> None:
        """Make topics of the source; returns when the broker has them."""
        for name, reason in self._source.create(TopicSpec(name, partitions, 1, {}) for name in names).items():
            if reason:
                raise SrmError(f"topic {name} cannot be created: {reason}")
        while not self._source.topics().keys() >= set(names):
            time.sleep(_POLL_SECONDS)
        self._source.end_offsets(TopicPartition(name, number) for name in names for number in range(partitions))

    def write(self, names: Collection[str], partitions: int) -> None:
        """One record into each partition."""
        self._writer.write(ControlRecord(n, b"k", b"v", partition=p) for n in names for p in range(partitions))

    def await_copied(self, names: Collection[str], partitions: int, records: int = 1) -> float:
        """Seconds until the target has so many records of each partition."""
        began = time.monotonic()
        remote = {f"{ALIAS}.{name}" for name in names}
        waiting = {TopicPartition(name, number) for name in remote for number in range(partitions)}
        while waiting:
            if time.monotonic() - began > _LONGEST_SECONDS:
                raise SrmError(f"{len(waiting)} partitions were not copied in {_LONGEST_SECONDS:g} s")
            time.sleep(_POLL_SECONDS)
            if remote <= self._target.topics().keys():
                waiting -= {p for p, end in self._target.end_offsets(waiting).items() if end >= records}
        return time.monotonic() - began


@click.command()
@click.option("--topics", default=1, show_default=True, help="Topics that are copied.")
@click.option("--partitions", default=500, show_default=True, help="Partitions of each of them.")
@click.option("--others", default=0, show_default=True, help="More topics of the source, which the filter leaves out.")
@click.option("--heartbeats", is_flag=True, help="With heartbeats, as by default: a record every second is copied.")
@click.option("--settle", default=60.0, show_default=True, help="Seconds for the JVM to compile what it has just run.")
@click.option("--seconds", default=30.0, show_default=True, help="How long is measured.")
def idle(*, topics: int, partitions: int, others: int, heartbeats: bool, settle: float, seconds: float) -> None:
    """Copy one record of each partition, then measure a driver that has nothing left to do."""
    names = [f"{COPIED}-{number}" for number in range(topics)]
    with (
        tempfile.TemporaryDirectory(prefix="srm-idle-") as folder,
        LocalKafka(ALIAS, heap="2g", jvm_options=()) as source,
        LocalKafka("target", heap="2g", jvm_options=()) as target,
    ):
        bed = Bed(source.bootstrap_servers, target.bootstrap_servers)
        bed.create([f"{OTHER}-{number}" for number in range(others)], 1)
        bed.create(names, partitions)
        bed.write(names, partitions)
        job = Job(ALIAS, f"{COPIED}-.*", source.bootstrap_servers, target.bootstrap_servers, Path(folder))
        with srm_spark(job, {"emit.heartbeats.enabled": str(heartbeats).lower()}) as driver:
            click.echo(f"{bed.await_copied(names, partitions):8.1f} s until every partition was copied")
            bed.write(names, partitions)
            again = bed.await_copied(names, partitions, records=2)
            click.echo(f"{again:8.1f} s until one more record of each was copied")
            time.sleep(settle)
            click.echo(f"{cores(driver, seconds):8.3f} cores of the driver and everything below it")
            for _ in range(3):
                fresh = [f"{COPIED}-{time.time_ns()}"]
                bed.create(fresh, 1)
                bed.write(fresh, 1)
                click.echo(f"{bed.await_copied(fresh, 1):8.1f} s until a new topic was copied")


def cores(pid: int, seconds: float) -> float:
    """CPU seconds of a process tree per second of the clock; Spark ends a worker now and then, which counts as 0."""
    before, began = cpu_by_process(pid), time.monotonic()
    time.sleep(seconds)
    after = cpu_by_process(pid)
    return sum(spent - before.get(process, 0.0) for process, spent in after.items()) / (time.monotonic() - began)


if __name__ == "__main__":
    idle()
