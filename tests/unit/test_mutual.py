"""Positions on a topic that flows both ways, against two logs whose every record is known."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.checkpoints import TranslationStatus
from srm_spark.core.model import Interval, OffsetRange
from srm_spark.core.mutual import translate_mutual
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.translation import IntervalMap, runs


@dataclass
class Side:
    """One cluster: its log, None for a marker, and the map of the flow that leaves it."""

    name: str
    log: list[str | None] = field(default_factory=list)
    map: PartitionMap = field(default_factory=PartitionMap)
    read: int = 0
    """How far its flow has come."""

    def write(self, count: int) -> None:
        self.log += [f"{self.name}{len(self.log) + number}" for number in range(count)]

    def copy(self, to: Side, count: int) -> None:
        """One micro-batch of at most so many offsets; somebody writes to the target after every third record."""
        start, self.read = self.read, min(self.read + count, len(self.log))
        intervals: list[Interval] = []
        for offset in range(start, self.read):
            record = self.log[offset]
            if record is None or record.startswith(to.name):
                continue
            intervals += runs([offset], len(to.log))
            to.log.append(record)
            if len(intervals) % 3 == 0:
                to.write(1)
        end = intervals[-1].downstream_end if intervals else self.map.target_end
        self.map.take(IntervalMap(OffsetRange(start, self.read), end or 0, tuple(intervals)), "id")


def first_unread(here: Side, there: Side, position: int) -> int:
    """The first record over there that a group which has read up to `position` has not read.

    What its flow has not looked at yet may be a record, though it is a marker.
    """
    read = {None, *here.log[:position]}
    places = enumerate(there.log)
    return next((at for at, what in places if what not in read or (not what and at >= there.read)), len(there.log))


def next_record(side: Side, position: int) -> int:
    """The next place at which there is a record, for all that the side's flow knows."""
    places = range(position, len(side.log))
    return next((offset for offset in places if side.log[offset] or offset >= side.read), len(side.log))


steps = st.lists(
    st.tuples(st.sampled_from(["write", "mark", "copy"]), st.booleans(), st.integers(1, 6)), min_size=1, max_size=30
)


def both_sides(moves: list[tuple[str, bool, int]]) -> tuple[Side, Side]:
    a, b = Side("a"), Side("b")
    for move, is_a, count in moves:
        here, there = (a, b) if is_a else (b, a)
        if move == "write":
            here.write(count)
        elif move == "mark":
            here.log += [None] * count
        else:
            here.copy(there, count)
    for side, other in ((a, b), (b, a)):  # a flow that never ran knows nothing
        if side.map.source is None:
            side.copy(other, 0)
    return a, b


@given(steps)
def test_a_group_goes_on_at_the_first_record_that_it_has_not_read(moves: list[tuple[str, bool, int]]) -> None:
    a, b = both_sides(moves)
    for here, there in ((a, b), (b, a)):
        for position in range(len(here.log) + 1):
            found = translate_mutual(here.map, there.map, position, len(there.log))
            assert found.downstream is not None
            assert next_record(there, found.downstream) == first_unread(here, there, position)
            assert found.status is (TranslationStatus.AHEAD if position > here.read else TranslationStatus.EXACT)


@given(steps)
def test_going_there_and_back_never_goes_further(moves: list[tuple[str, bool, int]]) -> None:
    """Group offsets are synced in both directions: they must come to rest."""
    a, b = both_sides(moves)
    for position in range(len(a.log) + 1):
        there = translate_mutual(a.map, b.map, position, len(b.log)).downstream
        assert there is not None
        back = translate_mutual(b.map, a.map, there, len(a.log)).downstream
        assert back is not None
        assert next_record(a, back) <= next_record(a, position)


@given(steps)
def test_positions_ascend(moves: list[tuple[str, bool, int]]) -> None:
    a, b = both_sides(moves)
    found = [translate_mutual(a.map, b.map, position, len(b.log)).downstream for position in range(len(a.log) + 1)]
    assert found == sorted(offset for offset in found if offset is not None)


def test_the_example_of_the_docstring() -> None:
    a, b = Side("a"), Side("b")
    forward, reverse = PartitionMap(), PartitionMap()
    a.log, b.log = ["a0", "a1", "b0", "a2"], ["b0", "a0", "a1", "b1", "a2"]
    forward.take(IntervalMap(OffsetRange(0, 4), 5, (Interval(0, 1, 2), Interval(3, 4, 1))), "id")
    reverse.take(IntervalMap(OffsetRange(0, 1), 3, (Interval(0, 2, 1),)), "id")
    assert [translate_mutual(forward, reverse, position, 5).downstream for position in range(5)] == [0, 0, 0, 3, 3]


def test_what_is_not_known_is_not_guessed() -> None:
    late, other = PartitionMap(), PartitionMap()
    late.take(IntervalMap(OffsetRange(5, 6), 9, (Interval(5, 8, 1),)), "id")
    other.take(IntervalMap(OffsetRange(0, 9), 5, ()), "id")
    assert translate_mutual(late, other, 4, 9).status is TranslationStatus.UNKNOWN
    assert translate_mutual(late, other, 5, 7).status is TranslationStatus.BEYOND
    assert translate_mutual(None, other, 5, 9).status is TranslationStatus.UNMAPPED
    assert translate_mutual(late, PartitionMap(), 5, 9).status is TranslationStatus.UNMAPPED
