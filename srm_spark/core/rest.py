"""Whether logs have come to rest behind a writer that died. Pure: clocks and ends are handed in.

A writer is dead, and still the sockets that it left may hold requests: a broker whose quota is used up reads them as
slowly as the quota says, seconds or minutes later. So how long an end must stand still depends on how it moves.
"""

from __future__ import annotations

from dataclasses import dataclass

_IN_SOCKETS = 500_000
"""Bytes that a dead writer may have left in the buffers of its sockets: a broker's `socket.receive.buffer.bytes`, twice
as Linux counts, and what a sender's buffer grows to while its receiver does not read."""
_PAUSES = 3.0
"""So many times the longest pause that was seen between two movements."""


@dataclass(frozen=True)
class Patience:
    """How long a start waits for a dead writer's records."""

    still_seconds: float = 2.0
    """The least that ends must stand still."""
    unknown_seconds: float = 35.0
    """The same where nobody can say how far the leaders' logs go beyond the high watermarks: brokers give up a follower
    that hangs after `replica.lag.time.max.ms`, 30 s."""
    settle_seconds: float = 180.0
    """After that the start fails, and is tried again."""
    look_seconds: float = 0.5


@dataclass
class Rest:
    """One wait: `moved` whenever an end has moved."""

    patience: Patience
    since: float
    """When it began, or an end moved last; seconds of any clock, as everything here."""
    knows_log_ends: bool = True
    quota: float | None = None
    """Bytes per second that the cluster takes from writers; None where it does not limit them or does not say."""
    longest_pause: float = 0.0
    has_moved: bool = False

    def moved(self, now: float) -> None:
        """An end has moved; the wait begins anew, and lasts longer than the pause that this ended."""
        if self.has_moved:
            self.longest_pause = max(self.longest_pause, now - self.since)
        self.since, self.has_moved = now, True

    @property
    def needed(self) -> float:
        """Seconds that ends must stand still."""
        least = self.patience.still_seconds if self.knows_log_ends else self.patience.unknown_seconds
        left = 0.0 if not self.quota else _IN_SOCKETS / self.quota
        return min(max(least, left, _PAUSES * self.longest_pause), self.patience.settle_seconds)

    def is_over(self, now: float) -> bool:
        """Whether they stood still for long enough."""
        return now - self.since >= self.needed
