"""What came of one pass over a batch: reports of the tasks, judged against the ranges that were to be replicated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from srm_spark.core.model import UNKNOWN, LogIdentity, OffsetRange, PausedPartition, ProgressDetail, TopicPartition
from srm_spark.core.reports import PartitionReport
from srm_spark.failure import Effect, Failure


@dataclass(frozen=True)
class PassOutcome:
    """What is not done to the end of its range, not paused and not failed is left to the next pass."""

    details: Mapping[TopicPartition, ProgressDetail]
    """What is on the target for certain, to be recorded."""
    refused: Mapping[TopicPartition, PausedPartition]
    """Records behind these that go into quarantine; their partitions do not wait."""
    committed: Set[TopicPartition]
    """Partitions whose progress was committed with their records."""
    failures: Mapping[TopicPartition, Failure]


def judge(
    ranges: Mapping[TopicPartition, OffsetRange],
    reports: Iterable[PartitionReport],
    target_ends: Mapping[TopicPartition, int | None],
    logs: Mapping[TopicPartition, LogIdentity],
) -> PassOutcome:
    """Sort out one pass; `target_ends` is where the remote partitions ended before.

    A range without a row holds only markers and compacted offsets and is done, unless a task ended early and never came
    to it.
    """
    details: dict[TopicPartition, ProgressDetail] = {}
    by_partition = {report.partition: report for report in reports}
    is_cut = any(report.is_cut for report in by_partition.values())
    for partition, (start, end) in ranges.items():
        report = by_partition.get(partition, PartitionReport(partition))
        if partition in by_partition or not is_cut:
            source = OffsetRange(start, report.reached(start, end))
            details[partition] = report.detail(source, target_ends.get(partition), logs.get(partition, UNKNOWN))
    failed = {p: report.failure for p, report in by_partition.items() if p in details and report.failure is not None}
    failures = {p: why for p, why in failed.items() if details[p].hold is None}
    if any(detail.hold is not None for detail in details.values()):
        failures = {p: why for p, why in failures.items() if why.kind.effect is not Effect.DRAWN_IN}
    return PassOutcome(
        details,
        {p: report.refused for p, report in by_partition.items() if report.refused is not None},
        {p for p, report in by_partition.items() if report.slot is not None},
        failures,
    )
