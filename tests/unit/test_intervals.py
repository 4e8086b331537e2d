"""Intervals as rows of numbers are the same as intervals one by one, few or many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.codec import decode_progress_detail, encode_progress_detail
from srm_spark.core.intervals import FEW, Growing, Intervals, Stretches, as_text, gaps_of, kept, of_text, records_in
from srm_spark.core.model import Interval, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.reports import PartitionReport, Sent, report_fields, report_of
from srm_spark.core.translation import IntervalMap

STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 4)), max_size=4 * FEW)
"""Offsets in front of each interval on both sides, and its count."""


def placed(steps: list[tuple[int, int, int]], upstream: int = 0, downstream: int = 0) -> list[Interval]:
    found = []
    for ahead, below, count in steps:
        upstream, downstream = upstream + ahead, downstream + below
        found.append(Interval(upstream, downstream, count))
        upstream, downstream = upstream + count, downstream + count
    return found


def one_by_one(intervals: list[Interval]) -> list[Interval]:
    """Joined where two could be one."""
    found: list[Interval] = []
    for one in intervals:
        if found and (found[-1].upstream_end, found[-1].downstream_end) == (one.upstream, one.downstream):
            found[-1] = found[-1]._replace(count=found[-1].count + one.count)
        else:
            found.append(one)
    return found


@given(STEPS)
def test_rows_are_a_sequence_of_the_same(steps: list[tuple[int, int, int]]) -> None:
    them = placed(steps)
    rows = Intervals.of(them)
    assert (rows == them, rows == tuple(them), tuple(them) == rows, list(rows)) == (True, True, True, them)
    assert (len(rows), records_in(rows), hash(rows)) == (len(them), records_in(them), hash(tuple(them)))
    assert [rows[at] for at in range(-len(them), len(them))] == [*them, *them]
    assert rows[3:9] == them[3:9]
    assert rows[:-1] == them[:-1]
    assert (rows != [*them, Interval(1, 1, 1)]) is True
    assert (rows == [list(one) for one in them]) is not bool(them)
    assert rows.is_ascending
    assert rows.is_joined == (one_by_one(them) == them)
    assert of_text(as_text(rows)) == of_text(as_text(them)) == them
    source = OffsetRange(0, them[-1].upstream_end + 2 if them else 2)
    few, many = (ProgressDetail(source, None, found) for found in (tuple(them), rows))
    assert gaps_of(many) == gaps_of(few)


@pytest.mark.parametrize("wrong", [Interval(19, 12, 1), Interval(25, 11, 1), Interval(25, 14, 0), Interval(25, 14, -1)])
def test_what_does_not_ascend_is_found(wrong: Interval) -> None:
    right = [Interval(10, 2, 5), Interval(15, 7, 5)]
    assert Intervals.of([*right, Interval(20, 12, 1)]).is_ascending
    assert not Intervals.of([*right, wrong]).is_ascending
    assert not Intervals.of([*right, wrong]).is_joined


@given(st.lists(STEPS, max_size=4), st.lists(st.booleans(), min_size=4))
def test_what_comes_bit_by_bit_is_joined(bits: list[list[tuple[int, int, int]]], at_once: list[bool]) -> None:
    growing, all_of_them, behind = Growing(), list[Interval](), (0, 0)
    for steps, is_at_once in zip(bits, at_once, strict=False):
        them = one_by_one(placed(steps, *behind))
        if is_at_once:
            growing.extend(them)
        else:
            for one in them:
                growing.add(one)
        all_of_them += them
        behind = (them[-1].upstream_end, them[-1].downstream_end) if them else behind
        wanted = one_by_one(all_of_them)
        assert growing == wanted
        assert (list(growing), len(growing), list(growing.taken())) == (wanted, len(wanted), wanted)
        assert [growing[-1], growing[0]] == [wanted[-1], wanted[0]] if wanted else not growing


@given(STEPS)
def test_a_report_of_many_stretches_travels(steps: list[tuple[int, int, int]]) -> None:
    offsets = [OffsetRange(one.upstream, one.upstream_end) for one in one_by_one(placed(steps)) or [Interval(0, 0, 1)]]
    reports = []
    for stretches in (tuple(offsets), Stretches.of(offsets)):
        report = PartitionReport(TopicPartition("t", 0))
        count = sum(end - start for start, end in offsets)
        report.add(Sent(stretches, count, 7, 0, 0), 40, 40 + count - 1, 0.0, None)
        report.add(Sent((OffsetRange(10_000, 10_002),), 2, 7, 0, 0), 40 + count, 41 + count, 0.0, None)
        reports.append(report)
        assert report_of(report_fields(report)) == report
        assert report.failure is None
    assert reports[0].intervals == reports[1].intervals
    assert reports[0].intervals[-1] == Interval(10_000, 40 + count, 2)


@given(STEPS, STEPS)
def test_many_are_recorded_as_few_are(first: list[tuple[int, int, int]], second: list[tuple[int, int, int]]) -> None:
    maps = PartitionMap("id"), PartitionMap("id")
    start = (0, 0)
    for steps in (first, second):
        them = one_by_one(placed(steps, *start))
        end = (them[-1].upstream_end, them[-1].downstream_end) if them else start
        source = OffsetRange(start[0], end[0] + 1)
        details = [ProgressDetail(source, end[1], found) for found in (tuple(them), Intervals.of(them))]
        assert encode_progress_detail(details[0]) == encode_progress_detail(details[1])
        assert decode_progress_detail(encode_progress_detail(details[1])) == details[1]
        changes = [known.take(IntervalMap.of(detail), "id") for known, detail in zip(maps, details, strict=True)]
        assert changes[0] == changes[1]
        start = (source.end, end[1])
    assert list(maps[0].parts()) == list(maps[1].parts())
    for offset in range(start[0] + 2):
        assert maps[0].downstream(offset) == maps[1].downstream(offset)


def test_what_is_kept_holds_nothing_beside_it() -> None:
    rows = Intervals.of(placed([(1, 0, 1)] * 100))
    part = kept(rows[10:12])
    assert part == rows[10:12]
    assert part.rows.base is None
    assert kept(part) is part


@pytest.mark.parametrize(
    "rows",
    [
        [[0, 0, 1.5]],
        [[0, 0]],
        [[0, 0, "1"]],
        [[2**70, 0, 1]],
        [[-1, 0, 1]],
        [[0, -1, 1]],
        [[0, 0, 0]],
        [[10**6, 0, 1]],
        [[0, 0, 1, 1]],
        [[0, 0, None]],
    ],
)
@pytest.mark.parametrize("many", [0, FEW])
def test_what_is_no_list_of_intervals_is_no_detail(rows: list[list[object]], many: int) -> None:
    detail = ProgressDetail(OffsetRange(0, 1000), 7, ())
    text = encode_progress_detail(detail).decode()
    more = [[2 + 2 * number, 2 + number, 1] for number in range(many)]
    for told in ([*rows, *more], [*more, *rows]):
        said = text.replace('"intervals":[]', f'"intervals":{told}'.replace("'", '"').replace("None", "null"))
        assert said != text
        assert decode_progress_detail(said.encode()) is None
