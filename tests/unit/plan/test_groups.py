"""What becomes of a group, and why it stays."""

from __future__ import annotations

import pytest

from srm_spark.core.checkpoints import TranslationStatus
from srm_spark.flow.groups.sync import Synced, SyncState
from srm_spark.plan.groups import Earlier, Judge
from srm_spark.plan.snapshot import GroupMove, MoveKind, MoveOutcome
from tests.unit.plan.examples import FLOW, REMOTE, position

STAND = ("g", REMOTE)


def one(judge: Judge, verdict: Synced) -> GroupMove:
    (found,) = judge.moves([verdict], {})
    return found


@pytest.mark.parametrize(
    ("state", "outcome", "why"),
    [
        (SyncState.DUE, MoveOutcome.MOVES, ""),
        (SyncState.SYNCED, MoveOutcome.MOVED, ""),
        (SyncState.IN_STEP, MoveOutcome.IN_STEP, ""),
        (SyncState.ACTIVE, MoveOutcome.STAYS, "it has members on B; stop them and run the same command again"),
        (SyncState.AHEAD, MoveOutcome.STAYS, "it would skip what lies between"),
        (SyncState.UNTRANSLATED, MoveOutcome.STAYS, "does not translate: why"),
        (SyncState.REFUSED, MoveOutcome.STAYS, "B refused it: why"),
    ],
)
def test_every_verdict_has_an_outcome(state: SyncState, outcome: MoveOutcome, why: str) -> None:
    found = one(Judge(MoveKind.FAILOVER, FLOW), Synced(position(), state, "why", 9))
    assert found.outcome is outcome
    assert why in found.reason
    assert (found.upstream, found.before, found.after) == (10, 9, 7)


def test_what_an_earlier_call_moved_counts_as_moved() -> None:
    judge = Judge(MoveKind.FAILOVER, FLOW, earlier=Earlier({STAND: 2}, {STAND: 7}))
    found = one(judge, Synced(position(), SyncState.IN_STEP, "", 7))
    assert (found.outcome, found.before, found.reason) == (MoveOutcome.MOVED, 2, "")
    found = one(judge, Synced(position(), SyncState.AHEAD, "", 9))
    assert (found.outcome, found.reason) == (MoveOutcome.MOVED, "it was set to 7 and has read on to 9")
    killed_between_commit_and_writing = Judge(MoveKind.FAILOVER, FLOW, earlier=Earlier({STAND: None}))
    found = one(killed_between_commit_and_writing, Synced(position(), SyncState.IN_STEP, "", 7))
    assert (found.outcome, found.before) == (MoveOutcome.MOVED, None)


def test_a_planned_move_leaves_a_group_that_still_reads_on_the_source() -> None:
    planned = Judge(MoveKind.PLANNED_FAILOVER, FLOW, active=["g"])
    assert "members on A" in str(planned.stuck(position()))
    assert Judge(MoveKind.PLANNED_FAILOVER, FLOW, active=["g"], is_final=False).stuck(position()) is None
    assert Judge(MoveKind.PLANNED_FAILOVER, FLOW, active=["other"]).stuck(position()) is None
    assert Judge(MoveKind.FAILOVER, FLOW, active=["g"]).stuck(position()) is None
    (found,) = planned.moves([Synced(position(), SyncState.DUE)], {"g": "because"})
    assert (found.outcome, found.reason) == (MoveOutcome.STAYS, "because")


def test_what_the_target_does_not_have_yet_is_waited_for_or_told() -> None:
    ahead = position(upstream=15, seen=12, status=TranslationStatus.AHEAD)
    assert "3 records of orders-0" in str(Judge(MoveKind.FAILBACK, FLOW).stuck(ahead))
    found = one(Judge(MoveKind.FAILOVER, FLOW), Synced(ahead, SyncState.DUE))
    assert (found.outcome, found.reason) == (MoveOutcome.MOVES, "it has read 3 records on A, not on B")


def test_a_disaster_tells_of_consumers_that_still_read() -> None:
    found = one(Judge(MoveKind.FAILOVER, FLOW, active=["g"]), Synced(position(), SyncState.DUE))
    assert (found.outcome, found.reason) == (
        MoveOutcome.MOVES,
        "it has members on A: what they read from now on is read again",
    )
