"""Units of systemd: it accepts them, and what they run are commands of ours with options that they have."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main as control
from srm_spark.cli.driver import run as driver
from srm_spark.cli.service import run as service

UNITS = sorted((Path(__file__).parents[2] / "conf" / "systemd").glob("*.service"))
BIN = "/opt/srm-spark/bin/"
COMMANDS: dict[str, click.Command] = {"srm-control": control, "srm-driver": driver, "srm-service": service}
NOT_THERE = "is not executable: No such file or directory"


def commands_of(unit: Path) -> list[list[str]]:
    """What it runs of ours."""
    lines = [line.partition("=")[2] for line in unit.read_text().splitlines() if line.startswith("Exec")]
    return [shlex.split(line.removeprefix(BIN)) for line in lines if line.startswith(BIN)]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_what_a_unit_runs_is_there_with_its_options(unit: Path) -> None:
    found = commands_of(unit)
    assert unit.stem in {words[0] for words in found}
    for name, *words in found:
        said = CliRunner().invoke(COMMANDS[name], [*words, "--help"])
        assert said.exit_code == 0, said.output


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
def test_systemd_accepts_a_unit(unit: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    assert [line for line in (done.stdout + done.stderr).splitlines() if NOT_THERE not in line] == []


def test_what_is_compiled_and_fetched_is_kept_where_a_unit_may_write() -> None:
    for unit in UNITS:
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read_string(unit.read_text())
        assert parser["Service"]["ProtectSystem"] == "strict"
        kept = f"/var/cache/{parser['Service']['CacheDirectory']}"
        for one in shlex.split(parser["Service"]["Environment"]):
            assert one.partition("=")[2].startswith(kept)
