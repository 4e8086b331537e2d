"""Partitions that wait: taken in from progress, let go of when their obstacle is gone, tried again by the minute."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from srm_spark.config.settings import LossPolicies, Timings
from srm_spark.core.model import Flow, PausedPartition, TopicPartition
from srm_spark.core.standstills import by_name
from srm_spark.failure import Effect, Failure, FailureKind
from srm_spark.flow.refused.paused import PausedPartitions
from srm_spark.flow.topics.progress import Position

P, Q = TopicPartition("t", 0), TopicPartition("u", 0)
RETRY_SECONDS = 60.0
PAUSING = [kind for kind in FailureKind if kind.effect in (Effect.PAUSES, Effect.SEARCHES)]


@dataclass
class BothSides:
    """What the clusters say."""

    first: dict[TopicPartition, int] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    policy: str = "stop"

    def paused(self, *found: tuple[TopicPartition, FailureKind]) -> PausedPartitions:
        policies = LossPolicies({"foreign.writer.policy": self.policy})
        settings = SimpleNamespace(policies=policies, timings=Timings(retry_paused_seconds=RETRY_SECONDS))
        clusters: Any = SimpleNamespace(source=self, settings=settings)
        made = PausedPartitions(clusters, cast("Any", self))
        made.release(0.0)  # the first try is behind it
        made.partitions = {p: PausedPartition(7, Failure(kind, "words")) for p, kind in found}
        return made

    def first_offsets(self, partitions: Collection[TopicPartition], *, waits: bool) -> Mapping[TopicPartition, int]:
        assert not waits, "one without a leader would keep all others waiting"
        return {p: self.first[p] for p in partitions if p in self.first}

    def changed_limits(self, topics: Collection[str]) -> set[str]:
        return self.changed & set(topics)


@pytest.mark.parametrize("kind", PAUSING)
def test_it_is_tried_again_after_a_minute(kind: FailureKind) -> None:
    paused = BothSides().paused((P, kind))
    assert not paused.release(RETRY_SECONDS - 1)
    assert paused.partitions
    assert paused.release(RETRY_SECONDS)
    assert not paused.partitions


def test_a_foreign_writer_is_not_tried_again_by_itself() -> None:
    paused = BothSides().paused((P, FailureKind.FOREIGN_WRITER))
    assert not paused.release(10 * RETRY_SECONDS)
    assert paused.partitions.keys() == {P}


def test_but_at_once_under_another_policy() -> None:
    assert BothSides(policy="resume").paused((P, FailureKind.FOREIGN_WRITER)).release(1.0)


def test_a_record_that_the_source_dropped_is_waited_for_no_more() -> None:
    paused = BothSides(first={P: 8, Q: 7}).paused((P, FailureKind.TOO_LARGE), (Q, FailureKind.TOO_LARGE))
    assert paused.release(1.0)
    assert paused.partitions.keys() == {Q}


def test_limits_that_have_changed_are_tried_at_once() -> None:
    paused = BothSides(changed={"u"}).paused((P, FailureKind.TOO_LARGE), (Q, FailureKind.TOO_LARGE))
    assert paused.release(1.0)
    assert paused.partitions.keys() == {P}


def test_what_was_paused_just_now_is_not_tried_before_a_while() -> None:
    paused = BothSides().paused((P, FailureKind.TOO_LARGE))
    paused.postpone(RETRY_SECONDS - 1)
    assert not paused.release(RETRY_SECONDS + 1)
    assert paused.release(2 * RETRY_SECONDS)


def test_only_what_was_recorded_since_a_generation_began_is_taken_in() -> None:
    hold = PausedPartition(7, Failure(FailureKind.NO_KEY, "words"))
    old, new = Position(7, hold=hold), Position(7, hold=hold)
    paused = BothSides().paused()
    paused.begin({P: old})
    assert not paused.discover({P: old, Q: Position(3)})
    assert paused.discover({P: new})
    assert paused.partitions == {P: hold}
    assert not paused.discover({P: new}), "known by now"


def test_people_are_told_where_and_why() -> None:
    paused = BothSides().paused((P, FailureKind.NO_KEY))
    paused.topics = {"v": "it is gone"}
    assert by_name(paused.standing(), Flow("A", "B")) == {"v": "it is gone", "t-0": "held at offset 7: words"}
    assert [one.kind for one in paused.standing()] == [None, FailureKind.NO_KEY]
