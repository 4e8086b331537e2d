"""Fetches the batches of some ranges from the leaders of the source: as they lie there, or packed anew where that is
better or has to be (`packing.py`).

It only reads: whatever is not as it should be ends the reading of a partition. Where a batch is damaged, the partition
waits in front of it; everything else librdkafka finds out, which has a sentence for every failure.
"""

from __future__ import annotations

import logging
import time
from base64 import urlsafe_b64decode
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import crc32c

from srm_spark.core.limits import Limits
from srm_spark.core.model import OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.record_batch import CHECKED_FROM, MAGIC, Batch, Fit, Odd, OddTimes, batches_in
from srm_spark.errors import CodecError, ProtocolUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.batches.bounds import USUAL_FETCH, FetchBounds
from srm_spark.kafka.batches.brokers import Brokers, Connection, Leader
from srm_spark.kafka.batches.codecs import NONE
from srm_spark.kafka.batches.packer import TARGET_BYTES, Packed, Why, whole
from srm_spark.kafka.batches.packing import merge
from srm_spark.kafka.batches.sources import Part
from srm_spark.kafka.batches.wire import FetchedPartition, TopicKey, Wanted, fetch_answer, fetch_body

log = logging.getLogger(__name__)

_WAIT_MS = 50
_AHEAD_BYTES = 33_554_432
"""So much is fetched before it is written."""
_SMALL_PLAIN, _SMALL_COMPRESSED = 131_072, 8_192
"""A batch of fewer bytes costs more as it is than packed anew with its neighbours: a request of its own."""
_PACKED_ANEW = frozenset({Odd.GAPS, Odd.LOG_APPEND_TIME, Odd.EDGE, Odd.SIZE, Odd.CODEC, Odd.HORIZON})
"""What does not go whole for these reasons goes in another batch."""
_MOVED = frozenset({3, 5, 6, 9, 56, 74, 75, 100, 103})
"""Errors of a broker that does not lead the partition, or does not know yet that it does."""
_MOVED_SECONDS = 0.1
_ANY = Limits(max_bytes=2**31)
_REMEDY = "delete it on the source (kafka-delete-records) or let retention pass it"


@dataclass(frozen=True)
class Form:
    """What batches of one source topic must become."""

    fit: Fit
    limits: Limits
    """Of the target topic, for what is packed anew."""
    codec: str = ""
    """In which that is compressed; empty for the one that it came in."""
    level: int | None = None
    batch_bytes: int = TARGET_BYTES
    """Of what is packed anew, where the target topic takes so much."""


@dataclass
class PartitionReading:
    """How far one partition is read."""

    partition: TopicPartition
    end: int
    form: Form
    next: int
    """The next offset to ask for; every one before it is in a piece, or has no record."""
    pieces: deque[Packed] = field(default_factory=deque)
    loose: list[Part] = field(default_factory=list)
    """Batches that were read and are to be packed anew; `next` is behind them."""
    loose_from: int = 0
    """The first offset that they are about."""
    stop: OffsetRange | None = None
    """Offsets that do not go whole: from where to before which; nothing behind them was read."""
    hold: PausedPartition | None = None
    """A batch that is damaged, with everything in front of it in a piece."""
    is_asked: bool = False
    bytes: int = 0
    """That were fetched of it; who got least is asked for first."""

    @property
    def is_open(self) -> bool:
        """Whether there is more to fetch."""
        return self.stop is None and self.hold is None and self.next < self.end


class BatchReader:
    """The ranges of one task."""

    def __init__(
        self,
        brokers: Brokers,
        ranges: Mapping[TopicPartition, OffsetRange],
        forms: Mapping[TopicPartition, Form],
        topic_ids: Mapping[str, str],
        *,
        committed: bool,
        rack: str,
        seconds: float,
        bounds: FetchBounds = USUAL_FETCH,
    ) -> None:
        self._bounds = bounds
        self.readings = {p: PartitionReading(p, end, forms[p], start) for p, (start, end) in ranges.items()}
        self.ahead = 0
        """Bytes that were fetched and not taken yet; who takes a piece subtracts them."""
        self._brokers = brokers
        self._topic_ids = {topic: urlsafe_b64decode(topic_id + "==") for topic, topic_id in topic_ids.items()}
        self._committed, self._rack, self._seconds = committed, rack, seconds
        self._leaders: dict[TopicPartition, Leader] = {}
        self._nodes: dict[TopicPartition, int] = {}
        """Whom to ask: the leader, or the replica in our rack that it named (KIP-392)."""
        self._asked: dict[Connection, dict[tuple[TopicKey, int], PartitionReading]] = {}
        self._look_at = 0.0
        self._moved_at = time.monotonic()

    @property
    def waiting(self) -> Iterable[Connection]:
        """Connections that will answer."""
        return self._asked

    @property
    def is_over(self) -> bool:
        """Whether no more pieces come."""
        return not self._asked and not any(reading.is_open for reading in self.readings.values())

    def ask(self, most_bytes: int) -> None:
        """Ask every leader for what is next, about so many bytes, unless one is still answering or enough has come.

        Raises ProtocolUnavailable and OSError where the cluster is not there.
        """
        if self.ahead > _AHEAD_BYTES:
            return
        due = defaultdict[int, list[PartitionReading]](list)
        for reading in self.readings.values():
            if reading.is_open and not reading.is_asked and (node := self._node(reading)) is not None:
                due[node].append(reading)
        for node, readings in due.items():
            connection = self._brokers.connection(node)
            if not connection.can_fetch:
                for reading in readings:
                    self._give_up(reading)
            elif connection not in self._asked and connection.quiet_until <= time.monotonic():
                self._send(connection, readings, min(self._bounds.answer_bytes, most_bytes))

    def take(self, connection: Connection) -> None:
        """Take in an answer that has begun to come. Raises OSError and CodecError; `lost` is to be called then."""
        throttled, error, answers = fetch_answer(connection.receive(), is_by_id=connection.fetches_by_id)
        if error:
            raise OSError(f"the fetch was refused: error {error}")
        connection.quiet_until = time.monotonic() + throttled / 1000
        if not connection.fetches_by_id:
            self._look_at_topics(self._asked[connection].values())
        asked = self._asked.pop(connection)
        for reading in asked.values():
            reading.is_asked = False
        # A broker fills its answer from the front, with at least one batch: where nothing came, nothing is there.
        is_dry = not any(answer.records for answer in answers)
        for answer in answers:
            asking = asked.get((answer.topic, answer.partition))
            if asking is not None and asking.is_open:
                self._take_in(asking, answer)
                if is_dry and not answer.error and answer.readable_end >= asking.end:
                    asking.next = asking.end

    def finish(self) -> None:
        """Take what was asked for and is not wanted any more, so that the connections can be used again."""
        for connection in list(self._asked):
            try:
                self.take(connection)
            except (OSError, CodecError):
                connection.close()
                self.lost(connection)

    def lost(self, connection: Connection) -> None:
        """Forget what was asked of a connection that is gone."""
        for reading in self._asked.pop(connection, {}).values():
            reading.is_asked = False
            self._leaders.pop(reading.partition, None)

    def give_up(self) -> None:
        """Nothing more is read on this way."""
        for reading in self.readings.values():
            if reading.is_open:
                self._give_up(reading)

    def check_silence(self) -> None:
        """Give up where nothing has come for too long; who waits for the target is not kept waiting by the source."""
        now = time.monotonic()
        if self.ahead:
            self._moved_at = now
        elif now - self._moved_at > self._seconds:
            if any(reading.is_open for reading in self.readings.values()):
                log.info("%s: nothing came for %g s: it is read record by record", self._brokers.where, self._seconds)
            self.give_up()

    def _give_up(self, reading: PartitionReading) -> None:
        reading.stop = OffsetRange(reading.next, reading.end)

    def _node(self, reading: PartitionReading) -> int | None:
        partition = reading.partition
        if partition not in self._leaders:
            if time.monotonic() < self._look_at:
                return None
            self._look_at = time.monotonic() + _MOVED_SECONDS
            missing = [p for p, one in self.readings.items() if one.is_open and p not in self._leaders]
            self._leaders |= self._brokers.leaders(missing)
            self._nodes = {p: leader.node for p, leader in self._leaders.items()}
        leader = self._leaders.get(partition)
        if leader is not None and self._topic_ids.get(partition.topic, leader.topic_id) != leader.topic_id:
            self._give_up(reading)
            return None
        return self._nodes.get(partition)

    def _send(self, connection: Connection, readings: list[PartitionReading], most_bytes: int) -> None:
        wanted = defaultdict[TopicKey, list[Wanted]](list)
        asked: dict[tuple[TopicKey, int], PartitionReading] = {}
        for reading in sorted(readings, key=lambda one: one.bytes):
            leader = self._leaders[reading.partition]
            name, number = reading.partition
            topic = leader.topic_id if connection.fetches_by_id else name
            wanted[topic].append(Wanted(number, leader.epoch, reading.next, self._bounds.partition_bytes))
            asked[topic, number] = reading
            reading.is_asked = True
        self._asked[connection] = asked
        connection.fetch(fetch_body(wanted, _WAIT_MS, most_bytes, self._rack, committed=self._committed))

    def _look_at_topics(self, readings: Iterable[PartitionReading]) -> None:
        """Who gives records by a topic's name may give those of a new topic that has it. Raises OSError."""
        expected = {one.partition: one for one in readings if one.is_open and one.partition.topic in self._topic_ids}
        if not expected:
            return
        try:
            leaders = self._brokers.leaders(expected)
        except ProtocolUnavailable as error:
            raise OSError(f"nobody tells whose records have come: {error}") from error
        for partition, reading in expected.items():
            leader = leaders.get(partition)
            if leader is None or leader.topic_id != self._topic_ids[partition.topic]:
                self._give_up(reading)

    def _take_in(self, reading: PartitionReading, answer: FetchedPartition) -> None:
        partition = reading.partition
        if answer.error in _MOVED:
            self._leaders.pop(partition, None)
            return
        if answer.error:
            self._give_up(reading)
            return
        if answer.preferred_replica >= 0:
            self._nodes[partition] = answer.preferred_replica
        if not answer.records:
            return
        self._moved_at = time.monotonic()
        reading.bytes += len(answer.records)
        before = reading.next
        batches: list[Batch] = []
        error = _sound(reading.partition, answer.records, reading.end, batches)
        for batch in self._present(batches, answer):
            if not reading.is_open:
                break
            self._add(reading, batch, answer.records)
        self._pack(reading)
        if error is not None and reading.is_open:
            if isinstance(error, OddTimes):
                self._give_up(reading)
            else:
                reading.hold = _hold(reading.next, str(error))
        if reading.next == before and reading.is_open:
            self._give_up(reading)  # not one whole batch came: larger than any answer, or cut off

    def _present(self, batches: Iterable[Batch], answer: FetchedPartition) -> Iterator[Batch]:
        """The batches, those of aborted transactions as if they held nothing (KIP-98)."""
        if not self._committed:
            yield from batches
            return
        starting = sorted(answer.aborted, key=lambda one: one[1])
        aborting: set[int] = set()
        for batch in batches:
            while starting and starting[0][1] < batch.end:
                aborting.add(starting.pop(0)[0])
            if batch.is_control:
                aborting.discard(batch.producer_id)
            elif batch.is_transactional and batch.producer_id in aborting:
                yield batch._replace(records=0)
                continue
            yield batch

    def _add(self, reading: PartitionReading, batch: Batch, records: memoryview) -> None:
        is_readable = batch.magic == MAGIC
        if is_readable and (batch.is_control or not batch.records or batch.base_offset >= reading.end):
            reading.next = max(reading.next, min(batch.end, reading.end))
            return
        if is_readable and batch.end <= reading.next:
            return  # a leader gives the batch that holds the offset, and compaction may have taken that one out of it
        why = reading.form.fit.odd(batch, reading.next, reading.end)
        data = records[batch.at : batch.at + batch.size]
        if why is None and not _is_small(batch):
            self._pack(reading)
            if reading.is_open:
                reading.pieces.append(whole(batch, data))
                self.ahead += batch.size
        elif why is None or why in _PACKED_ANEW:
            if not reading.loose:
                reading.loose_from = reading.next
            reading.loose.append((batch, data))
        else:
            self._pack(reading)
            if reading.is_open:
                # Where nobody knows what the batch holds, nobody knows where it ends, either.
                end = min(batch.end, reading.end) if is_readable else reading.end
                reading.stop = OffsetRange(reading.next, end)
        if reading.is_open:
            reading.next = max(reading.next, min(batch.end, reading.end))

    def _pack(self, reading: PartitionReading) -> None:
        """Pack anew what is loose."""
        if not reading.loose:
            return
        form, parts = reading.form, reading.loose
        packing = merge(
            reading.partition,
            parts,
            reading.loose_from,
            reading.end,
            limits=form.limits,
            now_ms=int(time.time() * 1000),
            codec=form.codec,
            level=form.level,
            target_bytes=min(form.limits.batch_bytes, form.batch_bytes),
        )
        reading.loose = []
        reading.pieces.extend(packing.pieces)
        self.ahead += sum(piece.batch.size for piece in packing.pieces)
        if packing.stop is not None:
            reading.next = packing.stop.offset
            if packing.stop.why is Why.BROKEN:
                reading.hold = _hold(packing.stop.offset, packing.stop.sentence)
                return
            reading.stop = OffsetRange(packing.stop.offset, min(packing.stop.end, reading.end))


def _sound(partition: TopicPartition, records: memoryview, end: int, found: list[Batch]) -> CodecError | None:
    """Find the batches that begin before `end`, up to one that is damaged: what is wrong with that one.

    Nothing that a header says is to be believed before its checksum is right.
    """
    try:
        for batch in batches_in(records):
            if batch.base_offset < end and batch.magic == MAGIC:
                if crc32c.crc32c(records[batch.at + CHECKED_FROM : batch.at + batch.size]) != batch.checksum:
                    raise CodecError(f"the batch at offset {batch.base_offset} is damaged: {Odd.CHECKSUM.value}")
                if not batch.codec:
                    raise CodecError(f"the batch at offset {batch.base_offset} is compressed in an unknown codec")
            found.append(batch)
    except CodecError as error:
        return error if isinstance(error, OddTimes) else CodecError(f"{partition}: {error}")
    return None


def _hold(offset: int, sentence: str) -> PausedPartition:
    return PausedPartition(offset, Failure(FailureKind.BROKEN_BATCH, f"{sentence}; {_REMEDY}"))


def damage(partition: TopicPartition, piece: Packed) -> PausedPartition | None:
    """Where a batch that came whole is damaged, which nobody has looked for yet."""
    end = piece.batch.end
    stop = merge(partition, [(piece.batch, piece.data)], 0, end, limits=_ANY, now_ms=0, codec=NONE).stop
    return _hold(stop.offset, stop.sentence) if stop is not None and stop.why is Why.BROKEN else None


def _is_small(batch: Batch) -> bool:
    return batch.size < (_SMALL_PLAIN if batch.codec == NONE else _SMALL_COMPRESSED)
