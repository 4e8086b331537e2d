"""Which part of a batch the next pass takes, and when: by bytes, a limit, and what the last pass achieved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from srm_spark.config.settings import FlowSettings
from srm_spark.core.model import ProgressDetail, Ranges, TopicPartition
from srm_spark.flow.batch.pace import Pace, pace_of
from srm_spark.flow.batch.pass_size import PassSize, pass_size_of
from srm_spark.flow.batch.passes import RecordSizes


@dataclass
class PassSchedule:
    """Of one generation. Travels by pickle: pace and size of passes are those of the process that it runs in."""

    settings: FlowSettings
    tasks: int
    """Most Spark tasks of a pass."""
    is_exact: bool
    """A pass is a transaction: what it may take is what the ones before got through with."""
    topics: frozenset[str]
    sizes: RecordSizes = field(default_factory=RecordSizes)
    """What records weigh."""
    _ranks: Mapping[str, int] = field(init=False)
    """The class of each topic; empty where all are the same."""

    def __post_init__(self) -> None:
        limits = self.settings.limits
        self._ranks = limits.ranks(self.topics) if limits.has_classes else {}

    @property
    def pass_bytes(self) -> int:
        """What a pass takes at most."""
        bounds = [self.settings.batch.max_bytes, self._pace.pass_bytes]
        bounds.append(None if self._size is None else self._size.bytes)
        return min(bound for bound in bounds if bound is not None)

    @property
    def is_limited(self) -> bool:
        """Whether a limit may make a batch long."""
        return self._pace.pass_bytes is not None

    def task_bytes(self, ranges: Ranges) -> int:
        """When a task ends early. That costs Spark memory, and a pass is cut to size before it starts: it has room.

        Not where a limit is to be met, or a transaction ends in time, and nobody knows yet what a record weighs.
        """
        if not self.is_limited and self._size is None:
            return max(1, 2 * self.settings.batch.max_bytes // self.tasks)
        if self.sizes.knows(partition.topic for partition in ranges):
            return 2 * self.pass_bytes
        return max(1, self.pass_bytes // min(self.tasks, len(ranges)))

    def next(self, ranges: Ranges) -> Ranges:
        """What the next pass takes of `ranges`."""
        return self.sizes.first(ranges, self.pass_bytes, self._ranks)

    def admit(self, part: Ranges, is_stopping: Callable[[], bool]) -> bool:
        """Wait until a limit lets that pass begin; False where the flow is to stop meanwhile."""
        return self._pace.admit(self.sizes.weigh(part), is_stopping)

    def learn(self, details: Mapping[TopicPartition, ProgressDetail]) -> None:
        """Take in what records weighed."""
        self.sizes.learn(details)

    def committed(self, written: int, seconds: float) -> None:
        """A pass of `written` bytes took so long."""
        if self._size is not None:
            self._size.committed(written, seconds)

    def paid(self, written: int) -> None:
        """A pass that was admitted has written so many bytes."""
        self._pace.finish(written)

    def aborted(self, achieved: int) -> None:
        """A pass came to nothing, after so many bytes; 0 where that is not known."""
        if self._size is not None:
            self._size.aborted(achieved)

    def rank(self, topic: str) -> int:
        """Who goes first under a limit: the lower one."""
        return self._ranks.get(topic, 0)

    @property
    def _pace(self) -> Pace:
        return pace_of(self.settings)

    @property
    def _size(self) -> PassSize | None:
        return pass_size_of(self.settings) if self.is_exact else None
