"""Reports of write tasks: exact intervals from the acknowledged ends of runs, and their way through Spark."""

from __future__ import annotations

import numpy as np
import pytest

from srm_spark.core.model import Interval, PausedPartition, TopicPartition
from srm_spark.core.reports import (
    REPORT_SCHEMA,
    PartitionReport,
    Sent,
    read_report,
    report_batch,
)
from srm_spark.failure import Failure, FailureKind
from tests.unit.arrow_rows import run_of

T0 = TopicPartition("t", 0)
NOW = 1000.0


def test_intervals_follow_the_gaps_of_the_source() -> None:
    report = PartitionReport(T0)
    report.add(Sent.of(run_of([5, 6, 9, 10, 20])), 100, 104, NOW, None)
    assert report.intervals == [Interval(5, 100, 2), Interval(9, 102, 2), Interval(20, 104, 1)]
    assert (report.records, report.bytes, report.failure) == (5, 10, None)


def test_neighbouring_runs_become_one_interval_only_if_both_sides_go_on() -> None:
    report = PartitionReport(T0, slack=None)
    report.add(Sent.of(run_of([0, 1])), 10, 11, NOW, None)
    report.add(Sent.of(run_of([2, 3, 7])), 12, 14, NOW, None)
    report.add(Sent.of(run_of([8])), 20, 20, NOW, None)
    assert report.failure is None
    assert report.intervals == [Interval(0, 10, 4), Interval(7, 14, 1), Interval(8, 20, 1)]


@pytest.mark.parametrize(("first", "last"), [(10, 13), (10, 11)])
def test_target_offsets_that_are_not_in_one_piece_are_a_failure(first: int, last: int) -> None:
    report = PartitionReport(T0)
    report.add(Sent.of(run_of([0])), 9, 9, NOW, None)
    report.add(Sent.of(run_of([1, 2, 3])), first, last, NOW, None)
    assert report.failure is not None
    assert report.failure.kind is FailureKind.TARGET_CHANGED
    assert report.intervals == [Interval(0, 9, 1)]


@pytest.mark.parametrize(("first", "last"), [(8, 10), (0, 2), (12, 10), (10, 2)])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_copy_in_front_of_older_ones_means_another_log(first: int, last: int, is_first: bool) -> None:
    report = PartitionReport(T0, target_end=10 if is_first else 9)
    if not is_first:
        report.add(Sent.of(run_of([0])), 9, 9, NOW, None)
    done = list(report.intervals)
    report.add(Sent.of(run_of([1, 2, 3])), first, last, NOW, None)
    assert report.failure is not None
    assert report.failure.kind is FailureKind.TARGET_CHANGED
    assert report.intervals == done


@pytest.mark.parametrize(("slack", "is_fine"), [(0, False), (1, False), (2, True), (None, True)])
def test_offsets_in_front_of_a_copy_are_markers_or_others_may_write_there(slack: int | None, is_fine: bool) -> None:
    report = PartitionReport(T0, target_end=10, slack=slack)
    report.add(Sent.of(run_of([1, 2])), 12, 13, NOW, None)
    assert report.intervals == ([Interval(1, 12, 2)] if is_fine else [])
    assert (report.failure is None) == is_fine


@pytest.mark.parametrize("is_first", [True, False])
def test_each_marker_explains_one_offset_once(is_first: bool) -> None:
    report = PartitionReport(T0, target_end=10, slack=1)
    at = 11 if is_first else 10
    report.add(Sent.of(run_of([1])), at, at, NOW, None)
    report.add(Sent.of(run_of([2])), 12, 12, NOW, None)
    assert report.failure is None
    report.add(Sent.of(run_of([3])), 14, 14, NOW, None)
    assert report.failure is not None
    assert report.failure.kind is FailureKind.TARGET_CHANGED


def test_a_partition_whose_end_is_unknown_begins_anywhere_and_goes_on_without_a_gap() -> None:
    report = PartitionReport(T0)
    report.add(Sent.of(run_of([1])), 700, 700, NOW, None)
    assert report.failure is None
    report.add(Sent.of(run_of([2])), 702, 702, NOW, None)
    assert report.failure is not None
    assert report.failure.kind is FailureKind.TARGET_CHANGED


@pytest.mark.parametrize(("error", "first"), [(Failure(FailureKind.WRITE_REFUSED, "no"), 0), (None, -1)])
def test_nothing_behind_a_failure_counts(error: Failure | None, first: int) -> None:
    report = PartitionReport(T0)
    report.add(Sent.of(run_of([0])), 0, 0, NOW, None)
    report.add(Sent.of(run_of([1])), first, 1, NOW, error)
    report.add(Sent.of(run_of([2])), 2, 2, NOW, None)
    assert report.intervals == [Interval(0, 0, 1)]
    assert report.failure == (error or Failure(FailureKind.NOT_ACKNOWLEDGED, "no acknowledgement came in time"))
    assert report.records == 1


def test_zero_timestamps_are_counted_and_give_no_latency() -> None:
    report = PartitionReport(T0)
    report.add(Sent.of(run_of([0, 1, 2], timestamps=[999_000, 0, 0])), 0, 2, NOW, None)
    assert (report.zero_timestamps, report.latency_ms) == (2, None)
    report.add(Sent.of(run_of([3], timestamps=[999_500])), 3, 3, NOW, None)
    assert report.latency_ms == 500


PAUSED = PausedPartition(10, Failure(FailureKind.TOO_LARGE, "large"))


def test_reports_survive_the_way_through_spark() -> None:
    full = PartitionReport(
        T0, [Interval(1, 2, 3), Interval(9, 5, 1)], 10, hold=PAUSED,
        failure=Failure(FailureKind.WRITE_REFUSED, "x"), records=4, bytes=8,
        zero_timestamps=1, latency_ms=-3,
    )  # fmt: skip
    bare = PartitionReport(TopicPartition("ü", 7), next_offset=3)
    batch = report_batch([full, bare])
    assert [read_report(row) for row in batch.to_pylist()] == [full, bare]
    assert batch.schema.names == [REPORT_SCHEMA.split()[0]]


def test_no_report_is_an_empty_batch() -> None:
    assert report_batch([]).num_rows == 0


def test_intervals_of_many_gaps_are_plain_numbers() -> None:
    """numpy's own integers would not go into JSON."""
    report = PartitionReport(T0)
    report.add(Sent.of(run_of(list(range(0, 20, 2)))), 0, 9, NOW, None)
    assert all(type(number) is int for interval in report.intervals for number in interval)
    assert np.sum([interval.count for interval in report.intervals]) == 10
