"""`srm-control drivers drain` and `return`, on clusters in memory; and what drivers make of it."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.core.acts import Command, CommandKind, Scope
from srm_spark.core.driver_status import DriverId
from srm_spark.core.model import Flow
from srm_spark.core.spreading import StandBy
from srm_spark.flow.commanding import history
from srm_spark.flow.draining import Patience, drain
from srm_spark.flow.share import Share
from tests.awaiting import await_until
from tests.unit.commanded import FILE, Commanded

HERE = socket.gethostname()
THERE, BESIDE = StandBy(DriverId("h2", 2, 2), 9.0), StandBy(DriverId(HERE, 3, 3), 0.0)


class Tool:
    """The commands, and the flow whose driver they are about."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = Commanded(count=1)
        self.path = folder / "srm.properties"
        self.path.write_text(FILE)
        self.patience = Patience(seconds=0.0, look=0.01)
        monkeypatch.setattr("srm_spark.cli.drivers.carry_out", self._drain)
        monkeypatch.setattr("srm_spark.cli.drivers.who", lambda: "ann@host")

    def _drain(self, flows: Any, command: Command) -> Any:
        return drain(flows, command, self.world.flow.reach, self.patience)

    def __call__(self, word: str, host: str, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["drivers", word, host, "--config", str(self.path), *arguments])


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    return Tool(tmp_path, monkeypatch)


def drained(world: Commanded, host: str, kind: CommandKind = CommandKind.DRAIN) -> None:
    world.act(Command(kind, Scope(), 1_700, "ann@host", "new kernel", host=host))


def test_what_is_elsewhere_and_what_stays_is_told(tool: Tool) -> None:
    answer = tool("drain", "h1")
    told = "A->B: not at h1, of which no driver is heard; no driver has it\n"
    assert (answer.exit_code, answer.output) == (0, told)
    tool.world.flow.lease.owner = "h2 pid 9"
    assert tool("drain", "h1").output == "A->B: not at h1, of which no driver is heard; h2 pid 9 has it\n"
    tool.world.flow.lease.others = [StandBy(DriverId("h1", 3, 3), 0.0)]
    assert tool("drain", "h1").output == "A->B: not at h1; h2 pid 9 has it\n"
    tool.world.flow.lease.owner = "h1 pid 9"
    tool.world.flow.lease.others = [THERE]
    answer = tool("drain", "h1")
    assert (answer.exit_code, answer.output) == (
        3,
        "A->B: stays at h1 pid 9: its driver has not given it away yet\n",
    )
    tool.patience = Patience(seconds=0.0, heard=0.0)
    tool.world.flow.lease.others = [StandBy(DriverId("h1", 3, 3), 0.0)]
    answer = tool("drain", "h1", "-o", "json")
    assert answer.exit_code == 3
    assert json.loads(answer.stdout) == [
        {
            "flow": "A->B",
            "command": "drain",
            "host": "h1",
            "is_changed": False,
            "declined": None,
            "owner": "h1 pid 9",
            "waits": "no driver on another host stands by for it",
            "is_known": True,
            "failure": None,
        }
    ]


def test_a_flow_that_goes_is_waited_for(tool: Tool) -> None:
    tool.patience = Patience(seconds=20.0, look=0.01)
    tool.world.flow.lease.owner = "h1 pid 9"
    tool.world.flow.lease.others = [THERE]
    goes = threading.Timer(0.3, lambda: setattr(tool.world.flow.lease, "owner", "h2 pid 2"))
    goes.start()
    answer = tool("drain", "h1")
    goes.join()
    assert (answer.exit_code, answer.output) == (0, "A->B: not at h1; h2 pid 2 has it\n")


def test_a_flow_that_nobody_has_taken_yet_is_on_its_way(tool: Tool) -> None:
    tool.patience = Patience(seconds=20.0, taken=0.5, look=0.01)
    tool.world.flow.lease.owner = "h1 pid 9"
    tool.world.flow.lease.others = [THERE]
    goes = threading.Timer(0.2, lambda: setattr(tool.world.flow.lease, "owner", None))
    comes = threading.Timer(0.4, lambda: setattr(tool.world.flow.lease, "owner", "h2 pid 2"))
    goes.start()
    comes.start()
    answer = tool("drain", "h1")
    comes.join()
    assert answer.output == "A->B: not at h1; h2 pid 2 has it\n"


def test_who_stands_by_on_a_host_that_is_drained_as_well_is_nobody_to_wait_for(tool: Tool) -> None:
    assert tool("drain", "h2").exit_code == 0
    tool.patience = Patience(seconds=20.0, heard=0.0)
    tool.world.flow.lease.owner = "h1 pid 9"
    tool.world.flow.lease.others = [THERE]
    assert tool("drain", "h1").output.endswith(": no driver on another host stands by for it\n")


@pytest.mark.parametrize("host", ["", " h1", "h\x1b1"])
def test_what_is_no_name_of_a_host_is_refused(tool: Tool, host: str) -> None:
    answer = tool("drain", host)
    assert answer.exit_code == 2
    assert "is no name of a host" in answer.output


def test_a_host_that_is_not_drained_is_not_returned(tool: Tool) -> None:
    answer = tool("return", "h1")
    assert (answer.exit_code, answer.output) == (3, "A->B: not done: h1 is not drained\n")
    assert tool("drain", "h1").exit_code == 0
    answer = tool("return", "h1")
    assert (answer.exit_code, answer.output) == (0, "A->B: h1 may have it again\n")


def test_a_target_that_is_away_is_told(tool: Tool) -> None:
    tool.world.flow.target.down = "no route"
    for word in ("drain", "return"):
        answer = tool(word, "h1")
        assert answer.exit_code == 3
        assert answer.output.startswith("A->B: not known: ")
        assert "no route" in answer.output


def test_a_flow_of_a_drained_host_goes_to_another_host_and_comes_back_only_where_nobody_else_is() -> None:
    world = Commanded({"flow.spread.enabled": "false"}, count=1)
    share = Share(DriverId(HERE, 1, 1))
    drained(world, HERE)
    world.flow.lease.others = [BESIDE]
    with world.run(share=share) as run:
        ended = Future[str | None]()
        running = threading.Thread(target=lambda: ended.set_result(run.until_stopped()))
        running.start()
        await_until(lambda: len(world.generations) == 1, 10, "it runs")
        shown = len(world.shown)
        await_until(lambda: len(world.shown) > shown + 5, 10, "it looks")
        assert not ended.done(), "who stands by is of the same host"
        world.flow.lease.others = [BESIDE, THERE]
        assert ended.result(10) == f"goes to h2 pid 2, for somebody wants that: drain {HERE} by ann@host (new kernel)"
        running.join(10)
    flow = world.flow.settings.flow
    assert share.seconds_to_others(flow, [THERE]) == 3.0
    world.flow.lease.owner = "h2 pid 2"
    with world.run(share=share) as run:
        waiting = threading.Thread(target=run.until_stopped)
        waiting.start()
        await_until(lambda: len(world.flow.lease.said) > 0, 10, "it stands by")
        assert world.flow.lease.said[-1].load > 1000
        drained(world, HERE, CommandKind.RETURN)
        await_until(lambda: share.stand_by(flow).load == 0.0, 20, "it hears of that while it waits")
        world.stop.set()
        waiting.join(10)


def test_a_flow_does_not_go_to_a_host_that_is_drained() -> None:
    world = Commanded(count=1)
    now = 0.0
    share = Share(DriverId(HERE, 1, 1), lambda: now)
    for other in range(9):
        share.begin(Flow(f"o{other}", "B"))
    drained(world, "h2")
    with world.run(share=share) as run:
        running = threading.Thread(target=run.until_stopped)
        running.start()
        await_until(lambda: len(world.generations) == 1, 10, "it runs")
        world.flow.lease.others, now = [StandBy(DriverId("h2", 2, 2), 0.0)], 60.0
        shown = len(world.shown)
        await_until(lambda: len(world.shown) > shown + 5, 10, "it looks")
        assert running.is_alive()
        drained(world, "h2", CommandKind.RETURN)
        run.lists.look()
        running.join(10)
        assert not running.is_alive()


def test_history_says_of_which_host_also_to_programs(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tool("drain", "h1", "--reason", "new kernel").exit_code == 0
    monkeypatch.setattr("srm_spark.cli.commands.acts_of", partial(history, reach=tool.world.flow.reach))
    answer = CliRunner().invoke(main, ["history", "--config", str(tool.path), "-o", "json"])
    (document,) = json.loads(answer.stdout)
    assert (document["kind"], document["host"], document["why"]) == ("drain", "h1", "new kernel")
