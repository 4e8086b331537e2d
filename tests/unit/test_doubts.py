"""Where to look again: stretches that hold all that was not right, and little else."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.doubts import MOST, doubts
from srm_spark.core.model import Interval, OffsetRange
from srm_spark.core.verification import MOST_FINDINGS, Checked, Difference, Finding
from tests.unit.test_verification import map_of

KNOWN = map_of(OffsetRange(0, 100), 200, Interval(0, 100, 40), Interval(50, 140, 50))
"""Source offsets 40 to 49 have no copies; there is none behind target offset 189."""


def checked(*findings: Finding, more: int = 0) -> Checked:
    kinds = Counter(one.kind for one in findings)
    return Checked(differences=kinds + Counter({Difference.LOST: more}), findings=list(findings))


def lost(offset: int) -> Finding:
    return Finding(Difference.LOST, offset, None, "")


def test_each_difference_has_its_place() -> None:
    found = checked(
        Finding(Difference.CHANGED, 3, 103, ""),
        lost(45),
        Finding(Difference.DOUBLED, 7, 140, "one more copy of 7, in front of that of 50"),
        Finding(Difference.FOREIGN, None, 189, ""),
    )
    assert doubts(found, KNOWN, 100) == (
        OffsetRange(3, 4),
        OffsetRange(45, 46),
        OffsetRange(50, 51),
        OffsetRange(99, 100),
    )
    assert doubts(checked(), KNOWN, 100) == ()
    assert doubts(checked(lost(3), lost(4), lost(6)), KNOWN, 100) == (OffsetRange(3, 5), OffsetRange(6, 7))


def test_what_has_no_place_in_front_of_the_end_is_told() -> None:
    assert doubts(checked(lost(3), Finding(Difference.FOREIGN, None, 190, "behind all copies")), KNOWN, 100) is None
    assert doubts(checked(lost(3), lost(70)), KNOWN, 70) is None


def test_where_more_was_found_than_is_known_the_last_stretch_reaches_to_the_end() -> None:
    assert doubts(checked(lost(3), lost(60), more=5), KNOWN, 100) == (OffsetRange(3, 4), OffsetRange(60, 100))


@given(st.sets(st.integers(0, 2_000), min_size=1, max_size=MOST_FINDINGS))
def test_all_places_are_in_few_stretches_in_their_order(places: set[int]) -> None:
    whole = map_of(OffsetRange(0, 3_000), 3_000, Interval(0, 0, 3_000))
    found = doubts(checked(*map(lost, sorted(places))), whole, 3_000)
    assert found is not None
    assert len(found) <= MOST
    assert all(before.end < after.start for before, after in pairwise(found))
    inside = {at for one in found for at in range(one.start, one.end)}
    assert places <= inside
    assert {one.start for one in found} <= places
    assert {one.end - 1 for one in found} <= places
    if len(found) < MOST:
        assert inside == places
