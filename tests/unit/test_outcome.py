"""What a pass over a batch came to: done, to be done again, held or failed, for every shape of report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from srm_spark.core.intervals import spread_of
from srm_spark.core.model import UNKNOWN, Interval, OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.reports import PartitionReport
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.batch.outcome import PassOutcome
from srm_spark.flow.batch.outcome import judge as judge_pass
from tests.unit.details import detail

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
TOO_LARGE = Failure(FailureKind.TOO_LARGE, "large")
PAUSED_AT_4, PAUSED_AT_5 = PausedPartition(4, TOO_LARGE), PausedPartition(5, TOO_LARGE)

DRAWN_IN = Failure(FailureKind.PRODUCER_FAILED, "purged")

DENIED = Failure(FailureKind.TARGET_DENIED, "no")

REFUSED = Failure(FailureKind.WRITE_REFUSED, "slow")


def judge(ranges: Mapping[TopicPartition, OffsetRange], reports: Sequence[PartitionReport]) -> PassOutcome:
    """Where nothing is known of the target."""
    return judge_pass(ranges, reports, {}, {})


def test_a_whole_report_is_done_to_the_end_of_its_range_behind_markers() -> None:
    report = PartitionReport(T0, [Interval(10, 3, 5)], next_offset=15, bytes=7, zero_timestamps=2, latency_ms=9)
    outcome = judge({T0: OffsetRange(10, 17)}, [report])
    done = outcome.details[T0]
    assert (done.source, done.intervals, done.hold) == (OffsetRange(10, 17), (Interval(10, 3, 5),), None)
    assert (done.bytes, done.zero_timestamps, done.latency_ms) == (7, 2, 9)
    assert not outcome.failures


def test_a_range_without_rows_is_done() -> None:
    outcome = judge({T0: OffsetRange(4, 6)}, [])
    assert outcome.details[T0].source.end == 6


def test_a_cut_task_leaves_its_own_rest_and_what_nobody_reported() -> None:
    """The one that was cut knows how far it came; of the third partition nobody knows whether it has rows."""
    complete = PartitionReport(T0, [Interval(0, 0, 5)], next_offset=5, is_cut=True)
    cut = PartitionReport(T1, [Interval(0, 0, 3)], next_offset=3, is_complete=False, is_cut=True)
    outcome = judge({T0: OffsetRange(0, 9), T1: OffsetRange(0, 9), T2: OffsetRange(2, 4)}, [complete, cut])
    assert outcome.details[T0].source.end == 9
    assert outcome.details[T1].source.end == 3
    assert T2 not in outcome.details


def test_a_task_cut_behind_its_last_row_leaves_nothing() -> None:
    cut = PartitionReport(T0, [Interval(0, 0, 9)], next_offset=9, is_complete=False, is_cut=True)
    assert judge({T0: OffsetRange(0, 9)}, [cut]).details[T0].source.end == 9


def test_a_hold_ends_the_range() -> None:
    hold = PausedPartition(3, TOO_LARGE)
    report = PartitionReport(T0, [Interval(0, 0, 3)], next_offset=3, hold=hold, is_complete=False, is_cut=True)
    outcome = judge({T0: OffsetRange(0, 9)}, [report])
    assert (outcome.details[T0].source.end, outcome.details[T0].hold) == (3, hold)


def test_a_failure_keeps_what_was_acknowledged_before_it() -> None:
    some = PartitionReport(T0, [Interval(5, 0, 2), Interval(8, 2, 1)], next_offset=12, failure=REFUSED)
    none = PartitionReport(T1, next_offset=12, failure=REFUSED)
    outcome = judge({T0: OffsetRange(5, 12), T1: OffsetRange(5, 12)}, [some, none])
    assert outcome.details[T0].source.end == 9
    assert outcome.details[T1].source.end == 5
    assert outcome.failures == {T0: some.failure, T1: none.failure}


def test_failures_that_would_come_again_hold_their_partition() -> None:
    refused = PartitionReport(T0, [Interval(0, 0, 2)], next_offset=9, failure=DENIED)
    outcome = judge({T0: OffsetRange(0, 9)}, [refused])
    assert outcome.details[T0].hold == PausedPartition(2, DENIED)
    assert not outcome.failures


@pytest.mark.parametrize(("start", "spread"), [(10, 4), (8, 6), (None, 3)])
def test_the_spread_counts_target_offsets_that_hold_no_copy(start: int | None, spread: int) -> None:
    done = detail(0, 9, [Interval(0, 11, 2), Interval(4, 13, 1), Interval(5, 17, 4)])
    assert spread_of(done, start) == spread
    assert spread_of(detail(0, 9), start) == 0


def test_a_failure_before_a_hold_wins() -> None:
    """What lies before the held record did not arrive, so the hold has not been reached."""
    report = PartitionReport(T0, [Interval(0, 0, 1)], next_offset=5, hold=PAUSED_AT_5, failure=REFUSED)
    outcome = judge({T0: OffsetRange(0, 9)}, [report])
    assert (outcome.details[T0].source.end, outcome.details[T0].hold) == (1, None)
    assert outcome.failures == {T0: report.failure}


def test_what_a_refused_partition_drew_in_is_tried_again() -> None:
    """They shared a producer, which gave up all that it had; nothing is wrong with the others."""
    refused = PartitionReport(T0, next_offset=9, failure=DENIED)
    drawn_in = PartitionReport(T1, [Interval(0, 0, 2)], next_offset=9, failure=DRAWN_IN)
    ranges = {T0: OffsetRange(0, 9), T1: OffsetRange(0, 9)}
    outcome = judge(ranges, [refused, drawn_in])
    assert not outcome.failures
    assert outcome.details[T1].source.end == 2
    alone = judge(ranges, [drawn_in])
    assert alone.failures.keys() == {T1}


def test_a_record_for_the_quarantine_ends_the_pass_without_a_hold() -> None:
    report = PartitionReport(T0, [Interval(0, 0, 4)], next_offset=4, hold=PAUSED_AT_4, to_quarantine=True)
    outcome = judge({T0: OffsetRange(0, 9)}, [report])
    done = outcome.details[T0]
    assert (done.source.end, done.hold, outcome.refused) == (4, None, {T0: PAUSED_AT_4})
    assert report.detail(OffsetRange(0, 4), None, UNKNOWN).hold is None


def test_nothing_goes_into_quarantine_where_what_came_before_failed() -> None:
    report = PartitionReport(
        T0,
        [],
        next_offset=4,
        hold=PAUSED_AT_4,
        to_quarantine=True,
        failure=REFUSED,
    )
    outcome = judge({T0: OffsetRange(0, 9)}, [report])
    assert not outcome.refused
    assert T0 in outcome.failures


def test_what_was_rolled_back_has_nothing_for_the_quarantine() -> None:
    report = PartitionReport(T0, [Interval(0, 0, 4)], next_offset=4, hold=PAUSED_AT_4, to_quarantine=True)
    report.undo(TOO_LARGE, gets_marker=True)
    assert (report.hold, report.to_quarantine) == (None, False)
