"""The offset map on the target: a compacted topic whose records are the parts of every partition's map.

A record here is one part (see `core/offset_map.py`): the key says which, the value is the same JSON as the header of a
progress record. It is written before the progress that speaks of it, so progress never knows more than the map.
Losses lie there as well (`core/losses.py`), each under a key of its own: only that copies are there again ends one. So
does what was made here (`core/made_here.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster, ControlRecord, Writer
from srm_spark.core.codec import decode_map_key, decode_progress_detail, encode_progress_detail, map_key
from srm_spark.core.losses import decode_loss, loss_key, loss_value
from srm_spark.core.made_here import MadeHere
from srm_spark.core.model import KeptLoss, LogIdentity, ProgressDetail, TopicPartition
from srm_spark.core.offset_map import PartitionMap, split
from srm_spark.core.translation import IntervalMap
from srm_spark.errors import FlowError
from srm_spark.flow.topics.followed import FollowedTopic

Maps = Mapping[TopicPartition, PartitionMap]
"""Source partition → its map."""


class OffsetMaps:
    """Reads the topic; `maps` is what was known at the last look. `lock` is held while that changes."""

    def __init__(self, cluster: Cluster, topic: str, role: str, error: type[FlowError]) -> None:
        """`cluster` is where the topic lies: the target of the flow that writes it."""
        self._topic = FollowedTopic(cluster, topic, role, error, cluster.timeout, forget=self._forget)
        self.lock = threading.RLock()
        self.maps: dict[TopicPartition, PartitionMap] = {}
        self.losses: dict[bytes, KeptLoss] = {}
        """Key of the record → what was lost."""
        self.made = MadeHere()
        self.unreadable: set[bytes] = set()
        """Keys of records that say nothing to this version."""

    def refresh(self) -> None:
        """Take in what was written since the last call."""
        with self.lock:
            for record in self._topic.new_records():
                key = record.key or b""
                self.unreadable.discard(key)
                if not self._take(key, record.value) and record.value is not None:
                    self.unreadable.add(key)

    def close(self) -> None:
        """Stop reading."""
        with self.lock:
            self._topic.close()
            self._forget()

    def _forget(self) -> None:
        self.maps.clear()
        self.losses.clear()
        self.made.clear()
        self.unreadable.clear()

    def _take(self, key: bytes, value: bytes | None) -> bool:
        """Whether the record says something; one without a value takes back what its key said."""
        part = decode_map_key(key)
        if part is None:
            loss = decode_loss(key, value)
            if loss is None:
                self.losses.pop(key, None)
                return self.made.take(key, value)
            self.losses[key] = loss
        elif value is None:
            self.maps.setdefault(part.partition, PartitionMap()).drop(part.start)
        elif (detail := decode_progress_detail(value)) is not None:
            self._put(part.partition, detail)
        else:
            return False
        return True

    def _put(self, partition: TopicPartition, detail: ProgressDetail) -> None:
        known = self.maps.get(partition)
        if known is None or known.is_of_another(detail.topic_id):
            known = self.maps[partition] = PartitionMap(detail.topic_id)
        known.topic_id = detail.topic_id if detail.topic_id is not None else known.topic_id
        known.put(IntervalMap.of(detail))


class MapWriter:
    """Adds commits of progress to the map; `writer` raises where that fails."""

    def __init__(self, settings: FlowSettings, maps: Maps, writer: Writer) -> None:
        """`maps` is what the topic holds."""
        self._topic = settings.map_topic
        self._maps = {partition: known.copy() for partition, known in maps.items()}
        self._writer = writer

    @property
    def maps(self) -> Maps:
        """What the topic holds, with what was added."""
        return self._maps

    def write(self, details: Mapping[TopicPartition, ProgressDetail]) -> None:
        """Add what was replicated."""
        self._writer.write(record for partition, detail in details.items() for record in self._take(partition, detail))

    def retire(self, first: Mapping[TopicPartition, tuple[int, int]]) -> int:
        """Drop what is gone on both sides; `first` are the first offsets still there, of source and target.

        Returns how many parts that were.
        """
        dropped = [
            ControlRecord(self._topic, map_key(partition, start), None, partition=0)
            for partition, (upstream, downstream) in first.items()
            if partition in self._maps
            for start in self._maps[partition].retire(upstream, downstream)
        ]
        if dropped:
            self._writer.write(dropped)
        return len(dropped)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop all that the map says of these partitions."""
        forgotten = [(partition, self._maps.pop(partition, PartitionMap())) for partition in partitions]
        self._writer.write(
            ControlRecord(self._topic, map_key(partition, part.source.start), None, partition=0)
            for partition, known in forgotten
            for part in known.parts()
        )

    def insert(self, partition: TopicPartition, earlier: IntervalMap, topic_id: str | None) -> None:
        """Add what was replicated before anything that the map knows of a partition."""
        known = self._maps.setdefault(partition, PartitionMap(topic_id))
        parts = list(split(earlier))
        self._writer.write(self._record(partition, part, topic_id) for part in parts)
        for part in parts:
            known.put(part)

    def _take(self, partition: TopicPartition, detail: ProgressDetail) -> Iterator[ControlRecord]:
        known = self._maps.setdefault(partition, PartitionMap())
        change = known.take(IntervalMap.of(detail), detail.topic_id)
        # Dropped ones first: between the two a reader knows too little, never something wrong.
        for start in change.dropped:
            yield ControlRecord(self._topic, map_key(partition, start), None, partition=0)
        for part in change.put:
            yield self._record(partition, part, known.topic_id)
        for loss in detail.lost:
            key, value = loss_key(partition, detail.topic_id, loss), loss_value(loss, int(time.time() * 1000))
            yield ControlRecord(self._topic, key, value, partition=0)

    def _record(self, partition: TopicPartition, part: IntervalMap, topic_id: str | None) -> ControlRecord:
        value = ProgressDetail(part.source, part.target_end, tuple(part.intervals), logs=LogIdentity(topic_id))
        key = map_key(partition, part.source.start)
        return ControlRecord(self._topic, key, encode_progress_detail(value), partition=0)
