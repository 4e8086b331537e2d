"""One generation of a flow's query: a fixed set of partitions, read from where the progress topic says.

A changed set of partitions, a held one, or a failure ends a generation; the next one starts from recorded progress, so
nothing depends on what Spark remembers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from functools import partial
from typing import Protocol

from srm_spark.config.render import spark_kafka_options
from srm_spark.config.secrets import SQL_SETTINGS
from srm_spark.config.settings import FlowSettings
from srm_spark.core.model import OffsetRange, PausedPartition, TopicPartition
from srm_spark.failure import Failure
from srm_spark.flow.batch.realtime import RealtimeLane
from srm_spark.flow.batch.replicate import Assignment, Replication
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.refused.unreadable import unreadable
from srm_spark.flow.topics.progress import Position
from srm_spark.spark import SparkSession
from srm_spark.spark.query import Query, is_stopping
from srm_spark.spark.session import configure, parallelism
from srm_spark.spark.source import UNBOUNDED, stream

log = logging.getLogger(__name__)

_BESIDE_SECONDS = 20.0
"""How long the one query may take to end when the other cannot start."""
_IDLE_DELAY_MS = range(80, 1001)


class Running(Protocol):
    """A generation, as far as who runs the flow is concerned."""

    assignment: Assignment

    def failure(self) -> Failure | None:
        """Why it ended by itself; None while it runs, or where there is nothing to run."""

    def phases(self) -> dict[str, int]:
        """Where the newest micro-batch spent its time; empty where there was none."""

    def stop(self, timeout: float) -> bool:
        """End with the batch in progress; False when that had to be interrupted."""


class Generation:
    """A running query and the batch function behind it."""

    def __init__(
        self,
        session: SparkSession,
        clusters: Clusters,
        assignment: Assignment,
        blocked: Mapping[TopicPartition, PausedPartition],
        may_go_on: Callable[[], bool],
        *,
        live: Set[TopicPartition],
    ):
        """`session` is the flow's own; `blocked` partitions are copied up to their hold and not part of the stream.

        `live` partitions are copied in real time, all others in micro-batches.

        `may_go_on` is asked while a limit lets that copying wait, and ends it.
        """
        settings = clusters.settings
        self.assignment = assignment
        configure(session, _sql_settings(len(assignment.starts)))
        before = {p: OffsetRange(assignment.starts[p].next_offset, hold.offset) for p, hold in blocked.items()}
        Replication(settings, assignment, is_stopping=lambda: not may_go_on()).copy(
            session, {p: r for p, r in before.items() if r.end > r.start}
        )
        flowing = {p: start for p, start in assignment.starts.items() if p not in blocked}
        in_batches = {p: start for p, start in flowing.items() if p not in live}
        self._query = _start_query(session, settings, replace(assignment, starts=in_batches)) if in_batches else None
        self._lane: RealtimeLane | None = None
        if live:
            alive = replace(assignment, starts={p: flowing[p] for p in live})
            try:
                self._lane = RealtimeLane(session, clusters, Replication(settings, alive))
            except BaseException:
                self.stop(_BESIDE_SECONDS)
                raise

    def failure(self) -> Failure | None:
        """Why a query ended by itself; None while they run, or where there is nothing to run."""
        failures = (each.failure() for each in (self._query, self._lane) if each is not None)
        return next((failure for failure in failures if failure is not None), None)

    def phases(self) -> dict[str, int]:
        """Where the newest micro-batch spent its time; empty where there was none."""
        return {} if self._query is None else self._query.phases()

    def stop(self, timeout: float) -> bool:
        """End with the batch in progress; False when that had to be interrupted."""
        ended = [each.stop(timeout) for each in (self._lane, self._query) if each is not None]
        return all(ended)


def _start_query(session: SparkSession, settings: FlowSettings, assignment: Assignment) -> Query:
    # Spark gives each topic the same share of a batch; where some go first, all there is has to be in it.
    most = UNBOUNDED if settings.limits.has_classes else settings.batch.max_records
    options = spark_kafka_options(settings.source, settings.consumer, settings.admin_timeout_seconds)
    return Query(
        stream(session, options, {p: start.next_offset for p, start in assignment.starts.items()}, most),
        f"srm {settings.flow} records",
        lambda checkpoint: Replication(settings, assignment, checkpoint, partial(is_stopping, checkpoint)),
        settings.batch.trigger_interval_ms,
        settings.flow.source,
    )


def pass_unreadable(
    session: SparkSession,
    clusters: Clusters,
    assignment: Assignment,
    blocked: Mapping[TopicPartition, PausedPartition],
    may_go_on: Callable[[], bool],
) -> dict[TopicPartition, PausedPartition]:
    """Put records aside that Spark cannot read, all that a batch would come to, and copy what lies between them.

    `blocked` is the first one of each partition; ends early when the flow is not owned any more or is to stop. Returns
    what stands still since. What is recorded has changed then.
    """
    configure(session, _sql_settings(len(blocked)))
    replication = Replication(clusters.settings, assignment, is_stopping=lambda: not may_go_on())
    while blocked and may_go_on():
        before = {p: OffsetRange(replication.positions[p], hold.offset) for p, hold in blocked.items()}
        replication.copy(session, {p: r for p, r in before.items() if r.end > r.start})
        replication.put_aside(session, blocked, clusters.source.end_offsets(blocked))
        moved = {p: Position(replication.positions[p]) for p in blocked if replication.positions[p] > before[p].end}
        blocked = unreadable(clusters, moved)
    return dict(replication.holds)


def task_count(session: SparkSession, clusters: Clusters) -> int:
    """Spark tasks per batch."""
    return clusters.settings.batch.tasks_max or parallelism(session)


def _sql_settings(partitions: int) -> dict[str, str]:
    # Asking the brokers for the ends of 10 partitions a hundred times a second takes 0.14 cores, of 500 half a core.
    idle_delay = min(max(partitions, _IDLE_DELAY_MS.start), _IDLE_DELAY_MS.stop - 1)
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.pollingDelay": f"{idle_delay}ms",
        "spark.sql.streaming.minBatchesToRetain": "2",
        **SQL_SETTINGS,
    }
