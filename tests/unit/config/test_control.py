"""`srm-control config`: renders reports, exits 0, 1 or 2."""

from __future__ import annotations

import json
import subprocess
import sys
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
    assert result.stdout == "usable: 1 flow (A->B), dialect mm2\n"
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


_SLEEPER = "import signal, sys, time; signal.signal(1, lambda *_: print('hup', flush=True)); print('on', flush=True)"


def _sleeper(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", f"{code}; time.sleep(60)", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_apply_signals_the_driver_of_these_files(tmp_path: Path) -> None:
    good, pid_file = tmp_path / "good.properties", tmp_path / "pid"
    good.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\ndialect = mm2\n"
    )
    with _sleeper(_SLEEPER, "--config", str(good)) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "on\n"
        pid_file.write_text(f"{driver.pid}\n")
        result = _run("apply", "--config", str(good), "--pid-file", str(pid_file))
        assert (result.exit_code, driver.stdout.readline()) == (0, "hup\n")
        other = tmp_path / "other.properties"
        other.write_text(good.read_text())
        result = _run("apply", "--config", str(other), "--pid", str(driver.pid))
        assert result.exit_code == 1
        assert "does not run" in result.output
        good.write_text(good.read_text() + "A->B.offset.lag.max = many\nA->X.enabled = true\n")
        result = _run("apply", "--config", str(good), "--pid", str(driver.pid))
        assert result.exit_code == 1
        assert all(words in result.output for words in ("many", "A->X", "nothing was changed"))
        assert driver.poll() is None
        driver.kill()


def test_apply_never_signals_what_the_signal_would_end(tmp_path: Path) -> None:
    good = tmp_path / "good.properties"
    good.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\ndialect = mm2\n"
    )
    with _sleeper("import time; print('on', flush=True)", str(good)) as other:
        assert other.stdout is not None
        other.stdout.readline()
        result = _run("apply", "--config", str(good), "--pid", str(other.pid))
        assert result.exit_code == 1
        assert "no running srm-driver" in result.output
        assert other.poll() is None
        other.kill()
    assert _run("apply", "--config", str(good)).exit_code == 2
    result = _run("apply", "--config", str(good), "--pid-file", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "--pid-file" in result.output
