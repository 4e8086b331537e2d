"""The figures of one flow as they come, whichever run or thread has them: what was copied, and how far it is behind.

```
Totals of the progress topic ─copied─┐
look at the source's ends ────looked─┤   Meter ──take──> one period, for the metrics topic (flow.sampling)
checkpoints that were written ───────┘         ──view──> all since the driver began, for /metrics
```
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from srm_spark.core.metrics import PAUSED, RUNNING
from srm_spark.core.model import Checkpoint, TopicPartition
from srm_spark.core.tallies import Tally
from srm_spark.failure import FailureKind

_Key = TypeVar("_Key")
GroupPartition = tuple[str, TopicPartition]
"""A group, and a partition of the target."""


@dataclass(frozen=True)
class Seen:
    """How far one partition was behind when the source was asked last. Times are milliseconds since the epoch."""

    lag: int | None = None
    """None where the source did not say, or its log is another one."""
    checked_at: int | None = None
    """When it was known last."""
    caught_up_at: int | None = None
    """When nothing was left to copy last."""
    state: str = RUNNING
    reason: FailureKind | None = None

    def lag_seconds(self, now: int, newest: int | None) -> float | None:
        """How old the oldest record is at most that is not copied; 0 where all are, None where that is not known.

        It came behind the newest record that was copied, whose timestamp is `newest`, and after nothing was left.
        """
        if not self.lag:
            return None if self.lag is None else 0.0
        since = max((at for at in (newest, self.caught_up_at) if at is not None), default=None)
        return None if since is None else max(0.0, (now - since) / 1000)


@dataclass(frozen=True)
class Look:
    """What a run of the flow sees when it looks at its source."""

    topics: Mapping[str, int] = field(default_factory=dict)
    """Source topics that flow, with their partition counts."""
    remotes: Mapping[str, str] = field(default_factory=dict)
    """Source topic → remote topic."""
    lag: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Source offsets that are not copied; below zero where the log is another one."""
    paused: Mapping[TopicPartition, FailureKind] = field(default_factory=dict)
    held: Collection[str] = ()
    """Topics of which nothing is copied."""

    @cached_property
    def known(self) -> set[TopicPartition]:
        """Those of which the lag is known."""
        return {partition for partition, behind in self.lag.items() if behind >= 0}

    def partitions(self) -> Iterator[TopicPartition]:
        """All of the topics."""
        for topic, count in self.topics.items():
            yield from (TopicPartition(topic, number) for number in range(count))


@dataclass(frozen=True)
class View:
    """What is known at one moment."""

    seen: Mapping[TopicPartition, Seen] = field(default_factory=dict)
    remotes: Mapping[str, str] = field(default_factory=dict)
    newest: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Timestamps of the newest records that were copied."""
    topics: Mapping[str, Tally] = field(default_factory=dict)
    """Per source topic, since the driver began."""
    partitions: Mapping[TopicPartition, Tally] = field(default_factory=dict)
    """The same per partition, where that is kept."""
    checkpoints: Tally = field(default_factory=Tally)
    """Of all groups, since the driver began."""


@dataclass(frozen=True)
class Period:
    """What happened between two calls of `take`."""

    at: int
    """Its end, in milliseconds since the epoch."""
    seconds: float
    copied: Mapping[TopicPartition, Tally] = field(default_factory=dict)
    checkpoints: Mapping[GroupPartition, Tally] = field(default_factory=dict)


class Meter:
    """Safe to use from several threads; what it hands out changes no more."""

    def __init__(
        self,
        *,
        keeps_partitions: bool = False,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """With `keeps_partitions`, `View` has totals of partitions, too; `wall` tells the time, `clock` how long."""
        self.keeps_partitions = keeps_partitions
        self._wall, self._clock = wall, clock
        self._lock = threading.Lock()
        self._look, self._looked_at = Look(), 0
        self._checked: dict[TopicPartition, int] = {}
        """When those were known last of which the newest look says nothing."""
        self._caught_up: dict[TopicPartition, int] = {}
        self._newest: dict[TopicPartition, int] = {}
        self._topics: dict[str, Tally] = {}
        self._partitions: dict[TopicPartition, Tally] = {}
        self._copied: dict[TopicPartition, Tally] = {}
        self._told: dict[GroupPartition, Tally] = {}
        self._checkpoints = Tally()
        self._began = clock()

    def copied(self, partitions: Mapping[TopicPartition, Tally]) -> None:
        """So much was copied since the last call; the tallies are the meter's from now on."""
        with self._lock:
            for partition, tally in partitions.items():
                if partition in self._copied:
                    self._copied[partition].add(tally)
                else:
                    self._copied[partition] = tally
                self._topics.setdefault(partition.topic, Tally()).add(tally)
                if self.keeps_partitions:
                    self._partitions.setdefault(partition, Tally()).add(tally)
            self._know(partitions)

    def known(self, partitions: Mapping[TopicPartition, Tally]) -> None:
        """So much was copied before this driver: only how new its last records were counts."""
        with self._lock:
            self._know(partitions)

    def looked(self, look: Look) -> None:
        """A run looked at its source just now."""
        now = self._now()
        with self._lock:
            if look.topics != self._look.topics:
                for known in (self._newest, self._caught_up, self._checked):
                    for partition in [one for one in known if one.topic not in look.topics]:
                        del known[partition]
            for partition in self._look.known - look.known:
                self._checked[partition] = self._looked_at
            self._caught_up.update((partition, now) for partition, behind in look.lag.items() if behind == 0)
            self._look, self._looked_at = look, now

    def checkpointed(self, checkpoints: Iterable[Checkpoint], ms: float) -> None:
        """These were written, so long after the source was asked where its groups stand."""
        with self._lock:
            for checkpoint in checkpoints:
                self._told.setdefault((checkpoint.group, checkpoint.partition), Tally()).latency(ms, 1)
                self._checkpoints.latency(ms, 1)

    def gone(self) -> None:
        """Another driver has the flow, or nobody: nothing is known of its partitions here."""
        with self._lock:
            self._look = Look()

    def view(self) -> View:
        """What is known now."""
        with self._lock:
            look, looked_at = self._look, self._looked_at
            checked, caught_up = dict(self._checked), dict(self._caught_up)
            view = View(
                {},
                look.remotes,
                dict(self._newest),
                {topic: _copy(tally) for topic, tally in self._topics.items()},
                {partition: _copy(tally) for partition, tally in self._partitions.items()},
                _copy(self._checkpoints),
            )
        seen = {p: _seen(p, look, looked_at, checked, caught_up) for p in look.partitions()}
        return replace(view, seen=seen)

    def take(self) -> Period:
        """What happened since the last call."""
        with self._lock:
            now = self._clock()
            period = Period(self._now(), now - self._began, self._copied, self._told)
            self._began, self._copied, self._told = now, {}, {}
            return period

    def put_back(self, period: Period) -> None:
        """Nobody was told of a period: what happened in it belongs to the next one."""
        with self._lock:
            _put_back(self._copied, period.copied)
            _put_back(self._told, period.checkpoints)
            self._began -= period.seconds

    def _now(self) -> int:
        return int(self._wall() * 1000)

    def _know(self, partitions: Mapping[TopicPartition, Tally]) -> None:
        for partition, tally in partitions.items():
            if tally.newest is not None:
                self._newest[partition] = tally.newest


def _seen(
    partition: TopicPartition,
    look: Look,
    looked_at: int,
    checked: Mapping[TopicPartition, int],
    caught_up: Mapping[TopicPartition, int],
) -> Seen:
    kind, lag = look.paused.get(partition), look.lag.get(partition, -1)
    state = PAUSED if kind is not None or partition.topic in look.held else RUNNING
    is_known = lag >= 0
    at = looked_at if is_known else checked.get(partition)
    return Seen(lag if is_known else None, at, caught_up.get(partition), state, kind)


def _put_back(into: dict[_Key, Tally], before: Mapping[_Key, Tally]) -> None:
    for key, tally in before.items():
        earlier = _copy(tally)
        if key in into:
            earlier.add(into[key])
        into[key] = earlier


def _copy(tally: Tally) -> Tally:
    return replace(tally, buckets=dict(tally.buckets))
