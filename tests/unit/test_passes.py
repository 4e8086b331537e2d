"""Batches are cut into passes by bytes, once it is known what a record weighs."""

from __future__ import annotations

from srm_spark.core.intervals import gaps_of
from srm_spark.core.model import Interval, OffsetRange, TopicPartition
from srm_spark.flow.batch.passes import PROBE, UNBOUNDED, RecordSizes
from tests.unit.details import detail

SMALL, LARGE = TopicPartition("small", 0), TopicPartition("large", 0)


def test_a_few_records_are_taken_without_knowledge() -> None:
    ranges = {SMALL: OffsetRange(0, PROBE)}
    assert RecordSizes().affordable(ranges, 1) is ranges


def test_of_unknown_topics_a_few_records_come_first_and_alone() -> None:
    sizes = RecordSizes()
    sizes.learn({LARGE: detail(0, 1, [Interval(0, 0, 1)], 1_000)})
    other = TopicPartition("small", 1)
    ranges = {SMALL: OffsetRange(5, 5 + 3 * PROBE), other: OffsetRange(0, PROBE), LARGE: OffsetRange(1, 9)}
    assert sizes.affordable(ranges, 10**9) == {
        SMALL: OffsetRange(5, 5 + 3 * PROBE // 4),
        other: OffsetRange(0, PROBE // 4),
    }
    assert sizes.affordable({SMALL: OffsetRange(0, 10), LARGE: OffsetRange(1, PROBE)}, 10**9) == {
        SMALL: OffsetRange(0, 10)
    }


def test_each_partition_gives_the_same_share() -> None:
    sizes = RecordSizes()
    sizes.learn(
        {
            SMALL: detail(0, 10, [Interval(0, 0, 10)], 100),
            LARGE: detail(0, 4, [Interval(0, 5, 2), Interval(3, 7, 1)], 3000),
        }
    )
    ranges = {SMALL: OffsetRange(10, 110), LARGE: OffsetRange(4, 13)}
    assert sizes.affordable(ranges, 10_000) is ranges  # 100 * 10 B + 9 * 1000 B
    assert sizes.affordable(ranges, 5_000) == {SMALL: OffsetRange(10, 60), LARGE: OffsetRange(4, 9)}


def test_no_pass_is_empty_and_a_pass_without_records_teaches_nothing() -> None:
    sizes = RecordSizes()
    sizes.learn({LARGE: detail(0, 1, [Interval(0, 0, 1)], 1_000_000)})
    sizes.learn({LARGE: detail(0, 9)})
    assert sizes.affordable({LARGE: OffsetRange(1, 9)}, 1) == {LARGE: OffsetRange(1, 2)}


def test_under_a_limit_higher_classes_go_first_and_the_others_get_a_tenth_each() -> None:
    high, usual, low = (TopicPartition(name, 0) for name in ("high", "usual", "low"))
    ranks = {"high": 0, "usual": 1, "low": 2}
    sizes = RecordSizes()
    sizes.learn({p: detail(0, 1000, [Interval(0, 0, 1000)], 100_000) for p in (high, usual, low)})
    backlog = {p: OffsetRange(1000, 1001 + 1000) for p in (low, usual, high)}
    assert sizes.first(backlog, 10_000, ranks) == {
        high: OffsetRange(1000, 1080),
        usual: OffsetRange(1000, 1010),
        low: OffsetRange(1000, 1010),
    }
    few = {**backlog, high: OffsetRange(1000, 1005)}
    assert sizes.first(few, 10_000, ranks) == {
        high: OffsetRange(1000, 1005),
        usual: OffsetRange(1000, 1085),
        low: OffsetRange(1000, 1010),
    }
    assert sizes.first({low: backlog[low]}, 10_000, ranks) == {low: OffsetRange(1000, 1100)}
    assert sizes.first(backlog, 10_000, {}) == sizes.affordable(backlog, 10_000)


def test_what_a_topic_weighs_is_known_when_a_record_of_it_was_seen() -> None:
    sizes = RecordSizes()
    assert not sizes.knows(["small"])
    sizes.learn({SMALL: detail(0, 10, [Interval(0, 0, 10)], 100)})
    assert sizes.knows(["small"])
    assert not sizes.knows(["small", "large"])
    assert sizes.weigh({SMALL: OffsetRange(10, 14), LARGE: OffsetRange(0, 9)}) == 40


def test_arrow_batches_are_bound_by_bytes_until_it_is_known_what_a_record_weighs() -> None:
    sizes = RecordSizes()
    assert sizes.arrow_bounds(["small"], 10_000, 16_000_000) == (10_000, 16_000_000)
    sizes.learn({SMALL: detail(0, 10, [Interval(0, 0, 10)], 1000)})
    assert sizes.arrow_bounds(["small"], 10_000, 16_000_000) == (10_000, UNBOUNDED)
    assert sizes.arrow_bounds(["small", "large"], 10_000, 16_000_000) == (10_000, 16_000_000)
    sizes.learn({LARGE: detail(0, 2, [Interval(0, 0, 2)], 2_000_000)})
    assert sizes.arrow_bounds(["small", "large"], 10_000, 16_000_000) == (16, UNBOUNDED)


def test_gaps_are_what_has_no_copy_before_between_and_behind() -> None:
    copied = [Interval(2, 0, 3), Interval(5, 3, 1), Interval(8, 9, 2)]
    assert gaps_of(detail(0, 12, copied)) == [OffsetRange(0, 2), OffsetRange(6, 8), OffsetRange(10, 12)]
    assert gaps_of(detail(2, 12, copied)) == [OffsetRange(6, 8), OffsetRange(10, 12)]
    assert gaps_of(detail(3, 7)) == [OffsetRange(3, 7)]
    assert gaps_of(detail(0, 3, [Interval(0, 0, 3)])) == []
