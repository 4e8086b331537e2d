"""What came of one pass over a batch: reports of the tasks, judged against the ranges that were to be replicated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from srm_spark.core.model import Interval, OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.reports import PartitionReport
from srm_spark.failure import Effect, Failure


@dataclass
class Done:
    """What is on the target for certain, of one partition."""

    end: int
    """First source offset that is not done."""
    intervals: list[Interval] = field(default_factory=list)
    hold: PausedPartition | None = None
    refused: PausedPartition | None = None
    """The record at `end`, where it goes into quarantine instead of holding the partition."""
    bytes: int = 0
    zero_timestamps: int = 0
    latency_ms: int | None = None
    is_recorded: bool = False
    """Its progress was committed with its records."""

    def spread(self, start: int | None) -> int:
        """Target offsets from `start` on, where that is known, that are among these copies and none of them."""
        if not self.intervals:
            return 0
        first = self.intervals[0].downstream if start is None else start
        return self.intervals[-1].downstream_end - first - sum(interval.count for interval in self.intervals)

    def gaps(self, start: int) -> list[OffsetRange]:
        """Source offsets from `start` on that have no copy."""
        starts = [start, *(interval.upstream_end for interval in self.intervals)]
        ends = [*(interval.upstream for interval in self.intervals), self.end]
        return [OffsetRange(first, end) for first, end in zip(starts, ends, strict=True) if first < end]


@dataclass(frozen=True)
class PassOutcome:
    """What is not done to the end of its range, not held and not failed is left to the next pass."""

    done: Mapping[TopicPartition, Done]
    failures: Mapping[TopicPartition, Failure]


def judge(ranges: Mapping[TopicPartition, OffsetRange], reports: Iterable[PartitionReport]) -> PassOutcome:
    """Sort out one pass. A range without a row holds only markers and compacted offsets and is done, unless a task
    ended early and never came to it."""
    done: dict[TopicPartition, Done] = {}
    failures: dict[TopicPartition, Failure] = {}
    found = {report.partition: report for report in reports}
    is_cut = any(report.is_cut for report in found.values())
    for partition, (start, end) in ranges.items():
        report = found.get(partition)
        if report is None:
            if not is_cut:
                done[partition] = Done(end)
            continue
        done[partition] = _done(report, report.reached(start, end))
        if report.failure is not None and done[partition].hold is None:
            failures[partition] = report.failure
    if any(found.hold is not None for found in done.values()):
        failures = {p: why for p, why in failures.items() if why.kind.effect is not Effect.DRAWN_IN}
    return PassOutcome(done, failures)


def _done(report: PartitionReport, reached: int) -> Done:
    hold, refused = (None, report.hold) if report.is_parking else (report.hold, None)
    if report.failure is not None:
        hold = PausedPartition(reached, report.failure) if report.failure.kind.effect is Effect.PAUSES else None
        refused = None
    return Done(
        reached,
        report.intervals,
        hold,
        refused,
        report.bytes,
        report.zero_timestamps,
        report.latency_ms,
        report.slot is not None,
    )
