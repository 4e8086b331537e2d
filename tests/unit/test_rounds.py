"""When groups are looked at, and which they are."""

from __future__ import annotations

import logging

import pytest

from srm_spark.config.settings import CheckpointSettings
from srm_spark.core.filters import NameFilter
from srm_spark.core.listed_filter import ListedFilter
from srm_spark.core.lists import Lists
from srm_spark.core.model import Flow
from srm_spark.core.news import Every
from srm_spark.core.rounds import Rounds
from srm_spark.errors import SourceUnavailable
from srm_spark.flow.groups.choice import GroupChoice
from srm_spark.flow.groups.listed import GroupList
from tests.memory_cluster import MemoryGroups

TAKES = ListedFilter(NameFilter((".*",)))


def rounds(emit: float | None = 5.0, sync: float | None = 60.0) -> Rounds:
    """Rounds of which the first is done at 100."""
    made = Rounds(None if emit is None else Every(emit), None if sync is None else Every(sync))
    made.done(100.0, 100.0, has_synced=True)
    return made


def test_a_round_comes_with_its_interval_or_with_records() -> None:
    made = rounds()
    assert not made.is_due(104.9)
    assert made.is_due(105.0)
    made.moved()
    assert made.is_due(101.0)
    made.begin()
    assert not made.is_due(101.0), "what it has seen"


def test_behind_a_long_round_records_wait_and_the_interval_does_not() -> None:
    made = rounds(emit=30.0)
    made.begin()
    made.done(101.0, 102.0, has_synced=False)
    made.moved()
    assert not made.is_due(111.9)
    assert made.is_due(112.0)
    slow = rounds(emit=3.0)
    slow.done(101.0, 102.0, has_synced=False)
    assert slow.is_due(104.0)


def test_offsets_are_synced_by_their_own_interval() -> None:
    made = rounds(emit=None)
    made.moved()
    assert not made.is_due(130.0), "no checkpoints are wanted"
    assert made.is_due(160.0)
    assert made.is_sync_due(160.0)
    assert not rounds(sync=None).is_sync_due(1e9)
    both = rounds()
    both.done(105.0, 105.0, has_synced=False)
    assert both.is_sync_due(160.0), "a round without them does not put them off"


def test_a_round_that_failed_is_not_tried_again_at_once() -> None:
    made = rounds()
    made.failed(107.0)
    assert not made.is_due(111.9)
    assert made.is_due(112.0)


class Listed(MemoryGroups):
    """Groups of every kind; how often they were asked for."""

    asked = 0
    failure: Exception | None = None
    away: Exception | None = None

    def names(self) -> list[str]:
        self.asked += 1
        if self.away is not None:
            raise self.away
        return super().names()

    def others(self) -> list[str]:
        if self.failure is not None:
            raise self.failure
        return ["shared"]


def listed(groups: Listed, **keys: object) -> GroupList:
    settings = CheckpointSettings(groups=(".*",), **keys)  # type: ignore[arg-type]
    return GroupList(Flow("A", "B"), settings, GroupChoice(settings, "A", groups, TAKES))


def test_groups_are_looked_for_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    groups = Listed()
    groups.live["g"] = ("m",)
    names = listed(groups, refresh_seconds=5.0)
    with caplog.at_level(logging.INFO):
        assert names.refresh(100.0) == ["g"]
        groups.live["h"] = ("m",)
        assert names.refresh(104.0) == ["g"]
        assert names.refresh(105.0) == ["g", "h"]
        names.refresh(200.0)
    (told,) = [one for one in caplog.messages if "shared" in one]
    assert told.startswith("flow=A->B group=shared is not synced: ")


def test_where_that_is_switched_off_they_are_looked_for_once() -> None:
    groups = Listed()
    names = listed(groups, refresh_enabled=False)
    for now in (1.0, 1e3, 1e9):
        names.refresh(now)
    assert groups.asked == 1


def test_where_their_lists_were_changed_they_are_looked_for_at_once() -> None:
    groups, takes = Listed(), ListedFilter(NameFilter(()))
    groups.live = {"g": ("m",), "h": ("m",)}
    settings = CheckpointSettings(groups=(), refresh_enabled=False)
    names = GroupList(Flow("A", "B"), settings, GroupChoice(settings, "A", groups, takes))
    assert names.refresh(1.0) == []
    takes.take(Lists(("g",)))
    assert names.refresh(2.0) == ["g"]
    takes.take(Lists(("g", "h"), ("g",)))
    assert names.refresh(3.0) == ["h"]
    asked = groups.asked
    names.refresh(4.0)
    assert groups.asked == asked
    takes.take(Lists(("g",)))
    groups.away = SourceUnavailable("no answer")
    with pytest.raises(SourceUnavailable):
        names.refresh(5.0)
    groups.away = None
    assert names.refresh(6.0) == ["g"], "it is not forgotten"


def test_groups_of_other_kinds_that_cannot_be_listed_hinder_nothing(caplog: pytest.LogCaptureFixture) -> None:
    groups = Listed()
    groups.live["g"] = ("m",)
    groups.failure = SourceUnavailable("no answer")
    names = listed(groups)
    with caplog.at_level(logging.INFO):
        assert names.refresh(1.0) == ["g"]
        names.refresh(70.0)
    assert [one for one in caplog.messages if "share" in one] == [
        "flow=A->B share and streams groups are not known: no answer"
    ]
