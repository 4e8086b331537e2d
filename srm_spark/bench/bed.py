"""Topics of a source, single records in them, and how long their copies take: for what is not about throughput."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.cluster import ControlRecord, TopicSpec
from srm_spark.core.model import TopicPartition
from srm_spark.errors import SourceUnavailable, SrmError, TargetUnavailable
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.control import ControlWriter

ALIAS = "source"
_POLL_SECONDS = 0.1
_SOON_SECONDS = 0.01
_LONGEST_SECONDS = 900.0


class Bed:
    """A source with its topics, and a target."""

    def __init__(self, source: str, target: str) -> None:
        settings = ClusterSettings(ALIAS, source)
        self._source = ClusterClient(settings, SourceUnavailable)
        self._target = ClusterClient(ClusterSettings("target", target), TargetUnavailable)
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

    def await_copied(
        self, names: Collection[str], partitions: int, records: int = 1, aliases: Collection[str] = (ALIAS,)
    ) -> float:
        """Seconds until the target has so many records of each partition, from each of the aliases."""
        began = time.monotonic()
        remote = {f"{alias}.{name}" for name in names for alias in aliases}
        waiting = {TopicPartition(name, number) for name in remote for number in range(partitions)}
        while waiting:
            if time.monotonic() - began > _LONGEST_SECONDS:
                raise SrmError(f"{len(waiting)} partitions were not copied in {_LONGEST_SECONDS:g} s")
            time.sleep(_POLL_SECONDS)
            if remote <= self._target.topics().keys():
                waiting -= {p for p, end in self._target.end_offsets(waiting).items() if end >= records}
        return time.monotonic() - began

    def write_one(self, partition: TopicPartition) -> None:
        """One record into one partition."""
        self._writer.write([ControlRecord(partition.topic, b"k", b"v", partition=partition.partition)])

    def await_end(self, remote: TopicPartition, end: int) -> None:
        """Return when the copy reaches this end offset."""
        began = time.monotonic()
        while self._target.end_offsets([remote]).get(remote, 0) < end:
            if time.monotonic() - began > _LONGEST_SECONDS:
                raise SrmError(f"{remote} did not reach offset {end} in {_LONGEST_SECONDS:g} s")
            time.sleep(_SOON_SECONDS)
