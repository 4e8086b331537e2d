"""The offset map forgets what is gone on both sides: parts of it whose records neither source nor target has any more.

Only whole parts go, never the newest one of a partition, so partitions of one part (nearly all) are not even asked for.
No task of the driver's clock, but called from the thread that starts generations: only there may a map go back to an
earlier offset, and then a part could be written that is about to be dropped. The batches of a generation write behind
the newest part.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from srm_spark.core.limits import Route
from srm_spark.core.model import TopicPartition
from srm_spark.core.news import Every
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.offset_map import MapWriter, OffsetMaps
from srm_spark.flow.topics.progress import state_writer_of

log = logging.getLogger(__name__)

_EVERY_SECONDS = 600.0
_PARTITIONS_PER_LOOK = 500
"""First offsets are asked for in slices, like topic ids."""


class MapRetention:
    """Looks at the first offsets of both sides, now and then."""

    def __init__(self, clusters: Clusters, maps: OffsetMaps, slice_size: int = _PARTITIONS_PER_LOOK) -> None:
        self._clusters = clusters
        self._maps = maps
        self._slice_size = slice_size
        self._waiting: list[TopicPartition] = []
        self._round = Every(_EVERY_SECONDS)

    def look(self, routes: Mapping[str, Route], now: float) -> None:
        """Go on looking, or begin anew where that is due; `routes` are those of the running generation."""
        if not self._waiting and self._round.is_due(now):
            self._round.done(now)
            self._maps.refresh()
            with self._maps.lock:
                self._waiting = [partition for partition, known in self._maps.maps.items() if known.part_count > 1]
        part = self._waiting[: self._slice_size]
        del self._waiting[: self._slice_size]
        remotes = {p: routes[p.topic].remote(p) for p in part if p.topic in routes}
        if remotes:
            self._retire(remotes)

    def _retire(self, remotes: Mapping[TopicPartition, TopicPartition]) -> None:
        upstream = self._clusters.source.first_offsets(remotes, waits=False)
        downstream = self._clusters.target.first_offsets(remotes.values(), waits=False)
        first = {p: (upstream[p], downstream[r]) for p, r in remotes.items() if p in upstream and r in downstream}
        with self._maps.lock:
            maps = {partition: self._maps.maps[partition] for partition in first if partition in self._maps.maps}
            # Outside of any transaction: what is gone stays gone, so even one that comes late does no harm.
            writer = MapWriter(self._clusters.settings, maps, state_writer_of(self._clusters, None))
        self._clusters.require_lease()
        if dropped := writer.retire(first):
            log.info("flow=%s %s parts of the offset map are gone on both sides", self._clusters.settings.flow, dropped)
