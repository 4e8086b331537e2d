"""From what was found to the stages, the verdict and the next steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from srm_spark.core.acls import Acl
from srm_spark.core.model import OffsetRange
from srm_spark.plan.planning import ended, make_plan, next_steps, verdict
from srm_spark.plan.snapshot import MoveKind, MoveOutcome, Stage, WriteRight
from srm_spark.plan.state import MoveId, MoveState
from tests.unit.plan.examples import FLOW, PARTITION, copied, move, snapshot

FRESH = MoveState(MoveId("failover", "A->B", "a:1", "b:1", ".*"), "2026-11-21T22:00:00Z")
WRITES = Acl("A.orders", "LITERAL", "User:ann", "*", "WRITE", "ALLOW")
GONE = "cluster A (a:1): cannot list the topics"


@pytest.mark.parametrize(
    ("kind", "fenced", "stages"),
    [
        (MoveKind.FAILOVER, False, [Stage.COMMIT, Stage.CHECK]),
        (MoveKind.PLANNED_FAILOVER, False, [Stage.DRAIN, Stage.COMMIT, Stage.CHECK]),
        (MoveKind.FAILBACK, True, [Stage.FENCE, Stage.DRAIN, Stage.COMMIT, Stage.CHECK]),
    ],
)
def test_stages(kind: MoveKind, fenced: bool, stages: list[Stage]) -> None:
    plan = make_plan(kind, FLOW, snapshot(), fenced=fenced, state=None)
    assert (list(plan.stages), plan.unsafe) == (stages, ())


@pytest.mark.parametrize(
    ("kind", "in_force", "stages"),
    [
        (MoveKind.FAILOVER, False, [Stage.COMMIT, Stage.ALLOW, Stage.CHECK]),
        (MoveKind.PLANNED_FAILOVER, False, [Stage.DRAIN, Stage.COMMIT, Stage.ALLOW, Stage.CHECK]),
        (MoveKind.FAILOVER, True, [Stage.COMMIT, Stage.CHECK]),
        (MoveKind.FAILBACK, True, [Stage.DRAIN, Stage.COMMIT, Stage.WITHDRAW, Stage.CHECK]),
        (MoveKind.FAILBACK, False, [Stage.DRAIN, Stage.COMMIT, Stage.WITHDRAW, Stage.CHECK]),
    ],
)
def test_who_may_write_is_set_where_it_is_not_as_it_should_be(
    kind: MoveKind, in_force: bool, stages: list[Stage]
) -> None:
    found = replace(snapshot(), rights=(WriteRight(WRITES, in_force),), moves=())
    plan = make_plan(kind, FLOW, found, fenced=False, state=None)
    assert (list(plan.stages), plan.unsafe) == (stages, ())


def test_groups_that_are_named_and_not_there_move_nothing() -> None:
    found = replace(snapshot(), rights=(WriteRight(WRITES, is_in_force=False),), moves=())
    plan = make_plan(MoveKind.FAILOVER, FLOW, found, fenced=False, state=None, names_groups=True)
    assert plan.stages == ()
    assert plan.refusals[0].startswith("no group stands on a topic of the flow A->B; check --group")


def test_a_right_that_was_refused_is_not_safe() -> None:
    found = replace(snapshot(), rights=(WriteRight(WRITES, is_in_force=False, refused="not allowed"),))
    assert verdict(MoveKind.FAILOVER, FRESH, found) == (f"{WRITES} is not in force: not allowed",)
    still = replace(found, rights=(WriteRight(WRITES, is_in_force=True),))
    assert verdict(MoveKind.FAILOVER, FRESH, still) == ()
    assert f"{WRITES} is still in force: run the same command again" in verdict(MoveKind.FAILBACK, FRESH, still)


def test_a_fence_is_closed_once_and_the_rest_is_looked_at_again() -> None:
    state = FRESH.left(Stage.FENCE, "now").left(Stage.DRAIN, "now")
    plan = make_plan(MoveKind.PLANNED_FAILOVER, FLOW, snapshot(), fenced=True, state=state)
    assert plan.stages == (Stage.DRAIN, Stage.COMMIT, Stage.CHECK)
    assert plan.done == (Stage.FENCE, Stage.DRAIN)


def test_everything_that_forbids_a_planned_move_is_told_at_once() -> None:
    dead = replace(snapshot(down=GONE), owner=None, moves=())
    plan = make_plan(MoveKind.PLANNED_FAILOVER, FLOW, dead, fenced=False, state=None)
    assert plan.stages == ()
    assert [text.partition(";")[0] for text in plan.refusals] == [
        f"a planned move needs A: {GONE}",
        "nobody runs the flow A->B, and a planned move waits until it is done",
        "no group stands on a topic of the flow A->B",
    ]
    assert make_plan(MoveKind.FAILOVER, FLOW, replace(dead, moves=(move(),)), fenced=False, state=None).refusals == ()


def test_groups_that_stay_and_partitions_that_are_held_are_not_safe() -> None:
    found = replace(
        snapshot(
            *[move(MoveOutcome.STAYS, reason="busy")] * 4,
            move(group="h"),
            ranges=(replace(copied(4, 10), hold="too large"), replace(copied(10, 10, partition=1), quarantined=2)),
        ),
        unknown=("group k: not allowed",),
    )
    assert verdict(MoveKind.FAILOVER, FRESH, found) == (
        "group g on A.orders-0, A.orders-0, A.orders-0 and 1 more: busy",
        "group k: not allowed",
        "orders-0 is held at 4: too large",
        "orders-1: 2 records in quarantine",
    )
    assert verdict(MoveKind.FAILOVER, FRESH, snapshot()) == ()


def test_a_remote_partition_that_is_missing_is_not_safe() -> None:
    absent = replace(copied(), target_end=None)
    assert verdict(MoveKind.FAILOVER, FRESH, snapshot(ranges=(absent,))) == (
        "A.orders-0 is not there, so nothing of orders-0 is",
    )
    never_held_a_record = replace(copied(0, 0), target_end=None)
    assert verdict(MoveKind.FAILOVER, FRESH, snapshot(ranges=(never_held_a_record,))) == ()


def test_an_offset_that_is_not_where_it_was_put_is_not_safe() -> None:
    assert verdict(MoveKind.FAILOVER, FRESH, snapshot(move(MoveOutcome.MOVES))) == (
        "group g on A.orders-0: it is not at 7; run the same command again",
    )
    (found,) = ended(snapshot(move(MoveOutcome.MOVES))).moves
    assert (found.outcome, found.reason) == (MoveOutcome.STAYS, "the move ended before it")


def test_a_source_that_moved_after_it_was_drained_is_not_safe() -> None:
    state = replace(FRESH, still={PARTITION: 10})
    assert verdict(MoveKind.PLANNED_FAILOVER, state, snapshot()) == ()
    assert verdict(MoveKind.PLANNED_FAILOVER, state, snapshot(ranges=(copied(11, 12),))) == (
        "the source was written after it was drained: orders-0 from 10 to 12",
        "not copied before the groups moved: 1 record",
    )
    assert verdict(MoveKind.FAILOVER, state, snapshot(ranges=(copied(11, 12),))) == ()
    (text,) = verdict(MoveKind.PLANNED_FAILOVER, state, snapshot(ranges=(copied(10, None),), down=GONE))
    assert "not known" in text


def test_a_partition_without_a_leader_at_the_end_is_not_safe() -> None:
    state = replace(FRESH, still={PARTITION: 10})
    (text,) = verdict(MoveKind.PLANNED_FAILOVER, state, snapshot(ranges=(copied(10, None),)))
    assert text == "orders-0 has no leader on the source, so whether everything is copied is not known"


def test_next_steps_name_the_topics_and_the_way_back() -> None:
    steps = next_steps(MoveKind.FAILOVER, FLOW, snapshot(), has_way_back=True, is_safe=True)
    assert steps == (
        "start the consumers of g on B; their topics there are A.orders",
        "when A is to take over again: srm-control failback --flow 'A->B'",
    )
    (_, way_back) = next_steps(MoveKind.FAILOVER, FLOW, snapshot(), has_way_back=False, is_safe=True)
    assert "B->A.enabled = true" in way_back
    stays = snapshot(move(MoveOutcome.STAYS))
    (again,) = next_steps(MoveKind.FAILOVER, FLOW, stays, has_way_back=True, is_safe=False)
    assert "run the same command again" in again
    assert len(next_steps(MoveKind.FAILBACK, FLOW.reverse, snapshot(), has_way_back=True, is_safe=True)) == 1


def test_what_is_missing_on_the_target() -> None:
    assert copied(4, 10).missing == OffsetRange(4, 10)
    assert copied(None, 10).missing == OffsetRange(0, 10)
    assert replace(copied(None, 10), source_start=8).missing == OffsetRange(8, 10)
    assert copied(4, None).missing is None
