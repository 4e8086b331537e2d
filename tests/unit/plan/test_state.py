"""The state file: it survives, it is whole, and it belongs to one move."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from srm_spark.errors import MoveError
from srm_spark.plan.fence import run_fence
from srm_spark.plan.groups import Earlier
from srm_spark.plan.snapshot import MoveOutcome, Stage
from srm_spark.plan.state import MoveId, MoveState, load_state, save_state
from tests.unit.plan.examples import PARTITION, REMOTE, copied, move

ID = MoveId("planned failover", "A->B", "a:1", "b:1", "g,h")
STATE = MoveState(ID, "2026-11-21T22:00:00Z")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "move.json"
    assert load_state(path, ID) is None
    state = replace(STATE.entered(Stage.FENCE, (), "1").left(Stage.FENCE, "2"), still={PARTITION: 10})
    state = state.knowing([move(before=2), move(MoveOutcome.STAYS, group="h")]).entered(Stage.COMMIT, (copied(),), "3")
    save_state(path, state)
    assert load_state(path, ID) == replace(state, ranges=())  # those are for people
    assert [found.name for found in tmp_path.iterdir()] == ["move.json"]


def test_where_a_group_stood_first_is_never_forgotten() -> None:
    stand = ("g", REMOTE)
    state = STATE.knowing([move(MoveOutcome.MOVES, before=2)])
    assert state.earlier == Earlier({stand: 2}, {})
    state = state.knowing([move(MoveOutcome.MOVED, before=2)]).knowing([move(MoveOutcome.IN_STEP, before=7)])
    assert state.earlier == Earlier({stand: 2}, {stand: 7})


def test_stages_are_entered_and_left() -> None:
    state = STATE.entered(Stage.DRAIN, (), "1")
    assert (state.stage, state.done) == (Stage.DRAIN, ())
    state = state.left(Stage.DRAIN, "2").left(Stage.DRAIN, "3")
    assert (state.stage, state.done) == (None, (Stage.DRAIN,))


def test_the_file_of_another_move_is_refused_with_every_difference(tmp_path: Path) -> None:
    path = tmp_path / "move.json"
    save_state(path, STATE)
    with pytest.raises(MoveError, match="another move") as caught:
        load_state(path, replace(ID, flow="B->A", target="c:1"))
    assert "flow: 'A->B' there, 'B->A' asked for; target: 'b:1' there, 'c:1' asked for" in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1}', '{"format": 1, "id": {"kind": "x"}}', "null"])
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "move.json"
    path.write_text(text)
    with pytest.raises(MoveError, match="no state file of a move"):
        load_state(path, ID)
    assert path.read_text() == text


def test_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "move.json"
    path.write_text(json.dumps({"format": 2}))
    with pytest.raises(MoveError, match="format 2, expected 1"):
        load_state(path, ID)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(MoveError, match="cannot be written"):
        save_state(tmp_path / "none" / "move.json", STATE)


def test_the_fence_hands_on_its_output_and_never_shows_itself() -> None:
    said: list[str] = []
    assert run_fence("echo one; echo two >&2", said.append) is None
    assert said == ["fence: one", "fence: two"]
    assert run_fence("sleep 600 & echo $!", said.append) is None, "what it leaves behind holds the output"
    os.kill(int(said[2].removeprefix("fence: ")), signal.SIGKILL)
    failure = run_fence("exit 3 # password", said.append)
    assert failure == "the fence command ended with exit code 3"
