"""Up to where both sides are the same: what was replicated, what is left of it, and the first offset that differs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.divergence import Comparison, compare_copies
from srm_spark.core.model import Interval, OffsetRange
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.tail import TailRecord, is_copy
from srm_spark.core.translation import IntervalMap

COPIES = [Interval(10, 0, 3), Interval(15, 3, 2)]
"""Source offsets 10, 11, 12, 15 and 16 at target offsets 0 to 4."""


def log(values: dict[int, str]) -> list[TailRecord]:
    return [TailRecord(offset, 1, None, value.encode()) for offset, value in values.items()]


SOURCE = {10: "a", 11: "b", 12: "c", 15: "d", 16: "e"}
TARGET = {0: "a", 1: "b", 2: "c", 3: "d", 4: "e"}


def compared(
    source: dict[int, str],
    target: dict[int, str],
    source_end: int = 17,
    target_end: int = 5,
    *,
    may_be_compacted: bool = True,
) -> Comparison:
    return compare_copies(
        COPIES,
        log(source),
        log(target),
        source_end=source_end,
        target_end=target_end,
        may_be_compacted=may_be_compacted,
        is_copy=is_copy,
    )


def without(side: dict[int, str], *offsets: int) -> dict[int, str]:
    return {offset: value for offset, value in side.items() if offset not in offsets}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (compared(SOURCE, TARGET), Comparison(None, True)),
        (compared({**SOURCE, 16: "x"}, TARGET), Comparison(16, True)),
        (compared({**SOURCE, 10: "x"}, TARGET), Comparison(10, False)),
        (compared({**SOURCE, 13: "in a gap"}, TARGET), Comparison(None, True)),
        (compared(SOURCE, {**TARGET, 3: "x", 4: "y"}), Comparison(15, True)),
        (compared(without(SOURCE, 16), TARGET, source_end=16), Comparison(16, True)),
        (compared(without(SOURCE, 12, 15, 16), TARGET, source_end=12), Comparison(12, True)),
        (compared({}, TARGET, source_end=5), Comparison(10, False)),
        (compared(SOURCE, without(TARGET, 3, 4), target_end=3), Comparison(15, True)),
        (compared(SOURCE, {}, target_end=0), Comparison(10, False)),
        (compared(without(SOURCE, 12, 16), without(TARGET, 1)), Comparison(None, True)),
        (compared({}, {}), Comparison(None, False)),
        (compared({12: "c"}, {4: "e"}), Comparison(None, False)),
    ],
)
def test_the_first_difference_is_found(found: Comparison, expected: Comparison) -> None:
    assert found == expected


@pytest.mark.parametrize(
    ("gone", "source_gone", "target_end", "expected"),
    [
        ((3,), (), 5, Comparison(15, True)),  # a marker lies there, and later copies are right
        ((2, 3, 4), (), 3, Comparison(12, True)),  # the log ends with it
        ((2, 3, 4), (), 2, Comparison(12, True)),  # the log ends in front of it
        ((2, 3, 4), (12,), 3, Comparison(15, True)),  # nobody can say what lay there
        ((0,), (), 5, Comparison(None, True)),  # deleted by retention
        ((0, 1, 2, 3, 4), (), 5, Comparison(None, False)),
    ],
)
def test_a_copy_that_is_missing_behind_another_one_is_gone_where_nothing_is_compacted(
    gone: tuple[int, ...], source_gone: tuple[int, ...], target_end: int, expected: Comparison
) -> None:
    source, target = without(SOURCE, *source_gone), without(TARGET, *gone)
    assert compared(source, target, target_end=target_end, may_be_compacted=False) == expected
    assert compared(SOURCE, without(TARGET, 3)) == Comparison(None, True)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 50))
def test_copies_before_an_offset_are_the_last_ones(position: int, start: int, count: int) -> None:
    known = PartitionMap()
    intervals = (Interval(3, 5, 4), Interval(8, 9, 1), Interval(20, 10, 10))
    known.put(IntervalMap(OffsetRange(0, 9), 10, intervals[:2]))
    known.put(IntervalMap(OffsetRange(9, 30), 20, intervals[2:]))
    pairs = [(each.upstream + n, each.downstream + n) for each in intervals for n in range(each.count)]
    expected = [pair for pair in pairs if pair[0] < position][-count:]
    found = known.copies_before(position, count)
    assert [(each.upstream + n, each.downstream + n) for each in found for n in range(each.count)] == expected


@given(st.integers(0, 40), st.integers(0, 40))
def test_copies_within_a_stretch_are_those_of_its_records_alone(start: int, end: int) -> None:
    known = PartitionMap()
    intervals = (Interval(3, 5, 4), Interval(8, 9, 1), Interval(20, 10, 10))
    known.put(IntervalMap(OffsetRange(0, 9), 10, intervals[:2]))
    known.put(IntervalMap(OffsetRange(9, 30), 20, intervals[2:]))
    pairs = [(each.upstream + n, each.downstream + n) for each in intervals for n in range(each.count)]
    found = known.copies_within(OffsetRange(start, end))
    copied = [(each.upstream + n, each.downstream + n) for each in found for n in range(each.count)]
    assert copied == [pair for pair in pairs if start <= pair[0] < end]
    assert all(each.count > 0 for each in found)
