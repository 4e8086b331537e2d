"""Batches are cut into passes by bytes, once it is known what a record weighs."""

from __future__ import annotations

from srm_spark.flow.outcome import Done
from srm_spark.flow.passes import UNBOUNDED, RecordSizes
from srm_spark.model import Interval, OffsetRange, TopicPartition

SMALL, LARGE = TopicPartition("small", 0), TopicPartition("large", 0)


def test_without_knowledge_everything_is_taken() -> None:
    ranges = {SMALL: OffsetRange(0, 1000)}
    assert RecordSizes().affordable(ranges, 1) is ranges


def test_each_partition_gives_the_same_share() -> None:
    sizes = RecordSizes()
    sizes.learn(
        {
            SMALL: Done(10, [Interval(0, 0, 10)], bytes=100),
            LARGE: Done(4, [Interval(0, 5, 2), Interval(3, 7, 1)], bytes=3000),
        }
    )
    ranges = {SMALL: OffsetRange(10, 110), LARGE: OffsetRange(4, 13)}
    assert sizes.affordable(ranges, 10_000) is ranges  # 100 * 10 B + 9 * 1000 B
    assert sizes.affordable(ranges, 5_000) == {SMALL: OffsetRange(10, 60), LARGE: OffsetRange(4, 9)}


def test_no_pass_is_empty_and_a_pass_without_records_teaches_nothing() -> None:
    sizes = RecordSizes()
    sizes.learn({LARGE: Done(1, [Interval(0, 0, 1)], bytes=1_000_000)})
    sizes.learn({LARGE: Done(9)})
    assert sizes.affordable({LARGE: OffsetRange(1, 9)}, 1) == {LARGE: OffsetRange(1, 2)}


def test_arrow_batches_are_bound_by_bytes_until_it_is_known_what_a_record_weighs() -> None:
    sizes = RecordSizes()
    assert sizes.arrow_bounds(["small"], 10_000, 16_000_000) == (10_000, 16_000_000)
    sizes.learn({SMALL: Done(10, [Interval(0, 0, 10)], bytes=1000)})
    assert sizes.arrow_bounds(["small"], 10_000, 16_000_000) == (10_000, UNBOUNDED)
    assert sizes.arrow_bounds(["small", "large"], 10_000, 16_000_000) == (10_000, 16_000_000)
    sizes.learn({LARGE: Done(2, [Interval(0, 0, 2)], bytes=2_000_000)})
    assert sizes.arrow_bounds(["small", "large"], 10_000, 16_000_000) == (16, UNBOUNDED)
