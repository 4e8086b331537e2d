"""For how long a right that a cluster has confirmed can be relied on. Pure: the clock is handed in.

A process may be stopped at any moment, for any time, and not know it. So a right is never a flag: it is a moment up to
which the cluster has promised to give it to nobody else, counted from before the cluster was asked.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class LeaseClock:
    """A right that is confirmed now and then; moments are of one monotonic clock, in seconds."""

    seconds: float
    """How long a confirmation lasts."""
    until: float = float("-inf")
    is_wanted_back: bool = False
    """Somebody else is to have it; what has begun may be ended."""

    def confirmed(self, asked_at: float) -> None:
        """The cluster confirmed a question that was asked then."""
        self.until = max(self.until, asked_at + self.seconds)

    def hand_over(self, until: float) -> None:
        """The cluster waits so long for us to end what we do."""
        self.is_wanted_back, self.until = True, until

    def end(self) -> None:
        """It is somebody else's, or may be."""
        self.until = float("-inf")

    def is_held(self, now: float) -> bool:
        """Whether something new may be begun."""
        return self.may_write(now) and not self.is_wanted_back

    def may_write(self, now: float) -> bool:
        """Whether what has begun may be written."""
        return now < self.until
