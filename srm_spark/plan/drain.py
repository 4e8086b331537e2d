"""When the source of a planned move counts as drained: everything is copied, and nothing new comes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from srm_spark.core.model import TopicPartition
from srm_spark.plan.snapshot import Range, few

STILL_SECONDS = 5.0
"""How long the ends of the source must not move: longer than producers linger, and than a batch is on its way."""


@dataclass
class Stillness:
    """Takes looks at the source, one after the other."""

    seconds: float = STILL_SECONDS
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """At the newest look at each partition."""
    moving: str | None = None
    """The newest movement that was seen."""
    silent: Sequence[TopicPartition] = ()
    """Partitions whose end the newest look did not find out."""
    _since: float | None = field(default=None, init=False)
    """Of the first look that saw these ends with everything copied."""

    def take(self, now: float, ranges: Sequence[Range]) -> bool:
        """Whether the source is drained: it is as it was at an earlier look, at least `seconds` ago."""
        self.silent = [one.partition for one in ranges if one.source_end is None]
        last = {partition: end for partition in self.silent if (end := self.ends.get(partition)) is not None}
        ends = last | {one.partition: one.source_end for one in ranges if one.source_end is not None}
        if self.ends and ends != self.ends:
            self.moving = moved(self.ends, ends)
            self._since = None
        self.ends = ends
        if self.silent or behind(ranges):
            self._since = None
        elif self._since is None:
            self._since = now
        return self._since is not None and now - self._since >= self.seconds


def moved(before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int]) -> str:
    """Which ends are others, for people."""
    changed = [p for p in sorted({*before, *after}) if before.get(p) != after.get(p)]
    return few([f"{p} from {before.get(p, 'nothing')} to {after.get(p, 'nothing')}" for p in changed])


def behind(ranges: Sequence[Range]) -> int:
    """Source offsets that are not copied, as far as the source's ends are known."""
    known = (one.missing for one in ranges)
    return sum(missing.end - missing.start for missing in known if missing is not None)
