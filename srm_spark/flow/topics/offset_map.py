"""The offset map on the target: a compacted topic whose records are the parts of every partition's map.

A record here is one part (see `core/offset_map.py`): the key says which, the value is the same JSON as the header of a
progress record. It is written before the progress that speaks of it, so progress never knows more than the map.
Losses lie there as well (`core/losses.py`), each under a key of its own: only that copies are there again ends one. So
does what each remote topic has from its source (`core/topic_configs.py`, `core/acls.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping

from srm_spark.config.settings import FlowSettings
from srm_spark.core.acls import Acl, decode_acls
from srm_spark.core.cluster import Cluster, ControlRecord, Writer
from srm_spark.core.codec import decode_map_key, decode_progress_detail, encode_progress_detail, map_key
from srm_spark.core.losses import decode_loss, loss_key, loss_value
from srm_spark.core.model import KeptLoss, LogIdentity, ProgressDetail, TopicPartition
from srm_spark.core.offset_map import PartitionMap, split
from srm_spark.core.topic_configs import decode_configs
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
        self.configs: dict[str, Mapping[str, str]] = {}
        """Remote topic → the configs that it has from its source."""
        self.acls: dict[tuple[str, str], frozenset[Acl]] = {}
        """Kind and name of a resource → the ACLs that were made there."""

    def refresh(self) -> None:
        """Take in what was written since the last call."""
        with self.lock:
            for record in self._topic.new_records():
                key = decode_map_key(record.key)
                if key is None:
                    loss = decode_loss(record.key, record.value)
                    if loss is not None:
                        self.losses[record.key or b""] = loss
                    elif record.value is None:
                        self.losses.pop(record.key or b"", None)
                    elif (configs := decode_configs(record.key, record.value)) is not None:
                        remote, self.configs[remote] = configs
                    elif (acls := decode_acls(record.key, record.value)) is not None:
                        resource, self.acls[resource] = acls
                elif record.value is None:
                    self.maps.setdefault(key.partition, PartitionMap()).drop(key.start)
                elif (detail := decode_progress_detail(record.value)) is not None:
                    self._put(key.partition, detail)

    def close(self) -> None:
        """Stop reading."""
        with self.lock:
            self._topic.close()
            self._forget()

    def _forget(self) -> None:
        self.maps.clear()
        self.losses.clear()
        self.configs.clear()
        self.acls.clear()

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
