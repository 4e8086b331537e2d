"""`srm-control pause`, `resume`, `restart` and `history`, on clusters in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.core.lists import Act, Change, ListKind
from srm_spark.flow.commanding import command, history
from srm_spark.flow.run import FlowRun
from tests.unit.commanded import FILE, Commanded

NOT_TAKEN = (
    "no driver has said within 10 s that it took it: "
    "one that runs takes it when its batch is over, and it counts for whoever starts"
)


class Tool:
    """The commands, and the flow that they steer."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = Commanded(count=2)
        self.patience = 0.0
        self.path = folder / "srm.properties"
        self.path.write_text(FILE)
        monkeypatch.setattr("srm_spark.cli.commands.carry_out", self._command)
        monkeypatch.setattr("srm_spark.cli.commands.acts_of", partial(history, reach=self.world.flow.reach))
        monkeypatch.setattr("srm_spark.cli.commands.who", lambda: "ann@host")

    def _command(self, settings: Any, act: Any) -> Any:
        return command(settings, act, self.world.flow.reach, self.patience)

    def __call__(self, word: str, *arguments: str) -> Result:
        where = () if word == "history" else ("--flow", "A->B")
        return CliRunner().invoke(main, [word, "--config", str(self.path), *where, *arguments])

    @contextmanager
    def driven(self, run: FlowRun) -> Iterator[None]:
        """The flow looks around, as its driver lets it, and a command waits for it."""
        self.patience = 20.0
        with self.world.looking(run):
            yield
        self.patience = 0.0


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    return Tool(tmp_path, monkeypatch)


def test_without_a_driver_a_pause_counts_for_whoever_starts(tool: Tool) -> None:
    answer = tool("pause", "--topic", "t", "--reason", "maintenance")
    assert (answer.exit_code, answer.stdout.splitlines()) == (0, ["paused: t", NOT_TAKEN])
    assert answer.stderr == "note: no position of t is recorded: nothing of it was copied so far\n"
    with tool.world.run() as run:
        run.begin()
        assert tool.world.held == {"t": "paused by ann@host: maintenance"}


def test_the_driver_that_took_it_is_named(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srm_spark.flow.topics.commands.driver_name", lambda: "host pid 7")
    with tool.world.run() as run:
        run.begin()
        tool.world.copy(run)
        with tool.driven(run):
            answer = tool("pause", "--topic", "t", "--partition", "0")
        assert answer.output.splitlines() == ["paused: t-0", "host pid 7 copies nothing more of it"]
        assert tool.world.flowing == set()
        with tool.driven(run):
            answer = tool("resume", "--topic", "t", "--partition", "0", "-o", "json")
        document = json.loads(answer.stdout)
        assert document.pop("taken_by")["driver"] == "host pid 7"
        assert document == {
            "flow": "A->B",
            "command": "resume",
            "topic": "t",
            "partition": 0,
            "is_changed": True,
            "remarks": [],
            "declined": None,
        }


def test_an_answer_to_something_older_is_none(tool: Tool) -> None:
    with tool.world.run() as run:
        run.begin()
        with tool.driven(run):
            tool("pause", "--topic", "t")
    assert tool.world.taken is not None
    assert tool("resume", "--topic", "t").stdout.splitlines()[1] == NOT_TAKEN


def test_what_is_paused_is_not_paused_again_and_what_is_not_is_not_resumed(tool: Tool) -> None:
    assert tool("resume").exit_code == 3
    assert tool("resume").stderr == "not done: the flow is not paused\n"
    tool("pause", "--reason", "x")
    again = tool("pause", "--reason", "y")
    assert (again.exit_code, again.output.splitlines()) == (
        0,
        ["note: the flow is paused by ann@host: x already", "nothing was changed"],
    )
    narrow = tool("resume", "--topic", "t", "--partition", "3")
    assert (narrow.exit_code, narrow.output) == (
        3,
        "not done: t-3 is not paused by itself: the flow is paused by ann@host: x; resume that\n",
    )


def test_what_else_holds_it_is_told(tool: Tool) -> None:
    tool("pause", "--reason", "x")
    assert "note: the flow is paused by ann@host: x, too" in tool("pause", "--topic", "t").stderr
    assert "note: t stays paused by ann@host" in tool("resume").stderr
    tool("pause")
    assert "note: t stands still all the same: the flow is paused by ann@host" in tool("resume", "--topic", "t").stderr
    assert "note: the flow stays paused by ann@host" in tool("restart").stderr


def test_a_restart_that_nobody_takes_is_not_done(tool: Tool) -> None:
    answer = tool("restart", "--reason", "stuck")
    assert (answer.exit_code, answer.stdout.splitlines()[0]) == (3, "to start anew: the flow")
    assert "whoever starts does so anyway" in answer.stdout


def test_a_partition_is_one_of_a_topic(tool: Tool) -> None:
    answer = tool("pause", "--partition", "1")
    assert (answer.exit_code, "--partition goes with --topic NAME" in answer.output) == (2, True)


def test_a_target_that_is_away_is_an_error(tool: Tool) -> None:
    tool.world.flow.target.down = "no route"
    for word in ("pause", "resume", "restart", "history"):
        assert tool(word).exit_code == 1
        assert "no route" in tool(word).stderr


def test_the_history_has_acts_of_all_kinds(tool: Tool) -> None:
    assert tool("history").stderr == "nobody has done anything\n"
    world = tool.world
    world.act(Act(ListKind.TOPICS, Change(("t",)), 1_000, "bob@there", "the shop moves"))
    world.pause("t")
    world.command_restart()
    printed = tool("history", "--flow", "A->B").stdout.splitlines()
    assert printed == [
        "1970-01-01T00:00:01+00:00 A->B bob@there topics +t (the shop moves)",
        "1970-01-01T00:00:01+00:00 A->B ann@host pause t (maintenance)",
        "1970-01-01T00:00:01+00:00 A->B ann@host restart the flow",
    ]
    listed, paused, _ = json.loads(tool("history", "-o", "json").stdout)
    assert (listed["kind"], listed["add"], listed["why"]) == ("topics", ["t"], "the shop moves")
    assert (paused["kind"], paused["topic"], paused["partition"]) == ("pause", "t", None)


def test_a_reason_that_cannot_be_shown_is_refused(tool: Tool) -> None:
    answer = tool("pause", "--reason", "a\nstate=failed \x1b[31m")
    assert answer.exit_code == 2
    assert r"--reason a\nstate=failed \x1b[31m: it has characters that cannot be shown" in answer.stderr
    assert tool("history").stdout == ""
