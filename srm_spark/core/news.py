"""Two small memories: what was logged last, to log it once per change, and when a periodic task is due. Pure: the clock
is handed in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from srm_spark.errors import FlowError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass
class News:
    """Remembers what was said last of each subject."""

    _said: dict[Hashable, object] = field(default_factory=dict)

    def is_new(self, subject: Hashable, what: object) -> bool:
        """Whether `what` is not what was said of the subject last; None is nothing to say, and forgets it."""
        before = self._said.get(subject)
        self._said[subject] = what
        return what is not None and what != before

    @contextmanager
    def failing(self, tell: Callable[[FlowError], object]) -> Iterator[None]:
        """A block whose failure is told, once per change, and not raised."""
        try:
            yield
            self.is_new("failure", None)
        except FlowError as error:
            if self.is_new("failure", str(error)):
                tell(error)

    def changes(self, now: Mapping[K, V]) -> dict[K, V]:
        """What of `now`, which is all there is to say, was not said last; what is not in it any more is forgotten."""
        changed = {subject: what for subject, what in now.items() if self._said.get(subject) != what}
        self._said.clear()
        self._said.update((subject, what) for subject, what in now.items())
        return changed


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
