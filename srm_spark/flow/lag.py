"""How far some topics of a flow are behind, asked of the clusters: recorded progress against the ends of the source.

Needs no driver in this process; the lag in a driver's own status is of the whole flow and as old as its last look.
"""

from __future__ import annotations

from collections.abc import Collection
from types import TracebackType

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster
from srm_spark.core.model import TopicPartition
from srm_spark.flow.clusters import source_of, target_of
from srm_spark.flow.topics.progress import ProgressTopic


class LagReader:
    """Follows the progress of one flow."""

    def __init__(self, settings: FlowSettings, source: Cluster | None = None, target: Cluster | None = None) -> None:
        """Without clusters, clients of both are made."""
        self._source = source or source_of(settings, "lag")
        self._progress = ProgressTopic(settings, target or target_of(settings, "lag"))

    def __enter__(self) -> LagReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._progress.close()

    def lag(self, topics: Collection[str]) -> int:
        """Source offsets of these topics that no progress is recorded for, all together."""
        counts = self._source.topics()
        partitions = [TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]
        ends = self._source.end_offsets(partitions)
        self._progress.refresh()
        positions = self._progress.positions
        return sum(max(0, end - positions[p].next_offset) if p in positions else end for p, end in ends.items())
