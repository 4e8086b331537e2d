"""srm-driver on a bad file: every problem at once, exit code 1, nothing started and nothing touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner

import srm_spark
from srm_spark.cli.control import main as control
from srm_spark.cli.driver import run, with_clusters_joined
from srm_spark.cli.first_lines import first_lines
from srm_spark.cli.options import ERROR
from srm_spark.config import Settings, load_settings
from srm_spark.errors import SrmError

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
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\ndialect = mm2\n"
    )
    result = CliRunner().invoke(run, ["--config", str(path), "--flow", "B->A"])
    assert result.exit_code == ERROR
    assert "B->A" in result.output
    assert "A->B" in result.output


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(run, ["--config", str(tmp_path / "none.properties")])
    assert result.exit_code == ERROR
    assert result.output.splitlines() == [f"{tmp_path / 'none.properties'}: there is no such file"]


def test_of_a_relative_path_it_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(run, ["--config", "none.properties"])
    assert result.output.splitlines() == [f"none.properties: there is no such file; looked in {tmp_path}"]


@pytest.mark.parametrize("command", [run, control])
def test_the_version_is_told(command: Command) -> None:
    result = CliRunner().invoke(command, ["--version"])
    assert (result.exit_code, result.output) == (0, f"srm-spark {srm_spark.__version__}\n")


def test_a_pid_file_that_cannot_be_written_is_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwanted(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be started")

    monkeypatch.setattr("srm_spark.cli.driver.Driver", unwanted)
    path, folder = tmp_path / "good.properties", tmp_path / "none"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\ndialect = mm2\n"
    )
    result = CliRunner().invoke(run, ["--config", str(path), "--pid-file", str(folder / "pid")])
    assert result.exit_code == ERROR
    assert "--pid-file" in result.output
    assert "cannot be written: No such file or directory" in result.output


THREE = """\
clusters = A, B, C
A.bootstrap.servers = a:1,a:2
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
A->B.enabled = true
B->A.enabled = true
dialect = mm2
"""


def test_the_first_lines_name_the_program_the_flows_their_clusters_and_where_to_look(tmp_path: Path) -> None:
    path = tmp_path / "srm.properties"
    path.write_text(THREE)
    settings = load_settings(path)
    assert list(first_lines(settings, 60)) == [
        f"srm-spark {srm_spark.__version__}: 2 flows: A->B, B->A",
        "cluster A: a:1,a:2",
        "cluster B: b:1",
        "status: a line per flow every 60 s in this log; from any machine by srm-control status, of consumer groups by "
        "groups status",
    ]
    picked = list(first_lines(load_settings(path, flows=["A->B"]), 0))
    assert picked[0].endswith(": 1 flow: A->B")
    assert "changes only (--log-progress 0)" in picked[-1]


def test_clusters_runs_flows_into_these_only_and_changes_no_dialect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "srm.properties", []
    path.write_text(THREE)

    def stop(settings: Settings, **_: object) -> None:
        seen.append(settings)
        raise SrmError("enough seen")

    monkeypatch.setattr("srm_spark.cli.driver.Driver", stop)
    CliRunner().invoke(run, ["--config", str(path), "--clusters", "A"])
    (settings,) = seen
    assert [str(flow.flow) for flow in settings.flows] == ["B->A"]
    assert settings.dialect == "mm2"
    for arguments in (["A,X"], ["A", "X"], ["A", "--clusters", "X"]):
        result = CliRunner().invoke(run, ["--config", str(path), "--clusters", *arguments])
        assert "got unknown alias X" in result.output


def test_the_list_behind_clusters_ends_at_an_option_or_a_command() -> None:
    words = ["--clusters", "A", "B", "--flow", "A->B", "--clusters", "C", "doctor", "x"]
    assert with_clusters_joined(words, ["doctor"]) == [
        *("--clusters", "A,B", "--flow", "A->B", "--clusters", "C", "doctor", "x")
    ]


def test_what_says_that_it_is_srms_stays_so_by_an_override(tmp_path: Path) -> None:
    path = tmp_path / "srm.properties"
    path.write_text(THREE.replace("dialect = mm2", ""))
    key = "streams.replication.manager.driver.target.cluster"
    settings = load_settings(path, {key: "B"})
    assert (settings.dialect, settings.flows[0].topics.include) == ("srm", ())
