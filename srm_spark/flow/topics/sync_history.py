"""The offset syncs of one flow, ours and MirrorMaker 2's: for positions that the exact map does not know.

Those lie before the map begins, or in a hole of it: MirrorMaker 2 copied those records, or the map was lost. Where the
map knows a position, its answer counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from srm_spark.core.checkpoints import Translation, sample
from srm_spark.core.codec import decode_offset_sync
from srm_spark.core.model import OffsetSync, TopicPartition
from srm_spark.core.offset_map import Hole
from srm_spark.core.offset_sync_store import OffsetSyncStore
from srm_spark.errors import CodecError, FlowError, SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.followed import FollowedTopic

Holes = Mapping[TopicPartition, Sequence[Hole]]
"""Source partition → what its exact map does not know; missing where there is no map."""
_EMPTY = OffsetSyncStore()
_REST = 10.0
"""After a topic was too long to be read in time, rest so many times as long as was tried."""


class SyncReader:
    """Follows the offset-syncs topic from its beginning."""

    def __init__(self, clusters: Clusters) -> None:
        self._cluster = clusters.syncs_cluster
        error = TargetUnavailable if clusters.settings.syncs.on_target else SourceUnavailable
        role = f"{clusters.settings.flow}|read-syncs"
        self._followed = FollowedTopic(self._cluster, clusters.syncs_topic, role, error, self._cluster.timeout)
        self._is_there: bool | None = None

    def new(self) -> Iterator[OffsetSync]:
        """Syncs since the last call; none where there is no such topic. Raises where it cannot be read to its end."""
        if self._is_there is None:
            self._is_there = self._followed.topic in self._cluster.topics()
        for record in self._followed.new_records() if self._is_there else ():
            try:
                yield decode_offset_sync(record.key, record.value)
            except CodecError:
                continue

    def close(self) -> None:
        """Stop reading; the next call starts at the beginning again."""
        self._followed.close()
        self._is_there = None


def newest_syncs(clusters: Clusters) -> dict[TopicPartition, OffsetSync]:
    """The newest offset sync of each source partition; empty where there is no such topic."""
    reader = SyncReader(clusters)
    try:
        return {sync.partition: sync for sync in reader.new()}
    finally:
        reader.close()


class SyncHistory:
    """What the syncs say about positions in front of the exact map; read when somebody stands there."""

    def __init__(self, reader: SyncReader) -> None:
        self._reader = reader
        self._holes: Holes = {}
        self._failure: tuple[FlowError, float] | None = None
        """Why the last look failed, and when to look again."""
        self.stores: dict[tuple[TopicPartition, Hole | None], OffsetSyncStore] = {}
        """By source partition and hole of its map, None where it has no map; as of the last look."""

    def refresh(self, holes: Holes) -> None:
        """Take in what is new; `holes` are those of the exact maps there are.

        Syncs elsewhere are left out: each one would make the store coarser about the past, and the map is exact there.
        Where the holes of a map are others than before, all syncs are read again. Raises SourceUnavailable or
        TargetUnavailable, and then nothing is known until the next call.
        """
        began = time.monotonic()
        if self._failure is not None and began < self._failure[1]:
            raise self._failure[0]
        before = self._holes
        appeared = any(there and there != before.get(partition) for partition, there in holes.items())
        if appeared or any(holes.get(partition) != before.get(partition) for partition, _ in self.stores):
            self.close()  # what was passed over may lie in one of them
        self._holes = dict(holes)
        try:
            for sync in self._reader.new():
                for hole in self._holes.get(sync.partition, (None,)):
                    if hole is None or hole.source.start <= sync.upstream <= hole.source.end:
                        store = self.stores.setdefault((sync.partition, hole), OffsetSyncStore())
                        store.add((sync.upstream, sync.downstream))
        except (SourceUnavailable, TargetUnavailable) as error:
            self.close()  # half of them could speak of a copy that was made anew later
            now = time.monotonic()
            self._failure = error, now + _REST * (now - began)
            raise
        self._failure = None

    def sample(self, partition: TopicPartition, upstream: int, target_end: int) -> Translation | None:
        """What is known of one position (see `srm_spark.core.checkpoints.sample`); None where nothing is."""
        of_map = self._holes.get(partition, (None,))
        hole = next((one for one in of_map if one is None or one.source.start <= upstream < one.source.end), None)
        store = self.stores.get((partition, hole), _EMPTY)
        limit = target_end if hole is None or hole.before is None else min(hole.before, target_end)
        return sample(store, upstream, limit, hole)

    def close(self) -> None:
        """Forget everything, and stop reading."""
        self.stores.clear()
        self._reader.close()
