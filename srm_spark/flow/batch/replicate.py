"""One micro-batch of a flow, from rows to recorded progress.

```
check    topics of the source    ranges that are still there, what was deleted before us     flow.recovery.guard
read     ranges                  records (offset, timestamp, key, value, headers)            flow.batch.reading
route    source topic            remote topic, same partition                                flow.topics.remote_topics
write    records, on executors   target records, and one report per partition                kafka.writer
judge    reports                 exact intervals: source range ↔ target range                flow.batch.outcome
commit   intervals               offset map, offset syncs, progress, in this order           flow.topics.committer
set aside what was refused       quarantine; then commit once more, behind it                flow.refused.quarantining
```

The order is the guarantee: what is recorded is on the target, progress never knows more than the map, and a crash
before `commit` leaves at most one batch that is on the target but not recorded.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Writer
from srm_spark.core.intervals import gaps_of, spread_of
from srm_spark.core.limits import Route
from srm_spark.core.model import (
    UNKNOWN,
    LogIdentity,
    OffsetRange,
    PausedPartition,
    ProgressDetail,
    RefusedPolicy,
    TopicPartition,
)
from srm_spark.core.record_batch import Author, Authorship
from srm_spark.core.reports import PartitionReport
from srm_spark.core.wording import count
from srm_spark.errors import FlowError, QueryFailed
from srm_spark.failure import Effect, Failure
from srm_spark.flow.batch.outcome import PassOutcome, judge
from srm_spark.flow.batch.reading import Reading
from srm_spark.flow.batch.schedule import PassSchedule
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.guard import Checked, SourceGuard
from srm_spark.flow.recovery.target_leaders import TargetLeaders
from srm_spark.flow.refused.quarantining import Quarantining
from srm_spark.flow.refused.unreadable import fixed_rows
from srm_spark.flow.topics.committer import Committer
from srm_spark.flow.topics.offset_map import Maps
from srm_spark.flow.topics.progress import Position, state_writer_of
from srm_spark.flow.topics.syncs import sync_writer_of
from srm_spark.kafka.batches.ways import is_used
from srm_spark.kafka.clients import options
from srm_spark.kafka.fencing import FencingToken
from srm_spark.kafka.lease import Permit
from srm_spark.kafka.producers import delivery_timeout, record_options
from srm_spark.kafka.recording import Recording
from srm_spark.kafka.writer import WriteTask
from srm_spark.spark import DataFrame, SparkSession
from srm_spark.spark.offsets import batch_ends
from srm_spark.spark.source import given

log = logging.getLogger(__name__)

_TURN_SECONDS = 3.0
"""So long a limit may keep a batch from asking what is new on the source."""


@dataclass(frozen=True)
class Assignment:
    """What one generation of a flow's query replicates."""

    starts: Mapping[TopicPartition, Position]
    """Every partition that is read, and from where."""
    routes: Mapping[str, Route]
    logs: Mapping[TopicPartition, LogIdentity]
    """Of which topics and epochs that is true."""
    syncs_topic: str
    tasks: int
    """Most Spark tasks per batch."""
    maps: Maps = field(default_factory=dict)
    """The offset map so far."""
    fencing: FencingToken | None = None
    """In the exactly-once mode: the right of this generation to write."""
    author: Author | None = None
    """In the default mode: as whom it writes; None where librdkafka's producers do."""
    state: Writer | None = None
    """Writes the flow's own state as this author; None where a client is made for it."""
    permit: Permit | None = None
    """Says right before anything is written whether the flow is still ours."""

    def require_lease(self) -> None:
        """Raises LeaseLost where nothing of the flow may be written any more."""
        if self.permit is not None:
            self.permit.require()

    def committer(self, settings: FlowSettings) -> Committer:
        """Records what this generation replicates."""
        return Committer(settings, self.maps, self.syncs_topic, self.fencing, self.require_lease, self.state)


@dataclass(frozen=True)
class Means:
    """What passes go through where that is there already; it does not travel."""

    clusters: Clusters
    write: Callable[[WriteTask, Mapping[TopicPartition, OffsetRange]], list[PartitionReport]]
    """Writes one pass, and says what came of it."""


@dataclass
class Replication:
    """The batch function of one generation. Travels by pickle before its first batch, so clients are made late."""

    settings: FlowSettings
    assignment: Assignment
    checkpoint: Path | None = None
    """Where Spark logs the end of each batch."""
    is_stopping: Callable[[], bool] = lambda: False
    """Whether to end between two passes, also amid a batch."""
    means: Means | None = None
    """None: tasks of Spark write, and clients of both clusters are made when they are first needed."""
    _positions: dict[TopicPartition, int] = field(default_factory=dict)
    _target_ends: dict[TopicPartition, int | None] = field(default_factory=dict)
    _holds: dict[TopicPartition, PausedPartition] = field(default_factory=dict)
    _committer: Committer = field(init=False)
    _guard: SourceGuard = field(init=False)
    _schedule: PassSchedule = field(init=False)
    _left: Mapping[TopicPartition, OffsetRange] = field(default_factory=dict)
    """What the newest batch did not come to, which Spark takes for done."""
    _writers: dict[int, str] = field(default_factory=dict)
    """Slot → the process that wrote it last."""
    _sequences: dict[TopicPartition, int] = field(default_factory=dict)
    """Source partition → the number of the next record of its remote partition."""
    _uncopied: dict[TopicPartition, int] = field(default_factory=dict)
    """How many offsets without a copy are behind the copies of each partition, or will be: markers of transactions of
    this generation, and records of those that came to nothing.
    """
    _leaders: TargetLeaders = field(init=False)

    def __post_init__(self) -> None:
        starts = self.assignment.starts
        self._positions = {partition: start.next_offset for partition, start in starts.items()}
        self._target_ends = {partition: start.target_end for partition, start in starts.items()}
        self._leaders = TargetLeaders(self.settings)
        self._committer = self.assignment.committer(self.settings)
        self._guard = SourceGuard(self.settings, self.assignment.logs, self.assignment.routes)
        if self.means is not None:
            self._through(self.means.clusters)
        is_exact, topics = self.assignment.fencing is not None, frozenset(self.assignment.routes)
        self._schedule = PassSchedule(self.settings, self.assignment.tasks, is_exact, topics)

    def _through(self, clusters: Clusters) -> None:
        assignment = self.assignment
        self._leaders = TargetLeaders(self.settings, clusters.target)
        self._committer.state = assignment.state or state_writer_of(clusters, assignment.fencing)
        self._committer.syncs = sync_writer_of(clusters)
        self._guard = SourceGuard(
            self.settings, assignment.logs, assignment.routes, clusters.source, lambda _: clusters
        )

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Replicate what Spark gives as one micro-batch, and what the one before left.

        It ends behind any pass where it is to stop. A limited flow goes in turns of a few seconds, and ends behind one
        where the source has records that go first: they come with the next batch, as does what is left of this one.
        """
        assert self.checkpoint is not None
        ends = batch_ends(self.checkpoint, batch_id)
        session, rows = frame.sparkSession, None if is_used(self.settings.batch.in_loop) else frame
        self._turns(session, rows, ends)

    def replicate_to(self, ends: Mapping[TopicPartition, int]) -> None:
        """The same up to these source offsets, without Spark: in this process."""
        self._turns(None, None, ends)

    def _turns(self, session: SparkSession | None, rows: DataFrame | None, ends: Mapping[TopicPartition, int]) -> None:
        self._turn(session, rows, ends)
        while self._left and not self.is_stopping() and not self._guard.has_more(self._going_first(ends)):
            self._turn(session, rows, ends)

    def _turn(self, session: SparkSession | None, rows: DataFrame | None, ends: Mapping[TopicPartition, int]) -> None:
        ranges = {p: OffsetRange(self._positions[p], end) for p, end in ends.items() if end != self._positions[p]}
        due = {p: r for p, r in ranges.items() if p not in self._holds}
        checked = self._guard.before(due, self._committer.known)
        self._pass_over(checked)
        self._left = self._replicate(session, checked.ranges, None if self._left else rows, _TURN_SECONDS)

    def _going_first(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where the batch ends in the partitions that go before the last of those that are left."""
        last = max(self._schedule.rank(partition.topic) for partition in self._left)
        return {
            partition: end
            for partition, end in ends.items()
            if self._schedule.rank(partition.topic) < last and partition not in self._holds
        }

    def take_in(self, reports: Iterable[PartitionReport]) -> None:
        """Record what was written outside of a batch. Raises SourceChanged where the source is not what it was."""
        reported = {report.partition: (self._positions[report.partition], report) for report in reports}
        ranges = {p: OffsetRange(start, max(start, report.next_offset)) for p, (start, report) in reported.items()}
        self._guard.unchanged(ranges)
        self._judge(ranges, [report for _, report in reported.values()])

    def copy(self, session: SparkSession, ranges: Mapping[TopicPartition, OffsetRange]) -> None:
        """Replicate bounded ranges outside of the stream."""
        self._replicate(session, ranges)

    def put_aside(
        self,
        session: SparkSession,
        paused: Mapping[TopicPartition, PausedPartition],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """Pass records that Spark cannot read by the policy of their topic, where everything before them is done.

        `ends` is where the source partitions end.
        """
        ranges = {
            partition: OffsetRange(hold.offset, ends[partition])
            for partition, hold in paused.items()
            if partition in ends and self._positions[partition] == hold.offset and partition not in self._holds
        }
        policies = {partition: self.assignment.routes[partition.topic].policy for partition in ranges}
        self._set_aside({p: (r, None) for p, r in ranges.items() if policies[p] is RefusedPolicy.PARK})
        for partition, offsets in ranges.items():
            if policies[partition] is RefusedPolicy.FIX:
                self._copy_fixed(session, partition, offsets)

    @property
    def holds(self) -> Mapping[TopicPartition, PausedPartition]:
        """Partitions that stand still."""
        return self._holds

    @property
    def topic_ids(self) -> Mapping[str, str]:
        """Ids of the source topics whose records are meant, as far as they are known."""
        return self._guard.topic_ids

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """First source offset that is not replicated, of each partition."""
        return self._positions

    def _replicate(
        self,
        session: SparkSession | None,
        ranges: Mapping[TopicPartition, OffsetRange],
        rows: DataFrame | None = None,
        seconds: float = math.inf,
    ) -> Mapping[TopicPartition, OffsetRange]:
        """Replicate `ranges` in passes of about `batch.max.bytes`, or of what a limit allows.

        `rows` are all of theirs, where Spark has a plan of them already.

        Returns what is left where it is to stop, or where a limit made it longer than `seconds`.
        """
        began = time.monotonic()
        ends = {partition: offsets.end for partition, offsets in ranges.items()}
        while ranges:
            part = self._schedule.next(ranges)
            if not self._schedule.admit(part, self.is_stopping):
                return ranges
            self._schedule.paid(self._pass(session, part, ends, rows if part == ranges else None))
            rows = None
            ranges = {
                partition: OffsetRange(self._positions[partition], ends[partition])
                for partition in ranges
                if self._positions[partition] < ends[partition] and partition not in self._holds
            }
            if self.is_stopping() or (self._schedule.is_limited and time.monotonic() - began > seconds):
                return ranges
        return {}

    def _pass(
        self,
        session: SparkSession | None,
        part: Mapping[TopicPartition, OffsetRange],
        ends: Mapping[TopicPartition, int],
        rows: DataFrame | None,
    ) -> int:
        """Write `part`, of which `rows` may be the rows, and record what came of it.

        `ends` is how far refused records may go. Returns the bytes that were written.
        """
        began = time.monotonic()
        outcome = self._judge(part, self._write(session, part, rows))
        written = sum(detail.bytes for detail in outcome.details.values())
        self._schedule.committed(written, time.monotonic() - began)
        self._set_aside({p: (OffsetRange(hold.offset, ends[p]), hold.why) for p, hold in outcome.refused.items()})
        return written

    def _judge(self, ranges: Mapping[TopicPartition, OffsetRange], reports: list[PartitionReport]) -> PassOutcome:
        outcome = judge(ranges, reports, self._target_ends, self._guard.logs)
        for partition in [report.partition for report in reports if report.in_transaction]:
            spread = spread_of(outcome.details[partition], self._target_ends[partition])
            self._uncopied[partition] = self._uncopied.get(partition, 0) - spread + 1
        for report in reports:
            self._uncopied[report.partition] = self._uncopied.get(report.partition, 0) + report.aborted
        self._leaders.require_same(self._among_others(outcome), self._guard.logs)
        gaps = {p: found for p, detail in outcome.details.items() if (found := gaps_of(detail))}
        lost = self._guard.after(gaps, self._committer.known)
        details = {
            p: replace(detail, lost=lost.get(p, ()), logs=self._guard.logs.get(p, UNKNOWN))
            for p, detail in outcome.details.items()
        }
        self._commit(details, outcome.committed)
        self._schedule.learn(details)
        if outcome.failures:
            self._schedule.aborted(sum(report.rolled_back for report in reports))
            raise self._failure(outcome.failures)
        return outcome

    def _among_others(self, outcome: PassOutcome) -> dict[TopicPartition, TopicPartition]:
        """Source → remote partition, of those where others may write and something lies in front of new copies."""
        routes = self.assignment.routes
        return {
            p: routes[p.topic].remote(p)
            for p, detail in outcome.details.items()
            if self._slack(p) is None and spread_of(detail, self._target_ends[p]) > 0
        }

    def _failure(self, failures: Mapping[TopicPartition, Failure]) -> FlowError:
        changed = next((p for p, why in failures.items() if why.kind.effect is Effect.STARTS_ANEW), None)
        partition = changed or next(iter(failures))
        return QueryFailed(
            f"flow {self.settings.flow}: {count(len(failures), 'partition')} could not be written, first "
            f"{partition} at offset {self._positions[partition]}: {failures[partition]}",
            failures[partition].kind,
        )

    def write_task(self, ranges: Mapping[TopicPartition, OffsetRange]) -> WriteTask:
        """What the tasks do that write `ranges`."""
        settings = self.settings
        timeout = delivery_timeout(settings.producer)
        rendered = options(settings.target, settings.producer, f"{settings.flow}|producer")
        return WriteTask(
            options=record_options(rendered, timeout),
            routes={partition.topic: self.assignment.routes[partition.topic] for partition in ranges},
            held=frozenset(self._holds),
            max_bytes=self._schedule.task_bytes(ranges),
            timeout=timeout,
            stamp=settings.stamp,
            target_ends={partition: self._target_ends[partition] for partition in ranges},
            slack={partition: self._slack(partition) for partition in ranges},
            recording=self._recording(ranges),
            authorship=self._authorship(ranges),
        )

    def _authorship(self, ranges: Mapping[TopicPartition, OffsetRange]) -> Authorship | None:
        author, routes = self.assignment.author, self.assignment.routes
        if author is None:
            return None
        numbers = {routes[p.topic].remote(p): self._sequences.get(p, 0) for p in ranges}
        return Authorship(author, numbers)

    def _slack(self, partition: TopicPartition) -> int | None:
        """See `PartitionReport.slack`. A transaction leaves a marker, sooner or later: no more of them than those."""
        settings = self.settings
        if settings.stamp is not None or not settings.policies.stops("foreign.writer.policy", partition.topic):
            return None
        return self._uncopied.get(partition, 0)

    def _write(
        self, session: SparkSession | None, ranges: Mapping[TopicPartition, OffsetRange], rows: DataFrame | None
    ) -> list[PartitionReport]:
        self.assignment.require_lease()
        task = self.write_task(ranges)
        try:
            if self.means is not None:
                reports = self.means.write(task, ranges)
            else:
                reading = Reading(self.settings, self.assignment.tasks, self._schedule.sizes, self._guard.topic_ids)
                reports = reading.write(session, task, ranges, rows, self._schedule.pass_bytes)
        except Exception:
            self._schedule.aborted(0)
            raise
        self._sequences.update((r.partition, r.next_sequence) for r in reports if r.next_sequence is not None)
        self._writers.update((r.slot, r.writer) for r in reports if r.slot is not None and r.writer is not None)
        if any(report.failure is not None for report in reports):
            # Whoever was rolled back has begun under newer epochs, and does not say in which slot.
            self._writers.clear()
        return reports

    def _recording(self, ranges: Mapping[TopicPartition, OffsetRange]) -> Recording | None:
        settings, fencing = self.settings, self.assignment.fencing
        if fencing is None:
            return None
        return Recording(
            fencing,
            settings.connector_name,
            settings.flow.source,
            settings.progress_topic,
            ranges,
            {partition: self._target_ends[partition] for partition in ranges},
            {partition: self._guard.logs[partition] for partition in ranges},
            dict(self._writers),
        )

    def _pass_over(self, checked: Checked) -> None:
        """Record what the source has deleted in front of us, and what is held for it."""
        details = {p: self._passed(p, end, lost=checked.lost.get(p, ())) for p, end in checked.passed.items()}
        details.update((p, self._passed(p, hold.offset, hold=hold)) for p, hold in checked.holds.items())
        self._commit(details)

    def _copy_fixed(self, session: SparkSession, partition: TopicPartition, offsets: OffsetRange) -> None:
        rows = fixed_rows(self.settings, partition, offsets, self.assignment.routes[partition.topic].limits)
        if rows:
            end = rows[-1][2] + 1
            self._pass(session, {partition: OffsetRange(offsets.start, end)}, {partition: end}, given(session, rows))

    def _set_aside(self, refused: Mapping[TopicPartition, tuple[OffsetRange, Failure | None]]) -> None:
        """Put records aside that cannot be copied, then record that they are passed. Ranges start at the first one."""
        if not refused:
            return
        quarantining = Quarantining(
            self.settings, self.assignment.routes, self._guard.topic_ids, self._committer.writer
        )
        self.assignment.require_lease()
        passed = {p: quarantining.put(p, offsets, reason) for p, (offsets, reason) in refused.items()}
        self._commit({partition: self._passed(partition, end) for partition, end in passed.items()})

    def _passed(self, partition: TopicPartition, end: int, **more: Any) -> ProgressDetail:
        """What there is to record of offsets up to `end` that were not copied."""
        source, logs = OffsetRange(self._positions[partition], end), self._guard.logs.get(partition, UNKNOWN)
        return ProgressDetail(source, self._target_ends[partition], (), logs=logs, **more)

    def _commit(
        self, details: Mapping[TopicPartition, ProgressDetail], committed: Set[TopicPartition] = frozenset()
    ) -> None:
        """Record what was replicated, and go on behind it."""
        self._committer.commit(details, committed)
        for partition, detail in details.items():
            self._positions[partition] = detail.source.end
            self._target_ends[partition] = detail.target_end
            if detail.hold is not None:
                self._holds[partition] = detail.hold
            if detail.zero_timestamps:
                text = "flow=%s partition=%s %s with CreateTime 0: written with the time of the copy"
                log.warning(text, self.settings.flow, partition, count(detail.zero_timestamps, "record"))
