"""Progress of one partition, made up."""

from __future__ import annotations

from collections.abc import Sequence

from srm_spark.core.model import Interval, OffsetRange, ProgressDetail


def detail(start: int, end: int, intervals: Sequence[Interval] = (), size: int = 0) -> ProgressDetail:
    """Source offsets `start` to `end`, of which `intervals` were copied, with `size` bytes."""
    target_end = intervals[-1].downstream_end if intervals else None
    return ProgressDetail(OffsetRange(start, end), target_end, tuple(intervals), bytes=size)
