"""Statements of moves are what is known of their duration: unsafe ones, foreign files and odd names included."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from srm_spark.core.model import Flow
from srm_spark.plan import MoveKind, last_failover, past_moves

FLOW = Flow("a", "b")


def statement(path: Path, move: str, moments: tuple[str, str], flow: str = "a->b", unsafe: Sequence[str] = ()) -> None:
    began, ended = moments
    document = {"move": move, "flow": flow, "began": began, "ended": ended, "unsafe": list(unsafe), "groups": []}
    path.write_text(json.dumps(document))


def test_the_newest_failover_that_moved_everything_counts(tmp_path: Path) -> None:
    first, second = ("2026-11-01T00:00:00Z", "2026-11-01T00:00:07Z"), ("2026-11-02T00:00:00Z", "2026-11-02T00:01:30Z")
    third, fourth = ("2026-11-03T00:00:00Z", "2026-11-03T00:00:01Z"), ("2026-11-04T00:00:00Z", "2026-11-04T00:00:02Z")
    statement(tmp_path / "srm-failover-a-b-1.json", "failover", first)
    statement(tmp_path / "srm-planned_failover-a-b-2.json", "planned failover", second)
    statement(tmp_path / "srm-failover-a-b-3.json", "failover", third, unsafe=["group g stays"])
    statement(tmp_path / "srm-failback-a-b-4.json", "failback", fourth)
    assert [(one.kind, one.seconds) for one in past_moves(tmp_path, FLOW)] == [
        (MoveKind.FAILBACK, 2.0),
        (MoveKind.FAILOVER, 1.0),
        (MoveKind.PLANNED_FAILOVER, 90.0),
        (MoveKind.FAILOVER, 7.0),
    ]
    found = last_failover(tmp_path, FLOW)
    assert found is not None
    assert (found.kind, found.seconds) == (MoveKind.PLANNED_FAILOVER, 90.0)


@pytest.mark.parametrize("said", [{}, {"rto_goal_seconds": None}, {"rto_goal_seconds": 5}])
def test_the_goal_of_a_move_is_that_of_its_statement(tmp_path: Path, said: dict[str, int | None]) -> None:
    path = tmp_path / "srm-failover-a-b-1.json"
    statement(path, "failover", ("2026-11-01T00:00:00Z", "2026-11-01T00:00:07Z"))
    path.write_text(json.dumps({**json.loads(path.read_text()), **said}))
    assert [one.goal for one in past_moves(tmp_path, FLOW)] == [said.get("rto_goal_seconds")]


def test_other_flows_states_and_broken_files_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    moments = ("2026-11-01T00:00:00Z", "2026-11-01T00:00:07Z")
    statement(tmp_path / "srm-failover-a-b-c-1.json", "failover", moments, "a-b->c")
    statement(tmp_path / "srm-failover-a-b.json", "failover", moments)  # the name of a move that is not over
    (tmp_path / "srm-failover-a-b-2.json").write_text("{")
    statement(tmp_path / "srm-failover-a-b-3.json", "failover", ("yesterday", "today"))
    with caplog.at_level(logging.WARNING):
        assert past_moves(tmp_path, FLOW) == []
        assert last_failover(tmp_path, FLOW) is None
        assert [one.flow for one in past_moves(tmp_path, Flow("a-b", "c"))] == ["a-b->c"]
    assert len(caplog.records) == 2, "each broken file once, however often pages ask"


def test_a_statement_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    began = "2026-11-01T00:00:00Z"
    statement(tmp_path / "srm-failover-a-b-1.json", "failover", (began, "2026-11-01T00:00:07Z"))
    assert [one.seconds for one in past_moves(tmp_path, FLOW)] == [7.0]
    statement(tmp_path / "srm-failover-a-b-1.json", "failover", (began, "2026-11-01T00:00:09Z"))
    assert [one.seconds for one in past_moves(tmp_path, FLOW)] == [9.0]
