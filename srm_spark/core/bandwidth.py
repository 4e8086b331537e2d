"""Bytes per second as a line of time: what is written takes its share of the line, one behind the other. No clock here.

```
limit 1 MB/s     |--- 1 MB ---|-- 0.8 MB --|--- 1 MB ---|
seconds          0            1           1.8          2.8   the next write starts here
```
"""

from __future__ import annotations

from collections.abc import Sequence

CREDIT_SECONDS = 1.0
"""So much of the line that nobody used is made up for; more would be a burst."""
PASS_SECONDS = (1.0, 10.0)
"""The shortest and longest part of the line that one pass takes."""
LEAST_SHARE = 0.1
"""Of each pass, for every class of topics that waits behind a higher one: it must not starve."""


class Bandwidth:
    """A limit, shared by all who reserve on it. Seconds are of any clock that all of them use."""

    def __init__(self, rate: int) -> None:
        """`rate` in bytes/s."""
        self.rate = rate
        self._free_at: float | None = None
        self._pass_seconds = PASS_SECONDS[0]

    @property
    def pass_bytes(self) -> int:
        """What one pass should write: enough for as long as it takes, and little enough to let others in."""
        return max(1, int(self.rate * self._pass_seconds))

    def reserve(self, size: float, now: float) -> float:
        """When `size` bytes may be written: behind all that was reserved before."""
        start = now if self._free_at is None else max(now - CREDIT_SECONDS, self._free_at)
        self._free_at = start + size / self.rate
        return start

    def correct(self, difference: float) -> None:
        """Bytes that were written beyond what was reserved; negative where less was."""
        if self._free_at is not None:
            self._free_at += difference / self.rate

    def learn(self, seconds: float) -> None:
        """How long the newest pass took: the next one takes twice as much of the line, so that writing keeps up.

        It grows step by step: the first pass of a process takes long, and says little about the others.
        """
        shortest, longest = PASS_SECONDS
        self._pass_seconds = min(longest, 2 * self._pass_seconds, max(shortest, 2 * seconds))


def budget(left: float, size: float, waiting: Sequence[object]) -> float:
    """What of a pass of `size` bytes, of which `left` are left, a class may take while the classes `waiting` wait."""
    return max(left - LEAST_SHARE * size * len(waiting), LEAST_SHARE * size)


def readable(rate: int) -> str:
    """A limit for people."""
    for size, unit in ((10**9, "GB/s"), (10**6, "MB/s"), (10**3, "kB/s")):
        if rate >= size:
            return f"{rate / size:.3g} {unit}"
    return f"{rate} B/s"
