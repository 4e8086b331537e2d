"""Where to look again once something was not right, so that what lies behind it has to be read once only. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from srm_spark.core.model import OffsetRange
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.verification import Checked, Difference, Finding

MOST = 64
"""Stretches of a partition: each is read by itself."""
_TOO_MUCH = frozenset({Difference.DOUBLED, Difference.FOREIGN})
"""On the target: it lies in front of the copy of some record."""


def doubts(checked: Checked, known: PartitionMap, end: int) -> tuple[OffsetRange, ...] | None:
    """Stretches of source offsets in front of `end` in which all differences lie, in order.

    None where one of them cannot be placed. Where there are more than are known one by one, the last stretch reaches to
    `end`.
    """
    places = {_place(finding, known) for finding in checked.findings}
    found = sorted(place for place in places if place is not None and place < end)
    if len(found) < len(places):
        return None
    stretches = [OffsetRange(place, place + 1) for place in found]
    if found and len(checked.findings) < checked.differences.total():
        stretches[-1] = OffsetRange(found[-1], end)
    return _joined(stretches)


def _place(finding: Finding, known: PartitionMap) -> int | None:
    if finding.kind not in _TOO_MUCH:
        return finding.source
    return None if finding.target is None else known.next_original(finding.target)


def _joined(stretches: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
    """The same offsets, and what lies between where that is nothing, or where there would be too many stretches."""
    if not stretches:
        return ()
    gaps = [(after.start - before.end, at) for at, (before, after) in enumerate(pairwise(stretches), 1)]
    largest = sorted((gap for gap in gaps if gap[0] > 0), reverse=True)[: MOST - 1]
    begins = [0, *sorted(at for _, at in largest)]
    ends = [*begins[1:], len(stretches)]
    return tuple(
        OffsetRange(stretches[begin].start, stretches[end - 1].end) for begin, end in zip(begins, ends, strict=True)
    )
