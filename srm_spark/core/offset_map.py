"""The exact offset map of a source partition, kept for ever: a chain of parts, each small enough for one record.

A part is an `IntervalMap`. While nothing but records flows, a partition is one part of one interval that grows;
markers, compaction and other writers make intervals, and every `INTERVALS_PER_PART` of them a new part. No I/O.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from srm_spark.core.intervals import kept
from srm_spark.core.losses import uncovered
from srm_spark.core.model import Interval, KeptLoss, OffsetRange
from srm_spark.core.translation import IntervalMap

INTERVALS_PER_PART = 1000
"""The last part is written again with every batch, so it must stay small."""


@dataclass
class Change:
    """What a commit changes in the map of one partition."""

    put: list[IntervalMap] = field(default_factory=list)
    """Parts to write; the first may replace one that is there."""
    dropped: list[int] = field(default_factory=list)
    """Starts of parts that are no longer true."""
    put_again: list[IntervalMap] = field(default_factory=list)
    """The same of what is copied again."""
    dropped_again: list[int] = field(default_factory=list)
    counting: Sequence[Interval] = ()
    """Copies that are looked up from now on."""


class Hole(NamedTuple):
    """Source offsets of which the map knows nothing: before it begins, or copied by somebody else amid it."""

    source: OffsetRange
    after: int
    """Copies of what lies behind its start are at or behind this target offset."""
    before: int | None
    """Where the target goes on with what the map knows; None where that is not known."""


class PartitionMap:
    """The map of one partition of one generation of a topic.

    Where somebody else has copied in between, there is a hole between two parts: MirrorMaker 2, while it ran the flow.

    Behind a rewind the first copies count until the second ones have come as far, then all of these at once: at no time
    is a position translated to a place behind which something is missing that the target has.

    ```
    rewound from 44 to 41      source  41 42 43          second copies so far: 41, in `again`
                               target   8  9 10 … 12     42 is found at 9; once 43 is copied again, at 13
    ```
    """

    def __init__(self, topic_id: str | None = None) -> None:
        self.topic_id = topic_id
        """Id of the source topic; offsets of a re-created one mean something else."""
        self._starts: list[int] = []
        self._parts: list[IntervalMap] = []
        self.again: PartitionMap | None = None
        """What is copied a second time, so far; None while nothing is."""
        self.missing: dict[bytes, KeptLoss] = {}
        """Key of its record → a stretch that was skipped, or lost by the target, as long as it has no copies."""

    @property
    def source(self) -> OffsetRange | None:
        """From where to where the map reaches, holes included; None while it is empty."""
        return OffsetRange(self._parts[0].source.start, self._parts[-1].source.end) if self._parts else None

    @property
    def target_end(self) -> int | None:
        """Target offset of the next record to come; None while it is not known."""
        return self._parts[-1].target_end if self._parts else None

    @property
    def next_offset(self) -> int | None:
        """Source offset of the next record to come; None while the map is empty."""
        reach = self.source if self.again is None else self.again.source
        return None if reach is None else reach.end

    @property
    def copied_before(self) -> int | None:
        """Source offset up to which what is copied now was copied before; None while nothing is copied again."""
        return None if self.again is None or self.source is None else self.source.end

    def new_of(self, offsets: OffsetRange) -> list[OffsetRange]:
        """Stretches of the next offsets to come that have no first copies; all of them but behind a rewind.

        Nobody can tell markers and compacted records from those that were skipped, so they are among them.
        """
        if self.again is None:
            return [offsets]
        return list(uncovered(offsets, self.copies_within(offsets)))

    @property
    def has_records(self) -> bool:
        """Whether any record was replicated."""
        return any(part.intervals for part in self._parts)

    @property
    def part_count(self) -> int:
        """How many records of the map topic hold it."""
        return len(self._parts)

    def parts(self) -> Iterable[IntervalMap]:
        """All parts, in order."""
        return iter(self._parts)

    def holes(self) -> list[Hole]:
        """What the map does not know in front of its end, in order."""
        holes, start, after = [], 0, 0
        for part in self._parts:
            if part.source.start > start:
                holes.append(Hole(OffsetRange(start, part.source.start), after, part.downstream(part.source.start)))
            start, after = part.source.end, after if part.target_end is None else part.target_end
        return holes

    def difference(self, older: PartitionMap) -> tuple[list[IntervalMap], list[IntervalMap]]:
        """Parts that `older` has not, and parts of `older` that are not here; all of them when the topic is another."""
        if self.topic_id != older.topic_id:
            return list(self.parts()), list(older.parts())
        here, there = (dict(zip(each._starts, each._parts, strict=True)) for each in (self, older))
        return (
            [part for start, part in here.items() if there.get(start) != part],
            [part for start, part in there.items() if here.get(start) != part],
        )

    def is_of_another(self, topic_id: str | None) -> bool:
        """Whether this is the map of another topic of the same name; an id that nobody knows says nothing."""
        return None not in (topic_id, self.topic_id) and topic_id != self.topic_id

    def copy(self) -> PartitionMap:
        """The same map, to be changed by somebody else."""
        copy = PartitionMap(self.topic_id)
        copy._starts, copy._parts = list(self._starts), list(self._parts)
        copy.again = None if self.again is None else self.again.copy()
        copy.missing = dict(self.missing)
        return copy

    def take(self, newer: IntervalMap, topic_id: str | None) -> Change:
        """Add what was replicated next; tells what has to be written for it.

        Source read again from an earlier offset replaces what was known from there on. A stretch of the source that is
        missing between the two is a hole. Where the target went back, or the topic is another one, the map starts over.
        """
        if self.again is None:
            return self._take(newer, topic_id)
        end, first = self.target_end, newer.first_downstream
        if self.is_of_another(topic_id) or (first is not None and end is not None and first < end):
            dropped = self.forget_again()  # the target went back, in front of all of them
            return replace(self._take(newer, topic_id), dropped_again=dropped)
        return self._take_again(newer)

    def rewind(self, offset: int, target_end: int) -> Change:
        """What lies behind a source offset is copied again, to behind `target_end`."""
        if self.again is None:
            self.again = PartitionMap(self.topic_id)
        change = self.again.take(IntervalMap(OffsetRange(offset, offset), target_end), self.topic_id)
        return Change(put_again=change.put, dropped_again=change.dropped)

    def forget_again(self) -> list[int]:
        """Let go of second copies, so that the first ones count; the starts of their parts."""
        again, self.again = self.again, None
        return [] if again is None else list(again._starts)

    def cut(self, offset: int) -> Change:
        """First copies at or behind a source offset are none; second ones, all in front of it, stay."""
        return self._take(IntervalMap(OffsetRange(offset, offset), self.target_end), self.topic_id)

    def _take_again(self, newer: IntervalMap) -> Change:
        """Add a stretch of second copies. Those before a first one that has no second one are let go: it counts."""
        again = self.again
        assert again is not None
        since = newer.source.start if again.source is None else min(again.source.end, newer.source.start)
        first = self.copies_within(OffsetRange(since, newer.source.end))
        left = _behind_uncovered(first, newer.intervals)
        dropped: list[int] = []
        if left is not None:
            left = max(left, newer.source.start)  # behind a hole, not a gap: what somebody else copied there
            dropped, again = list(again._starts), PartitionMap(self.topic_id)
            intervals = tuple(part for one in newer.intervals if (part := _from(one, left)).count > 0)
            newer = IntervalMap(OffsetRange(left, newer.source.end), newer.target_end, intervals)
            self.again = again
        change = again.take(newer, self.topic_id)
        if self.source is None or newer.source.end >= self.source.end:
            dropped_again = sorted({*dropped, *change.dropped, *self.forget_again()})
            return replace(self._put_in(again), dropped_again=dropped_again)
        kept = set(again._starts)
        return Change(put_again=change.put, dropped_again=sorted({*dropped, *change.dropped} - kept))

    def _put_in(self, again: PartitionMap) -> Change:
        """Let second copies count instead of the first ones."""
        before = self.copy()
        for part in again.parts():
            self._take(part, self.topic_id)
        put, gone = self.difference(before)
        dropped = sorted({part.source.start for part in gone} - set(self._starts))
        return Change(put, dropped, counting=[interval for part in again.parts() for interval in part.intervals])

    def _take(self, newer: IntervalMap, topic_id: str | None) -> Change:
        before = set(self._starts)
        if self.is_of_another(topic_id):
            self._forget_all()
        self.topic_id = topic_id if topic_id is not None else self.topic_id
        at = bisect_left(self._starts, newer.source.start) - 1
        if at < 0:
            self._forget_all()
            put = list(split(newer))
        else:
            older = self._parts[at]
            joined = older.append(newer)
            put = list(split(joined))
            if older.has_hole_before(newer):
                del self._starts[at + 1 :], self._parts[at + 1 :]
            elif joined is newer and newer.source.start != older.source.start:
                self._forget_all()
            else:
                del self._starts[at:], self._parts[at:]
        for part in put:
            self.put(part)
        return Change(put, sorted(before - set(self._starts)), counting=newer.intervals)

    def put(self, part: IntervalMap) -> None:
        """Set one part, as it was read back."""
        at = bisect_left(self._starts, part.source.start)
        if at < len(self._starts) and self._starts[at] == part.source.start:
            self._parts[at] = _packed(part)
        else:
            self._starts.insert(at, part.source.start)
            self._parts.insert(at, _packed(part))

    def drop(self, start: int) -> None:
        """Remove the part with this first source offset, if it is there."""
        at = bisect_left(self._starts, start)
        if at < len(self._starts) and self._starts[at] == start:
            del self._starts[at], self._parts[at]

    def retire(self, first_upstream: int, first_downstream: int) -> list[int]:
        """Drop parts whose records are gone on both sides; the starts of those dropped. The last part stays."""
        gone = 0
        while gone < len(self._parts) - 1:
            part = self._parts[gone]
            if part.source.end > first_upstream or part.target_end is None or part.target_end > first_downstream:
                break
            gone += 1
        dropped = self._starts[:gone]
        del self._starts[:gone], self._parts[:gone]
        return dropped

    def downstream(self, upstream_offset: int) -> int | None:
        """Target position of a consumer whose next source record is at or behind `upstream_offset`; None if unknown."""
        at = bisect_right(self._starts, upstream_offset) - 1
        return None if at < 0 else self._parts[at].downstream(upstream_offset)

    def upstream(self, downstream_offset: int) -> int | None:
        """Source position of a consumer whose next target record is at or behind `downstream_offset`."""
        at = bisect_right(self._parts, downstream_offset, key=_first_downstream) - 1
        if at < 0:
            return None
        part = self._parts[at]
        if at + 1 < len(self._parts) and part.target_end is not None and downstream_offset > part.target_end:
            # Somebody else's records lie between the two parts; where there is a hole, copies may be among them.
            return None if self._is_hole_behind(at) else self._parts[at + 1].source.start
        return part.upstream(downstream_offset)

    def copy_of(self, upstream_offset: int) -> int | None:
        """Target offset of the copy of this source record; None where it has none that is known."""
        at = bisect_right(self._starts, upstream_offset) - 1
        intervals = self._parts[at].intervals if at >= 0 else ()
        number = bisect_right(intervals, upstream_offset, key=lambda interval: interval.upstream_end)
        if number == len(intervals) or upstream_offset < intervals[number].upstream:
            return None
        return intervals[number].downstream + upstream_offset - intervals[number].upstream

    def next_copy(self, upstream_offset: int) -> int | None:
        """Target offset of the first copy of a record at or behind `upstream_offset`; None while there is none.

        In front of a hole, where nobody knows, it is the first offset that may hold one.
        """
        for number in range(max(0, bisect_right(self._starts, upstream_offset) - 1), len(self._parts)):
            part = self._parts[number]
            intervals = part.intervals
            at = bisect_right(intervals, upstream_offset, key=lambda interval: interval.upstream_end)
            if at < len(intervals):
                following = intervals[at]
                return following.downstream + max(0, upstream_offset - following.upstream)
            if self._is_hole_behind(number) and part.target_end is not None:
                return part.target_end
        return None

    def next_original(self, downstream_offset: int) -> int | None:
        """Source offset of the first record whose copy lies at or behind `downstream_offset`; None if there is none.

        In front of a hole, where nobody knows, it is the first offset that may be one.
        """
        at = bisect_right(self._parts, downstream_offset, key=_first_downstream) - 1
        for number in range(max(0, at), len(self._parts)):
            part = self._parts[number]
            intervals = part.intervals
            at = bisect_right(intervals, downstream_offset, key=lambda interval: interval.downstream_end)
            if at < len(intervals):
                following = intervals[at]
                return following.upstream + max(0, downstream_offset - following.downstream)
            if self._is_hole_behind(number):
                return part.source.end
        return None

    def copies_before(self, upstream_offset: int, count: int) -> list[Interval]:
        """The last `count` records that were copied from in front of a source offset, in order; fewer at the start."""
        before: list[Interval] = []
        for part in reversed(self._parts[: bisect_left(self._starts, upstream_offset)]):
            for interval in reversed(part.intervals):
                end = min(interval.upstream_end, upstream_offset)
                start = max(interval.upstream, end - count)
                if start < end:
                    before.append(Interval(start, interval.downstream + start - interval.upstream, end - start))
                    count -= end - start
                if count <= 0:
                    return before[::-1]
        return before[::-1]

    def copies_within(self, offsets: OffsetRange) -> list[Interval]:
        """The records of a stretch of the source that were copied, in order."""
        before = self.copies_before(offsets.end, offsets.end - offsets.start)
        return [one for each in before if (one := _from(each, offsets.start)).count > 0]

    def copies_end(self, downstream_offset: int) -> int:
        """First target offset from `downstream_offset` on that holds no copy of this map's source."""
        at = bisect_right(self._parts, downstream_offset, key=_first_downstream) - 1
        for part in self._parts[max(0, at) :]:
            intervals = part.intervals
            at = bisect_right(intervals, downstream_offset, key=lambda interval: interval.downstream_end)
            for number in range(at, len(intervals)):
                if intervals[number].downstream > downstream_offset:
                    return downstream_offset
                downstream_offset = intervals[number].downstream_end
        return downstream_offset

    def _is_hole_behind(self, number: int) -> bool:
        later = self._parts[number + 1 : number + 2]
        return bool(later) and later[0].source.start > self._parts[number].source.end

    def _forget_all(self) -> None:
        self._starts.clear()
        self._parts.clear()


def split(whole: IntervalMap, most: int = INTERVALS_PER_PART) -> Iterable[IntervalMap]:
    """Cut a map into parts of at most `most` intervals; together they say the same."""
    start, left = whole.source.start, whole.intervals
    while len(left) > most:
        part, left = left[:most], left[most:]
        yield IntervalMap(OffsetRange(start, part[-1].upstream_end), part[-1].downstream_end, part)
        start = part[-1].upstream_end
    yield IntervalMap(OffsetRange(start, whole.source.end), whole.target_end, left)


def _from(interval: Interval, upstream: int) -> Interval:
    """What of an interval lies at or behind a source offset; its count is not above 0 where nothing does."""
    passed = max(0, upstream - interval.upstream)
    return Interval(interval.upstream + passed, interval.downstream + passed, interval.count - passed)


def _behind_uncovered(first: Sequence[Interval], second: Sequence[Interval]) -> int | None:
    """Behind the last source offset of `first` that is not in `second`, both in order; None where all are."""
    at = len(second) - 1
    for interval in reversed(first):
        end = interval.upstream_end
        while end > interval.upstream:
            while at >= 0 and second[at].upstream >= end:
                at -= 1
            if at < 0 or second[at].upstream_end < end:
                return end
            end = second[at].upstream
    return None


def _packed(part: IntervalMap) -> IntervalMap:
    """To be kept: as objects, a hundred million markers would not fit into a driver."""
    return IntervalMap(part.source, part.target_end, kept(part.intervals))


def _first_downstream(part: IntervalMap) -> int:
    first = part.intervals[0].downstream if part.intervals else part.target_end
    return 0 if first is None else first
