"""The offset map against a record-by-record model, and the sync rule against MirrorMaker 2's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.model import Interval, OffsetRange, ProgressDetail
from srm_spark.core.translation import IntervalMap, SyncRule, runs


def covering(start: int, end: int, target_end: int | None, *intervals: Interval) -> IntervalMap:
    return IntervalMap.of(ProgressDetail(OffsetRange(start, end), target_end, intervals))


DRAWN = covering(40, 50, 12, Interval(40, 7, 3), Interval(45, 10, 2))


@pytest.mark.parametrize(
    ("upstream", "downstream"),
    [(39, None), (40, 7), (41, 8), (42, 9), (43, 10), (44, 10), (45, 10), (46, 11), (47, 12), (50, 12), (51, None)],
)
def test_downstream_is_the_next_unread_record(upstream: int, downstream: int | None) -> None:
    assert DRAWN.downstream(upstream) == downstream


@pytest.mark.parametrize(
    ("downstream", "upstream"), [(6, None), (7, 40), (8, 41), (9, 42), (10, 45), (11, 46), (12, 50), (13, None)]
)
def test_upstream_is_the_next_unread_record(downstream: int, upstream: int | None) -> None:
    assert DRAWN.upstream(downstream) == upstream


def test_an_empty_partition_maps_its_end_only() -> None:
    empty = covering(5, 5, 0)
    assert [empty.downstream(offset) for offset in (4, 5, 6)] == [None, 0, None]
    assert [empty.upstream(offset) for offset in (0, 1)] == [5, None]
    unknown = covering(5, 5, None)
    assert unknown.downstream(5) is None
    assert unknown.upstream(0) is None


def test_markers_at_the_end_of_the_target_are_skipped() -> None:
    marked = covering(0, 3, 4, Interval(0, 0, 3))
    assert (marked.downstream(3), marked.upstream(3), marked.upstream(4)) == (4, 3, 3)


# One record: source gap before it, target gap before it.
records = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30)


def place(gaps: list[tuple[int, int]], upstream: int, downstream: int, tail: int) -> tuple[dict[int, int], IntervalMap]:
    """Records at their places: a plain dict of offsets, and the map built from their runs."""
    start, copies = upstream, {}
    for source_gap, target_gap in gaps:
        upstream, downstream = upstream + source_gap, downstream + target_gap
        copies[upstream] = downstream
        upstream, downstream = upstream + 1, downstream + 1
    intervals = [Interval(source, target, 1) for source, target in copies.items()]
    return copies, covering(start, upstream + tail, downstream, *intervals)


@given(records, st.integers(0, 50), st.integers(0, 50), st.integers(0, 3))
def test_map_agrees_with_looking_at_every_record(
    gaps: list[tuple[int, int]], upstream: int, downstream: int, tail: int
) -> None:
    copies, mapped = place(gaps, upstream, downstream, tail)
    for offset in range(upstream - 1, mapped.source.end + 2):
        inside = upstream <= offset <= mapped.source.end
        expected = next((target for source, target in copies.items() if source >= offset), mapped.target_end)
        assert mapped.downstream(offset) == (expected if inside else None)
    first = next(iter(copies.values()), mapped.target_end)
    assert first is not None
    assert mapped.target_end is not None
    for offset in range(first - 1, mapped.target_end + 2):
        inside = first <= offset <= mapped.target_end
        back = next((source for source, target in copies.items() if target >= offset), mapped.source.end)
        assert mapped.upstream(offset) == (back if inside else None)


@given(records, st.integers(0, 3))
def test_neighbours_are_one_interval(gaps: list[tuple[int, int]], tail: int) -> None:
    copies, mapped = place(gaps, 0, 0, tail)
    assert sum(interval.count for interval in mapped.intervals) == len(copies)
    for one, other in zip(mapped.intervals, mapped.intervals[1:], strict=False):
        assert (one.upstream_end, one.downstream_end) != (other.upstream, other.downstream)


@given(records, records, records)
def test_appending_is_building_at_once(
    one: list[tuple[int, int]], two: list[tuple[int, int]], three: list[tuple[int, int]]
) -> None:
    batches = (one, two, three)
    _, whole = place([gap for batch in batches for gap in batch], 0, 0, 0)
    grown = covering(0, 0, 0)
    for batch in batches:
        assert grown.target_end is not None
        grown = grown.append(place(batch, grown.source.end, grown.target_end, 0)[1])
    assert grown == whole


@given(records, records, st.integers(0, 120))
def test_source_read_again_maps_to_the_second_copy(
    gaps: list[tuple[int, int]], again: list[tuple[int, int]], back: int
) -> None:
    first, older = place(gaps, 0, 0, 0)
    assert older.target_end is not None
    restart = max(older.source.end - back, 0)
    second, newer = place(again, restart, older.target_end, 0)
    merged = older.append(newer)
    copies = {source: target for source, target in first.items() if source < restart} | second
    assert merged.source == OffsetRange(0, newer.source.end)
    positions = [merged.downstream(offset) for offset in range(merged.source.end + 1)]
    for offset, position in enumerate(positions):
        assert position == next((copies[source] for source in sorted(copies) if source >= offset), merged.target_end)
    assert positions == sorted(position for position in positions if position is not None)


@pytest.mark.parametrize(
    "newer",
    [
        covering(60, 61, 13, Interval(60, 12, 1)),  # source 50 to 59 unknown
        covering(30, 31, 13, Interval(30, 12, 1)),  # before all that is known
        covering(50, 51, 4, Interval(50, 3, 1)),  # the target lost records
        covering(50, 50, 3),  # the same, noticed without a record
        covering(40, 41, 8, Interval(40, 7, 1)),  # both sides again: a re-created target
    ],
)
def test_what_does_not_continue_starts_over(newer: IntervalMap) -> None:
    assert DRAWN.append(newer) == newer


def test_an_unknown_target_end_keeps_the_known_one() -> None:
    assert DRAWN.append(covering(50, 55, None)).downstream(55) == 12


@pytest.mark.parametrize("second", [Interval(42, 10, 1), Interval(43, 9, 1), Interval(30, 20, 1)])
def test_intervals_that_overlap_are_refused(second: Interval) -> None:
    with pytest.raises(ValueError, match="ascend"):
        covering(0, 100, 100, Interval(40, 7, 3), second)


def test_runs_break_where_source_offsets_do() -> None:
    assert runs([40, 41, 42, 45, 46, 50], 7) == [Interval(40, 7, 3), Interval(45, 10, 2), Interval(50, 12, 1)]
    assert runs([], 7) == []


@given(st.lists(st.integers(0, 60), unique=True).map(sorted), st.integers(0, 50))
def test_runs_cover_every_record_once(offsets: list[int], first: int) -> None:
    pairs = [(run.upstream + n, run.downstream + n) for run in runs(offsets, first) for n in range(run.count)]
    assert pairs == list(zip(offsets, range(first, first + len(offsets)), strict=True))


class PartitionState:
    """The rule one record at a time, as `OffsetSyncWriter.PartitionState` has it."""

    def __init__(self, lag_max: int) -> None:
        self.lag_max = lag_max
        self.upstream = self.downstream = self.synced = -1

    def update(self, upstream: int, downstream: int) -> bool:
        due = (
            self.synced == -1
            or downstream - (self.synced + 1) >= self.lag_max
            or upstream - self.upstream != 1
            or downstream < self.downstream
        )
        if due:
            self.synced = downstream
        self.upstream, self.downstream = upstream, downstream
        return due


VECTORS = [
    ((0, 100), True),
    ((2, 102), True),
    ((3, 152), False),
    ((4, 153), True),
    # True in MirrorMaker's own test, which leaves the flag of the record before standing; a queued sync clears it.
    ((5, 154), False),
    ((6, 203), False),
    ((7, 204), True),
    ((2, 206), True),
    ((3, 207), False),
    ((4, 3), True),
    ((5, 4), False),
    ((7, 6), True),
]


def test_sync_rule_follows_the_vectors_of_mirrormaker() -> None:
    rule, state = SyncRule(50), PartitionState(50)
    for pair, due in VECTORS:
        assert rule.due(Interval(*pair, 1)) == ([pair] if due else [])
        assert state.update(*pair) is due


def test_every_record_is_due_without_lag() -> None:
    rule = SyncRule(0)
    assert [len(rule.due(Interval(*pair, 1))) for pair, _ in VECTORS] == [1] * len(VECTORS)
    assert rule.due(Interval(8, 7, 3)) == [(8, 7), (9, 8), (10, 9)]


intervals = st.builds(Interval, st.integers(0, 40), st.integers(0, 40), st.integers(0, 25))
# Steps from the end of one interval to the start of the next: mostly ahead, now and then back.
steps = st.tuples(st.integers(-30, 3), st.integers(-30, 60), st.integers(0, 30))


def chain(start: Interval, moves: list[tuple[int, int, int]]) -> list[Interval]:
    found = [start]
    for source_step, target_step, count in moves:
        upstream = max(found[-1].upstream_end + max(source_step, -1), 0)
        found.append(Interval(upstream, max(found[-1].downstream_end + target_step, 0), count))
    return found


@given(st.integers(0, 12), st.one_of(st.lists(intervals), st.builds(chain, intervals, st.lists(steps, max_size=8))))
def test_intervals_are_due_where_their_records_are(lag_max: int, acknowledged: list[Interval]) -> None:
    rule, state = SyncRule(lag_max), PartitionState(lag_max)
    for upstream, downstream, count in acknowledged:
        pairs = [(upstream + n, downstream + n) for n in range(count)]
        assert rule.due(Interval(upstream, downstream, count)) == [pair for pair in pairs if state.update(*pair)]


def test_due_does_not_look_at_every_record() -> None:
    assert len(SyncRule(10**9 - 1).due(Interval(0, 0, 10**12))) == 1000


def test_last_is_the_last_record_and_changes_nothing() -> None:
    rule = SyncRule(10)
    assert rule.due(Interval(0, 100, 5)) == [(0, 100)]
    assert rule.last(Interval(0, 100, 5)) == (4, 104)
    assert rule.due(Interval(5, 105, 10)) == [(11, 111)]


def test_negative_lag_is_refused() -> None:
    with pytest.raises(ValueError, match=r"offset\.lag\.max"):
        SyncRule(-1)
