"""One micro-batch of a flow, from rows to recorded progress.

```
check     topics of the source  → ranges that are still there, what was deleted before us             flow.guard
read      topics of the flow    → rows (topic, partition, offset, timestamp, key, value, headers)   spark.source
route     source topic          → remote topic, same partition                                     flow.topics
write     rows, on executors    → target records + one report per partition                        kafka.writer
judge     reports               → exact intervals (source range ↔ target range)                    flow.outcome
map       intervals             → offset map                                                       flow.offset_map
sync      intervals             → offset-syncs topic                                               flow.syncs
commit    last source offset    → progress topic                                                   flow.progress
```

The order is the guarantee: what is recorded is on the target, progress never knows more than the map, and a crash
before `commit` leaves at most one batch that is on the target but not recorded.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from srm_spark.config.render import spark_kafka_options
from srm_spark.config.settings import FlowSettings
from srm_spark.errors import TargetWriteFailed
from srm_spark.flow.guard import Checked, SourceGuard
from srm_spark.flow.offset_map import Maps, MapWriter
from srm_spark.flow.outcome import Done, Outcome, judge
from srm_spark.flow.passes import RecordSizes
from srm_spark.flow.progress import Position, ProgressWriter, state_writer
from srm_spark.flow.syncs import SyncWriter
from srm_spark.kafka.clients import options
from srm_spark.kafka.control import Writer
from srm_spark.kafka.limits import Route
from srm_spark.kafka.producers import delivery_timeout, record_options
from srm_spark.kafka.reports import REPORT_SCHEMA, PartitionReport, read_report
from srm_spark.kafka.terms import Term
from srm_spark.kafka.transactions import Recording
from srm_spark.kafka.writer import WriteTask
from srm_spark.model import Hold, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.spark import DataFrame, SparkSession
from srm_spark.spark.offsets import batch_ends
from srm_spark.spark.source import bounded
from srm_spark.spark.write import run

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Assignment:
    """What one generation of a flow's query replicates."""

    starts: Mapping[TopicPartition, Position]
    """Every partition that is read, and from where."""
    routes: Mapping[str, Route]
    topic_ids: Mapping[str, str]
    syncs_topic: str
    tasks: int
    """Most Spark tasks per batch."""
    maps: Maps = field(default_factory=dict)
    """The offset map so far."""
    term: Term | None = None
    """In the exactly-once mode: the right of this generation to write."""


@dataclass
class Replication:
    """The batch function of one generation. Travels by pickle before its first batch, so clients are made late."""

    settings: FlowSettings
    assignment: Assignment
    checkpoint: Path | None = None
    """Where Spark logs the end of each batch."""
    _positions: dict[TopicPartition, int] = field(default_factory=dict)
    _target_ends: dict[TopicPartition, int | None] = field(default_factory=dict)
    _holds: dict[TopicPartition, Hold] = field(default_factory=dict)
    _writer: Writer | None = None
    _maps: MapWriter | None = None
    _syncs: SyncWriter | None = None
    _progress: ProgressWriter | None = None
    _guard: SourceGuard = field(init=False)
    _sizes: RecordSizes = field(default_factory=RecordSizes)
    _writers: dict[int, str] = field(default_factory=dict)
    """Slot → the process that wrote it last."""
    _batch_bytes: int | None = None
    """In the exactly-once mode, where one producer writes all topics: the largest batch that all of them take."""

    def __post_init__(self) -> None:
        starts = self.assignment.starts
        self._positions = {partition: start.next_offset for partition, start in starts.items()}
        self._target_ends = {partition: start.target_end for partition, start in starts.items()}
        self._guard = SourceGuard(self.settings, self.assignment.topic_ids)
        if self.assignment.term is not None:
            sizes = (route.limits.batch_bytes for route in self.assignment.routes.values())
            self._batch_bytes = min(sizes, default=None)

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Replicate what Spark gives as one micro-batch."""
        assert self.checkpoint is not None
        ends = batch_ends(self.checkpoint, batch_id)
        ranges = {p: OffsetRange(self._positions[p], end) for p, end in ends.items() if end > self._positions[p]}
        checked = self._guard.before({p: r for p, r in ranges.items() if p not in self._holds})
        self._pass_over(checked)
        self._replicate(frame, checked.ranges)

    def copy(self, session: SparkSession, ranges: Mapping[TopicPartition, OffsetRange]) -> None:
        """Replicate bounded ranges outside of the stream."""
        if ranges:
            self._replicate(self._read(session, ranges), ranges)

    def _replicate(self, frame: DataFrame, ranges: Mapping[TopicPartition, OffsetRange]) -> None:
        """Replicate `ranges`, which `frame` reads, in passes of about `batch.max.bytes`."""
        ends = {partition: offsets.end for partition, offsets in ranges.items()}
        while ranges:
            part = self._sizes.affordable(ranges, self.settings.batch.max_bytes)
            source = frame if part == ranges else self._read(frame.sparkSession, part)
            outcome = judge(part, self._write(source, part))
            self._record(outcome)
            self._sizes.learn(outcome.done)
            if outcome.failures:
                partition, reason = next(iter(outcome.failures.items()))
                raise TargetWriteFailed(
                    f"flow {self.settings.flow}: {len(outcome.failures)} partitions could not be written, first "
                    f"{partition} at offset {self._positions[partition]}: {reason}"
                )
            ranges = {
                partition: OffsetRange(self._positions[partition], ends[partition])
                for partition in ranges
                if self._positions[partition] < ends[partition] and partition not in self._holds
            }
            if ranges:
                frame = self._read(frame.sparkSession, ranges)

    def _read(self, session: SparkSession, ranges: Mapping[TopicPartition, OffsetRange]) -> DataFrame:
        return bounded(session, spark_kafka_options(self.settings.source, self.settings.consumer), ranges)

    def _write(self, frame: DataFrame, ranges: Mapping[TopicPartition, OffsetRange]) -> list[PartitionReport]:
        settings, tasks = self.settings, self.assignment.tasks
        topics = {partition.topic for partition in ranges}
        timeout = delivery_timeout(settings.producer)
        rendered = options(settings.target, settings.producer, f"{settings.flow}|producer")
        task = WriteTask(
            options=record_options(rendered, timeout, self._batch_bytes),
            routes={topic: self.assignment.routes[topic] for topic in topics},
            held=frozenset(self._holds),
            # A pass is cut to size before it starts; a task that ends early costs Spark memory, so it has some room.
            max_bytes=max(1, 2 * settings.batch.max_bytes // tasks),
            timeout=timeout,
            stamp=settings.stamp,
            recording=self._recording(ranges),
        )
        batch = settings.batch
        bounds = self._sizes.arrow_bounds(topics, batch.arrow_max_records, batch.arrow_max_bytes)
        reports = [read_report(row) for row in run(frame, task, REPORT_SCHEMA, min(tasks, len(ranges)), bounds)]
        self._writers.update((r.slot, r.writer) for r in reports if r.slot is not None and r.writer is not None)
        return reports

    def _recording(self, ranges: Mapping[TopicPartition, OffsetRange]) -> Recording | None:
        settings, term = self.settings, self.assignment.term
        if term is None:
            return None
        topics = {partition.topic for partition in ranges}
        return Recording(
            term,
            settings.connector_name,
            settings.flow.source,
            settings.progress_topic,
            ranges,
            {partition: self._target_ends[partition] for partition in ranges},
            {topic: found for topic, found in self.assignment.topic_ids.items() if topic in topics},
            dict(self._writers),
        )

    def _pass_over(self, checked: Checked) -> None:
        """Record what the source has deleted in front of us, and what is held for it."""
        details = {p: self._detail(p, Done(lost.end), (lost,)) for p, lost in checked.lost.items()}
        details.update((p, self._detail(p, Done(hold.offset, hold=hold), ())) for p, hold in checked.holds.items())
        if details:
            self._commit(details)

    def _record(self, outcome: Outcome) -> None:
        lost = self._guard.after(self._gaps(outcome))
        self._commit(
            {p: self._detail(p, done, (lost[p],) if p in lost else ()) for p, done in outcome.done.items()},
            recorded={partition for partition, done in outcome.done.items() if done.is_recorded},
        )

    def _gaps(self, outcome: Outcome) -> dict[TopicPartition, OffsetRange]:
        """Offsets without a record at the start of what was done."""
        firsts = {p: done.intervals[0].upstream if done.intervals else done.end for p, done in outcome.done.items()}
        return {p: OffsetRange(self._positions[p], first) for p, first in firsts.items() if first > self._positions[p]}

    def _detail(self, partition: TopicPartition, done: Done, lost: tuple[OffsetRange, ...]) -> ProgressDetail:
        ends = self._target_ends
        return ProgressDetail(
            source=OffsetRange(self._positions[partition], done.end),
            target_end=done.intervals[-1].downstream_end if done.intervals else ends[partition],
            intervals=tuple(done.intervals),
            hold=done.hold,
            topic_id=self.assignment.topic_ids.get(partition.topic),
            bytes=done.bytes,
            latency_ms=done.latency_ms,
            zero_timestamps=done.zero_timestamps,
            lost=lost,
        )

    def _commit(
        self, details: Mapping[TopicPartition, ProgressDetail], recorded: Set[TopicPartition] = frozenset()
    ) -> None:
        """Record what was replicated; progress of `recorded` partitions was committed with their records."""
        writer = self._writer = self._writer or state_writer(self.settings, self.assignment.term)
        self._maps = self._maps or MapWriter(self.settings, self.assignment.maps, writer)
        self._maps.write(details)
        if self.settings.syncs.enabled:
            self._syncs = self._syncs or SyncWriter(self.settings, self.assignment.syncs_topic)
            self._syncs.write({partition: detail.intervals for partition, detail in details.items()})
        self._progress = self._progress or ProgressWriter(self.settings, writer)
        self._progress.commit(unrecorded(details, recorded))
        for partition, detail in details.items():
            self._positions[partition] = detail.source.end
            self._target_ends[partition] = detail.target_end
            where = f"flow={self.settings.flow} partition={partition}"
            if detail.hold is not None:
                self._holds[partition] = detail.hold
                log.warning("%s held at offset %s: %s", where, detail.hold.offset, detail.hold.reason)
            if detail.zero_timestamps:
                text = "%s %s records have CreateTime 0 and were written with the time of the copy"
                log.warning(text, where, detail.zero_timestamps)


def unrecorded(
    details: Mapping[TopicPartition, ProgressDetail], recorded: Set[TopicPartition]
) -> dict[TopicPartition, ProgressDetail]:
    """What is left to say as progress: of `recorded` partitions only what the source deleted meanwhile."""
    left = {partition: detail for partition, detail in details.items() if partition not in recorded}
    for partition in recorded:
        detail = details[partition]
        if detail.lost:
            end = OffsetRange(detail.source.end, detail.source.end)
            left[partition] = ProgressDetail(end, detail.target_end, (), detail.hold, detail.topic_id, lost=detail.lost)
    return left
