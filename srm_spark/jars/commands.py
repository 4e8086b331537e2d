"""Programs of others that do a step of ours, and their last words where they fail."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from srm_spark.errors import SetupError

_LAST_WORDS = 1000


def run(command: Sequence[str], what: str, remedy: str) -> None:
    """Run it to its end, without a word. Raises SetupError: `what` failed, what it said last, and what to do."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"{what} failed: {(done.stderr or done.stdout).strip()[-_LAST_WORDS:]}", remedy)
