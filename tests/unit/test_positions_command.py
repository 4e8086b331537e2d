"""`srm-control offsets list`, on clusters in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.flow.commanding import Commanding
from tests.unit.commanded import FILE, Commanded


class Tool:
    """The command, and a flow that has copied `t0` to `t3`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = Commanded(count=4)
        self.world.copied()
        self.path = folder / "srm.properties"
        self.path.write_text(FILE)
        monkeypatch.setattr("srm_spark.cli.positions.commanding_of", self.commanding)

    def commanding(self, settings: Any) -> Commanding:
        return Commanding(settings, self.world.flow.reach)

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["offsets", "list", "--config", str(self.path), "--flow", "A->B", *arguments])


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    return Tool(tmp_path, monkeypatch)


def test_where_partitions_stand(tool: Tool) -> None:
    tool.world.write(b"t4")
    tool.world.flow.log.delete_before(1)
    assert tool().stdout.splitlines()[1].split() == ["t", "0", "4", "1", "5", "1"]
    tool.world.partitions("t", 2)
    tool.world.pause("t")
    (first, second) = json.loads(tool("-o", "json").stdout)["partitions"]
    assert first == {
        "topic": "t",
        "partition": 0,
        "position": 4,
        "source": {"start": 1, "end": 5},
        "lag": 1,
        "paused": "paused by ann@host: maintenance",
        "waiting": None,
    }
    assert (second["position"], second["source"], second["lag"]) == (None, {"start": 0, "end": 0}, None)
    assert "paused by ann@host: maintenance" in tool().stdout
    assert [one["partition"] for one in json.loads(tool("--partition", "1", "-o", "json").stdout)["partitions"]] == [1]
    assert tool("--topic", "u").stderr == "no position of a topic that matches u is recorded\n"


def test_where_they_stand_is_known_without_the_source(tool: Tool) -> None:
    tool.world.flow.source.down = "no route"
    answer = tool()
    assert answer.stdout.splitlines()[1].split() == ["t", "0", "4", "?", "?", "?"]
    assert ("the source does not answer" in answer.stderr, answer.exit_code) == (True, 0)
