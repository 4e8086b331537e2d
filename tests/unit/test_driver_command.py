"""srm-driver on a bad file: every problem at once, exit code 1, nothing started and nothing touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.driver import run
from srm_spark.cli.options import ERROR

BAD = """\
clusters = A, B, A.B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.server = 127.0.0.1:2
A->B.enabled = true
A->C.enabled = true
A->B.topics = (open
B->A.enabled = true
B->A.replication.policy.class = nowhere.to.be.found:Policy
offset.lag.max = many
"""


def test_every_problem_is_shown_at_once_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be started")

    monkeypatch.setattr("srm_spark.cli.driver.Driver", unwanted)
    path = tmp_path / "bad.properties"
    path.write_text(BAD)
    result = CliRunner().invoke(run, ["--config", str(path)])
    assert result.exit_code == ERROR == 1
    lines = result.output.splitlines()
    for place, words in {
        "bad.properties:1": "A.B",
        "B.bootstrap.servers": "missing",
        "bad.properties:5": "C",
        "bad.properties:6": "(open",
        "bad.properties:8": "nowhere.to.be.found",
        "bad.properties:9": "many",
    }.items():
        assert any(place in line and words in line for line in lines), (place, words, lines)


def test_a_flow_that_is_not_enabled_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "good.properties"
    path.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
    result = CliRunner().invoke(run, ["--config", str(path), "--flow", "B->A"])
    assert result.exit_code == ERROR
    assert "B->A" in result.output
    assert "A->B" in result.output


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(run, ["--config", str(tmp_path / "none.properties")])
    assert result.exit_code == ERROR
    assert "none.properties" in result.output


def test_a_pid_file_that_cannot_be_written_is_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwanted(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be started")

    monkeypatch.setattr("srm_spark.cli.driver.Driver", unwanted)
    path, folder = tmp_path / "good.properties", tmp_path / "none"
    path.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
    result = CliRunner().invoke(run, ["--config", str(path), "--pid-file", str(folder / "pid")])
    assert result.exit_code == ERROR
    assert "--pid-file" in result.output
    assert "cannot be written: No such file or directory" in result.output
