"""Where to look again: all that was not right, and nothing else."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.doubts import MOST, doubts
from srm_spark.core.model import OffsetRange
from srm_spark.core.verification import MOST_FINDINGS, Checked, Difference, Finding


def checked(*findings: Finding, more: int = 0) -> Checked:
    kinds = Counter(one.kind for one in findings)
    return Checked(differences=kinds + Counter({Difference.LOST: more}), findings=list(findings))


def lost(offset: int) -> Finding:
    return Finding(Difference.LOST, offset, None, "")


def test_each_record_that_is_not_right_is_looked_at_again() -> None:
    assert doubts(checked(), 100) == ()
    found = checked(lost(6), Finding(Difference.CHANGED, 3, 103, ""), Finding(Difference.SWAPPED, 4, 104, ""))
    assert doubts(found, 100) == (OffsetRange(3, 5), OffsetRange(6, 7))


@pytest.mark.parametrize(
    "found",
    [
        checked(lost(3), Finding(Difference.FOREIGN, None, 190, "")),
        checked(lost(3), Finding(Difference.DOUBLED, 2, 190, "")),
        checked(lost(3), lost(200)),
        checked(lost(3), more=1),
        checked(*(lost(2 * number) for number in range(MOST + 1))),
    ],
    ids=["foreign", "doubled", "behind the end", "more than is known", "too many stretches"],
)
def test_what_cannot_be_looked_at_by_itself_keeps_its_partition(found: Checked) -> None:
    assert doubts(found, 200) is None


@given(st.sets(st.integers(0, 2_000), min_size=1, max_size=MOST_FINDINGS))
def test_all_of_it_and_nothing_else_is_in_the_stretches(places: set[int]) -> None:
    found = doubts(checked(*map(lost, sorted(places, reverse=True))), 2_001)
    if found is None:
        assert sum(place - 1 not in places for place in places) > MOST
        return
    assert all(before.end < after.start for before, after in pairwise(found))
    assert {at for one in found for at in range(one.start, one.end)} == places
