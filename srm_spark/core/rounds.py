"""When the groups of a flow are looked at, and which part of a round is due. Pure: the clock is handed in."""

from __future__ import annotations

from dataclasses import dataclass, field

from srm_spark.core.news import Every

_REST = 10.0
"""After a round that records caused, rest so many times as long as it took: groups must not cost more than records."""


@dataclass
class Rounds:
    """Rounds for checkpoints come by their interval and by records; those for offsets on the target by theirs alone."""

    emit: Every | None
    """None where no checkpoints are written."""
    sync: Every | None
    """None where no offsets are synced."""
    _rest_until: float = field(default=0.0, init=False)
    _has_moved: bool = field(default=False, init=False)

    def moved(self) -> None:
        """Records were replicated: positions that waited for them can be translated. From any thread."""
        self._has_moved = True

    def is_due(self, now: float) -> bool:
        """Whether it is time for a round."""
        has_news = self._has_moved and now >= self._rest_until
        return (self.emit is not None and (has_news or self.emit.is_due(now))) or self.is_sync_due(now)

    def is_sync_due(self, now: float) -> bool:
        """Whether offsets are to be synced in this one."""
        return self.sync is not None and self.sync.is_due(now)

    def begin(self) -> None:
        """What moves from now on is for the next round."""
        self._has_moved = False

    def done(self, began: float, now: float, *, has_synced: bool) -> None:
        """A round that `began` then is over."""
        self._rest_until = now + _REST * (now - began)
        if self.emit is not None:
            self.emit.done(began)
        if self.sync is not None and has_synced:
            self.sync.done(began)

    def failed(self, now: float) -> None:
        """It came to nothing; the next one is not before its time."""
        for every in (self.emit, self.sync):
            if every is not None:
                every.done(now)
