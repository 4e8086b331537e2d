"""Intervals by the hundred thousand: as rows of numbers, for a log full of gaps has one in every few records.

```
rows   source offset, target offset, count      one Interval each, made when it is asked for
```
As objects they cost some microseconds each on their way from the task to three topics, more than their records.
"""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from struct import Struct
from typing import Any, ClassVar, TypeVar, overload

import numpy as np
import numpy.typing as npt

from srm_spark.core.model import Interval, OffsetRange, ProgressDetail

Rows = npt.NDArray[np.int64]
FEW = 32
"""Up to so many are handled one by one, which is faster."""
_ROW = Struct("=qqq")
_T = TypeVar("_T", Interval, OffsetRange)
_S = TypeVar("_S", bound="_Rows[Any]")


class _Rows(Sequence[_T]):
    """Tuples of numbers; equal to any sequence of the same tuples."""

    make: ClassVar[Any]
    """Of its numbers."""
    width: ClassVar[int]

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    @classmethod
    def of(cls: type[_S], items: Iterable[Any]) -> _S:
        """Of these, which may be such rows already."""
        if isinstance(items, cls):
            return items
        numbers = array("q", chain.from_iterable(items))
        return cls(np.array(numbers, np.int64).reshape(-1, cls.width))

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_T]: ...
    def __getitem__(self, index: int | slice) -> _T | Sequence[_T]:
        if isinstance(index, slice):
            return type(self)(self.rows[index])
        made: _T = type(self).make(self.rows[index].tolist())
        return made

    def __iter__(self) -> Iterator[_T]:
        return map(type(self).make, self.rows.tolist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Rows):
            return bool(np.array_equal(self.rows, other.rows))
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(one == another for one, another in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}.of({list(self)})"


class Intervals(_Rows[Interval]):
    """Intervals in order."""

    make = Interval._make
    width = 3

    @property
    def is_ascending(self) -> bool:
        """Whether they ascend on both sides, and none of them is empty."""
        between = self._between()
        return bool((self.rows[:, 2] > 0).all() and (between >= 0).all())

    @property
    def is_joined(self) -> bool:
        """Whether no two of them could be one, either."""
        return self.is_ascending and bool(self._between().any(axis=1).all())

    def _between(self) -> Rows:
        """Offsets between each and the next one, on both sides."""
        return self.rows[1:, :2] - self.rows[:-1, :2] - self.rows[:-1, 2:]

    def gaps(self, source: OffsetRange) -> list[OffsetRange]:
        """What of the source lies between them."""
        starts = np.concatenate(([source.start], self.rows[:, 0] + self.rows[:, 2]))
        ends = np.concatenate((self.rows[:, 0], [source.end]))
        return list(Stretches(np.column_stack((starts, ends))[starts < ends]))


class Stretches(_Rows[OffsetRange]):
    """Stretches of source offsets, in order."""

    make = OffsetRange._make
    width = 2

    def copied_to(self, downstream: int) -> Intervals:
        """All of them one behind the other, from a target offset on."""
        counts = self.rows[:, 1] - self.rows[:, 0]
        there = downstream + np.cumsum(counts) - counts
        return Intervals(np.column_stack((self.rows[:, 0], there, counts)))


def records_in(intervals: Sequence[Interval]) -> int:
    """How many records they have."""
    if isinstance(intervals, Intervals):
        return int(intervals.rows[:, 2].sum())
    return sum(interval.count for interval in intervals)


def spread_of(detail: ProgressDetail, start: int | None) -> int:
    """Target offsets from `start` on, where that is known, that are among these copies and none of them."""
    if not detail.intervals:
        return 0
    first = detail.intervals[0].downstream if start is None else start
    return detail.intervals[-1].downstream_end - first - records_in(detail.intervals)


def gaps_of(detail: ProgressDetail) -> list[OffsetRange]:
    """Source offsets that have no copy."""
    if isinstance(detail.intervals, Intervals):
        return detail.intervals.gaps(detail.source)
    starts = [detail.source.start, *(interval.upstream_end for interval in detail.intervals)]
    ends = [*(interval.upstream for interval in detail.intervals), detail.source.end]
    return [OffsetRange(first, end) for first, end in zip(starts, ends, strict=True) if first < end]


def as_lists(intervals: Sequence[Interval]) -> Sequence[Sequence[int]]:
    """For JSON."""
    return intervals.rows.tolist() if isinstance(intervals, Intervals) else intervals


def kept(intervals: Sequence[Interval]) -> Intervals:
    """To be kept for long: 24 bytes each, and nothing beside them that they are a part of."""
    known = Intervals.of(intervals)
    return known if known.rows.base is None else Intervals(known.rows.copy())


def as_text(intervals: Sequence[Interval]) -> str:
    """For a message between processes of one version."""
    return b64encode(Intervals.of(intervals).rows.tobytes()).decode()


def of_text(text: str) -> Sequence[Interval]:
    """What `as_text` made."""
    data = b64decode(text)
    if len(data) > FEW * _ROW.size:
        return Intervals(np.frombuffer(data, np.int64).reshape(-1, Intervals.width))
    return list(map(Interval._make, _ROW.iter_unpack(data)))


class Growing(Sequence[Interval]):
    """Intervals that come bit by bit; two that could be one become one."""

    def __init__(self, intervals: Sequence[Interval] = ()) -> None:
        self._before: list[Rows] = []
        """All but the newest ones."""
        self._newest: list[Interval] = []
        self.extend(intervals)

    def add(self, interval: Interval) -> None:
        """The next one."""
        last = self[-1] if self else None
        if last is None or (last.upstream_end, last.downstream_end) != (interval.upstream, interval.downstream):
            self._newest.append(interval)
            return
        joined = last._replace(count=last.count + interval.count)
        if self._newest:
            self._newest[-1] = joined
        else:
            self._before[-1] = self._before[-1].copy()
            self._before[-1][-1, 2] = joined.count

    def extend(self, intervals: Sequence[Interval]) -> None:
        """The next ones, of which no two could be one."""
        if len(intervals) <= FEW:
            for interval in intervals:
                self.add(interval)
            return
        self.add(intervals[0])
        if self._newest:
            self._before.append(Intervals.of(self._newest).rows)
            self._newest = []
        self._before.append(Intervals.of(intervals).rows[1:])

    def taken(self) -> Sequence[Interval]:
        """As they are now."""
        if not self._before:
            return tuple(self._newest)
        rows = [*self._before, *([Intervals.of(self._newest).rows] if self._newest else [])]
        return Intervals(np.concatenate(rows))

    def __len__(self) -> int:
        return sum(map(len, self._before)) + len(self._newest)

    @overload
    def __getitem__(self, index: int) -> Interval: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Interval]: ...
    def __getitem__(self, index: int | slice) -> Interval | Sequence[Interval]:
        if isinstance(index, int) and index < 0 and -index <= len(self._newest):
            return self._newest[index]
        if index == -1 and self._before:
            return Intervals(self._before[-1])[-1]
        return self.taken()[index]

    def __iter__(self) -> Iterator[Interval]:
        return iter(self.taken())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.taken() == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        return repr(list(self.taken()))
