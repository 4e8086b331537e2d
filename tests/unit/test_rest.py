"""How long the ends of remote partitions must stand still behind a writer that died."""

from __future__ import annotations

import pytest

from srm_spark.core.rest import Patience, Rest

PATIENCE = Patience(still_seconds=2.0, unknown_seconds=35.0, settle_seconds=180.0)


def test_ends_that_stand_still_are_at_rest_after_a_moment() -> None:
    rest = Rest(PATIENCE, since=100.0)
    assert not rest.is_over(101.9)
    assert rest.is_over(102.0)


def test_a_movement_begins_the_wait_anew() -> None:
    rest = Rest(PATIENCE, since=100.0)
    rest.moved(101.5)
    assert not rest.is_over(103.0)
    assert rest.is_over(103.5)


def test_a_pause_between_two_movements_is_outwaited() -> None:
    rest = Rest(PATIENCE, since=100.0)
    rest.moved(101.0)
    rest.moved(111.0)  # ten seconds after the one before
    assert rest.needed == 30.0
    assert not rest.is_over(140.0)
    assert rest.is_over(141.0)


@pytest.mark.parametrize(("quota", "seconds"), [(None, 2.0), (4000.0, 125.0), (100.0, 180.0), (10_000_000.0, 2.0)])
def test_what_sockets_hold_must_get_through_the_quota(quota: float | None, seconds: float) -> None:
    assert Rest(PATIENCE, since=0.0, quota=quota).needed == seconds


def test_without_the_leaders_log_ends_a_hanging_follower_is_outwaited() -> None:
    assert Rest(PATIENCE, since=0.0, knows_log_ends=False).needed == 35.0
