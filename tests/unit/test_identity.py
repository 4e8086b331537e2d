"""What a start makes of topics and logs that are not those of which progress speaks. Fakes compare the records."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from srm_spark.config.settings import LossPolicies
from srm_spark.core.cluster import LogEnd
from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import Flow, Interval, LogIdentity, Loss, LossCause, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.translation import IntervalMap
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery import identity
from srm_spark.flow.recovery.identity import check_copies
from srm_spark.flow.recovery.starts import Start
from srm_spark.flow.topics.progress import Position

HERE, THERE = TopicPartition("t", 0), TopicPartition("A.t", 0)
WAS = LogIdentity("source", 1, "remote", 1)
ROUTES = {"t": Route("A.t", Limits())}


class Target:
    """A target whose topic has this id, epoch and extent."""

    def __init__(self, topic_id: str = "remote", epoch: int = 1, first: int = 0, end: int = 25) -> None:
        self.topic_id, self.epoch, self.first, self.end = topic_id, epoch, first, end

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        """As a cluster."""
        return dict.fromkeys(names, self.topic_id)

    def log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        """As a cluster."""
        return {partition: LogEnd(self.end, self.epoch) for partition in partitions}

    def first_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """As a cluster."""
        return dict.fromkeys(partitions, self.first)


class BothSides:
    """Source offsets 10 to 34 were copied to target offsets 0 to 24; both sides are as the test says."""

    def __init__(self, patch: pytest.MonkeyPatch, difference: int | None, *, is_differing: bool = True) -> None:
        self.compared: list[TopicPartition] = []
        self.known = PartitionMap("source")
        self.known.put(IntervalMap(OffsetRange(10, 35), 25, (Interval(10, 0, 25),)))

        def differing(_: Any, __: Any, ___: Any, positions: dict[TopicPartition, int]) -> set[TopicPartition]:
            self.compared += positions
            return set(positions) if is_differing else set()

        patch.setattr(identity, "differing_copies", differing)
        patch.setattr(identity, "first_difference", lambda *_, **__: difference)

    def check(
        self, target: Target, *, epoch: int = 1, source_end: int = 40, policy: str = "resume", was: LogIdentity = WAS
    ) -> Start:
        start = Start(Position(35, 25, was), OffsetRange(0, source_end), LogIdentity("source", epoch))
        keys = ("source.diverged.policy", "target.changed.policy")
        settings = SimpleNamespace(flow=Flow("A", "B"), policies=LossPolicies(dict.fromkeys(keys, policy)))
        ends = cast("Clusters", SimpleNamespace(settings=settings, target=target))
        return check_copies(ends, {HERE: start}, ROUTES, {HERE: self.known})[HERE]


def test_where_nothing_has_changed_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = BothSides(monkeypatch, 12)
    start = sides.check(Target())
    assert (sides.compared, start.losses, start.paused) == ([], (), None)
    assert start.position.next_offset == 35
    assert start.logs == WAS


@pytest.mark.parametrize(("epoch", "target_epoch"), [(2, 1), (1, 2), (2, 2)])
def test_a_new_leader_with_the_same_records_goes_on(
    monkeypatch: pytest.MonkeyPatch, epoch: int, target_epoch: int
) -> None:
    sides = BothSides(monkeypatch, 12, is_differing=False)
    start = sides.check(Target(epoch=target_epoch), epoch=epoch)
    assert (sides.compared, start.losses, start.paused) == ([HERE], (), None)
    assert start.logs == LogIdentity("source", epoch, "remote", target_epoch)


@pytest.mark.parametrize(("source_end", "next_offset"), [(40, 30), (32, 30), (28, 28)])
def test_a_source_that_went_back_is_read_from_where_it_differs(
    monkeypatch: pytest.MonkeyPatch, source_end: int, next_offset: int
) -> None:
    """It may end before the first record that is gone: markers may have lain between."""
    start = BothSides(monkeypatch, 30).check(Target(), epoch=2, source_end=source_end)
    assert start.losses == (Loss(OffsetRange(30, 35), LossCause.DIVERGED, OffsetRange(20, 25)),)
    assert start.position.next_offset == next_offset
    assert start.position.target_end == 25
    assert start.begin == next_offset
    assert not start.is_recorded


def test_what_a_batch_that_died_left_of_the_old_log_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    start = BothSides(monkeypatch, 30).check(Target(end=29), epoch=2)
    assert start.losses == (Loss(OffsetRange(30, 35), LossCause.DIVERGED, OffsetRange(20, 29)),)
    assert start.position.target_end == 29


@pytest.mark.parametrize(("target", "key"), [(Target(), "source.diverged"), (Target(epoch=2), "target.changed")])
def test_the_policy_to_stop_holds_the_partition(monkeypatch: pytest.MonkeyPatch, target: Target, key: str) -> None:
    start = BothSides(monkeypatch, 30).check(target, epoch=2 if key.startswith("source") else 1, policy="stop")
    assert start.paused is not None
    assert not start.losses
    assert start.is_recorded
    assert "offsets 30 to 34" in start.paused.why.sentence
    assert f"set {key}.policy=resume" in start.paused.why.sentence


@pytest.mark.parametrize("target", [Target(epoch=2), Target(epoch=2, end=20), Target(end=20), Target(epoch=2, end=27)])
def test_a_target_that_went_back_goes_on_behind_what_is_left(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    """What lies behind that there, was written since and is matched with the source from the position on."""
    start = BothSides(monkeypatch, 30).check(target)
    assert start.losses == (Loss(OffsetRange(30, 35), LossCause.TARGET, OffsetRange(20, 25)),)
    assert start.position.next_offset == 35
    assert start.position.target_end == 20
    assert start.begin == 30, "the map learns that these have no copies"


def test_a_target_made_anew_has_lost_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = BothSides(monkeypatch, None)
    start = sides.check(Target("other", epoch=1, first=2, end=40))
    assert sides.compared == []
    assert start.losses == (Loss(OffsetRange(10, 35), LossCause.TARGET, OffsetRange(0, 25)),)
    assert start.position.target_end == 2
    assert start.logs.remote_id == "other"


def test_an_id_that_was_not_recorded_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    start = BothSides(monkeypatch, None, is_differing=False).check(Target("other"), was=LogIdentity("source"))
    assert (start.losses, start.position.target_end) == ((), 25)


def test_a_source_that_lost_only_markers_goes_on_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    start = BothSides(monkeypatch, None).check(Target(), epoch=2, source_end=33)
    assert (start.losses, start.position.next_offset) == ((), 33)
    assert not start.is_recorded


def test_without_a_map_what_lies_behind_the_source_s_end_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = BothSides(monkeypatch, None)
    sides.known = PartitionMap("source")
    start = sides.check(Target(), epoch=2, source_end=33)
    assert start.losses == (Loss(OffsetRange(33, 35), LossCause.DIVERGED),)
    assert start.position.next_offset == 33
