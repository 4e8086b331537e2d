"""Details of progress that do not fit into one record."""

from __future__ import annotations

from srm_spark.core.codec import split_detail
from srm_spark.core.model import Interval, LogIdentity, OffsetRange, PausedPartition, ProgressDetail
from srm_spark.failure import Failure, FailureKind

HOLD = PausedPartition(100, Failure(FailureKind.NO_KEY, "r"))


def detail(count: int) -> ProgressDetail:
    intervals = tuple(Interval(2 * i, i, 1) for i in range(count))
    return ProgressDetail(
        OffsetRange(0, 100),
        count,
        intervals,
        hold=HOLD,
        logs=LogIdentity("id"),
        bytes=50,
        latency_ms=3,
    )


def test_what_fits_stays_whole() -> None:
    assert list(split_detail(detail(3), most=3)) == [detail(3)]


def test_parts_say_together_what_the_whole_says() -> None:
    whole = detail(7)
    parts = list(split_detail(whole, most=3))
    assert [len(part.intervals) for part in parts] == [3, 3, 1]
    assert tuple(interval for part in parts for interval in part.intervals) == whole.intervals
    assert [part.source for part in parts] == [OffsetRange(0, 5), OffsetRange(5, 11), OffsetRange(11, 100)]
    assert [part.target_end for part in parts] == [3, 6, 7]
    assert sum(part.bytes for part in parts) == whole.bytes
    assert [part.topic_id for part in parts] == ["id"] * 3
    # Only the last one is where the partition stands.
    assert [part.hold for part in parts] == [None, None, whole.hold]
    assert [part.latency_ms for part in parts] == [None, None, 3]


def test_nothing_replicated_is_one_part() -> None:
    empty = ProgressDetail(OffsetRange(4, 9), None, ())
    assert list(split_detail(empty, most=1)) == [empty]
