"""What `--to` and `--by` mean."""

from __future__ import annotations

import pytest

from srm_spark.core.goals import Goal, Way, goal_of, place_of
from srm_spark.core.model import OffsetRange

LOG = OffsetRange(10, 100)


@pytest.mark.parametrize(
    ("to", "goal"),
    [
        ("7", Goal(offset=7)),
        (" earliest ", Goal(is_earliest=True)),
        ("latest", Goal(is_latest=True)),
        ("1970-01-01T00:00:01Z", Goal(timestamp=1000)),
        ("1970-01-01T01:00:01+01:00", Goal(timestamp=1000)),
        ("1970-01-02T00:00:00.250+00:00", Goal(timestamp=86_400_250)),
    ],
)
def test_a_place_is_written_so(to: str, goal: Goal) -> None:
    assert goal_of(Way.SET, to, None) == goal


@pytest.mark.parametrize(
    ("way", "to", "by", "said"),
    [
        (Way.SET, None, None, "write --to OFFSET|earliest|latest|TIMESTAMP"),
        (Way.SKIP, None, None, "write --to OFFSET|earliest|latest|TIMESTAMP, or --by N"),
        (Way.SKIP, "7", 7, "write --to OFFSET|earliest|latest|TIMESTAMP, or --by N"),
        (Way.SET, None, 7, "--by goes with rewind and skip"),
        (Way.SET, "-7", None, "--to -7: write an offset, earliest, latest, or a time as 2026-01-31T12:00:00Z"),
        (Way.SET, "noon", None, "--to noon: write an offset, earliest, latest, or a time as 2026-01-31T12:00:00Z"),
        (
            Way.SET,
            "2026-01-31T12:00",
            None,
            "--to 2026-01-31T12:00: write an offset, earliest, latest, or a time with its zone: 2026-01-31T12:00Z, or ",
        ),
    ],
)
def test_what_makes_no_sense_is_told(way: Way, to: str | None, by: int | None, said: str) -> None:
    with pytest.raises(ValueError, match=r"write|goes") as caught:
        goal_of(way, to, by)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("way", "goal", "offset"),
    [
        (Way.SET, Goal(offset=10), 10),
        (Way.SET, Goal(offset=100), 100),
        (Way.SET, Goal(is_earliest=True), 10),
        (Way.SET, Goal(is_latest=True), 100),
        (Way.SET, Goal(timestamp=1), 60),
        (Way.REWIND, Goal(by=20), 30),
        (Way.REWIND, Goal(by=1000), 10),
        (Way.SKIP, Goal(by=20), 70),
        (Way.SKIP, Goal(by=1000), 100),
        (Way.SKIP, Goal(offset=50), 50),
        (Way.REWIND, Goal(offset=50), 50),
    ],
)
def test_a_partition_goes_there(way: Way, goal: Goal, offset: int) -> None:
    place = place_of(goal, way, 50, LOG, 60)
    assert (place.offset, place.refusal) == (offset, None)


def test_a_time_after_the_last_record_is_the_end() -> None:
    assert place_of(Goal(timestamp=1), Way.SET, 50, LOG, None).offset == 100


@pytest.mark.parametrize(
    ("way", "goal", "said"),
    [
        (Way.SET, Goal(offset=9), "the source has offsets 10 to 100 now, and not 9"),
        (Way.SET, Goal(offset=101), "the source has offsets 10 to 100 now, and not 101"),
        (Way.REWIND, Goal(offset=51), "it stands at 50: 51 lies ahead, and skip goes there"),
        (Way.SKIP, Goal(is_earliest=True), "it stands at 50: 10 lies behind, and rewind goes there"),
    ],
)
def test_what_cannot_be_is_refused(way: Way, goal: Goal, said: str) -> None:
    assert place_of(goal, way, 50, LOG, None).refusal == said


def test_who_waits_for_what_was_deleted_is_set_behind_it() -> None:
    assert place_of(Goal(by=3), Way.SKIP, 5, LOG, None) == place_of(Goal(by=5), Way.SKIP, 5, LOG, None)
    assert place_of(Goal(by=3), Way.SKIP, 5, LOG, None).offset == 10
