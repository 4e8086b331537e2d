"""What a write task tells the driver: one row per source partition, and how they travel through Spark."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from srm_spark.core.model import Interval, LogIdentity, OffsetRange, PausedPartition, ProgressDetail, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.failure import Failure, FailureKind

REPORT_SCHEMA = (
    "topic string, partition int, intervals array<bigint>, next_offset bigint, is_complete boolean, is_cut boolean, "
    "hold_offset bigint, hold_kind string, hold_reason string, is_parking boolean, "
    "failure_kind string, failure string, records bigint, bytes bigint, "
    "zero_timestamps bigint, latency_ms bigint, slot int, writer string, rolled_back bigint"
)
"""Spark's schema of the rows of `report_batch`."""


@dataclass(frozen=True)
class Sent:
    """What is remembered of a run until it is acknowledged; the run itself would keep its Arrow batch in memory."""

    stretches: tuple[OffsetRange, ...]
    """Source offsets, cut where one is missing."""
    count: int
    bytes: int
    zero_timestamps: int
    last_timestamp: int

    @classmethod
    def of(cls, run: Run) -> Sent:
        """The run's numbers."""
        return cls(
            stretches=_stretches(run.offsets),
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
                    _stretches(offsets[start:end]),
                    end - start,
                    self.bytes if is_last else 0,
                    self.zero_timestamps if is_last else 0,
                    self.last_timestamp if is_last else -1,
                ),
                int(there[start]),
                int(there[end - 1]),
            )


def _stretches(offsets: npt.NDArray[np.int64]) -> tuple[OffsetRange, ...]:
    """Offsets in order, cut where one is missing."""
    starts = np.concatenate(([0], np.flatnonzero(np.diff(offsets) != 1) + 1))
    firsts, lasts = offsets[starts].tolist(), offsets[np.append(starts[1:], len(offsets)) - 1].tolist()
    return tuple(OffsetRange(first, last + 1) for first, last in zip(firsts, lasts, strict=True))


@dataclass
class PartitionReport:
    """What one task did to one source partition."""

    partition: TopicPartition
    intervals: list[Interval] = field(default_factory=list)
    """What was acknowledged, before any failure."""
    next_offset: int = -1
    """Source offset behind the last row that was taken in."""
    is_complete: bool = True
    """False where the task ended early, so that more rows may follow."""
    is_cut: bool = False
    """The task that reports ended before its rows did: partitions without a report may be untouched."""
    hold: PausedPartition | None = None
    """The first record that the target would refuse."""
    is_parking: bool = False
    """That record goes into quarantine: the driver puts it there, and the partition does not wait."""
    failure: Failure | None = None
    records: int = 0
    bytes: int = 0
    """Of keys and values."""
    zero_timestamps: int = 0
    """Records with CreateTime 0, which the client library sends as now."""
    latency_ms: int | None = None
    """Acknowledgement minus record timestamp, of the last record."""
    slot: int | None = None
    """In the exactly-once mode: the slot in whose transaction records and progress were committed."""
    writer: str | None = None
    """The process that did."""
    rolled_back: int = 0
    """Bytes that were acknowledged in a transaction that came to nothing."""
    target_end: int | None = None
    """Where the remote partition ended before, if that is known."""
    slack: int | None = 0
    """How many offsets there may be without a copy: markers of transactions. None where others may write."""

    def reached(self, start: int, end: int) -> int:
        """First source offset of `start` to `end` that is not done."""
        if self.failure is not None:
            return self.intervals[-1].upstream_end if self.intervals else start
        if self.hold is not None:
            return self.hold.offset
        return end if self.is_complete else self.next_offset

    def detail(self, source: OffsetRange, target_end: int | None, logs: LogIdentity) -> ProgressDetail:
        """What there is to record; `target_end` is where the remote partition ended before."""
        return ProgressDetail(
            source=source,
            target_end=self.intervals[-1].downstream_end if self.intervals else target_end,
            intervals=tuple(self.intervals),
            hold=None if self.is_parking else self.hold,
            logs=logs,
            bytes=self.bytes,
            latency_ms=self.latency_ms,
            zero_timestamps=self.zero_timestamps,
        )

    def undo(self, failure: Failure) -> None:
        """Nothing of this was committed, for its own failure or for another partition's of the same transaction."""
        self.failure = self.failure or Failure(FailureKind.ROLLED_BACK, f"rolled back: {failure}")
        self.rolled_back = self.bytes
        self.intervals.clear()
        self.hold, self.is_parking, self.latency_ms = None, False, None
        self.records = self.bytes = self.zero_timestamps = 0

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
        for interval in later.intervals:
            self._extend((OffsetRange(interval.upstream, interval.upstream_end),), interval.downstream)
        self.next_offset = later.next_offset
        self.hold, self.is_parking, self.failure = later.hold, later.is_parking, later.failure
        self.records += later.records
        self.bytes += later.bytes
        self.zero_timestamps += later.zero_timestamps
        self.latency_ms = self.latency_ms if later.latency_ms is None else later.latency_ms

    def _extend(self, stretches: Sequence[OffsetRange], downstream: int) -> None:
        for start, end in stretches:
            last = self.intervals[-1] if self.intervals else None
            if last is not None and (last.upstream_end, last.downstream_end) == (start, downstream):
                self.intervals[-1] = last._replace(count=last.count + end - start)
            else:
                self.intervals.append(Interval(start, downstream, end - start))
            downstream += end - start


def report_batch(reports: Iterable[PartitionReport]) -> pa.RecordBatch:
    """The reports of one task as one Arrow batch."""
    rows = [report_row(report) for report in reports]
    schema = pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("intervals", pa.list_(pa.int64())),
            ("next_offset", pa.int64()),
            ("is_complete", pa.bool_()),
            ("is_cut", pa.bool_()),
            ("hold_offset", pa.int64()),
            ("hold_kind", pa.string()),
            ("hold_reason", pa.string()),
            ("is_parking", pa.bool_()),
            ("failure_kind", pa.string()),
            ("failure", pa.string()),
            ("records", pa.int64()),
            ("bytes", pa.int64()),
            ("zero_timestamps", pa.int64()),
            ("latency_ms", pa.int64()),
            ("slot", pa.int32()),
            ("writer", pa.string()),
            ("rolled_back", pa.int64()),
        ]
    )
    return pa.RecordBatch.from_pylist(rows, schema)


def read_report(row: Mapping[str, Any]) -> PartitionReport:
    """A report from a row that Spark collected."""
    flat = row["intervals"]
    refused, failure = _failure(row["hold_kind"], row["hold_reason"]), _failure(row["failure_kind"], row["failure"])
    return PartitionReport(
        partition=TopicPartition(row["topic"], row["partition"]),
        intervals=[Interval(*flat[at : at + 3]) for at in range(0, len(flat), 3)],
        next_offset=row["next_offset"],
        is_complete=row["is_complete"],
        is_cut=row["is_cut"],
        hold=None if refused is None else PausedPartition(row["hold_offset"], refused),
        is_parking=row["is_parking"],
        failure=failure,
        records=row["records"],
        bytes=row["bytes"],
        zero_timestamps=row["zero_timestamps"],
        latency_ms=row["latency_ms"],
        slot=row["slot"],
        writer=row["writer"],
        rolled_back=row["rolled_back"],
    )


def _failure(kind: str | None, sentence: str) -> Failure | None:
    return None if kind is None else Failure(FailureKind.of(kind), sentence)


def report_row(report: PartitionReport) -> dict[str, Any]:
    """A report as `read_report` takes it."""
    return {
        "topic": report.partition.topic,
        "partition": report.partition.partition,
        "intervals": [number for interval in report.intervals for number in interval],
        "next_offset": report.next_offset,
        "is_complete": report.is_complete,
        "is_cut": report.is_cut,
        "hold_offset": report.hold.offset if report.hold else None,
        "hold_kind": report.hold.why.kind.value if report.hold else None,
        "hold_reason": report.hold.why.sentence if report.hold else None,
        "is_parking": report.is_parking,
        "failure_kind": report.failure.kind.value if report.failure else None,
        "failure": report.failure.sentence if report.failure else None,
        "records": report.records,
        "bytes": report.bytes,
        "zero_timestamps": report.zero_timestamps,
        "latency_ms": report.latency_ms,
        "slot": report.slot,
        "writer": report.writer,
        "rolled_back": report.rolled_back,
    }
