"""What people read before and after a move."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.cli.moves_view import plan_text, statement_text
from srm_spark.core.acls import Acl
from srm_spark.core.model import Flow, OffsetRange
from srm_spark.plan import MoveKind, MoveOutcome, Plan, Statement
from srm_spark.plan.document import plan_document, statement_document
from srm_spark.plan.planning import make_plan
from srm_spark.plan.snapshot import ClusterSnapshot, LossEstimate, WriteRight
from tests.unit.plan.examples import FLOW, copied, move, snapshot


def test_a_plan_says_what_would_be_lost_and_what_is_not_known() -> None:
    there = replace(snapshot(), loss=LossEstimate(12, 3.4, 1.0))
    assert "not on B: 12 records, up to 3 s old; progress" in plan_text(plan(there))
    assert "12 records, unknown age" in plan_text(plan(replace(there, loss=LossEstimate(12, None, 1.0))))
    gone = replace(snapshot(down="no answer"), loss=LossEstimate(None, None, 40.0))
    text = plan_text(plan(gone))
    assert "source A: gone: no answer" in text
    assert "not on B: unknown, since A cannot be asked. Progress was recorded last 40 s ago" in text
    assert "nobody runs the flow" in plan_text(plan(replace(gone, owner=None)))


def test_a_plan_lists_groups_stages_and_what_is_not_safe() -> None:
    text = plan_text(plan(snapshot(move(MoveOutcome.MOVES), move(MoveOutcome.STAYS, group="h", reason="busy"))))
    assert "groups: 2, on 2 partitions: 1 moves, 1 not moved" in text
    assert "not safe\n  group h on A.orders-0: busy" in text
    assert "what will be done\n  1. set the offsets" in text
    (row,) = [line.split() for line in text.splitlines() if line.split()[:1] == ["g"]]
    assert row == ["g", "A.orders", "0", "10", "-", "7", "moves", "exact"]


def test_a_statement_tells_ranges_and_next_steps() -> None:
    ranges = (
        copied(10, 10),
        replace(copied(4, None, partition=1), hold="too large", quarantined=2, lost=(OffsetRange(1, 3),)),
    )
    said = Statement(MoveKind.FAILBACK, Flow("B", "A"), "begin", "end", snapshot(ranges=ranges), (), ("do this",))
    text = statement_text(said)
    assert text.startswith("failback of A->B, over B->A, began begin, ended end")
    assert "orders-0 -> A.orders-0: up to 9; not copied: 0 records" in text
    said_of_it = "held: too large; in quarantine: 2 records; lost before: 1 to 2"
    assert f"orders-1 -> A.orders-1: up to 3; not copied: unknown; {said_of_it}" in text
    assert "not safe\n  nothing" in text
    assert text.endswith("next\n  do this")


@pytest.mark.parametrize(
    ("goal", "said"),
    [(None, []), (90, ["  took 90 s, within the goal of 90 s"]), (60, ["  took 90 s, longer than the goal of 60 s"])],
)
def test_a_statement_says_whether_the_move_kept_to_its_goal(goal: int | None, said: list[str]) -> None:
    began, ended = "2026-11-02T00:00:00+00:00", "2026-11-02T00:01:30+00:00"
    done = Statement(MoveKind.FAILOVER, FLOW, began, ended, snapshot(), (), (), rto_goal=goal)
    assert [line for line in statement_text(done).splitlines() if line.startswith("  took")] == said
    assert statement_document(done)["rto_goal_seconds"] == goal
    so_far = statement_text(replace(done, unsafe=("group g stays",)))
    assert (f"  has taken 90 s so far; the goal is {goal} s" in so_far.splitlines()) is bool(said)
    assert "within" not in so_far


def test_who_may_write_is_told_of_both_ways() -> None:
    acl = Acl("A.orders", "LITERAL", "User:ann", "*", "WRITE", "ALLOW")
    found = replace(snapshot(), rights=(WriteRight(acl, is_in_force=False),))
    title = f"who may write remote topics, whichever groups move\n  {acl}: "
    assert f"{title}staged" in plan_text(plan(found))
    said = Statement(MoveKind.FAILBACK, Flow("B", "A"), "begin", "end", found, (), ())
    assert f"{title}taken away by somebody" in statement_text(said)


def test_both_are_plain_json() -> None:
    found = json.loads(json.dumps(plan_document(plan(snapshot()))))
    assert [stage["stage"] for stage in found["stages"]] == ["commit", "check"]
    said = Statement(MoveKind.FAILOVER, FLOW, "begin", "end", snapshot(), ("x",), ("y",))
    document = json.loads(json.dumps(statement_document(said)))
    assert document["groups"][0]["after"] == 7
    assert document["ranges"][0]["missing"] == 0
    assert (document["unsafe"], document["next_steps"]) == (["x"], ["y"])


def test_the_commands_say_what_their_exit_codes_mean() -> None:
    answer = CliRunner().invoke(main, ["failover", "--help"])
    assert "Exit codes: 0 everything moved" in " ".join(answer.stdout.split())


def test_a_fence_is_for_planned_moves() -> None:
    answer = CliRunner().invoke(main, ["failover", "--config", "none", "--flow", "A->B", "--fence", "x"])
    assert answer.exit_code == 2
    assert "add --planned" in answer.output


def test_a_flow_that_is_not_configured_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "srm.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"
    )
    answer = CliRunner().invoke(main, ["failback", "--config", str(path), "--flow", "A->B"])
    assert answer.exit_code == 1
    assert "a failback of A->B takes the flow of the other direction" in answer.stderr
    assert "enabled: A->B" in answer.stderr


def plan(found: ClusterSnapshot) -> Plan:
    return make_plan(MoveKind.FAILOVER, FLOW, found, fenced=False, state=None)
