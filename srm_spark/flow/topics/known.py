"""Topics of a running generation are asked for their ids now and then: where no batch comes, nothing else would notice.

In slices, so that 10 000 topics do not cost a burst of requests at every look.
"""

from __future__ import annotations

from collections.abc import Mapping

from srm_spark.core.cluster import Cluster
from srm_spark.flow.clusters import Clusters

_IDS_PER_LOOK = 500


class KnownTopics:
    """Ids of the topics of both sides at the start of the generation."""

    def __init__(self, clusters: Clusters) -> None:
        self._sides = _Side(clusters.source), _Side(clusters.target)

    def learn(self, source: Mapping[str, str], target: Mapping[str, str | None]) -> None:
        """Topic names and ids from now on; one without an id is not watched."""
        for side, ids in zip(self._sides, (source, target), strict=True):
            side.ids = {name: topic_id for name, topic_id in ids.items() if topic_id is not None}

    def is_changed(self) -> bool:
        """Whether a topic of the next slice is gone or has another id."""
        changes = [side.is_changed() for side in self._sides]  # both, or a slice would be passed over
        return any(changes)


class _Side:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._looked_at = 0
        self.ids: dict[str, str] = {}

    def is_changed(self) -> bool:
        names = sorted(self.ids)
        if self._looked_at >= len(names):
            self._looked_at = 0
        part = names[self._looked_at : self._looked_at + _IDS_PER_LOOK]
        self._looked_at += _IDS_PER_LOOK
        now = self._cluster.topic_ids(part)
        return any(now.get(name) != self.ids[name] for name in part)
