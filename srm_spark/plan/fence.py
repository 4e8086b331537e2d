"""The fence command of the user's: it stops the producers and consumers of the side that is left."""

from __future__ import annotations

import subprocess
from collections.abc import Callable


def run_fence(command: str, tell: Callable[[str], None]) -> str | None:
    """Run a shell command and hand on its output line by line; None where it exits with 0, else what happened.

    The command itself is never shown: it may hold a secret.
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
        for line in process.stdout:
            tell(f"fence: {line.rstrip()}")
        code = process.wait()
    return None if code == 0 else f"the fence command ended with exit code {code}"
