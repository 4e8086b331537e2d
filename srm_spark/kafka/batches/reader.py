"""Fetches the batches of some ranges from the leaders of the source: as they lie there, or packed anew where that is
better or has to be (`packing.py`).

It only reads: whatever is not as it should be ends the reading of a partition. Where a batch is damaged, the partition
waits in front of it; everything else librdkafka finds out, which has a sentence for every failure.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from srm_spark.core.limits import Limits
from srm_spark.core.model import OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.record_batch import MAGIC, Batch, Fit, Odd, OddTimes
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.batches.bounds import USUAL_FETCH, FetchBounds
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.codecs import NONE
from srm_spark.kafka.batches.fetching import AHEAD_BYTES, Fetching, Place, broken_hold, sound
from srm_spark.kafka.batches.packer import TARGET_BYTES, Packed, Why, whole
from srm_spark.kafka.batches.packing import merge
from srm_spark.kafka.batches.sources import Part
from srm_spark.kafka.batches.wire import FetchedPartition

log = logging.getLogger(__name__)

_WAIT_MS = 50
_SMALL_PLAIN, _SMALL_COMPRESSED = 131_072, 8_192
"""A batch of fewer bytes costs more as it is than packed anew with its neighbours: a request of its own."""
_PACKED_ANEW = frozenset({Odd.GAPS, Odd.LOG_APPEND_TIME, Odd.EDGE, Odd.SIZE, Odd.CODEC, Odd.HORIZON})
"""What does not go whole for these reasons goes in another batch."""
_ANY = Limits(max_bytes=2**31)


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


@dataclass(kw_only=True)
class PartitionReading(Place):
    """How far one partition is read; every offset before `next` is in a piece, or has no record."""

    form: Form
    pieces: deque[Packed] = field(default_factory=deque)
    loose: list[Part] = field(default_factory=list)
    """Batches that were read and are to be packed anew; `next` is behind them."""
    loose_from: int = 0
    """The first offset that they are about."""
    stop: OffsetRange | None = None
    """Offsets that do not go whole: from where to before which; nothing behind them was read."""
    hold: PausedPartition | None = None
    """A batch that is damaged, with everything in front of it in a piece."""

    @property
    def is_open(self) -> bool:
        """Whether there is more to fetch."""
        return self.stop is None and self.hold is None and self.next < self.end


class BatchReader(Fetching[PartitionReading]):
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
        self.readings = {p: PartitionReading(p, end, start, form=forms[p]) for p, (start, end) in ranges.items()}
        super().__init__(
            brokers, self.readings, topic_ids, committed=committed, rack=rack, wait_ms=_WAIT_MS, bounds=bounds
        )
        self.ahead = 0
        """Bytes that were fetched and not taken yet; who takes a piece subtracts them."""
        self._seconds = seconds

    def ask(self, most_bytes: int = AHEAD_BYTES) -> None:
        """The same, unless enough has come."""
        if self.ahead <= AHEAD_BYTES:
            super().ask(most_bytes)

    def give_up(self) -> None:
        """Nothing more is read on this way."""
        for reading in self.readings.values():
            if reading.is_open:
                self._give_up(reading)

    def check_silence(self) -> None:
        """Give up where nothing has come for too long; who waits for the target is not kept waiting by the source."""
        now = time.monotonic()
        if self.ahead:
            self.moved_at = now
        elif now - self.moved_at > self._seconds:
            if any(reading.is_open for reading in self.readings.values()):
                what = "%s: nothing came for %g s (last seen: %s): it is read record by record"
                log.info(what, self._brokers.where, self._seconds, self.last_error)
            self.give_up()

    def _give_up(self, place: PartitionReading) -> None:
        place.stop = OffsetRange(place.next, place.end)

    def _refused(self, place: PartitionReading, error: int) -> None:
        del error  # who reads record by record finds it out, too
        self._give_up(place)

    def _away(self, error: ProtocolUnavailable) -> None:
        raise error

    def _cannot(self, place: PartitionReading) -> None:
        self._give_up(place)

    def _is_another(self, place: PartitionReading) -> None:
        self._give_up(place)

    def _take_in(self, place: PartitionReading, answer: FetchedPartition) -> None:
        if not self._come(place, answer):
            return
        before = place.next
        batches: list[Batch] = []
        error = sound(place.partition, answer.records, place.end, batches)
        for batch in self._present(batches, answer):
            if not place.is_open:
                break
            self._add(place, batch, answer.records)
        self._pack(place)
        if error is not None and place.is_open:
            if isinstance(error, OddTimes):
                self._give_up(place)
            else:
                place.hold = broken_hold(place.next, str(error))
        if place.next == before and place.is_open:
            self._give_up(place)  # not one whole batch came: larger than any answer, or cut off

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
                reading.hold = broken_hold(packing.stop.offset, packing.stop.sentence)
                return
            reading.stop = OffsetRange(packing.stop.offset, min(packing.stop.end, reading.end))


def damage(partition: TopicPartition, piece: Packed) -> PausedPartition | None:
    """Where a batch that came whole is damaged, which nobody has looked for yet."""
    end = piece.batch.end
    stop = merge(partition, [(piece.batch, piece.data)], 0, end, limits=_ANY, now_ms=0, codec=NONE).stop
    return broken_hold(stop.offset, stop.sentence) if stop is not None and stop.why is Why.BROKEN else None


def _is_small(batch: Batch) -> bool:
    return batch.size < (_SMALL_PLAIN if batch.codec == NONE else _SMALL_COMPRESSED)
