"""How much of a batch one pass takes in the exactly-once mode, where a pass is one transaction.

A coordinator aborts what is open for too long (`transaction.timeout.ms`), and a producer gives up what waits in its
queue for too long. So passes are as large as the target takes in time, as the passes before have shown.
"""

from __future__ import annotations

import threading
from functools import cache

from srm_spark.config.settings import FlowSettings
from srm_spark.core.model import Flow
from srm_spark.kafka.producers import delivery_timeout

_FIRST = 64 * 1024 * 1024
_GROWTH = 4
"""A pass is at most so many times as large as the one before."""
_LOCK = threading.Lock()


class PassSize:
    """Bytes of the next pass of one flow. Safe to use from several threads."""

    def __init__(self, most: int, seconds: float) -> None:
        """`most` bytes, and about `seconds` for a pass."""
        self._most = most
        self._seconds = seconds
        self._bytes = min(most, _FIRST)

    @property
    def bytes(self) -> int:
        """What the next pass should write at most."""
        with _LOCK:
            return self._bytes

    def committed(self, written: int, seconds: float) -> None:
        """A pass of `written` bytes took so long."""
        with _LOCK:
            if written * 2 >= self._bytes:  # what a small one takes says little of a large one
                fitting = int(written * self._seconds / max(seconds, 0.001))
                self._bytes = max(1, min(self._most, fitting, self._bytes * _GROWTH))

    def aborted(self, achieved: int) -> None:
        """Nothing of a pass was committed; `achieved` bytes had been acknowledged, 0 where that is not known."""
        with _LOCK:
            self._bytes = max(1, min(self._bytes, achieved or self._bytes // 4) // 2)


def pass_size_of(settings: FlowSettings) -> PassSize:
    """Of a flow in this process: a failure begins a new run of it, which is to know what came of the one before."""
    with _LOCK:
        return _pass_size(settings.flow, settings.batch.max_bytes, delivery_timeout(settings.producer) / 2)


@cache
def _pass_size(flow: Flow, most: int, seconds: float) -> PassSize:
    del flow
    return PassSize(most, seconds)
