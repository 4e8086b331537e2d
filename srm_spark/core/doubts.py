"""Where to look again once something was not right, so that what lies behind it has to be read once only. Pure."""

from __future__ import annotations

from srm_spark.core.model import OffsetRange
from srm_spark.core.verification import Checked, Difference

MOST = 64
"""Stretches of a partition: each is read by itself."""
_OF_RECORDS = frozenset({Difference.LOST, Difference.CHANGED, Difference.SWAPPED})
"""Kinds that are a matter of one record of the source; what is too much on the target may lie anywhere."""


def doubts(checked: Checked, end: int) -> tuple[OffsetRange, ...] | None:
    """Stretches of source offsets in front of `end` in which all differences lie, in order.

    None where that cannot be said: for what is too much on the target, for differences that are not known one by one,
    and for more than `MOST` stretches.
    """
    if len(checked.findings) < checked.differences.total():
        return None
    stretches: list[OffsetRange] = []
    for place in sorted({-1 if one.source is None else one.source for one in checked.findings}):
        if stretches and stretches[-1].end == place:
            stretches[-1] = OffsetRange(stretches[-1].start, place + 1)
        else:
            stretches.append(OffsetRange(place, place + 1))
    is_placed = all(one.kind in _OF_RECORDS for one in checked.findings) and (
        not stretches or 0 <= stretches[0].start <= stretches[-1].end <= end
    )
    return tuple(stretches) if is_placed and len(stretches) <= MOST else None
