"""Lets the passes of a flow wait for its limits: its own, and that of the cluster it writes to.

A limit belongs to the process that writes. So flows of one process share the limit of their target; under Spark Connect
each query has a process of its own, and a limit of a cluster holds for each flow by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import cache

from srm_spark.config.settings import FlowSettings, LimitSettings
from srm_spark.core.bandwidth import Bandwidth, readable
from srm_spark.core.model import Flow

_POLL_SECONDS = 0.1
_RECENT_SECONDS = 5.0
"""A flow that waited so recently is said to be limited: between two waits it writes."""
_LOCK = threading.Lock()


class Pace:
    """The limits of one flow: `admit` and `finish` enclose each pass."""

    def __init__(
        self,
        lines: Mapping[str, Bandwidth],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`lines` by the keys that set them."""
        self._lines = lines
        self._clock = clock
        self._sleep = sleep
        self._size = self._began = 0.0
        self._waited: tuple[str, float] | None = None
        """For which limit, and when last."""

    @property
    def pass_bytes(self) -> int | None:
        """What one pass should write; None where nothing limits it."""
        return min((line.pass_bytes for line in self._lines.values()), default=None)

    def admit(self, size: float, is_stopping: Callable[[], bool]) -> bool:
        """Wait until a pass of about `size` bytes may begin; False when the flow is to stop instead."""
        reserved: list[Bandwidth] = []
        for key, line in self._lines.items():
            with _LOCK:
                start = line.reserve(size, self._clock())
            reserved.append(line)
            if not self._wait(key, start, is_stopping):
                with _LOCK:
                    for each in reserved:
                        each.correct(-size)
                return False
        self._size, self._began = size, self._clock()
        return True

    def finish(self, written: int) -> None:
        """The pass that was admitted is over and has written so many bytes."""
        with _LOCK:
            for line in self._lines.values():
                line.correct(written - self._size)
                line.learn(self._clock() - self._began)

    def describe(self) -> str | None:
        """What the flow is limited to, and by which key; None while it does not wait."""
        waited = self._waited
        if waited is None or self._clock() > waited[1] + _RECENT_SECONDS:
            return None
        return f"limited to {readable(self._lines[waited[0]].rate)} by {waited[0]}"

    def _wait(self, key: str, start: float, is_stopping: Callable[[], bool]) -> bool:
        while (left := start - self._clock()) > 0:
            if is_stopping():
                return False
            self._waited = (key, self._clock())
            self._sleep(min(left, _POLL_SECONDS))
        return True


def pace_of(settings: FlowSettings) -> Pace:
    """The pace of a flow in this process; changed limits make another one."""
    with _LOCK:
        return _pace(settings.flow, settings.limits, settings.target.bootstrap_servers)


@cache
def _pace(flow: Flow, limits: LimitSettings, target: str) -> Pace:
    name = "bandwidth.limit.bytes"
    lines = {}
    if limits.flow_bytes is not None:
        lines[f"{flow}.{name}"] = Bandwidth(limits.flow_bytes)
    if limits.cluster_bytes is not None:
        lines[f"{flow.target}.{name}"] = _shared(flow.target, limits.cluster_bytes, target)
    return Pace(lines)


@cache
def _shared(alias: str, rate: int, target: str) -> Bandwidth:
    """One for all flows of this process; the servers tell clusters of different configurations apart."""
    del alias, target
    return Bandwidth(rate)
