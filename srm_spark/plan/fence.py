"""The fence command of the user's: it stops the producers and consumers of the side that is left."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from typing import IO

_GRACE_SECONDS = 2.0


def run_fence(command: str, tell: Callable[[str], None]) -> str | None:
    """Run a shell command and hand on its output line by line; None where it exits with 0, else what happened.

    What it leaves behind in the background is not waited for, though it may still hold the output. The command itself
    is never shown: it may hold a secret.
    """
    with subprocess.Popen(  # noqa: S602 - a command for the user's own shell
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        reading = threading.Thread(target=_tell, args=(process.stdout, tell), name="srm fence", daemon=True)
        reading.start()
        code = process.wait()
        reading.join(_GRACE_SECONDS)
        if reading.is_alive():
            process.stdout = None  # closing it would wait for who reads
    return None if code == 0 else f"the fence command ended with exit code {code}"


def _tell(output: IO[str], tell: Callable[[str], None]) -> None:
    for line in output:
        tell(f"fence: {line.rstrip()}")
