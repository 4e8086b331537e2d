"""What a flow does about a query that failed: other partitions or start positions mend it, or the run fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from srm_spark.core.model import PausedPartition, TopicPartition
from srm_spark.errors import QueryFailed
from srm_spark.failure import Effect, Failure, FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.refused.paused import PausedPartitions
from srm_spark.flow.refused.unreadable import unreadable
from srm_spark.flow.topics.progress import Position, ProgressTopic
from srm_spark.flow.topics.rights import not_readable

log = logging.getLogger(__name__)

Positions = Mapping[TopicPartition, Position]


class Mending:
    """Of one run of a flow."""

    def __init__(self, clusters: Clusters, progress: ProgressTopic, paused: PausedPartitions) -> None:
        self._clusters = clusters
        self._progress = progress
        self._paused = paused

    def mend(self, failure: Failure, starts: Positions) -> None:
        """See to it that the next generation does not fail like the one that began at `starts`.

        Raises QueryFailed where nothing does.
        """
        flow = self._clusters.settings.flow
        if failure.kind.effect is Effect.STARTS_ANEW:
            log.warning("flow=%s %s", flow, failure)
        elif not self._pause_denied(failure, starts) and not self._suspect_unreadable(failure, starts):
            raise QueryFailed(f"flow {flow}: {failure}", failure.kind)

    def _now(self, starts: Positions) -> Positions:
        """Where the partitions of that generation stand now."""
        self._progress.refresh()
        return {p: self._progress.positions.get(p, start) for p, start in starts.items()}

    def _pause_denied(self, failure: Failure, starts: Positions) -> bool:
        """Pause topics that may not be read; whether there are any. Java's clients do not say which: we ask."""
        if failure.kind is not FailureKind.SOURCE_DENIED:
            return False
        positions = self._now(starts)
        topics = set(failure.topics) or not_readable(self._clusters, {p.topic for p in positions})
        denied = {p: PausedPartition(start.next_offset, failure) for p, start in positions.items() if p.topic in topics}
        self._paused.partitions.update(denied)
        self._paused.postpone(time.monotonic())
        return bool(denied)

    def _suspect_unreadable(self, failure: Failure, starts: Positions) -> bool:
        """Remember where a record lies that Spark cannot read; whether there is a new one."""
        if failure.kind is not FailureKind.TIMESTAMP_OVERFLOW:
            return False
        paused = unreadable(self._clusters, self._now(starts))
        known = self._paused.suspects
        new = {partition: pause for partition, pause in paused.items() if known.get(partition) != pause.offset}
        for partition, pause in new.items():
            text = "flow=%s partition=%s at offset %s: %s"
            log.warning(text, self._clusters.settings.flow, partition, pause.offset, pause.why)
        known.update({partition: pause.offset for partition, pause in new.items()})
        return bool(new)
