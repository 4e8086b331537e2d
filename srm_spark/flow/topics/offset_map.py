"""The offset map on the target: a compacted topic whose records are the parts of every partition's map.

A record here is one part (see `core/offset_map.py`): the key says which, the value is the same JSON as the header of a
progress record. It is written before the progress that speaks of it, so progress never knows more than the map.
Losses lie there as well (`core/losses.py`), each under a key of its own: only that copies are there again ends one. So
does what was made here (`core/made_here.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster, ControlRecord, Writer
from srm_spark.core.codec import MapKey, decode_map_key, decode_progress_detail, encode_progress_detail, map_key
from srm_spark.core.losses import decode_loss, loss_key, loss_value, rests, uncovered
from srm_spark.core.made_here import MadeHere
from srm_spark.core.model import Interval, KeptLoss, LogIdentity, LossCause, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.core.offset_map import Change, PartitionMap, split
from srm_spark.core.translation import IntervalMap
from srm_spark.errors import FlowError
from srm_spark.flow.topics.followed import FollowedTopic

_UNTIL_COPIED = (LossCause.SKIPPED, LossCause.TARGET)
_OF_COPIES = (LossCause.DIVERGED, LossCause.TARGET)
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
                self._find(key)
                return self.made.take(key, value)
            self._lose(key, loss)
        elif value is None:
            self._drop(part)
        elif (detail := decode_progress_detail(value)) is not None:
            self._put(part, detail)
        else:
            return False
        return True

    def _lose(self, key: bytes, kept: KeptLoss) -> None:
        self.losses[key] = kept
        if kept.loss.cause in _UNTIL_COPIED:
            known = self.maps.setdefault(kept.partition, PartitionMap(kept.topic_id))
            if not known.is_of_another(kept.topic_id):
                known.missing[key] = kept

    def _find(self, key: bytes) -> None:
        kept = self.losses.pop(key, None)
        if kept is not None and kept.partition in self.maps:
            self.maps[kept.partition].missing.pop(key, None)

    def _put(self, key: MapKey, detail: ProgressDetail) -> None:
        known = self.maps.get(key.partition)
        if known is None or known.is_of_another(detail.topic_id):
            known = self.maps[key.partition] = PartitionMap(detail.topic_id)
        known.topic_id = detail.topic_id if detail.topic_id is not None else known.topic_id
        if key.is_again:
            known.again = known.again or PartitionMap(known.topic_id)
            known.again.put(IntervalMap.of(detail))
        else:
            known.put(IntervalMap.of(detail))

    def _drop(self, key: MapKey) -> None:
        known = self.maps.setdefault(key.partition, PartitionMap())
        if not key.is_again:
            known.drop(key.start)
        elif known.again is not None:
            known.again.drop(key.start)
            if known.again.source is None:
                known.again = None


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

    def write(self, details: Mapping[TopicPartition, ProgressDetail]) -> dict[TopicPartition, Sequence[Interval]]:
        """Add what was replicated; the copies that count from now on."""
        counting: dict[TopicPartition, Sequence[Interval]] = {}
        self._writer.write(
            record for partition, detail in details.items() for record in self._take(partition, detail, counting)
        )
        return counting

    def rewind(self, partition: TopicPartition, offset: int, target_end: int) -> None:
        """What lies behind a source offset is copied again, to behind `target_end`."""
        known = self._maps[partition]
        self._writer.write(self._changed(partition, known, known.rewind(offset, target_end)))

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
        for partition, known in forgotten:
            self._writer.write(self._changed(partition, known, Change(dropped_again=known.forget_again())))

    def insert(self, partition: TopicPartition, earlier: IntervalMap, topic_id: str | None) -> None:
        """Add what was replicated before anything that the map knows of a partition."""
        known = self._maps.setdefault(partition, PartitionMap(topic_id))
        parts = list(split(earlier))
        self._writer.write(self._record(partition, part, topic_id) for part in parts)
        for part in parts:
            known.put(part)

    def _take(
        self,
        partition: TopicPartition,
        detail: ProgressDetail,
        counting: dict[TopicPartition, Sequence[Interval]],
    ) -> Iterator[ControlRecord]:
        known = self._maps.setdefault(partition, PartitionMap())
        for loss in detail.lost:  # first: a map that is empty by then would let a crash between the two go unnoticed
            yield self._lost(KeptLoss(partition, loss, detail.topic_id, int(time.time() * 1000)))[1]
        gone = min((loss.offsets.start for loss in detail.lost if loss.cause in _OF_COPIES), default=None)
        if gone is not None and known.again is not None and gone >= detail.source.end:
            yield from self._changed(partition, known, known.cut(gone))
        elif gone is not None:  # then second ones are not what they were, either
            yield from self._changed(partition, known, Change(dropped_again=known.forget_again()))
        # Only a rewind copies what the target has lost. Else other records have its offsets: the source was cut off.
        found = _UNTIL_COPIED if known.again is not None else (LossCause.SKIPPED,)
        change = known.take(IntervalMap.of(detail), detail.topic_id)
        counting[partition] = change.counting
        yield from self._changed(partition, known, change)
        yield from self._found(known, detail, found)

    def _found(
        self, known: PartitionMap, detail: ProgressDetail, causes: Sequence[LossCause]
    ) -> Iterator[ControlRecord]:
        """What was lost, and is copied after all, is no loss; nor are the markers and compacted records among it."""
        if not detail.intervals or not known.missing:
            return
        lost = [_stretch(loss.offsets) for loss in detail.lost]
        among = OffsetRange(detail.intervals[0].upstream, detail.intervals[-1].upstream_end)
        copies = list(map(_stretch, uncovered(among, sorted(lost))))
        for key, kept in list(known.missing.items()):
            left = rests(kept, copies, causes)
            if left is None:
                continue
            for part in left:
                key_of_part, record = self._lost(part)
                known.missing[key_of_part] = part
                yield record
            del known.missing[key]
            yield ControlRecord(self._topic, key, None, partition=0)

    def _lost(self, kept: KeptLoss) -> tuple[bytes, ControlRecord]:
        key = loss_key(kept.partition, kept.topic_id, kept.loss)
        return key, ControlRecord(self._topic, key, loss_value(kept.loss, kept.found_at), partition=0)

    def _changed(self, partition: TopicPartition, known: PartitionMap, change: Change) -> Iterator[ControlRecord]:
        # Dropped ones first: between the two a reader knows too little, never something wrong. Second copies that count
        # go last: as long as they are there, too, the same is found once more.
        for start in change.dropped:
            yield ControlRecord(self._topic, map_key(partition, start), None, partition=0)
        for part in change.put:
            yield self._record(partition, part, known.topic_id)
        for part in change.put_again:
            yield self._record(partition, part, known.topic_id, is_again=True)
        for start in change.dropped_again:
            yield ControlRecord(self._topic, map_key(partition, start, is_again=True), None, partition=0)

    def _record(
        self, partition: TopicPartition, part: IntervalMap, topic_id: str | None, *, is_again: bool = False
    ) -> ControlRecord:
        value = ProgressDetail(part.source, part.target_end, part.intervals, logs=LogIdentity(topic_id))
        key = map_key(partition, part.source.start, is_again=is_again)
        return ControlRecord(self._topic, key, encode_progress_detail(value), partition=0)


def _stretch(offsets: OffsetRange) -> Interval:
    return Interval(offsets.start, 0, offsets.end - offsets.start)
