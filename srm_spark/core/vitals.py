"""Signs of life of a flow: of both its clusters, and of what it copies. Pure: the clock is handed in.

A call to a cluster that is away returns only when its time is up, and until then all numbers are those of before. So
who asks for the state of a flow learns here since when nothing was heard, whatever its own threads wait for.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

SILENT_SECONDS = 4.0
"""Without a sign for so long, what was known is not known any more. With one look per second it shows within 5 s."""


@dataclass(frozen=True)
class Silence:
    """Somebody of whom nothing is heard."""

    who: str
    since: float
    """When the last sign came, by the clock of `Vitals`."""
    why: str | None
    """What was said instead of an answer, if anything was."""


@dataclass
class Vitals:
    """The newest sign of each. Safe to use from several threads."""

    patience: float = SILENT_SECONDS
    _signs: dict[str, float] = field(default_factory=dict)
    _expected: dict[str, float] = field(default_factory=dict)
    _reasons: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def sign(self, who: str, now: float, grace: float = 0.0) -> None:
        """`who` lives; where nothing was heard yet, `grace` is how many seconds more that may take."""
        with self._lock:
            self._signs[who] = now + grace
            self._reasons.pop(who, None)

    def failed(self, who: str, why: str) -> None:
        """A sign was asked for, and this came instead."""
        with self._lock:
            self._reasons[who] = why

    def expect(self, who: str, now: float) -> None:
        """Something should be heard of `who`, as one has just seen: before the next such look nobody is silent."""
        with self._lock:
            self._signs.setdefault(who, now)
            self._expected[who] = now

    def forget(self, who: str) -> None:
        """Nothing is to be heard of `who`."""
        with self._lock:
            self._signs.pop(who, None)
            self._expected.pop(who, None)
            self._reasons.pop(who, None)

    def age(self, who: str, now: float) -> float:
        """Seconds since the newest sign; 0 where none is missed."""
        with self._lock:
            return max(0.0, now - self._signs.get(who, now))

    def silence(self, now: float) -> Silence | None:
        """Who has been silent for longest, and for too long; None while all live."""
        with self._lock:
            silences = [Silence(who, at, self._reasons.get(who)) for who, at in self._signs.items()]
            looked = {who: self._expected.get(who, now) for who in self._signs}
        late = [one for one in silences if looked[one.who] - one.since >= self.patience]
        return min(late, key=lambda one: one.since, default=None)
