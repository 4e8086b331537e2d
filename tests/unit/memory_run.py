"""Runs of a flow between clusters in memory: everything is the product's own but for queries, which copy when told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import MagicMock

from srm_spark.config.settings import FlowSettings, Timings
from srm_spark.core.model import Interval, OffsetRange, PausedPartition, ProgressDetail, TopicPartition
from srm_spark.core.standstills import by_name
from srm_spark.core.tail import TailRecord
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.batch.replicate import Assignment
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.recovery.before import Before
from srm_spark.flow.recovery.settling import Remotes, TargetEnds
from srm_spark.flow.run import FlowRun, Means
from srm_spark.flow.share import Share
from srm_spark.flow.status import FlowState
from srm_spark.flow.topics.committer import committer_of
from srm_spark.flow.topics.lists import KnownActs
from srm_spark.spark import SparkSession
from srm_spark.spark.opening import Spark
from tests.memory_cluster import MemoryLog, MemoryTopic
from tests.unit.memory_flow import MemoryFlow, flow_settings

Refuse = Callable[[TopicPartition, TailRecord], Failure | None]
QUICK = Timings(
    tick_seconds=0.01,
    lag_seconds=0.0,
    debounce_seconds=0.0,
    visible_seconds=0.2,
    leader_seconds=0.0,
    retry_paused_seconds=1e6,
)


@dataclass
class MemoryGeneration:
    """A query that copies when it is told to, and fails when it is told to."""

    clusters: Clusters
    assignment: Assignment
    blocked: Mapping[TopicPartition, PausedPartition]
    refuse: Refuse = lambda *_: None
    failed: Failure | None = None
    is_ended: bool = False
    ends_cleanly: bool = True
    is_early: bool = False
    """It began before Spark was there."""
    copied_to: dict[TopicPartition, int] = field(default_factory=dict)
    """Behind what earlier batches have copied."""

    def failure(self) -> Failure | None:
        return self.failed

    def phases(self) -> dict[str, int]:
        return {"addBatch": 3}

    def stop(self, timeout: float) -> bool:
        assert timeout > 0
        self.is_ended = True
        return self.ends_cleanly

    @property
    def partitions(self) -> set[TopicPartition]:
        """What it copies; those that are blocked up to their record."""
        return set(self.assignment.starts) - set(self.blocked)

    def copy(self) -> None:
        """What a batch does with all there is."""
        assert not self.is_ended
        details = {}
        for partition in sorted(self.assignment.starts):
            if (detail := self._copied(partition)) is not None:
                details[partition] = detail
        committer_of(self.clusters, self.assignment.maps, None).commit(details)
        self.copied_to |= {partition: detail.source.end for partition, detail in details.items()}

    def _copied(self, partition: TopicPartition) -> ProgressDetail | None:
        start = self.copied_to.get(partition, self.assignment.starts[partition].next_offset)
        source: Any = self.clusters.source
        target: Any = self.clusters.target
        log: MemoryLog = source.log(partition)
        remote: MemoryLog = target.log(
            TopicPartition(self.assignment.routes[partition.topic].remote_topic, partition.partition)
        )
        end = self.blocked[partition].offset if partition in self.blocked else log.end
        intervals, hold = [], None
        for record in log.read(OffsetRange(start, end), committed=False):
            if (why := self.refuse(partition, record)) is not None:
                end, hold = record.offset, PausedPartition(record.offset, why)
                break
            intervals.append(Interval(record.offset, remote.append(record), 1))
        if end == start and hold is None:
            return None
        logs = self.assignment.logs[partition]
        return ProgressDetail(OffsetRange(start, end), remote.end, tuple(intervals), hold=hold, logs=logs)


@dataclass
class World:
    """A flow over all topics of its source, what it showed, and the generations that it began."""

    keys: Mapping[str, str] = field(default_factory=dict)
    timings: Timings = QUICK
    refresh_seconds: float = 0.0
    """Between two looks for topics."""
    shown: list[tuple[FlowState, str | None, dict[str, Any]]] = field(default_factory=list)
    generations: list[MemoryGeneration] = field(default_factory=list)
    waited: list[bool] = field(default_factory=list)
    """Per wait for a dead writer: whether he was known to be fenced."""
    refuse: Refuse = lambda *_: None
    passed: list[set[TopicPartition]] = field(default_factory=list)
    """What was put aside, each time that something was."""
    stop: threading.Event = field(default_factory=threading.Event)
    spark: Future[SparkSession] = field(default_factory=lambda: there(Future()))

    def __post_init__(self) -> None:
        self.flow = MemoryFlow(self._settings(self.keys))
        self.means = Means(
            reach=self.flow.reach,
            follow=lambda clusters, tell: Before(clusters, tell, self._settled),
            generate=self._generate,
            generate_early=self._generate_early,
            pass_unreadable=self._pass,
            task_count=lambda *_: 2,
            prepare=lambda *_: None,
        )

    def _settings(self, keys: Mapping[str, str]) -> FlowSettings:
        settings = flow_settings({"A->B.topics": ".*", "state.path": "", **keys})
        return replace(
            settings, timings=self.timings, topics=replace(settings.topics, refresh_seconds=self.refresh_seconds)
        )

    def change(self, keys: Mapping[str, str]) -> None:
        """Other settings from the next run on."""
        self.flow.change(self._settings({**self.keys, **keys}))

    def copied(self) -> None:
        """A run that copies all there is."""
        with self.run() as run:
            run.begin()
            self.generation.copy()
            run.tick()

    def topic(self, name: str, *values: bytes, timestamp: int = 1_000) -> MemoryLog:
        """Another topic of the source, with records."""
        log = MemoryLog()
        for value in values:
            log.append(TailRecord(0, timestamp, b"k", value))
        self.flow.source.held[name] = MemoryTopic([log], {})
        return log

    def run(
        self,
        *,
        waits: bool = True,
        after_failure: bool = False,
        tasks: Periodic | None = None,
        known: KnownActs | None = None,
        share: Share | None = None,
    ) -> FlowRun:
        """One attempt; without `tasks` nothing of it runs by a clock."""
        return FlowRun(
            self.flow.settings,
            Spark(self.spark).own(),
            self.stop,
            self.show,
            tasks=tasks or Periodic(),
            waits=waits,
            after_failure=after_failure,
            means=self.means,
            known=known,
            share=share,
        )

    def attempt(self, happens: Callable[[], object]) -> None:
        """One attempt in which that happens before its first tick."""
        with self.run() as run:
            run.begin()
            happens()
            run.tick()

    def fail(self, kind: FailureKind) -> None:
        """The query fails."""
        self.generation.failed = Failure(kind, "words")

    def show(self, state: FlowState, reason: str | None, **changes: Any) -> None:
        self.shown.append((state, reason, changes))

    def last(self, name: str) -> Any:
        """What was shown of it last."""
        return next(changes[name] for _, _, changes in reversed(self.shown) if name in changes)

    @property
    def held(self) -> dict[str, str]:
        """What was shown last of what stands still."""
        return by_name(self.last("standing"), self.flow.settings.flow)

    @property
    def losses(self) -> dict[str, str]:
        """All that were shown."""
        return {name: lost for _, _, changes in self.shown for name, lost in changes.get("losses", {}).items()}

    def total(self, name: str) -> int:
        """The sum of what was shown of it."""
        return sum(changes.get(name, 0) for _, _, changes in self.shown)

    @property
    def generation(self) -> MemoryGeneration:
        """The newest one."""
        return self.generations[-1]

    def values(self, topic: str = "A.t") -> list[bytes | None]:
        """What lies in a remote topic."""
        return [one.value for one in self.flow.target.log(TopicPartition(topic, 0)).records.values()]

    def _generate(
        self,
        _: SparkSession,
        clusters: Clusters,
        assignment: Assignment,
        blocked: Mapping[TopicPartition, PausedPartition],
        may_go_on: Callable[[], bool],
        *,
        live: frozenset[TopicPartition],
    ) -> MemoryGeneration:
        assert may_go_on()
        assert not live
        assert all(one.is_ended for one in self.generations), "one at a time"
        self.generations.append(MemoryGeneration(clusters, assignment, blocked, self.refuse))
        return self.generations[-1]

    def _generate_early(
        self, clusters: Clusters, assignment: Assignment, may_go_on: Callable[[], bool]
    ) -> MemoryGeneration:
        assert may_go_on()
        assert all(one.is_ended for one in self.generations), "one at a time"
        self.generations.append(MemoryGeneration(clusters, assignment, {}, self.refuse, is_early=True))
        return self.generations[-1]

    def _pass(
        self,
        _: SparkSession,
        clusters: Clusters,
        assignment: Assignment,
        blocked: Mapping[TopicPartition, PausedPartition],
        may_go_on: Callable[[], bool],
    ) -> dict[TopicPartition, PausedPartition]:
        """Copy what lies before them, and pass them."""
        assert may_go_on()
        self.passed.append(set(blocked))
        MemoryGeneration(clusters, replace(assignment, starts=_only(assignment, blocked)), blocked).copy()
        details = {
            p: ProgressDetail(
                OffsetRange(pause.offset, pause.offset + 1),
                self.flow.target.log(TopicPartition(assignment.routes[p.topic].remote_topic, p.partition)).end,
                (),
                logs=assignment.logs[p],
            )
            for p, pause in blocked.items()
        }
        committer_of(clusters, assignment.maps, None).commit(details)
        return {}

    def _settled(self, _: Clusters, remotes: Remotes, *, is_fenced: bool, **__: object) -> TargetEnds:
        self.waited.append(is_fenced)
        return self.flow.target.end_offsets(remotes.values())


def there(coming: Future[SparkSession]) -> Future[SparkSession]:
    """It is there from now on."""
    coming.set_result(MagicMock())
    return coming


def _only(assignment: Assignment, blocked: Mapping[TopicPartition, PausedPartition]) -> dict[TopicPartition, Any]:
    return {p: start for p, start in assignment.starts.items() if p in blocked}
