"""A flow whose clusters answer while nothing lands, by stand-ins for both clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from srm_spark.core.model import Flow, TopicPartition
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.pulse import Pulse, Stall
from tests.awaiting import await_until

REMOTE = TopicPartition("A.t", 0)
PATIENCE = 0.8


@dataclass
class Away:
    """A cluster that answers, or does not."""

    alias: str
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    failure: str | None = None
    is_growing: bool = False
    looks: int = 0
    bootstrap_servers: str = "h:1"

    def beside(self, role: str, timeout: float) -> Away:
        return self

    def ping(self) -> None:
        if self.failure is not None:
            raise TargetUnavailable(self.failure)

    def end_offsets(self, partitions: Iterable[TopicPartition], *, waits: bool) -> dict[TopicPartition, int]:
        self.looks += 1
        return {p: self.ends[p] + self.is_growing * self.looks for p in partitions if p in self.ends}


@dataclass
class World:
    """A pulse and what it told."""

    source: Away = field(default_factory=lambda: Away("A"))
    target: Away = field(default_factory=lambda: Away("B", {REMOTE: 5}))
    told: list[Stall | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        ends = SimpleNamespace(settings=SimpleNamespace(flow=Flow("A", "B")), source=self.source, target=self.target)
        self.pulse = Pulse(cast("Any", ends), self.told.append, PATIENCE)

    def await_stall(self) -> Stall:
        self.pulse.expect([REMOTE])
        await_until(self._is_stalled, 10, "a stall is told")
        assert self.told[-1] is not None
        return self.told[-1]

    def _is_stalled(self) -> bool:
        if self.pulse.is_quiet:
            self.pulse.expect([REMOTE])  # as the flow does: there is something to copy still
        return bool(self.told) and self.told[-1] is not None


@pytest.fixture
def world() -> Iterator[World]:
    """One that runs."""
    found = World()
    found.pulse.begin()
    yield found
    found.pulse.end()


def test_where_both_answer_and_nothing_lands_the_target_is_named(world: World) -> None:
    stall = world.await_stall()
    assert stall.reason == "nothing lands on B (h:1): its brokers answer"
    world.pulse.landed()
    await_until(lambda: world.told[-1] is None, 10, "it is over")
    assert world.pulse.stall is None


def test_copies_that_are_not_recorded_yet_are_signs_of_life_too(world: World) -> None:
    world.target.is_growing = True
    world.pulse.expect([REMOTE])

    def looks() -> int:
        world.pulse.expect([REMOTE])
        return world.target.looks

    await_until(lambda: looks() > 5, 20, "some looks, each behind half of the patience")
    assert not any(stall is not None and "nothing lands" in stall.reason for stall in world.told)


def test_a_partition_without_a_leader_is_named(world: World) -> None:
    world.target.ends.clear()
    await_until(lambda: "A.t-0 has no leader" in world.await_stall().reason, 10, "the partition")


def test_who_does_not_answer_is_named_with_what_came_instead(world: World) -> None:
    world.source.failure = "cluster A (h:1): refused"
    await_until(lambda: bool(world.told), 10, "a stall is told")
    assert world.told[-1] is not None
    assert world.told[-1].reason == "cluster A (h:1): refused"
    world.source.failure = None
    await_until(lambda: world.told[-1] is None, 10, "it is over")


def test_behind_its_end_nothing_is_told(world: World) -> None:
    world.pulse.end()
    world.source.failure = world.target.failure = "away"
    world.pulse.expect([REMOTE])
    assert world.told == []
