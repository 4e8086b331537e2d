"""Offset syncs: (source offset, target offset) samples that MirrorMaker 2's checkpoints and MirrorClient live on.

The ones that MirrorMaker 2 would write (`OffsetSyncWriter`), and the last record of every batch. Of a log full of gaps,
where each gap makes one due, MirrorMaker 2 writes what its ten requests in flight have room for. Here it is the newest
ones of a batch, and some of those before: who reads syncs keeps 64 of all, few of them far from the newest
(`OffsetSyncStore`). A sync that cannot be written waits for the next batch: it never stops the records.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import ControlRecord, Writer
from srm_spark.core.codec import encode_offset_sync
from srm_spark.core.model import Interval, OffsetSync, TopicPartition
from srm_spark.core.translation import SyncRule
from srm_spark.errors import OffsetSyncFailed
from srm_spark.flow.clusters import Clusters
from srm_spark.kafka.control import ControlWriter

log = logging.getLogger(__name__)

_T = TypeVar("_T")

_NEAR, _FAR = 32, 32
"""Of one partition and one batch: the newest ones, and how many of all before."""
_MANY = 1000
"""Intervals in front of these; in so many there is more to write than is written."""


class SyncWriter:
    """The offset syncs of one generation of a flow; a new one syncs the first record of each partition again."""

    def __init__(self, settings: FlowSettings, topic: str, writer: Writer | None = None) -> None:
        """Without a `writer` a client is made."""
        self._topic = topic
        self._flow = settings.flow
        self._lag_max = settings.syncs.lag_max
        self._rules: dict[TopicPartition, SyncRule] = {}
        self._late: dict[TopicPartition, OffsetSync] = {}
        self._writer = writer or _client(settings)

    def write(self, acknowledged: Mapping[TopicPartition, Sequence[Interval]]) -> None:
        """Write the syncs that are due for intervals that the target has acknowledged."""
        due = [sync for partition, intervals in acknowledged.items() for sync in self._due(partition, intervals)]
        late = [sync for partition, sync in self._late.items() if not acknowledged.get(partition)]
        if not due and not late:
            return
        try:
            self._writer.write(self._records([*late, *due]))
        except OffsetSyncFailed as error:
            # The newest one per partition says most; the exact map is in the progress records anyway.
            self._late.update((sync.partition, sync) for sync in due)
            log.warning("flow=%s %s offset syncs wait for the next batch: %s", self._flow, len(self._late), error)
        else:
            self._late.clear()

    def _due(self, partition: TopicPartition, intervals: Sequence[Interval]) -> list[OffsetSync]:
        rule = self._rules.setdefault(partition, SyncRule(self._lag_max))
        # Each one behind a gap is due, so of very many all that can be written are among these.
        pairs = [pair for interval in _thinned(intervals, _MANY) for pair in rule.due(interval)]
        if intervals and (last := rule.last(intervals[-1])) not in pairs[-1:]:
            pairs.append(last)
        return [OffsetSync(partition, upstream, downstream) for upstream, downstream in _thinned(pairs, _FAR)]

    def _records(self, syncs: Sequence[OffsetSync]) -> Iterator[ControlRecord]:
        for sync in syncs:
            key, value = encode_offset_sync(sync)
            yield ControlRecord(self._topic, key, value, partition=0)


def _thinned(items: Sequence[_T], most: int) -> Sequence[_T]:
    """The newest ones, and some of those before where these are more than `most`."""
    before = len(items) - _NEAR
    if before <= most:
        return items
    return [*(items[number * before // _FAR] for number in range(_FAR)), *items[before:]]


def sync_writer_of(clusters: Clusters) -> SyncWriter:
    """By the clients that are there."""
    settings = clusters.settings
    writer = clusters.syncs_cluster.writer(_role(settings), OffsetSyncFailed, properties=settings.syncs_producer)
    return SyncWriter(settings, clusters.syncs_topic, writer)


def _client(settings: FlowSettings) -> ControlWriter:
    cluster = settings.target if settings.syncs.on_target else settings.source
    seconds = settings.admin_timeout_seconds
    return ControlWriter(cluster, settings.syncs_producer, _role(settings), OffsetSyncFailed, seconds)


def _role(settings: FlowSettings) -> str:
    return f"{settings.flow}|offset-syncs"
