"""What is said once per change, and what is done every so often. Pure: the clock is handed in."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass
class News:
    """Remembers what was said last of each subject."""

    _said: dict[Hashable, object] = field(default_factory=dict)

    def is_new(self, subject: Hashable, what: object) -> bool:
        """Whether `what` is not what was said of the subject last; None is nothing to say, and forgets it."""
        before = self._said.get(subject)
        self._said[subject] = what
        return what is not None and what != before


@dataclass
class Every:
    """A thing that is done every so many seconds; at once the first time. Moments are of one monotonic clock."""

    seconds: float
    next_at: float = 0.0

    def is_due(self, now: float) -> bool:
        """Whether it is time."""
        return now >= self.next_at

    def done(self, now: float) -> None:
        """It was done just now."""
        self.next_at = now + self.seconds

    def soon(self) -> None:
        """Do it at the next look."""
        self.next_at = 0.0
