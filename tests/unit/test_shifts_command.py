"""`srm-control offsets set`, `rewind` and `skip`, on clusters in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.core.acts import Command, CommandKind, Scope
from srm_spark.core.model import TopicPartition
from srm_spark.flow.commanding import Commanding
from tests.unit.commanded import FILE, P
from tests.unit.shifted import Shifted

NOBODY = (
    "t-0: no driver has said within 10 s what came of it: one that runs, or starts, carries it out as long as the "
    "pause lasts\n"
)


class Tool:
    """The commands, and a flow that has copied `t0` to `t3`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = Shifted(count=4)
        self.world.copied()
        self.patience = 0.0
        self.path = folder / "srm.properties"
        self.path.write_text(FILE)
        monkeypatch.setattr("srm_spark.cli.shifts.commanding_of", self.commanding)
        monkeypatch.setattr("srm_spark.cli.positions.commanding_of", self.commanding)
        monkeypatch.setattr("srm_spark.cli.commands.acts_of", self.acts)
        monkeypatch.setattr("srm_spark.cli.shifts.who", lambda: "ann@host")
        monkeypatch.setattr("srm_spark.flow.recovery.shifts.driver_name", lambda: "host pid 7")

    def commanding(self, settings: Any) -> Commanding:
        return Commanding(settings, self.world.flow.reach, self.patience)

    def acts(self, settings: Any) -> Any:
        with self.commanding(settings) as commanding:
            return commanding.history()

    def __call__(self, word: str, *arguments: str, typed: str | None = None) -> Result:
        line = ["offsets", word, "--config", str(self.path), "--flow", "A->B", *arguments]
        return CliRunner().invoke(main, line, input=typed)

    def history(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["history", "--config", str(self.path), *arguments])

    @property
    def position(self) -> int:
        return self.world.progress().positions[P].next_offset

    def begin(self) -> None:
        """A driver starts, and ends before it copies anything."""
        with self.world.run() as run:
            run.begin()

    @contextmanager
    def driven(self) -> Iterator[None]:
        """A driver runs the flow, and looks around."""
        self.patience = 20.0
        with self.world.run() as run:
            run.begin()
            with self.world.looking(run):
                yield


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    return Tool(tmp_path, monkeypatch)


def test_what_would_be_is_said_first_and_asked(tool: Tool) -> None:
    tool.world.pause("t")
    told = "t-0: from 4 back to 1: 3 offsets copied again, of which the target has 3 records now, and twice then\n"
    dry = tool("rewind", "--topic", "t", "--by", "3", "--dry-run")
    assert (dry.exit_code, dry.stderr, dry.stdout) == (0, told, "")
    wrong = tool("rewind", "--topic", "t", "--by", "3", typed="yes\n")
    assert (wrong.exit_code, "that is not the flow's name; nothing was changed" in wrong.stderr) == (1, True)
    tool.begin()
    assert tool.position == 4
    right = tool("rewind", "--topic", "t", "--by", "3", "--reason", "once more", typed="A->B\n")
    assert (right.exit_code, right.stdout) == (3, NOBODY)
    assert "to go on at 1 once a driver takes it" in tool("list").stdout
    again = tool("rewind", "--topic", "t", "--by", "3", "--yes")
    assert "an act waits that sets it to 1: it ends when a driver takes it, or with the pause" in again.stderr
    tool.begin()
    assert tool.position == 1


def test_what_is_there_twice_already_is_said_of_a_rewind_amid_another(tool: Tool) -> None:
    tool.world.done(4, 1)
    tool.world.copy_part(2)
    tool.world.pause("t")
    answer = tool("rewind", "--topic", "t", "--to", "1", "--dry-run")
    assert answer.stderr == (
        "t-0: from 3 back to 1: 2 offsets copied again, of which the target has 4 records now, second copies among "
        "them, and all once more then\n"
    )


def test_what_is_left_out_is_said_first(tool: Tool) -> None:
    tool.world.write(b"t4", b"t5")
    tool.world.pause("t")
    answer = tool("skip", "--topic", "t", "--to", "latest", "--yes")
    assert answer.stderr == (
        "t-0: from 4 ahead to 6: 2 offsets left out; what records they are does not come to the target, and is told as "
        "lost\n"
    )
    tool.begin()
    assert tool.position == 6


def test_who_stands_there_is_not_moved(tool: Tool) -> None:
    tool.world.pause()
    for place in ("4", "latest"):
        answer = tool("set", "--topic", "t", "--to", place, "--yes")
        assert (answer.exit_code, answer.stderr) == (0, "t-0: it stands at 4 already\nnothing was changed\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("set", "--topic", "t", "--to", "9"), 3, "t-0: not done: the source has offsets 0 to 4 now, and not 9"),
        (("rewind", "--topic", "t", "--to", "latest", "--partition", "7"), 1, "no position of t-7 is recorded"),
        (("skip", "--topic", "u", "--by", "1"), 1, "no position of u is recorded: it begins by itself"),
        (("skip", "--topic", "t", "--to", "1"), 3, "1 lies behind, and rewind goes there"),
        (("rewind", "--topic", "t", "--to", "4"), 0, "t-0: it stands at 4 already"),
        (("set", "--topic", "t", "--to", "noon"), 2, "--to noon: write an offset"),
        (("set", "--topic", "t"), 2, "write --to"),
        (("skip", "--topic", "t", "--to", "3", "--reason", "a\x1bb"), 2, "reason"),
    ],
)
def test_what_cannot_be_done_is_told(tool: Tool, arguments: tuple[str, ...], code: int, said: str) -> None:
    tool.world.pause()
    answer = tool(*arguments, "--yes")
    assert answer.exit_code == code
    assert said in answer.stderr


def test_without_the_source_nothing_is_set(tool: Tool) -> None:
    tool.world.pause()
    tool.world.flow.source.down = "no route"
    answer = tool("skip", "--topic", "t", "--by", "1", "--yes")
    assert (answer.exit_code, "the source does not answer" in answer.stderr) == (1, True)


def test_it_has_to_be_paused(tool: Tool) -> None:
    answer = tool("rewind", "--topic", "t", "--by", "1", "--yes")
    pause = "srm-control pause --flow 'A->B' --topic t"
    assert (answer.exit_code, answer.stderr) == (
        3,
        f"t-0: not done: it is not paused: first {pause}\nnothing was changed\n",
    )
    assert tool.history().stderr == "nobody has done anything\n"


def test_nothing_is_skipped_amid_a_rewind(tool: Tool) -> None:
    tool.world.pause()
    tool("rewind", "--topic", "t", "--by", "2", "--yes")
    tool.begin()
    answer = tool("skip", "--topic", "t", "--by", "1", "--dry-run")
    assert "offsets up to 3 are being copied again" in answer.stderr


def test_a_partition_without_a_position_begins_by_itself(tool: Tool) -> None:
    tool.world.pause()
    tool.world.partitions("t", 2)
    answer = tool("rewind", "--topic", "t", "--by", "1", "--dry-run")
    assert answer.exit_code == 3
    assert "t-1: not done: no position is recorded: it begins by itself once the flow runs" in answer.stderr


@pytest.mark.parametrize("scope", [(), ("t",), ("t", 0)])
def test_a_driver_that_runs_carries_it_out_at_once(tool: Tool, scope: tuple[object, ...]) -> None:
    with tool.driven():
        tool.world.pause(*scope)
        answer = tool("rewind", "--topic", "t", "--by", "2", "--yes")
        assert (answer.exit_code, answer.stdout) == (
            0,
            "t-0: goes on at 2 once it is resumed, says host pid 7\n",
        )
        document = json.loads(tool("set", "--topic", "t", "--to", "1", "--yes", "-o", "json").stdout)
    assert document["is_written"]
    (partition,) = document["partitions"]
    assert (partition["to"], partition["left_out"], partition["copied_again"]) == (1, 0, 1)
    assert (partition["declined"], partition["carried_out_by"]) == (None, "host pid 7")


def test_what_a_driver_declines_is_told(tool: Tool) -> None:
    tool.world.flow.clusters = replace(tool.world.flow.clusters, make_shift_writer=lambda *_: None)
    tool.world.pause()
    with tool.driven():
        answer = tool("rewind", "--topic", "t", "--by", "2", "--yes")
    assert answer.exit_code == 3
    assert answer.stdout.startswith("t-0: not done, says host pid 7: this target gives the flow no producer id")


def test_history_says_what_came_of_it(tool: Tool) -> None:
    tool.world.pause("t")
    tool("rewind", "--topic", "t", "--to", "1", "--yes", "--reason", "bad copies")
    lines = tool.history().stdout.splitlines()
    assert lines[-1].endswith("ann@host offsets t-0 4 to 1 (bad copies): waits for a driver")
    tool.begin()
    assert tool.history().stdout.splitlines()[-1].endswith("(bad copies): carried out by host pid 7")
    tool("rewind", "--topic", "t", "--to", "0", "--yes")
    tool.world.resume("t")
    assert "offsets t-0 1 to 0: not done: no driver took it while the pause lasted\n" in tool.history().stdout
    tool.world.pause("t")
    tool.world.shift(7, 1, TopicPartition("t", 0))
    tool.begin()
    (found,) = [each for each in json.loads(tool.history("-o", "json").stdout) if each.get("from") == 7]
    assert (found["to"], found["is_waiting"], found["answered_by"]["driver"]) == (1, False, "host pid 7")
    assert found["declined"] == "it stands at 1 by now, and not at 7"


def test_what_ends_with_a_pause_is_said(tool: Tool) -> None:
    tool.world.pause("t")
    tool.world.pause("t", 0)
    tool("rewind", "--topic", "t", "--to", "1", "--yes")
    with tool.commanding(tool.world.flow.settings) as commanding:
        first = commanding.command(Command(CommandKind.RESUME, Scope("t"), 1, "ann@host"))
        second = commanding.command(Command(CommandKind.RESUME, Scope("t", 0), 2, "ann@host"))
    assert not any("offsets" in remark for remark in first.decision.remarks)
    assert second.decision.remarks == ("offsets t-0 4 to 1 ends with the pause: no driver has taken it",)
