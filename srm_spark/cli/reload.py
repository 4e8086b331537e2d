"""SIGHUP: the driver reads its configuration again. Who sends it first checks the file and the process."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from srm_spark.config.settings import Settings
from srm_spark.core.wording import count
from srm_spark.errors import ConfigError, SetupError

if TYPE_CHECKING:  # srm-control starts without Spark
    from srm_spark.driver import Driver

log = logging.getLogger(__name__)


class Reloader:
    """Remembers that SIGHUP came, and reloads when it is asked to: not in the middle of something else."""

    def __init__(self, load: Callable[[], Settings]) -> None:
        """`load` reads the files that the driver was started with, and raises ConfigError."""
        self._load = load
        self._asked = False
        signal.signal(signal.SIGHUP, self._ask)

    def look(self, driver: Driver) -> None:
        """Reload if somebody asked for it. Files that cannot be used change nothing."""
        if not self._asked:
            return
        self._asked = False
        try:
            settings = self._load()
        except ConfigError as error:
            for problem in error.problems:
                log.error("%s", problem)
            log.error("nothing was changed: %s in the configuration", count(len(error.problems), "problem"))
            return
        for warning in settings.warnings:
            log.warning(warning)
        for line in driver.reload(settings).describe():
            log.info("reloaded: %s", line)

    def _ask(self, _: int, __: FrameType | None) -> None:
        self._asked = True


def signal_driver(pid: int, files: Sequence[Path]) -> None:
    """Send SIGHUP to a driver that runs `files`. Raises SetupError for any other process: the signal would end it."""
    try:
        status = Path(f"/proc/{pid}/status")
        if status.exists():
            _check(pid, status.read_text(), files)
        os.kill(pid, signal.SIGHUP)
    except ProcessLookupError:
        raise SetupError(f"there is no process {pid}; is the driver running?") from None
    except OSError as error:
        raise SetupError(
            f"process {pid} cannot be told to reload: {error.strerror}; run as the user of the driver"
        ) from error


def _check(pid: int, status: str, files: Sequence[Path]) -> None:
    caught = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt:")), 0)
    if not caught & 1 << (signal.SIGHUP - 1):
        raise SetupError(f"process {pid} does not listen to SIGHUP, so it is no running srm-driver; check --pid")
    home = Path(os.readlink(f"/proc/{pid}/cwd"))
    words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    values = [word.partition("=")[2] if word.startswith("--config=") else word for word in words]
    running = {os.path.realpath(home / value) for value in values if value}
    for file in files:
        if os.path.realpath(file) not in running:
            raise SetupError(f"process {pid} does not run {file}: it reads the files that it was started with again")


def read_pid(path: Path) -> int:
    """The process id in a file."""
    try:
        return int(path.read_text().strip())
    except (OSError, ValueError):
        raise SetupError(f"{path} holds no process id; start srm-driver with --pid-file {path}") from None
