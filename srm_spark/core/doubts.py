"""Where to look again once something was not right, so that what lies behind it has to be read once only. Pure."""

from __future__ import annotations

import numpy as np

from srm_spark.core.model import OffsetRange
from srm_spark.core.reports import stretches_of
from srm_spark.core.verification import Checked, Difference

MOST = 64
"""Stretches of a partition: each is read by itself."""
_OF_RECORDS = frozenset({Difference.LOST, Difference.CHANGED, Difference.SWAPPED})
"""Kinds that are a matter of one record of the source, and name it; what is too much on the target may lie anywhere."""


def doubts(checked: Checked, end: int) -> tuple[OffsetRange, ...] | None:
    """Stretches of source offsets in front of `end` in which all differences lie, in order.

    None where that cannot be said: for what is too much on the target, for differences that are not known one by one,
    and for more than `MOST` stretches.
    """
    findings = checked.findings
    if len(findings) < checked.differences.total() or any(one.kind not in _OF_RECORDS for one in findings):
        return None
    places = sorted({one.source for one in findings if one.source is not None})
    if not places:
        return ()
    stretches = stretches_of(np.array(places))
    return stretches if places[-1] < end and len(stretches) <= MOST else None
