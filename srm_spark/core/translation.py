"""Offsets from one side to the other: the exact map of one partition, and the rule by which MirrorMaker 2 samples it.

All state here belongs to one source partition. No I/O.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from srm_spark.core.intervals import Intervals
from srm_spark.core.model import Interval, OffsetRange, ProgressDetail

OffsetPair = tuple[int, int]
"""Upstream and downstream offset of one record."""


@dataclass(frozen=True)
class IntervalMap:
    """Where every record of one stretch of a source partition lies on the target.

    ```
    source range [40, 50)      40 41 42 ·  ·  45 46 ·  ·  ·    · = compacted, marker, filtered: no record
                                │  │  │        │  │
    target, next record at 12   7  8  9       10 11            Interval(40, 7, 3), Interval(45, 10, 2)

    downstream(41) = 8    downstream(43) = 10    downstream(47) = downstream(50) = 12    downstream(51) = None
    ```
    """

    source: OffsetRange
    """Source offsets that were read; the map knows nothing outside."""
    target_end: int | None
    """Target offset of the next record to come; None while it is not known."""
    intervals: Sequence[Interval] = ()
    """Ascending on both sides, without overlap, and no two of them could be one."""

    @classmethod
    def of(cls, detail: ProgressDetail) -> IntervalMap:
        """The map of one commit of progress."""
        return cls(detail.source, detail.target_end, _joined((), detail.intervals))

    def downstream(self, upstream_offset: int) -> int | None:
        """Target position of a consumer whose next source record is at or behind `upstream_offset`; None if unknown.

        Gaps skip forward to the next record that was replicated; behind the last one lies the end of the target.
        """
        if not self.source.start <= upstream_offset <= self.source.end:
            return None
        at = bisect_right(self.intervals, upstream_offset, key=lambda interval: interval.upstream)
        if at and upstream_offset < self.intervals[at - 1].upstream_end:
            interval = self.intervals[at - 1]
            return interval.downstream + upstream_offset - interval.upstream
        return self.intervals[at].downstream if at < len(self.intervals) else self.target_end

    def upstream(self, downstream_offset: int) -> int | None:
        """Source position of a consumer whose next target record is at or behind `downstream_offset`; None if unknown.

        Gaps skip forward to the next replicated record; behind the last one lies the end of the source range.
        """
        end = self.target_end
        first = self.first_downstream
        if first is None or end is None or not first <= downstream_offset <= end:
            return None
        at = bisect_right(self.intervals, downstream_offset, key=lambda interval: interval.downstream)
        if at and downstream_offset < self.intervals[at - 1].downstream_end:
            interval = self.intervals[at - 1]
            return interval.upstream + downstream_offset - interval.downstream
        return self.intervals[at].upstream if at < len(self.intervals) else self.source.end

    @property
    def first_downstream(self) -> int | None:
        """Target offset of the first record, or of the next one where there is none; None while it is not known."""
        return self.intervals[0].downstream if self.intervals else self.target_end

    def has_hole_before(self, newer: IntervalMap) -> bool:
        """Whether a stretch of the source is missing between the two, and the target has not gone back meanwhile."""
        first = newer.first_downstream
        is_behind = first is None or self.target_end is None or first >= self.target_end
        return newer.source.start > self.source.end and is_behind

    def append(self, newer: IntervalMap) -> IntervalMap:
        """This map with what was replicated after it; the newer one wins.

        - Source read again from an earlier offset (restart): what the older map says from there on is dropped,
          consumers skip the first copy. So is what a commit that died had written already.
        - A stretch of the source missing between the two: the newer one, which stands by itself.
        - A target that went back (re-created, truncated): the older map is of no use any more, the newer one starts
          over.
        """
        older = _until(self.intervals, newer.source.start)
        written_to = older[-1].downstream_end if older else 0
        if newer.source.start == self.source.end:
            written_to = max(written_to, self.target_end or 0)
        first = newer.first_downstream
        went_back = first is not None and first < written_to
        if went_back or not self.source.start <= newer.source.start <= self.source.end:
            return newer
        target_end = self.target_end if newer.target_end is None else newer.target_end
        source = OffsetRange(self.source.start, newer.source.end)
        return IntervalMap(source, target_end, _joined(older, newer.intervals))


def runs(source_offsets: Sequence[int], first_downstream: int) -> list[Interval]:
    """Intervals of records written one after the other from `first_downstream`, given their source offsets in order."""
    intervals: list[Interval] = []
    for index, upstream in enumerate(source_offsets):
        if intervals and upstream == intervals[-1].upstream_end:
            intervals[-1] = intervals[-1]._replace(count=intervals[-1].count + 1)
        else:
            intervals.append(Interval(upstream, first_downstream + index, 1))
    return intervals


@dataclass
class SyncRule:
    """Which records get an offset sync: `OffsetSyncWriter.PartitionState` of MirrorMaker 2, by intervals.

    Its state lives as long as the task that would own it in MirrorMaker 2: a new one syncs its first record.
    """

    lag_max: int
    _upstream: int = field(default=-1, init=False)
    _downstream: int = field(default=-1, init=False)
    _synced: int = field(default=-1, init=False)
    """Target offset of the last sync."""

    def __post_init__(self) -> None:
        if self.lag_max < 0:
            raise ValueError(f"offset.lag.max is {self.lag_max}, it must be 0 or more")

    def due(self, interval: Interval) -> list[OffsetPair]:
        """Take in the next acknowledged interval; the records of it that must be synced, in order."""
        if interval.count <= 0:
            return []
        first = interval.downstream
        pairs: list[OffsetPair] = []
        if self._is_due(interval.upstream, first):
            pairs.append((interval.upstream, first))
            self._synced = first
        # Behind the first record nothing but the distance to the last sync makes one due, and that always points ahead.
        step = self.lag_max + 1
        within = range(self._synced + step, interval.downstream_end, step)
        pairs.extend((interval.upstream + downstream - first, downstream) for downstream in within)
        self._synced = pairs[-1][1] if pairs else self._synced
        self._upstream, self._downstream = interval.upstream_end - 1, interval.downstream_end - 1
        return pairs

    def last(self, interval: Interval) -> OffsetPair:
        """The last record, to be synced at the end of a batch so that quiet topics are exact; `due` is not affected.

        What MirrorMaker 2 does with its delayed sync at each commit (`OffsetSyncWriter`).
        """
        return interval.upstream_end - 1, interval.downstream_end - 1

    def _is_due(self, upstream: int, downstream: int) -> bool:
        return (
            self._synced == -1
            or downstream - (self._synced + 1) >= self.lag_max
            or upstream - self._upstream != 1  # a gap: compaction, a marker, a rewind
            or downstream < self._downstream  # the target was truncated or re-created
        )


def _until(intervals: Sequence[Interval], upstream_offset: int) -> Sequence[Interval]:
    """The intervals up to a source offset, the one that contains it cut short."""
    at = bisect_right(intervals, upstream_offset - 1, key=lambda interval: interval.upstream)
    if at and intervals[at - 1].upstream_end <= upstream_offset:
        return intervals[:at]
    last = [intervals[at - 1]._replace(count=upstream_offset - intervals[at - 1].upstream)] if at else []
    return (*intervals[: max(at - 1, 0)], *last)


def _joined(older: Sequence[Interval], newer: Iterable[Interval]) -> Sequence[Interval]:
    """Both in one list; neighbours on both sides become one interval."""
    if isinstance(newer, Intervals):
        both = Intervals(np.concatenate((Intervals.of(older).rows, newer.rows)))
        if both.is_joined:
            return both
    joined = list(older)
    for interval in newer:
        last = joined[-1] if joined else None
        if last and (interval.upstream < last.upstream_end or interval.downstream < last.downstream_end):
            raise ValueError(f"{interval} does not lie behind {last}: intervals must ascend on both sides")
        if last and (interval.upstream, interval.downstream) == (last.upstream_end, last.downstream_end):
            joined[-1] = last._replace(count=last.count + interval.count)
        elif interval.count > 0:
            joined.append(interval)
    return tuple(joined)
