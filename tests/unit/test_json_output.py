"""What `-o json` prints of commands that do something; the clusters behind them are not asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.core.model import Flow, OffsetRange, TopicPartition
from srm_spark.core.quarantine import QuarantinedRecord, SourcePlace
from srm_spark.errors import TargetUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.groups.kept_outside import TranslatedPositions
from srm_spark.flow.rebuild import Rebuilt
from srm_spark.flow.refused.replay import Replayed

GOOD = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"
SIDES = ("--source", "A", "--target", "B")
HERE, THERE = TopicPartition("t", 0), TopicPartition("A.t", 0)
WHY = Failure(FailureKind.NO_KEY, "it has no key")
PRINTS_A_FILE = {"completion", "config template"}
"""What they print is a file for other programs: a script, a configuration, or a schema by an option of its own."""


def refused(offset: int) -> QuarantinedRecord:
    return QuarantinedRecord(SourcePlace(Flow("A", "B"), HERE, "id", offset), WHY, 1_000, False, 10, 2_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "srm.properties"
    made.write_text(GOOD)
    return made


def ask(path: Path, *words: str, stdin: str | None = None) -> tuple[Result, Any]:
    result = CliRunner().invoke(main, ["--config", str(path), *words, "-o", "json"], input=stdin)
    return result, json.loads(result.stdout) if result.stdout else None


def test_every_command_that_prints_takes_it() -> None:
    def commands(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
        for below, each in group.commands.items():
            whole = f"{name} {below}".strip()
            yield from commands(each, whole) if isinstance(each, click.Group) else [(whole, each)]

    without = {
        name
        for name, command in commands(main)
        if not any("-o" in each.opts and "json" in getattr(each.type, "choices", ()) for each in command.params)
    }
    assert without == PRINTS_A_FILE


def test_rebuild(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = (Rebuilt(HERE, OffsetRange(2, 9), 6), Rebuilt(TopicPartition("t", 1), OffsetRange(0, 0), 0, "no match"))
    monkeypatch.setattr("srm_spark.cli.rebuild.rebuild_map", lambda *_: done)
    result, answer = ask(path, "offsets", "rebuild", *SIDES)
    assert result.exit_code == 3
    assert answer == [
        {"topic": "t", "partition": 0, "source": {"start": 2, "end": 9}, "records": 6, "reason": None},
        {"topic": "t", "partition": 1, "source": {"start": 0, "end": 0}, "records": 0, "reason": "no match"},
    ]


def test_translate(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = TopicPartition("u", 1)
    done = TranslatedPositions({(HERE, 5): (THERE, 3)}, {(other, 7): "it does not flow"}, {(HERE, 5): "nearly"})
    monkeypatch.setattr("srm_spark.cli.translate.translate_positions", lambda *_: done)
    kept, to = tmp_path / "offsets.json", tmp_path / "to.json"
    kept.write_text('{"t":{"0":5},"u":{"1":7}}')
    asked = ("offsets", "translate", *SIDES, "--file", str(kept), "--to", str(to))
    result, answer = ask(path, *asked)
    assert (result.exit_code, to.exists()) == (3, False)
    assert answer == {
        "positions": [
            {
                "topic": "t",
                "partition": 0,
                "offset": 5,
                "target": {"topic": "A.t", "partition": 0, "offset": 3},
                "reason": "nearly",
            },
            {"topic": "u", "partition": 1, "offset": 7, "target": None, "reason": "it does not flow"},
        ],
        "problems": [],
    }
    result, _ = ask(path, *asked, "--partial")
    assert (result.exit_code, json.loads(to.read_text())) == (3, {"A.t": {"0": 3}})


def test_replay_tells_what_was_done_before_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = [Replayed(refused(4), THERE, downstream=9), Replayed(refused(5), THERE, refusal="still no key")]
    monkeypatch.setattr("srm_spark.cli.quarantine.replay_quarantine", lambda *_, **__: iter(done))
    result, answer = ask(path, "quarantine", "replay", "--flow", "A->B")
    assert result.exit_code == 3
    ends = [(one["offset"], one["target_topic"], one["target_offset"], one["refusal"]) for one in answer]
    assert ends == [(4, "A.t", 9, None), (5, "A.t", None, "still no key")]
    assert {one["kind"] for one in answer} == {"no-key"}

    def dies(*_: object, **__: object) -> Iterator[Replayed]:
        yield done[0]
        raise TargetUnavailable("gone")

    monkeypatch.setattr("srm_spark.cli.quarantine.replay_quarantine", dies)
    result, answer = ask(path, "quarantine", "replay", "--flow", "A->B")
    assert (result.exit_code, len(answer), "gone" in result.stderr) == (1, 1, True)


def test_drop_asks_beside_what_it_prints(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[QuarantinedRecord] = []
    monkeypatch.setattr("srm_spark.cli.quarantine.list_quarantine", lambda *_: (refused(4),))
    monkeypatch.setattr("srm_spark.cli.quarantine.drop_from_quarantine", lambda _, entries: dropped.extend(entries))
    asked = ("quarantine", "drop", "--flow", "A->B")
    _, answer = ask(path, *asked, "--dry-run")
    assert (answer["is_forgotten"], len(answer["records"]), dropped) == (False, 1, [])
    result, answer = ask(path, *asked, stdin="n\n")
    assert (result.exit_code, answer, dropped) == (1, None, [])
    result, answer = ask(path, *asked, stdin="y\n")
    assert (result.exit_code, answer["is_forgotten"], dropped) == (0, True, [refused(4)])


def test_apply_with_problems(path: Path) -> None:
    path.write_text(GOOD + "offset.lag.max = many\n")
    result, answer = ask(path, "config", "apply", "--pid", "1")
    assert (result.exit_code, answer["pid"], len(answer["problems"])) == (1, None, 1)


def test_files_as_they_are_written(path: Path) -> None:
    result = CliRunner().invoke(main, ["config", "show", str(path), "--written", "-o", "json"])
    assert json.loads(result.stdout)[0] == {"place": f"{path}:1", "key": "clusters", "value": "A, B"}
