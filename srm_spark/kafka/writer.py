"""Writes replicated records to the target, inside an executor: runs of records in, one report row per partition out.

A record here is one row of `COLUMNS`, a run is a stretch of rows of one source partition. What the target would refuse
is found here; the rest goes to a `Sink`, which knows how records travel.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache

import pyarrow as pa

from srm_spark.core.limits import Route, clamp, first_refused, is_too_large_only
from srm_spark.core.model import PausedPartition, RefusedPolicy, TopicPartition
from srm_spark.core.provenance import Stamp
from srm_spark.core.record_batch import Authorship
from srm_spark.core.reports import PartitionReport, report_batch
from srm_spark.core.rows import ArrowRows, Rows, Run
from srm_spark.kafka.batches.hand import Hand, take_hand
from srm_spark.kafka.batches.sink import BatchSink
from srm_spark.kafka.client_sink import ClientSink
from srm_spark.kafka.recording import Recording
from srm_spark.kafka.sinks import Sink


@dataclass(frozen=True)
class WriteTask:
    """What every task of one micro-batch does; shipped to the executors, so it holds plain values only."""

    options: Mapping[str, str | int | float | bool] = field(repr=False)
    """librdkafka options of the producer."""
    routes: Mapping[str, Route]
    """Source topic → where it goes."""
    held: frozenset[TopicPartition]
    """Partitions that stand still: their rows are passed over."""
    max_bytes: int
    """A task ends early, at the end of an Arrow batch, once it has written so much."""
    timeout: float
    """Seconds without any acknowledgement after which the task gives up."""
    stamp: Stamp | None = None
    """What copies get as a provenance header; None for records as they are."""
    target_ends: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """Where the remote partitions ended before, by source partition: copies that do not follow are looked into."""
    slack: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """See `PartitionReport.slack`."""
    recording: Recording | None = None
    """In the exactly-once mode: how progress is recorded in the records' transaction."""
    authorship: Authorship | None = None
    """In the default mode: as whom the task writes batches of its own; None where librdkafka's producers write."""

    @property
    def is_in_batches(self) -> bool:
        """Whether records go in batches of our own."""
        return self.recording is not None or self.authorship is not None

    @property
    def takes_batches(self) -> bool:
        """Whether batches may go as they came: headers that copies get are matters of single records."""
        return self.is_in_batches and self.stamp is None

    def hand(self, slot: int) -> Hand:
        """By what such batches are written. Raises TargetUnavailable for a login that cannot be made here."""
        right = self.recording or self.authorship
        assert right is not None
        return take_hand(self.options, self.timeout, right, slot)

    def __call__(self, batches: Iterator[pa.RecordBatch], slot: int = 0) -> Iterator[pa.RecordBatch]:
        """Write all rows; yields one batch of report rows. `slot` is the number of the task within its batch."""
        yield self.write_all(ArrowRows(batches), slot)
        freeze_garbage()

    def write_all(self, rows: Rows, slot: int) -> pa.RecordBatch:
        """Write `rows` until they end, or `max_bytes` are written; the report rows."""
        sink = _sink(self, slot)
        try:
            reports = self.copy_all(rows, sink)
            sink.end(reports, is_failed=any(report.failure is not None for report in reports))
        except BaseException:
            sink.give_up()
            raise
        return report_batch(reports)

    def copy_all(self, rows: Rows, sink: Sink) -> list[PartitionReport]:
        """The same by a sink that is not ended here: the reports."""
        writing = Writing(self, 0, sink)
        with _no_collection(), closing(iter(rows)) as runs:
            for whole in runs:
                run = whole
                while run.count:
                    part = run.upto(self.max_bytes - writing.bytes)
                    writing.write(part)
                    run = run.slice(part.count, run.count)
                    left = {*rows.open, run.partition} if run.count else rows.open
                    if left and writing.bytes >= self.max_bytes:
                        writing.hold(rows.holds)
                        return writing.finish(left)
            writing.hold(rows.holds)
            return writing.finish()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without Python's search for cycles: thousands of new records at a time start it over and over, for nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@cache
def freeze_garbage() -> None:
    """Take what a worker process holds after its first task out of every later search for cycles.

    pyspark's worker collects all garbage behind each task, before it takes the next one: a tenth of a second among the
    objects of numpy and pyarrow, twice what a task of a few records takes otherwise.
    """
    gc.freeze()


class Writing:
    """The course of one task: `write` what comes, then `finish`; or take what is `acknowledged` now and then."""

    def __init__(self, task: WriteTask, slot: int, sink: Sink | None = None) -> None:
        """Into a `sink` of its own, where none is given."""
        self.bytes = 0
        self._task = task
        self._reports: dict[TopicPartition, PartitionReport] = {}
        self._sink = sink or _sink(task, slot)

    def write(self, run: Run) -> None:
        """Produce the rows of one run, up to the first one that the target would refuse."""
        partition = run.partition
        if (report := self.open(partition)) is None:
            return
        next_offset = int(run.offsets[-1]) + 1
        if self._task.stamp is not None:
            run = run.stamp(self._task.stamp)
        route = self._task.routes[partition.topic]
        now_ms = int(time.time() * 1000)
        if route.policy is RefusedPolicy.FIX:
            run = clamp(run, route.limits, now_ms)
        while (first := first_refused(run, route.limits, now_ms)) is not None:
            at, reason = first
            if at:
                self._produce(route, run.head(at))
            refused, run = run.slice(at, at + 1), run.slice(at + 1, run.count)
            if is_too_large_only(refused, route.limits, now_ms) and self._sink.takes(route, refused):
                self.bytes += refused.bytes
                continue
            report.hold = PausedPartition(int(refused.offsets[0]), reason)
            report.to_quarantine = route.policy is RefusedPolicy.PARK
            break
        if run.count and report.hold is None:
            self._produce(route, run)
        report.next_offset = report.hold.offset if report.hold else next_offset

    def hold(self, holds: Mapping[TopicPartition, PausedPartition]) -> None:
        """Let partitions wait in front of what cannot be read."""
        for partition, hold in holds.items():
            if partition in self._task.held:
                continue
            report = self._report(partition)
            if report.hold is None:
                report.hold, report.next_offset = hold, hold.offset

    def open(self, partition: TopicPartition) -> PartitionReport | None:
        """The report of a partition; None where that stands still."""
        if partition in self._task.held:
            return None
        report = self._report(partition)
        return report if report.hold is None else None

    def _report(self, partition: TopicPartition) -> PartitionReport:
        report = self._reports.get(partition)
        if report is None:
            end, slack = self._task.target_ends.get(partition), self._task.slack.get(partition, 0)
            report = self._reports[partition] = PartitionReport(partition, target_end=end, slack=slack)
        return report

    def _produce(self, route: Route, run: Run) -> None:
        self._sink.produce(route, run)
        self.bytes += run.bytes

    def finish(self, left: Set[TopicPartition] = frozenset()) -> list[PartitionReport]:
        """Wait for the acknowledgements and turn them into reports; of the partitions `left` more may follow."""
        for answer in self._sink.finish():
            answer.into(self._reports[answer.partition])
        reports = list(self._reports.values())
        for report in reports:
            report.is_cut, report.is_complete = bool(left), report.partition not in left
        return reports

    @property
    def reports(self) -> Mapping[TopicPartition, PartitionReport]:
        """What was taken in, acknowledged or not."""
        return self._reports

    @property
    def sink(self) -> Sink:
        """Where the records go: for who takes acknowledgements now and then."""
        return self._sink


def _sink(task: WriteTask, slot: int) -> Sink:
    if task.is_in_batches:
        return BatchSink(task.hand(slot))
    return ClientSink(task.options, task.timeout, needs_each=task.stamp is not None)
