"""The table of the offset map against the map itself."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.map_rows import MapRow, RowChanges, row_changes, rows
from srm_spark.core.model import Interval, OffsetRange, ProgressDetail
from srm_spark.core.offset_map import INTERVALS_PER_PART, PartitionMap
from srm_spark.core.translation import IntervalMap

# Batches: records, the gap behind them on the source, and records of others behind them on the target.
batches = st.lists(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(0, 1)), max_size=6), min_size=1, max_size=8
)


def chain_of(sizes: list[list[tuple[int, int, int]]], topic_id: str = "id") -> PartitionMap:
    chain, upstream, downstream = PartitionMap(), 5, 100
    for batch in sizes:
        start, intervals = upstream, []
        for count, gap, others in batch:
            intervals.append(Interval(upstream, downstream, count))
            upstream, downstream = upstream + count + gap, downstream + count + others
        chain.take(IntervalMap.of(ProgressDetail(OffsetRange(start, upstream), downstream, tuple(intervals))), topic_id)
    return chain


def table_of(chain: PartitionMap) -> list[MapRow]:
    return [row for part in chain.parts() for row in rows(part)]


def translate(table: Iterable[MapRow], offset: int) -> int | None:
    """As SQL would do it: the row that holds the offset."""
    for row in table:
        if row.source_start <= offset < row.source_end and row.target_start is not None:
            return row.target_start + (offset - row.source_start if row.records else 0)
    return None


@given(batches)
def test_every_known_offset_is_in_one_row_that_says_what_the_map_says(sizes: list[list[tuple[int, int, int]]]) -> None:
    chain = chain_of(sizes)
    source = chain.source
    assert source is not None
    table = table_of(chain)
    held = [offset for row in table for offset in range(row.source_start, row.source_end)]
    assert held == list(range(source.start, source.end))
    assert all(row.records in (0, row.source_end - row.source_start) for row in table)
    assert [translate(table, offset) for offset in held] == [chain.downstream(offset) for offset in held]


def test_a_clean_partition_is_one_row() -> None:
    assert list(rows(IntervalMap(OffsetRange(0, 60), 60, (Interval(0, 0, 60),)))) == [MapRow(0, 60, 0, 60)]


def test_offsets_without_a_record_are_rows_of_their_own() -> None:
    part = IntervalMap(OffsetRange(0, 9), 16, (Interval(2, 10, 3), Interval(6, 14, 2)))
    assert list(rows(part)) == [(0, 2, 10, 0), (2, 5, 10, 3), (5, 6, 14, 0), (6, 8, 14, 2), (8, 9, 16, 0)]


def test_a_partition_that_never_held_a_record_is_one_row_without_offsets() -> None:
    assert list(rows(IntervalMap(OffsetRange(0, 0), 0))) == [MapRow(0, 0, 0, 0)]
    assert list(rows(IntervalMap(OffsetRange(7, 7), None))) == [MapRow(7, 7, None, 0)]


def applied(table: list[MapRow], changes: RowChanges) -> list[MapRow]:
    """What a MERGE makes of it."""
    found = {row.source_start: row for row in table}
    found.update((row.source_start, row) for row in changes.put)
    return [row for start, row in sorted(found.items()) if start not in changes.gone]


@given(batches, batches, st.integers(0, 8))
def test_changes_turn_the_older_rows_into_the_newer_ones(
    first: list[list[tuple[int, int, int]]], second: list[list[tuple[int, int, int]]], kept: int
) -> None:
    for older, newer in (
        (chain_of(first), chain_of(second)),  # anything at all
        (chain_of(first), chain_of(first[:kept] + second)),  # went on, or back
        (PartitionMap(), chain_of(first)),
        (chain_of(first), PartitionMap()),
        (chain_of(first), chain_of(second, "another topic")),
    ):
        changes = row_changes(older, newer)
        assert applied(table_of(older), changes) == table_of(newer)
        assert not {row.source_start for row in changes.put} & set(changes.gone)


def test_what_did_not_change_is_not_written_again() -> None:
    whole = [[(1, 1, 0)] * 6] * (INTERVALS_PER_PART // 3)
    older = chain_of(whole)
    assert older.part_count == 2
    assert row_changes(older, older.copy()) == ([], [])
    newer = chain_of([*whole, [(1, 0, 0)]])
    end = table_of(older)[-1].source_end
    assert row_changes(older, newer) == ([MapRow(end, end + 1, table_of(newer)[-1].target_start, 1)], [])


def test_every_row_is_written_again_when_the_topic_is_another() -> None:
    older, newer = chain_of([[(3, 0, 0)]], "old"), chain_of([[(3, 0, 0)]], "new")
    assert row_changes(older, newer) == ([MapRow(5, 8, 100, 3)], [])


def test_retired_parts_go() -> None:
    older = chain_of([[(1, 1, 0)] * 6] * (INTERVALS_PER_PART // 3))
    newer = older.copy()
    (start,) = newer.retire(10**9, 10**9)
    changes = row_changes(older, newer)
    assert changes.put == []
    assert len(changes.gone) == 2 * INTERVALS_PER_PART - 1  # the gap behind a part's last record is the next one's
    assert min(changes.gone) == start
