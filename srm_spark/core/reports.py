"""What a write task tells the driver: one row per source partition, and how they travel through Spark."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from srm_spark.core.intervals import FEW, Growing, Stretches, as_text, of_text
from srm_spark.core.model import Interval, LogIdentity, OffsetRange, PausedPartition, ProgressDetail, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.failure import Effect, Failure, FailureKind

REPORT_SCHEMA = "report string"
"""Spark's schema of the rows of `report_batch`."""
_IN_TASK = ("target_end", "slack")
"""Fields of a report that matter while it is made."""


@dataclass(frozen=True)
class Sent:
    """What is remembered of a run until it is acknowledged; the run itself would keep its Arrow batch in memory."""

    stretches: Sequence[OffsetRange]
    """Source offsets, cut where one is missing."""
    count: int
    bytes: int
    zero_timestamps: int
    last_timestamp: int
    whole: int = 0
    """Of these records, those that go in the batches that they came in."""
    merged: int = 0
    """And those that were packed anew without being looked at one by one."""

    @classmethod
    def of(cls, run: Run) -> Sent:
        """The run's numbers."""
        return cls(
            stretches=stretches_of(run.offsets),
            count=run.count,
            bytes=run.bytes,
            zero_timestamps=int((run.timestamps == 0).sum()),
            last_timestamp=int(run.timestamps[-1]),
        )

    def pieces(self, downstream: Sequence[int]) -> Iterator[tuple[Sent, int, int]]:
        """The parts that lie in one piece on the target, where others write in between, with both their ends there.

        `downstream` has the target offset of each record.
        """
        there = np.array(downstream, np.int64)
        borders = [0, *(np.flatnonzero(np.diff(there) != 1) + 1).tolist(), self.count]
        offsets = np.concatenate([np.arange(start, end) for start, end in self.stretches])
        for start, end in itertools.pairwise(borders):
            is_last = end == self.count  # it speaks for all of them
            yield (
                Sent(
                    stretches_of(offsets[start:end]),
                    end - start,
                    self.bytes if is_last else 0,
                    self.zero_timestamps if is_last else 0,
                    self.last_timestamp if is_last else -1,
                ),
                int(there[start]),
                int(there[end - 1]),
            )


def stretches_of(offsets: npt.NDArray[np.int64]) -> tuple[OffsetRange, ...]:
    """Offsets in order, at least one, cut where one is missing."""
    starts = np.concatenate(([0], np.flatnonzero(np.diff(offsets) != 1) + 1))
    firsts, lasts = offsets[starts].tolist(), offsets[np.append(starts[1:], len(offsets)) - 1].tolist()
    return tuple(OffsetRange(first, last + 1) for first, last in zip(firsts, lasts, strict=True))


@dataclass
class PartitionReport:
    """What one task did to one source partition."""

    partition: TopicPartition
    intervals: Sequence[Interval] = ()
    """What was acknowledged, before any failure."""
    next_offset: int = -1
    """Source offset behind the last row that was taken in."""
    is_complete: bool = True
    """False where the task ended early, so that more rows may follow."""
    is_cut: bool = False
    """The task that reports ended before its rows did: partitions without a report may be untouched."""
    hold: PausedPartition | None = None
    """The first record that the target would refuse."""
    to_quarantine: bool = False
    """That record goes into quarantine: the driver puts it there, and the partition does not wait."""
    failure: Failure | None = None
    records: int = 0
    whole: int = 0
    """Of these records, those that were copied in the batches that they came in."""
    merged: int = 0
    """And those that were packed anew without being looked at one by one."""
    bytes: int = 0
    """Of batches as they travelled; of keys and values where librdkafka writes."""
    zero_timestamps: int = 0
    """Records with CreateTime 0, which the client library sends as now."""
    latency_ms: int | None = None
    """Acknowledgement minus record timestamp, of the last record."""
    slot: int | None = None
    """In the exactly-once mode: the slot in whose transaction records and progress were committed."""
    writer: str | None = None
    """The process that did."""
    in_transaction: bool = False
    """The remote partition was taken into that transaction, which leaves a marker there."""
    next_sequence: int | None = None
    """The number of the remote partition's next record under the flow's producer id; None where it has none."""
    rolled_back: int = 0
    """Bytes that were acknowledged in a transaction that came to nothing."""
    aborted: int = 0
    """Offsets of the remote partition that went there: records that were acknowledged, and the marker behind them."""
    target_end: int | None = None
    """Where the remote partition ended before, if that is known."""
    slack: int | None = 0
    """How many offsets there may be without a copy: markers of transactions. None where others may write."""

    def __post_init__(self) -> None:
        self.intervals = Growing(self.intervals)

    def reached(self, start: int, end: int) -> int:
        """First source offset of `start` to `end` that is not done."""
        if self.failure is not None:
            return self.intervals[-1].upstream_end if self.intervals else start
        if self.hold is not None:
            return self.hold.offset
        return end if self.is_complete else self.next_offset

    def detail(self, source: OffsetRange, target_end: int | None, logs: LogIdentity) -> ProgressDetail:
        """What there is to record of `source`; `target_end` is where the remote partition ended before."""
        return ProgressDetail(
            source=source,
            target_end=self.intervals[-1].downstream_end if self.intervals else target_end,
            intervals=self._copies.taken(),
            hold=self.paused(source.end),
            logs=logs,
            bytes=self.bytes,
            latency_ms=self.latency_ms,
            zero_timestamps=self.zero_timestamps,
            whole=self.whole,
            merged=self.merged,
        )

    def paused(self, reached: int) -> PausedPartition | None:
        """Where the partition waits: at a record that is refused, or at a failure that would come again at once."""
        if self.failure is not None:
            return PausedPartition(reached, self.failure) if self.failure.kind.effect is Effect.PAUSES else None
        return None if self.to_quarantine else self.hold

    @property
    def refused(self) -> PausedPartition | None:
        """The record behind what was copied that goes into quarantine."""
        return self.hold if self.to_quarantine and self.failure is None else None

    def undo(self, failure: Failure, *, gets_marker: bool) -> None:
        """Nothing of this was committed, for its own failure or for another partition's of the same transaction.

        `gets_marker` says whether the remote partition was taken into that.
        """
        self.failure = self.failure or Failure(FailureKind.ROLLED_BACK, f"rolled back: {failure}")
        self.rolled_back, self.aborted = self.bytes, self.records + gets_marker
        self.intervals = Growing()
        self.hold, self.to_quarantine, self.latency_ms = None, False, None
        self.records = self.whole = self.merged = self.bytes = self.zero_timestamps = 0

    def add(self, sent: Sent, first: int, last: int, at: float, error: Failure | None) -> None:
        """Take in the acknowledgements of the next run: target offsets of its two ends, time of the last one."""
        if self.failure is not None:
            return  # nothing behind a failure counts
        if error is not None or first < 0 or last < 0:
            self.failure = error or Failure(FailureKind.NOT_ACKNOWLEDGED, "no acknowledgement came in time")
            return
        before = self.intervals[-1].downstream_end if self.intervals else self.target_end
        if last - first != sent.count - 1 or not self._follows(before, first):
            self.failure = Failure(
                FailureKind.TARGET_CHANGED,
                f"target changed: {sent.count} copies lie at target offsets {first} to {last}, and the partition "
                f"ended at {'an unknown offset' if before is None else before}",
            )
            return
        self._extend(sent.stretches, first)
        self.records += sent.count
        self.whole += sent.whole
        self.merged += sent.merged
        self.bytes += sent.bytes
        self.zero_timestamps += sent.zero_timestamps
        if sent.last_timestamp > 0:
            self.latency_ms = int(at * 1000) - sent.last_timestamp

    def _follows(self, before: int | None, first: int) -> bool:
        """Whether a copy at `first` is right behind what was there `before`, but for offsets that are explained."""
        if before is None:
            return True
        gap = first - before
        if gap < 0 or (self.slack is not None and gap > self.slack):
            return False
        if self.slack is not None:
            self.slack -= gap
        return True

    def join(self, later: PartitionReport) -> None:
        """Take in what a later report says of the same partition."""
        self._copies.extend(later._copies.taken())
        self.next_offset = later.next_offset
        self.next_sequence = later.next_sequence if later.next_sequence is not None else self.next_sequence
        self.hold, self.to_quarantine, self.failure = later.hold, later.to_quarantine, later.failure
        self.records += later.records
        self.whole += later.whole
        self.merged += later.merged
        self.bytes += later.bytes
        self.zero_timestamps += later.zero_timestamps
        self.latency_ms = self.latency_ms if later.latency_ms is None else later.latency_ms

    @property
    def _copies(self) -> Growing:
        assert isinstance(self.intervals, Growing)
        return self.intervals

    def _extend(self, stretches: Sequence[OffsetRange], downstream: int) -> None:
        if len(stretches) > FEW:
            self._copies.extend(Stretches.of(stretches).copied_to(downstream))
            return
        for start, end in stretches:
            self._copies.add(Interval(start, downstream, end - start))
            downstream += end - start


def report_batch(reports: Iterable[PartitionReport]) -> pa.RecordBatch:
    """The reports of one task as one Arrow batch: a column of JSON."""
    texts = [json.dumps(report_fields(report)) for report in reports]
    return pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=["report"])


def read_report(row: Mapping[str, Any]) -> PartitionReport:
    """A report from a row of `report_batch`."""
    return report_of(json.loads(row["report"]))


def report_fields(report: PartitionReport) -> dict[str, Any]:
    """A report in JSON's types, field by field."""
    columns = {each.name: getattr(report, each.name) for each in fields(report) if each.name not in _IN_TASK}
    hold, failure = report.hold, report.failure
    columns["intervals"] = as_text(report.intervals)
    columns["hold"] = None if hold is None else [hold.offset, *_words(hold.why)]
    columns["failure"] = None if failure is None else _words(failure)
    return columns


def report_of(columns: Mapping[str, Any]) -> PartitionReport:
    """A report from what `report_fields` made of it."""
    (topic, number), hold, failure = columns["partition"], columns["hold"], columns["failure"]
    special = {
        "partition": TopicPartition(topic, number),
        "intervals": of_text(columns["intervals"]),
        "hold": None if hold is None else PausedPartition(hold[0], _failure(hold[1:])),
        "failure": None if failure is None else _failure(failure),
    }
    return PartitionReport(**{**columns, **special})


def _words(failure: Failure) -> tuple[str, str]:
    return failure.kind.value, failure.sentence


def _failure(words: Sequence[str]) -> Failure:
    kind, sentence = words
    return Failure(FailureKind.of(kind), sentence)
