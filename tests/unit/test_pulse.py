"""A flow whose clusters answer while nothing lands, by stand-ins for both clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from srm_spark.core.model import Flow, TopicPartition
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.periodic import Periodic
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
class Watched:
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
def watched() -> Iterator[Watched]:
    """One that runs."""
    found, tasks = Watched(), Periodic()
    tasks.start()
    found.pulse.begin(tasks)
    yield found
    found.pulse.end()
    tasks.stop(10)


def test_where_both_answer_and_nothing_lands_the_target_is_named(watched: Watched) -> None:
    stall = watched.await_stall()
    assert stall.reason == "nothing lands on B (h:1): its brokers answer"
    watched.pulse.landed()
    await_until(lambda: watched.told[-1] is None, 10, "it is over")
    assert watched.pulse.stall is None


def test_copies_that_are_not_recorded_yet_are_signs_of_life_too(watched: Watched) -> None:
    watched.target.is_growing = True
    watched.pulse.expect([REMOTE])

    def looks() -> int:
        watched.pulse.expect([REMOTE])
        return watched.target.looks

    await_until(lambda: looks() > 5, 20, "some looks, each behind half of the patience")
    assert not any(stall is not None and "nothing lands" in stall.reason for stall in watched.told)


def test_a_partition_without_a_leader_is_named(watched: Watched) -> None:
    watched.target.ends.clear()
    await_until(lambda: "A.t-0 has no leader" in watched.await_stall().reason, 10, "the partition")


def test_who_does_not_answer_is_named_with_what_came_instead(watched: Watched) -> None:
    watched.source.failure = "cluster A (h:1): refused"
    await_until(lambda: bool(watched.told), 10, "a stall is told")
    assert watched.told[-1] is not None
    assert watched.told[-1].reason == "cluster A (h:1): refused"
    watched.source.failure = None
    await_until(lambda: watched.told[-1] is None, 10, "it is over")


def test_behind_its_end_nothing_is_told(watched: Watched) -> None:
    watched.pulse.end()
    watched.source.failure = watched.target.failure = "away"
    watched.pulse.expect([REMOTE])
    assert watched.told == []
