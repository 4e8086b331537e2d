"""`srm-control offsets list`, `set`, `rewind` and `skip`, on clusters in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.core.answers import Answer
from srm_spark.core.model import TopicPartition
from srm_spark.flow.commanding import Commanding
from tests.awaiting import await_until
from tests.unit.commanded import FILE, Commanded

OWNER = "driver@host"
NOBODY = "no driver runs the flow: the one that starts carries it out first\n"


class Tool:
    """The commands, and a flow that has copied `t0` to `t3`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = Commanded(count=4)
        self.world.copied()
        self.patience = 0.0
        self.path = folder / "srm.properties"
        self.path.write_text(FILE)
        monkeypatch.setattr("srm_spark.cli.shifts.commanding_of", self.commanding)
        monkeypatch.setattr("srm_spark.cli.shifts.who", lambda: "ann@host")
        monkeypatch.setattr("srm_spark.flow.topics.commands.driver_name", lambda: "host pid 7")

    def commanding(self, settings: Any) -> Commanding:
        return Commanding(settings, self.world.flow.reach, self.patience)

    def __call__(self, word: str, *arguments: str, typed: str | None = None) -> Result:
        line = ["offsets", word, "--config", str(self.path), "--flow", "A->B", *arguments]
        return CliRunner().invoke(main, line, input=typed)

    def begin(self) -> None:
        """A driver starts, and ends before it copies anything."""
        with self.world.run() as run:
            run.begin()

    @contextmanager
    def driven(self) -> Iterator[None]:
        """A driver runs the flow, as others see it, and looks around."""
        over, self.patience = threading.Event(), 20.0
        with self.world.run() as run:
            run.begin()

            def drive() -> None:
                while not over.wait(0.01):
                    self.world.look(run)

            thread = threading.Thread(target=drive)
            thread.start()
            try:
                yield
            finally:
                over.set()
                thread.join()


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    return Tool(tmp_path, monkeypatch)


@pytest.fixture
def owned(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Others see that a driver runs the flow."""
    monkeypatch.setattr(Commanding, "owner", lambda _: OWNER)
    return tool


def row(tool: Tool, *arguments: str) -> list[str]:
    return tool("list", *arguments).stdout.splitlines()[1].split()


def test_where_partitions_stand(tool: Tool) -> None:
    tool.world.write(b"t4")
    tool.world.flow.log.delete_before(1)
    assert row(tool) == ["t", "0", "4", "1", "5", "1"]
    tool.world.partitions("t", 2)
    tool.world.pause("t")
    tool.world.shift((0, 4, 2))
    (first, second) = json.loads(tool("list", "-o", "json").stdout)["partitions"]
    assert first == {
        "topic": "t",
        "partition": 0,
        "position": 4,
        "source": {"start": 1, "end": 5},
        "lag": 1,
        "paused": "paused by ann@host: maintenance",
        "waiting": 2,
    }
    assert (second["position"], second["source"], second["lag"]) == (None, {"start": 0, "end": 0}, None)
    assert "paused by ann@host: maintenance; to go on at 2 once a driver carries that out" in tool("list").stdout
    assert [
        one["partition"] for one in json.loads(tool("list", "--partition", "1", "-o", "json").stdout)["partitions"]
    ] == [1]
    assert tool("list", "--topic", "u").stderr == "no position of a topic that matches u is recorded\n"


def test_where_they_stand_is_known_without_the_source(tool: Tool) -> None:
    tool.world.flow.source.down = "no route"
    answer = tool("list")
    assert answer.stdout.splitlines()[1].split() == ["t", "0", "4", "?", "?", "?"]
    assert "the source does not answer" in answer.stderr
    assert (answer.exit_code, tool("skip", "--topic", "t", "--by", "1", "--yes").exit_code) == (0, 1)


def test_what_would_be_is_said_first_and_asked(tool: Tool) -> None:
    told = "t-0: from 4 back to 1: 3 offsets copied again; what the target has of them it has twice then\n"
    dry = tool("rewind", "--topic", "t", "--by", "3", "--dry-run")
    assert (dry.exit_code, dry.stderr, dry.stdout) == (0, told, "")
    wrong = tool("rewind", "--topic", "t", "--by", "3", typed="yes\n")
    assert (wrong.exit_code, "that is not the flow's name; nothing was changed" in wrong.stderr) == (1, True)
    tool.begin()
    assert tool.world.progress().positions[TopicPartition("t", 0)].next_offset == 4
    right = tool("rewind", "--topic", "t", "--by", "3", "--reason", "once more", typed="A->B\n")
    assert (right.exit_code, right.stdout) == (0, NOBODY)
    tool.world.copied()
    assert tool.world.values() == [b"t0", b"t1", b"t2", b"t3", b"t1", b"t2", b"t3"]


def test_what_is_left_out_is_said_first(tool: Tool) -> None:
    tool.world.write(b"t4", b"t5")
    answer = tool("skip", "--topic", "t", "--to", "latest", "--yes")
    assert answer.stderr == (
        "t-0: from 4 ahead to 6: 2 offsets left out; they do not come to the target, and are told as lost\n"
    )
    tool.begin()
    assert row(tool) == ["t", "0", "6", "0", "6", "0"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("set", "--topic", "t", "--to", "4"), "t-0: it stands at 4 already\nnothing was changed\n"),
        (("set", "--topic", "t", "--to", "latest"), "t-0: it stands at 4 already\nnothing was changed\n"),
    ],
)
def test_who_stands_there_is_not_moved(tool: Tool, arguments: tuple[str, ...], said: str) -> None:
    answer = tool(*arguments, "--yes")
    assert (answer.exit_code, answer.stderr) == (0, said)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("set", "--topic", "t", "--to", "9"), 3, "t-0: not done: the source has offsets 0 to 4 now, and not 9"),
        (("rewind", "--topic", "t", "--to", "latest", "--partition", "7"), 1, "no position of t-7 is recorded"),
        (("skip", "--topic", "u", "--by", "1"), 1, "no position of u is recorded: it begins by itself"),
        (("set", "--topic", "t", "--to", "noon"), 2, "--to noon: write an offset"),
        (("set", "--topic", "t"), 2, "write --to"),
    ],
)
def test_what_cannot_be_done_is_told(tool: Tool, arguments: tuple[str, ...], code: int, said: str) -> None:
    answer = tool(*arguments, "--yes")
    assert answer.exit_code == code
    assert said in answer.stderr


def test_what_a_driver_runs_has_to_be_paused(owned: Tool) -> None:
    answer = owned("rewind", "--topic", "t", "--by", "1", "--yes")
    pause = "srm-control pause --flow 'A->B' --topic t"
    assert (answer.exit_code, answer.stderr) == (
        3,
        f"t-0: not done: {OWNER} runs it: pause it first, by {pause}\nnothing was changed\n",
    )
    owned.world.pause("t")
    answer = owned("rewind", "--topic", "t", "--by", "1", "--yes")
    assert "has not said yet that it took the pause: try again" in answer.stderr


@pytest.mark.parametrize("scope", [(), ("t",), ("t", 0)])
def test_a_driver_that_runs_carries_it_out_at_once(owned: Tool, scope: tuple[object, ...]) -> None:
    with owned.driven():
        act = owned.world.pause(*scope)
        await_until(lambda: owned.world.taken == act, 20, "it is taken")
        answer = owned("rewind", "--topic", "t", "--by", "2", "--yes")
        assert (answer.exit_code, answer.stdout) == (0, "t-0: goes on at 2, says host pid 7\n")
        document = json.loads(owned("set", "--topic", "t", "--to", "3", "--yes", "-o", "json").stdout)
    assert (document["is_written"], document["carried_out_by"]) == (True, "host pid 7")
    (partition,) = document["partitions"]
    assert (partition["to"], partition["left_out"], partition["copied_again"], partition["declined"]) == (3, 1, 0, None)


def test_a_driver_that_says_nothing_is_named(owned: Tool) -> None:
    with owned.world.run() as run:
        run.begin()
        owned.world.pause()
        owned.world.look(run)
    answer = owned("rewind", "--topic", "t", "--by", "2", "--yes")
    assert answer.stdout == f"{OWNER} has not said within 10 s what came of it: see srm-control history\n"


def test_what_a_driver_declines_is_told(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Commanding, "owner", lambda _: OWNER)
    with tool.world.run() as run:
        run.begin()
        tool.world.pause()
        tool.world.look(run)
    answer = Answer("x", "host pid 7", 1, {0: "it stands at 9 by now"})
    monkeypatch.setattr(Commanding, "carried_out", lambda *_: answer)
    told = tool("rewind", "--topic", "t", "--by", "2", "--yes")
    assert (told.exit_code, told.stdout) == (3, "t-0: not done: it stands at 9 by now\n")
    document = json.loads(tool("rewind", "--topic", "t", "--by", "2", "--yes", "-o", "json").stdout)
    assert document["partitions"][0]["declined"] == "it stands at 9 by now"
