"""The map in parts against the map in one piece."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.model import Interval, OffsetRange, ProgressDetail
from srm_spark.core.offset_map import INTERVALS_PER_PART, Hole, PartitionMap, split
from srm_spark.core.translation import IntervalMap


def stretch(start: int, end: int, target_end: int | None, *intervals: Interval) -> IntervalMap:
    return IntervalMap(OffsetRange(start, end), target_end, intervals)


def markers(start: int, downstream: int, count: int) -> IntervalMap:
    """`count` records, each with a marker behind it."""
    intervals = tuple(Interval(start + 2 * number, downstream + number, 1) for number in range(count))
    return IntervalMap(OffsetRange(start, start + 2 * count), downstream + count, intervals)


# A batch: records and gaps on the source.
batches = st.lists(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=6), max_size=8)


def mapped(sizes: list[list[tuple[int, int]]], upstream: int, downstream: int) -> Iterator[IntervalMap]:
    """What each of these batches brings, one behind the other."""
    for batch in sizes:
        start, intervals = upstream, []
        for count, gap in batch:
            intervals.append(Interval(upstream, downstream, count))
            upstream, downstream = upstream + count + gap, downstream + count
        yield IntervalMap.of(ProgressDetail(OffsetRange(start, upstream), downstream, tuple(intervals)))


@given(batches)
def test_batches_taken_one_by_one_say_what_one_map_says(sizes: list[list[tuple[int, int]]]) -> None:
    chain, whole = PartitionMap(), None
    for newer in mapped(sizes, 5, 100):
        chain.take(newer, "id")
        whole = newer if whole is None else whole.append(newer)
    if whole is None:
        assert chain.source is None
        return
    for offset in range(whole.source.start - 1, whole.source.end + 2):
        assert chain.downstream(offset) == whole.downstream(offset)
    for offset in range(99, (whole.target_end or 0) + 2):
        assert chain.upstream(offset) == whole.upstream(offset)


def test_a_clean_partition_is_one_record_that_is_written_again() -> None:
    chain = PartitionMap()
    assert chain.take(stretch(0, 10, 10, Interval(0, 0, 10)), "id").put == [stretch(0, 10, 10, Interval(0, 0, 10))]
    change = chain.take(stretch(10, 20, 20, Interval(10, 10, 10)), "id")
    assert (change.put, change.dropped) == ([stretch(0, 20, 20, Interval(0, 0, 20))], [])
    assert chain.part_count == 1


def test_full_parts_are_not_written_again() -> None:
    chain = PartitionMap()
    first = chain.take(markers(0, 0, INTERVALS_PER_PART + 1), "id")
    assert [part.source.start for part in first.put] == [0, 2 * INTERVALS_PER_PART - 1]
    second = chain.take(markers(2 * INTERVALS_PER_PART + 2, INTERVALS_PER_PART + 1, 3), "id")
    assert [part.source.start for part in second.put] == [2 * INTERVALS_PER_PART - 1]
    assert chain.downstream(4) == 2
    assert chain.downstream(2 * INTERVALS_PER_PART + 4) == INTERVALS_PER_PART + 2
    assert chain.upstream(INTERVALS_PER_PART + 2) == 2 * INTERVALS_PER_PART + 4


@given(st.integers(1, 30), st.integers(1, 7))
def test_cut_parts_follow_each_other(count: int, most: int) -> None:
    whole = markers(3, 50, count)
    parts = list(split(whole, most))
    assert [part.source.end for part in parts[:-1]] == [part.source.start for part in parts[1:]]
    assert tuple(interval for part in parts for interval in part.intervals) == whole.intervals
    assert max(len(part.intervals) for part in parts) <= most


def test_reading_again_from_an_earlier_offset_replaces_what_was_known_from_there() -> None:
    chain = PartitionMap()
    chain.take(markers(0, 0, INTERVALS_PER_PART + 5), "id")
    again = stretch(10, 12, 5000, Interval(10, 4998, 2))
    change = chain.take(again, "id")
    assert change.dropped == [2 * INTERVALS_PER_PART - 1]
    assert (chain.downstream(8), chain.downstream(10), chain.downstream(12)) == (4, 4998, 5000)
    assert chain.downstream(14) is None


def test_a_target_that_went_back_starts_over() -> None:
    for newer in (
        stretch(30, 40, 10, Interval(30, 0, 10)),  # with a hole in the source
        stretch(20, 25, 5, Interval(20, 0, 5)),
    ):
        chain = PartitionMap()
        chain.take(stretch(0, 20, 20, Interval(0, 0, 20)), "id")
        change = chain.take(newer, "id")
        assert (change.put, change.dropped) == ([newer], [0])
        assert chain.downstream(0) is None


def with_hole() -> PartitionMap:
    """Offsets 20 to 29 were copied by somebody else, to target offsets of which two are not ours: 20 to 31."""
    chain = PartitionMap()
    chain.take(stretch(0, 20, 20, Interval(0, 0, 20)), "id")
    newer = stretch(30, 40, 42, Interval(30, 32, 10))
    change = chain.take(newer, "id")
    assert (change.put, change.dropped) == ([newer], [])
    return chain


def test_both_sides_of_a_hole_stay_known() -> None:
    chain = with_hole()
    chain.take(stretch(40, 50, 52, Interval(40, 42, 10)), "id")
    assert [chain.downstream(offset) for offset in (0, 19, 20, 21, 29, 30, 49, 50)] == [
        0,
        19,
        20,
        None,
        None,
        32,
        51,
        52,
    ]
    assert [chain.upstream(offset) for offset in (0, 19, 20, 21, 31, 32, 52)] == [0, 19, 20, None, None, 30, 50]
    assert [chain.copy_of(offset) for offset in (19, 20, 25, 30)] == [19, None, None, 32]
    assert chain.source == (0, 50)
    assert chain.holes() == [Hole(OffsetRange(20, 30), 20, 32)]


def test_what_has_no_copy_has_not_the_next_one_s() -> None:
    chain = PartitionMap()
    chain.put(stretch(0, 10, 10, Interval(0, 0, 4), Interval(6, 4, 4)))
    assert [chain.copy_of(offset) for offset in range(11)] == [0, 1, 2, 3, None, None, 4, 5, 6, 7, None]
    hole = with_hole()
    at = next(iter(hole.holes())).source
    assert [hole.copy_of(offset) for offset in range(at.start, at.end)] == [None] * (at.end - at.start)


def test_what_may_be_a_copy_in_a_hole_is_not_skipped() -> None:
    chain = with_hole()
    assert [chain.next_copy(offset) for offset in (20, 25, 30)] == [20, 20, 32]
    assert [chain.next_original(offset) for offset in (20, 25, 32)] == [20, 20, 30]


def test_source_read_again_from_within_a_hole_is_behind_it() -> None:
    chain = with_hole()
    again = stretch(25, 35, 52, Interval(25, 42, 10))
    assert chain.take(again, "id").dropped == [30]
    assert chain.holes() == [Hole(OffsetRange(20, 25), 20, 42)]


def test_what_the_map_does_not_know_before_it_begins() -> None:
    chain = PartitionMap()
    assert chain.holes() == []
    chain.take(stretch(5, 10, 8, Interval(6, 4, 4)), "id")
    assert chain.holes() == [Hole(OffsetRange(0, 5), 0, 4)]


def test_a_topic_created_anew_starts_over_though_its_offsets_would_fit() -> None:
    chain = PartitionMap()
    chain.take(stretch(0, 10, 10, Interval(0, 0, 10)), "old")
    again = stretch(0, 4, 14, Interval(0, 10, 4))
    assert chain.take(again, "new").put == [again]
    assert chain.downstream(0) == 10
    assert chain.downstream(6) is None


def test_retired_parts_are_gone_on_both_sides() -> None:
    chain = PartitionMap()
    chain.take(markers(0, 0, 2 * INTERVALS_PER_PART + 5), "id")
    end = 2 * INTERVALS_PER_PART - 1
    assert chain.retire(end, INTERVALS_PER_PART - 1) == []  # the target still has one record of it
    assert chain.retire(end - 1, INTERVALS_PER_PART) == []  # the source has
    assert chain.retire(end, INTERVALS_PER_PART) == [0]
    assert chain.retire(10**9, 10**9) == [end]
    assert chain.part_count == 1


def test_what_was_read_back_says_the_same() -> None:
    chain, copy = PartitionMap(), PartitionMap("id")
    chain.take(markers(0, 7, 2500), "id")
    for part in chain.parts():
        copy.put(part)
    assert [copy.downstream(offset) for offset in range(5001)] == [chain.downstream(offset) for offset in range(5001)]
    copy.drop(0)
    assert copy.downstream(5) is None


@given(batches)
def test_a_commit_that_died_behind_the_map_is_taken_again(sizes: list[list[tuple[int, int]]]) -> None:
    once, twice = PartitionMap(), PartitionMap()
    for newer in mapped(sizes, 0, 40):
        once.take(newer, "id")
        twice.take(newer, "id")
        twice.take(newer, "id")
    assert list(twice.parts()) == list(once.parts())


@given(st.integers(0, 5), st.integers(-8, 8))
def test_parts_are_kept_as_the_intervals_they_were(count: int, at: int) -> None:
    chain = PartitionMap()
    chain.put(markers(3, 50, count))
    (kept,), expected = chain._parts, markers(3, 50, count).intervals
    assert (list(kept.intervals), len(kept.intervals), kept.intervals[at:]) == (list(expected), count, expected[at:])
    if -count <= at < count:
        assert kept.intervals[at] == expected[at]
    else:
        with pytest.raises(IndexError):
            kept.intervals[at]


def test_a_gap_has_no_copy() -> None:
    chain = PartitionMap()
    chain.take(IntervalMap(OffsetRange(0, 9), 17, (Interval(1, 10, 3), Interval(5, 13, 4))), None)
    chain.take(IntervalMap(OffsetRange(9, 12), 20, (Interval(10, 18, 2),)), None)
    copies = {offset: chain.copy_of(offset) for offset in range(13)}
    assert {offset: there for offset, there in copies.items() if there is not None} == {
        1: 10, 2: 11, 3: 12, 5: 13, 6: 14, 7: 15, 8: 16, 10: 18, 11: 19,
    }  # fmt: skip


def _copied(map_: PartitionMap) -> list[tuple[int, int]]:
    intervals = [interval for part in map_.parts() for interval in part.intervals]
    return [(each.upstream + n, each.downstream + n) for each in intervals for n in range(each.count)]


@pytest.mark.parametrize(
    ("found", "next_copies", "expected"),
    [
        # The source went back from 15 to 10, and is read again from there.
        (IntervalMap(OffsetRange(10, 10), 15), Interval(10, 15, 3), [*range(10), *range(15, 18)]),
        # The target went back from 15 to 10: what is gone there has no copy.
        (IntervalMap(OffsetRange(10, 15), 10), Interval(15, 10, 3), [*range(13)]),
        # The target was made anew, and is empty.
        (IntervalMap(OffsetRange(0, 15), 0), Interval(15, 0, 3), [*range(3)]),
    ],
)
def test_a_map_stays_exact_where_one_side_went_back(
    found: IntervalMap, next_copies: Interval, expected: list[int]
) -> None:
    known = PartitionMap("id")
    known.take(IntervalMap(OffsetRange(0, 15), 15, (Interval(0, 0, 15),)), "id")
    known.take(found, "id")
    end = OffsetRange(next_copies.upstream, next_copies.upstream_end)
    known.take(IntervalMap(end, next_copies.downstream_end, (next_copies,)), "id")
    assert [downstream for _, downstream in _copied(known)] == expected
    assert known.downstream(next_copies.upstream) == next_copies.downstream
