"""Runs spark-submit as a child, so that a SIGTERM ends the driver instead of the JVM under it.

```
spark-submit.sh          gets SIGTERM, SIGINT or SIGHUP, sends SIGTERM to the group below; SIGINT behind a second one
└── spark-submit's JVM   deaf to it: it would end Spark in the middle of a batch
    └── srm_driver.py    ends the batch, records its progress, exits; then the JVM exits with its code
```
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_AGAIN_SECONDS = 1.0
"""The driver's Python starts seconds after its JVM: until it listens, a signal reaches nobody."""


def run_submit(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a spark-submit whose driver is on this machine; its exit code."""
    asked: list[int] = []

    def ask(number: int, _: FrameType | None) -> None:
        asked.append(number)

    for number in STOP_SIGNALS:
        signal.signal(number, ask)
    # A session of its own: Ctrl-C in a terminal goes to the whole foreground group, and the executors' Python with it.
    process = subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_deaf,  # noqa: PLW1509 — there are no threads here
    )
    while True:
        try:
            code = process.wait(_AGAIN_SECONDS)
            return code if code >= 0 else 128 - code  # as a shell says that a signal ended it
        except subprocess.TimeoutExpired:
            if asked:
                is_now = asked.count(signal.SIGINT) > 1  # the driver ends at once by a second one of its own
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGINT if is_now else signal.SIGTERM)


def _deaf() -> None:
    """What is ignored stays ignored in programs that start from here, until they say otherwise; Java never does."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
