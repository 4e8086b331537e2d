"""What becomes of a group, and why it stays."""

from __future__ import annotations

import pytest

from srm_spark.core.checkpoints import TranslationStatus
from srm_spark.flow.groups.sync import Synced, SyncState
from srm_spark.plan.groups import Earlier, Judge
from srm_spark.plan.world import GroupMove, Kind, Outcome
from tests.unit.plan.examples import FLOW, REMOTE, position

STAND = ("g", REMOTE)


def one(judge: Judge, verdict: Synced) -> GroupMove:
    (found,) = judge.moves([verdict], {})
    return found


@pytest.mark.parametrize(
    ("state", "outcome", "why"),
    [
        (SyncState.DUE, Outcome.MOVES, ""),
        (SyncState.SYNCED, Outcome.MOVED, ""),
        (SyncState.IN_STEP, Outcome.IN_STEP, ""),
        (SyncState.ACTIVE, Outcome.STAYS, "it has members on B; stop them and run the same command again"),
        (SyncState.AHEAD, Outcome.STAYS, "it would skip what lies between"),
        (SyncState.UNTRANSLATED, Outcome.STAYS, "does not translate: why"),
        (SyncState.REFUSED, Outcome.STAYS, "B refused it: why"),
    ],
)
def test_every_verdict_has_an_outcome(state: SyncState, outcome: Outcome, why: str) -> None:
    found = one(Judge(Kind.FAILOVER, FLOW), Synced(position(), state, "why", 9))
    assert found.outcome is outcome
    assert why in found.reason
    assert (found.upstream, found.before, found.after) == (10, 9, 7)


def test_what_an_earlier_call_moved_counts_as_moved() -> None:
    judge = Judge(Kind.FAILOVER, FLOW, earlier=Earlier({STAND: 2}, {STAND: 7}))
    found = one(judge, Synced(position(), SyncState.IN_STEP, "", 7))
    assert (found.outcome, found.before, found.reason) == (Outcome.MOVED, 2, "")
    found = one(judge, Synced(position(), SyncState.AHEAD, "", 9))
    assert (found.outcome, found.reason) == (Outcome.MOVED, "it was set to 7 and has read on to 9")
    killed_between_commit_and_writing = Judge(Kind.FAILOVER, FLOW, earlier=Earlier({STAND: None}))
    found = one(killed_between_commit_and_writing, Synced(position(), SyncState.IN_STEP, "", 7))
    assert (found.outcome, found.before) == (Outcome.MOVED, None)


def test_a_planned_move_leaves_a_group_that_still_reads_on_the_source() -> None:
    planned = Judge(Kind.PLANNED_FAILOVER, FLOW, active=["g"])
    assert "members on A" in str(planned.stuck(position()))
    assert Judge(Kind.PLANNED_FAILOVER, FLOW, active=["g"], is_final=False).stuck(position()) is None
    assert Judge(Kind.PLANNED_FAILOVER, FLOW, active=["other"]).stuck(position()) is None
    assert Judge(Kind.FAILOVER, FLOW, active=["g"]).stuck(position()) is None
    (found,) = planned.moves([Synced(position(), SyncState.DUE)], {"g": "because"})
    assert (found.outcome, found.reason) == (Outcome.STAYS, "because")


def test_what_the_target_does_not_have_yet_is_waited_for_or_told() -> None:
    ahead = position(upstream=15, seen=12, standing=TranslationStatus.AHEAD)
    assert "3 records of orders-0" in str(Judge(Kind.FAILBACK, FLOW).stuck(ahead))
    found = one(Judge(Kind.FAILOVER, FLOW), Synced(ahead, SyncState.DUE))
    assert (found.outcome, found.reason) == (Outcome.MOVES, "it has read 3 records on A, not on B")


def test_a_disaster_tells_of_consumers_that_still_read() -> None:
    found = one(Judge(Kind.FAILOVER, FLOW, active=["g"]), Synced(position(), SyncState.DUE))
    assert (found.outcome, found.reason) == (
        Outcome.MOVES,
        "it has members on A: what they read from now on is read again",
    )
