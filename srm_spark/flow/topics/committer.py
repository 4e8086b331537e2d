"""Records what was replicated, in the one order that is safe: offset map, offset syncs, progress.

What is recorded is on the target already, and progress never knows more than the map: a crash between two of these
steps leaves copies that the next start finds (`flow/recovery/unrecorded.py`), never progress without copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Writer
from srm_spark.core.model import OffsetRange, ProgressDetail, TopicPartition
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.offset_map import Maps, MapWriter
from srm_spark.flow.topics.progress import ProgressWriter, state_writer, state_writer_of
from srm_spark.flow.topics.syncs import SyncWriter, sync_writer_of
from srm_spark.kafka.fencing import FencingToken


@dataclass
class Committer:
    """Of one generation, or of one start. Travels by pickle before its first commit, so clients are made late."""

    settings: FlowSettings
    maps: Maps
    """The map before the first commit."""
    syncs_topic: str
    fencing: FencingToken | None
    require_lease: Callable[[], None]
    """Raises LeaseLost where nothing of the flow may be written any more."""
    state: Writer | None = None
    """Writes the flow's own state; None makes a client when it is first needed."""
    syncs: SyncWriter | None = None
    """Writes offset syncs; likewise."""
    _map: MapWriter | None = None
    _progress: ProgressWriter | None = None

    @property
    def known(self) -> Maps:
        """The map with what was committed."""
        return self.maps if self._map is None else self._map.maps

    @property
    def writer(self) -> Writer:
        """Writes the flow's own state."""
        self.state = self.state or state_writer(self.settings, self.fencing)
        return self.state

    def commit(
        self, details: Mapping[TopicPartition, ProgressDetail], committed: Set[TopicPartition] = frozenset()
    ) -> None:
        """Record what was replicated; progress of `committed` partitions was committed with their records.

        Raises LeaseLost, and ProgressFailed where a topic refuses a record.
        """
        if details:
            self.map(details)
            self._progress = self._progress or ProgressWriter(self.settings, self.writer)
            self._progress.commit(uncommitted(details, committed))

    def map(self, details: Mapping[TopicPartition, ProgressDetail]) -> None:
        """Record in the offset map and as offset syncs what is in the progress topic already, or comes there next."""
        self.require_lease()
        self._map = self._map or MapWriter(self.settings, self.maps, self.writer)
        counting = self._map.write(details)
        if self.settings.syncs.enabled and (self.syncs or any(counting.values())):
            self.syncs = self.syncs or SyncWriter(self.settings, self.syncs_topic)
            self.syncs.write(counting)


def uncommitted(
    details: Mapping[TopicPartition, ProgressDetail], committed: Set[TopicPartition]
) -> dict[TopicPartition, ProgressDetail]:
    """What is left to say as progress: of `committed` partitions only what the source deleted meanwhile."""
    left = {partition: detail for partition, detail in details.items() if partition not in committed}
    for partition in committed & details.keys():
        detail = details[partition]
        if detail.lost:
            end = OffsetRange(detail.source.end, detail.source.end)
            left[partition] = ProgressDetail(end, detail.target_end, (), detail.hold, detail.logs, lost=detail.lost)
    return left


def committer_of(clusters: Clusters, maps: Maps, fencing: FencingToken | None) -> Committer:
    """Records what is found outside of a batch; `maps` is the state of the map."""
    state, syncs = state_writer_of(clusters, fencing), sync_writer_of(clusters)
    return Committer(clusters.settings, maps, clusters.syncs_topic, fencing, clusters.require_lease, state, syncs)
