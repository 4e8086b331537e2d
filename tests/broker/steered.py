"""A flow that is steered by the real command."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.broker.conftest import Pair
from tests.broker.control import SRM_CONTROL
from tests.broker.mirror import assert_copied, await_count, write_config
from tests.kafka_io import numbered


class Steered:
    """A pair of which one topic is steered, and another one shows that the flow goes on."""

    def __init__(self, pair: Pair, folder: Path, topics: Sequence[str] = ("t", "u")) -> None:
        """`topics` are made; the first one gets records."""
        self.pair, self.folder = pair, folder
        self._config = write_config(folder / "control.properties", pair.clusters, [pair.flow], pair.keys)
        self._others = 0
        for name in topics:
            pair.source.create(pair.topic(name), 2)
        if topics:
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
