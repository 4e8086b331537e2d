"""How far a flow has come: the progress topic on the target, in Kafka Connect's format (`KafkaOffsetBackingStore`).

A record here says which source offset of a partition was replicated last; its header adds the exact ranges.
MirrorMaker 2 reads the value and goes on behind it. Spark's own checkpoint is never asked.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from srm_spark.config.settings import FlowSettings
from srm_spark.core.answers import Answers
from srm_spark.core.cluster import Cluster, ControlRecord, ReadRecord, Writer
from srm_spark.core.codec import (
    INTERVALS_PER_RECORD,
    PROGRESS_HEADER,
    decode_progress_detail,
    decode_progress_key,
    decode_progress_value,
    progress_records,
)
from srm_spark.core.intervals import records_in
from srm_spark.core.last_run import UNKNOWN_RUN, LastRun, decode_last_run, last_run_key
from srm_spark.core.model import UNKNOWN, LogIdentity, Loss, PausedPartition, ProgressDetail, TopicPartition
from srm_spark.core.record_batch import Author
from srm_spark.core.tallies import Tally
from srm_spark.errors import ProgressFailed, TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.followed import FollowedTopic
from srm_spark.flow.topics.internal_topics import ensure_topic, progress_topic
from srm_spark.flow.topics.offset_map import Maps, MapWriter
from srm_spark.kafka.control import ControlWriter
from srm_spark.kafka.fencing import FencingToken
from srm_spark.kafka.transactions import TransactionalWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Position:
    """Where one source partition stands."""

    next_offset: int
    """First source offset that is not replicated yet."""
    target_end: int | None = None
    """Where the next record would lie on the target, if our own record says so."""
    logs: LogIdentity = UNKNOWN
    """Of which topics and epochs it was true."""
    hold: PausedPartition | None = None

    @property
    def topic_id(self) -> str | None:
        """Id of the source topic."""
        return self.logs.topic_id


@dataclass
class Totals:
    """What was replicated in some stretch of time."""

    records: int = 0
    bytes: int = 0
    zero_timestamps: int = 0
    whole: int = 0
    merged: int = 0
    latency_ms: int | None = None
    losses: dict[TopicPartition, tuple[Loss, ...]] = field(default_factory=dict)
    partitions: dict[TopicPartition, Tally] = field(default_factory=dict)
    """Of each partition of which something was recorded."""

    @property
    def lost_records(self) -> int:
        """Source offsets of all losses."""
        return sum(loss.offsets.end - loss.offsets.start for lost in self.losses.values() for loss in lost)


class ProgressTopic:
    """Reads the progress topic; `positions` is the newest state of each partition."""

    def __init__(self, settings: FlowSettings, target: Cluster) -> None:
        self._settings = settings
        self._target = target
        role = f"{settings.flow}|progress"
        timeout = settings.admin_timeout_seconds
        self._topic = FollowedTopic(
            target, settings.progress_topic, role, TargetUnavailable, timeout, forget=self._forget
        )
        self.positions: dict[TopicPartition, Position] = {}
        self.reset: set[TopicPartition] = set()
        """Partitions whose position somebody has deleted: they begin anew, whatever else is known of them."""
        self.newest: dict[TopicPartition, list[ProgressDetail]] = {}
        """What the newest commit of each partition says; in the exactly-once mode the map may not have it yet."""
        self._totals = Totals()
        self.last_run = UNKNOWN_RUN
        self.answers = Answers(settings.flow)
        """What drivers said of acts of `srm-control`."""

    def ensure(self) -> None:
        """Create the topic if it is not there. Raises where one is that would forget."""
        ensure_topic(self._target, progress_topic(self._settings))

    def refresh(self) -> None:
        """Read what was written since the last call, by whichever process."""
        for record in self._topic.new_records():
            self._take(record)

    def take_totals(self) -> Totals:
        """What was replicated since the last call, as the progress records say."""
        totals, self._totals = self._totals, Totals()
        return totals

    def close(self) -> None:
        """Stop reading."""
        self._topic.close()
        self._forget()

    def _forget(self) -> None:
        self.positions.clear()
        self.reset.clear()
        self.newest.clear()
        self.answers.forget()

    def _take(self, record: ReadRecord) -> None:
        if record.key == last_run_key(self._settings.flow):
            self.last_run = decode_last_run(record.value)
            return
        if self.answers.take(record.key, record.value):
            return
        key = decode_progress_key(record.key)
        if key is None or (key.connector, key.source_alias) != (
            self._settings.connector_name,
            self._settings.flow.source,
        ):
            return
        self.reset.discard(key.partition)
        detail = decode_progress_detail(record.headers.get(PROGRESS_HEADER))
        last = decode_progress_value(record.value)
        if detail is not None and record.value is not None and detail.source.end == (-1 if last is None else last) + 1:
            self.positions[key.partition] = Position(detail.source.end, detail.target_end, detail.logs, detail.hold)
            self._remember(key.partition, detail)
            self._totals.partitions.setdefault(key.partition, Tally()).commit(detail, record.timestamp)
            self._totals.records += records_in(detail.intervals)
            self._totals.bytes += detail.bytes
            self._totals.zero_timestamps += detail.zero_timestamps
            self._totals.whole += detail.whole
            self._totals.merged += detail.merged
            if detail.lost:
                known = self._totals.losses.get(key.partition, ())
                self._totals.losses[key.partition] = (*known, *detail.lost)
            self._totals.latency_ms = self._totals.latency_ms if detail.latency_ms is None else detail.latency_ms
        elif last is not None:
            self.positions[key.partition] = Position(last + 1)  # MirrorMaker 2 wrote it
        else:
            self.positions.pop(key.partition, None)
            self.reset.add(key.partition)

    def _remember(self, partition: TopicPartition, detail: ProgressDetail) -> None:
        if not self._settings.is_exactly_once:
            return
        known = self.newest.get(partition)
        is_joined = (
            known is not None
            and len(known[-1].intervals) == INTERVALS_PER_RECORD  # cut to fit into records
            and known[-1].source.end == detail.source.start  # not behind a rewind
        )
        self.newest[partition] = [*known, detail] if known is not None and is_joined else [detail]


def copied_topics(positions: Mapping[TopicPartition, Position]) -> set[str]:
    """Source topics whose remote topic was there when something was recorded."""
    return {partition.topic for partition, known in positions.items() if known.logs.remote_id is not None}


class ProgressWriter:
    """Writes progress; a record that is not acknowledged raises ProgressFailed."""

    def __init__(self, settings: FlowSettings, writer: Writer) -> None:
        self._settings = settings
        self._writer = writer

    def commit(self, details: Mapping[TopicPartition, ProgressDetail]) -> None:
        """Record how far these partitions have come."""
        settings = self._settings
        self._writer.write(
            ControlRecord(settings.progress_topic, key, value, headers)
            for partition, detail in details.items()
            for key, value, headers in progress_records(
                settings.connector_name, settings.flow.source, partition, detail
            )
        )


def state_writer_of(clusters: Clusters, fencing: FencingToken | None, *, only: Author | None = None) -> Writer:
    """Writes the flow's own state: in the exactly-once mode for as long as `fencing` lasts, else as its author.

    That has to be `only` then, where it is said.
    """
    if fencing is not None:
        return state_writer(clusters.settings, fencing)
    return clusters.own_writer("progress", ProgressFailed, only=only)


def state_writer(settings: FlowSettings, fencing: FencingToken | None) -> Writer:
    """The same where nobody knows the author's numbers, as in another process than the driver's."""
    role = f"{settings.flow}|progress"
    if fencing is not None:
        return TransactionalWriter(fencing, role, ProgressFailed)
    return ControlWriter(settings.target, {}, role, ProgressFailed, settings.admin_timeout_seconds)


def note_run(clusters: Clusters, *, is_clean: bool, is_fenced: bool) -> None:
    """Say that a run of this flow writes from now on, or has ended with everything that it wrote recorded."""
    settings = clusters.settings
    clusters.require_lease()
    note = LastRun(is_clean, settings.is_exactly_once, settings.provenance_enabled, is_fenced)
    state_writer_of(clusters, None).write(
        [ControlRecord(settings.progress_topic, last_run_key(settings.flow), note.value())]
    )


def forget_maps(clusters: Clusters, maps: Maps, partitions: Set[TopicPartition], fencing: FencingToken | None) -> None:
    """Let the offset map of some partitions begin anew: what it says is not true of their remote topics."""
    for partition in sorted(partitions):
        text = "flow=%s partition=%s the offset map begins anew: the copies of which it speaks are not there"
        log.warning(text, clusters.settings.flow, partition)
    clusters.require_lease()
    MapWriter(clusters.settings, maps, state_writer_of(clusters, fencing)).forget(partitions)
