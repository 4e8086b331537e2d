"""`srm-control config`: renders reports, exits 0, 1 or 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from tests.unit.config.conftest import BASE


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "srm.properties"
    path.write_text(BASE + "topics = a, b\nno.such = 1\n")
    return str(path)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["config", *arguments])


def test_validate_says_that_a_file_is_usable(file: str) -> None:
    result = _run("validate", file)
    assert result.exit_code == 0
    assert result.stdout == "usable: 1 flows (A->B), dialect mm2\n"
    assert f"warning: {file}:6: no.such: unknown key" in result.stderr


def test_validate_prints_every_problem_and_exits_with_1(file: str) -> None:
    result = _run("validate", file, "--strict", "-D", "offset.lag.max=x")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert f"error: {file}:6: no.such: unknown key (top level)" in result.stderr
    assert "error: -D: offset.lag.max: got 'x'; allowed a whole number from 0" in result.stderr


def test_validate_for_scripts(file: str) -> None:
    answer = json.loads(_run("validate", file, "-o", "json").stdout)
    assert (answer["problems"], answer["flows"], answer["dialect"]) == ([], ["A->B"], "mm2")
    assert len(answer["warnings"]) == 1


def test_a_wrong_command_line_exits_with_2(file: str) -> None:
    assert _run("validate", file, "-D", "x").exit_code == 2
    assert _run("validate").exit_code == 2
    assert _run("show", file, "--flow", "A->C").exit_code == 2


def test_a_missing_file_is_a_problem_of_the_command_line() -> None:
    assert _run("validate", "/no/such").exit_code == 2


def test_show_explains_a_key(file: str) -> None:
    result = _run("show", file, "--explain", "topics", "--flow", "A->B")
    assert result.exit_code == 0
    assert f"a, b  [global topics at {file}:5]" in result.stdout
    assert "lost:  .*  [default]" in result.stdout
    assert _run("show", file, "--explain", "topisc").exit_code == 1


def test_show_as_json_and_as_written(file: str) -> None:
    answer = json.loads(_run("show", file, "-o", "json").stdout)
    assert next(each for each in answer if each["name"] == "topics")["won"]["value"] == "a, b"
    assert f"{file}:5: topics = a, b\n" in _run("show", file, "--written").stdout


def test_template_and_schema() -> None:
    assert _run("template").stdout.startswith("# Two clusters")
    assert json.loads(_run("template", "--json-schema").stdout)["required"] == ["clusters"]
