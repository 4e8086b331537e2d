"""Flows that are paused, resumed and restarted by the real command, while drivers run, die and come back."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_count, write_config
from tests.broker.process import kill_all_of, srm_driver
from tests.kafka_io import numbered

SRM_CONTROL = Path(sys.executable).parent / "srm-control"
TAKEN_SECONDS = 10.0
"""A driver that runs takes an act in two, and a command needs some to start."""


class Steered:
    """A pair of which one topic is steered, and another one shows that the flow goes on."""

    def __init__(self, pair: Pair, folder: Path) -> None:
        self.pair, self.folder = pair, folder
        self._config = write_config(folder / "control.properties", pair.clusters, [pair.flow], pair.keys)
        self._others = 0
        for name in ("t", "u"):
            pair.source.create(pair.topic(name), 2)
        self.write()

    def __call__(self, *line: str) -> str:
        """What the command prints."""
        return ended(self.run(*line))

    def run(self, *line: str) -> subprocess.CompletedProcess[str]:
        """The command, to its end."""
        words = [str(SRM_CONTROL), *line, "--config", str(self._config), "--flow", self.pair.flow]
        return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)

    def write(self, prefix: str = "v") -> None:
        """Ten more records for each partition."""
        self.pair.source.write(self.pair.topic(), numbered(20, 2, prefix))

    def await_others(self) -> None:
        """What is written now to the other topic is copied: so everything of before would have been."""
        self._others += 1
        self.pair.source.write(self.pair.topic("u"), numbered(20, 2, f"u{self._others}"))
        await_count(self.pair.target, self.pair.remote("u"), 20 * self._others)

    def log(self) -> str:
        """What the newest driver has told."""
        return (self.folder / "driver.log").read_text(errors="replace")

    @property
    def copied(self) -> int:
        """Copies of the steered topic."""
        return self.pair.target.given(self.pair.remote())

    def assert_copied(self) -> None:
        """Each record is there once."""
        assert_copied(self.pair.source, self.pair.topic(), self.pair.target, self.pair.remote())


def ended(command: subprocess.CompletedProcess[str]) -> str:
    assert command.returncode == 0, command.stdout + command.stderr
    return command.stdout


@pytest.fixture
def steered(pair: Pair, tmp_path: Path) -> Steered:
    return Steered(pair, tmp_path)


@pytest.mark.slow
def test_what_is_paused_stays_so_across_drivers_and_goes_on_where_it_stood(steered: Steered) -> None:
    pair, keys = steered.pair, steered.pair.keys
    with srm_driver(steered.folder, pair.clusters, [pair.flow], keys) as driver:
        await_count(pair.target, pair.remote(), 20)
        began = time.monotonic()
        printed = steered("pause", "--topic", pair.topic(), "--reason", "maintenance").splitlines()
        assert time.monotonic() - began < TAKEN_SECONDS
        assert printed[0] == f"paused: {pair.topic()}"
        assert f"pid {driver.pid} copies nothing more of it" in printed[1]
        steered.write("while paused")
        steered.await_others()
        assert steered.copied == 20
        assert f"{pair.topic()} paused by " in steered.log()
        kill_all_of(driver)
    with srm_driver(steered.folder, pair.clusters, [pair.flow], keys) as driver:
        steered.await_others()
        assert steered.copied == 20, "another driver holds it, too"
        printed = steered("resume", "--topic", pair.topic()).splitlines()
        assert f"pid {driver.pid} goes on where it stood" in printed[1]
        steered.assert_copied()
        steered.write("behind it")
        steered.assert_copied()
        assert f"pid {driver.pid} takes it" in steered("restart", "--reason", "to see it")
        await_until(lambda: steered.log().count("state=running") >= 2, SOON, steered.log)
        steered.write("of another run")
        steered.assert_copied()
    history = [line.split(" ", 3)[-1] for line in steered("history").splitlines()]
    topic = pair.topic()
    assert history == [f"pause {topic} (maintenance)", f"resume {topic}", "restart the flow (to see it)"]
