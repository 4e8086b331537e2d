"""What of the work is this driver's, and which of its flows another driver should have (`core/spreading.py`).

One for all flows of a process, for whoever decides must know of what is decided elsewhere: two flows that went at the
same time could make too many.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from srm_spark.core.driver_status import DriverId
from srm_spark.core.model import Flow
from srm_spark.core.spreading import DRAINED_LOAD, StandBy, better, least, seconds_to_others, weight

_AVERAGE_SECONDS = 60.0
"""Of what a flow copies: what comes in bursts shall not move flows to and fro."""
_YOUNG_SECONDS = 20.0
"""Behind a takeover much comes at once, and says little about what a flow is to do."""
_SETTLED_SECONDS = 10.0
"""How long a flow stays at least."""
_PACE_SECONDS = 8.0
"""Divided by the difference of two drivers: what stands by for others is known a second late, and must not be
given too much meanwhile."""
OTHERS_SECONDS = 3.0
"""How long whoever gave a flow away, or is not ready for it, leaves it to others."""
_HEARD_SECONDS = 2.0
"""So old may be what others have said of themselves: what they were given since counts as well."""
_BACK_SECONDS, _REFUSED_SECONDS, _DOUBTED_SECONDS = 600.0, 3600.0, 120.0
"""Who gives a flow back that soon cannot run it, or not for long: he does not get it again for a while, and for a
shorter while nothing else."""


def new_driver() -> DriverId:
    """This process, from now on."""
    return DriverId(socket.gethostname(), os.getpid(), int(time.time() * 1000))


@dataclass
class _Had:
    """A flow of ours."""

    since: float
    at: float
    """When something of it was copied last."""
    summed: float = 0.0
    """Bytes until then; what was copied a while ago counts less."""

    def copied(self, size: int, now: float) -> None:
        """So many bytes more."""
        self.summed, self.at = self.summed * _fade(now - self.at) + size, now

    def weight(self, now: float) -> float:
        """What it is to do."""
        known = 1.0 - _fade(max(now - self.since, _YOUNG_SECONDS))
        return weight(self.summed * _fade(now - self.at) / (known * _AVERAGE_SECONDS))


@dataclass(frozen=True)
class _Given:
    """A flow that was ours, until it is again."""

    at: float
    driver: DriverId
    weight: float


class Share:
    """Safe to use from several threads."""

    def __init__(self, driver: DriverId, clock: Callable[[], float] = time.monotonic) -> None:
        self._driver, self._clock = driver, clock
        self._lock = threading.Lock()
        self._had: dict[Flow, _Had] = {}
        self._given: dict[Flow, _Given] = {}
        self._offered: set[Flow] = set()
        """Those that were given and that nobody has taken yet, as far as we know."""
        self._refused: dict[tuple[Flow | None, DriverId], float] = {}
        """Until when a driver does not get a flow, or any."""
        self._drained: set[Flow] = set()
        self._next = -math.inf

    @property
    def host(self) -> str:
        """Where we run."""
        return self._driver.host

    def begin(self, flow: Flow) -> None:
        """It is ours."""
        with self._lock:
            now = self._clock()
            self._had[flow] = _Had(now, now)
            self._offered.discard(flow)
            given = self._given.pop(flow, None)
            if given is not None and now < given.at + _BACK_SECONDS:
                self._refused[flow, given.driver] = now + _REFUSED_SECONDS
                self._refused[None, given.driver] = now + _DOUBTED_SECONDS

    def copied(self, flow: Flow, size: int) -> None:
        """So many bytes of it."""
        with self._lock:
            if (had := self._had.get(flow)) is not None:
                had.copied(size, self._clock())

    def end(self, flow: Flow) -> None:
        """It is not ours any more."""
        with self._lock:
            self._had.pop(flow, None)

    def stand_by(self, flow: Flow) -> StandBy:
        """What we say while another driver has it."""
        with self._lock:
            self._offered.discard(flow)
            return self._said(flow)

    def drain(self, flow: Flow, hosts: Collection[str]) -> None:
        """Drivers of these hosts shall not have it where another one stands by.

        Who gave it back for that is excused.
        """
        with self._lock:
            (self._drained.add if self.host in hosts else self._drained.discard)(flow)
            for place in [one for one in self._refused if one[0] in (flow, None) and one[1].host in hosts]:
                del self._refused[place]

    def goes_to(self, flow: Flow, others: Collection[StandBy]) -> StandBy | None:
        """Who of those that stand by should have it now; then it does not count as ours any more."""
        with self._lock:
            now, had = self._clock(), self._had.get(flow)
            if had is None:
                return None
            others = [self._loaded(one, now) for one in others if one.driver != self._driver]
            fit = [one for one in others if not self._is_refused(flow, one, now)]
            # Of a host that is to be taken down it goes to whoever there is, but not to and fro all the time.
            rest = others if now >= had.since + _DOUBTED_SECONDS else []
            other = least(fit or rest) if flow in self._drained else self._better(had, fit, now)
            if other is not None:
                self._given[flow] = _Given(now, other.driver, had.weight(now))
                self._offered.add(flow)
                del self._had[flow]
            return other

    def seconds_to_others(self, flow: Flow, others: Collection[StandBy]) -> float:
        """How long others may take it, now that it is free."""
        with self._lock:
            return OTHERS_SECONDS if flow in self._offered else seconds_to_others(self._said(flow), others)

    def _better(self, had: _Had, others: Collection[StandBy], now: float) -> StandBy | None:
        if now < max(self._next, had.since + _SETTLED_SECONDS):
            return None
        load = self._load(now)
        other = better(load, had.weight(now), others)
        if other is not None:
            self._next = now + _PACE_SECONDS / (load - other.load)
        return other

    def _loaded(self, other: StandBy, now: float) -> StandBy:
        """With what it was given and may not have counted yet."""
        given = [one for one in self._given.values() if one.driver == other.driver and now < one.at + _HEARD_SECONDS]
        return replace(other, load=other.load + sum(one.weight for one in given))

    def _is_refused(self, flow: Flow, other: StandBy, now: float) -> bool:
        return any(now < self._refused.get((of, other.driver), -math.inf) for of in (flow, None))

    def _said(self, flow: Flow) -> StandBy:
        load = DRAINED_LOAD if flow in self._drained else round(self._load(self._clock()), 2)
        return StandBy(self._driver, load)

    def _load(self, now: float) -> float:
        return sum(had.weight(now) for had in self._had.values())


def _fade(seconds: float) -> float:
    return math.exp(-seconds / _AVERAGE_SECONDS)
