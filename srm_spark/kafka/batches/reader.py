"""Fetches the batches of some ranges from the leaders of the source: as they lie there, or packed anew where that is
better or has to be (`sorting.py`).

It only reads: whatever is not as it should be ends the reading of a partition. Where a batch is damaged, the partition
waits in front of it; everything else librdkafka finds out, which has a sentence for every failure.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from srm_spark.core.model import OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.record_batch import Batch, OddTimes
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.batches.bounds import USUAL_FETCH, FetchBounds
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.damage import broken_hold, sound_sources
from srm_spark.kafka.batches.fetching import AHEAD_BYTES, Fetching, Place
from srm_spark.kafka.batches.packer import Packed
from srm_spark.kafka.batches.skimming import Skimmed
from srm_spark.kafka.batches.sorting import Form, sort
from srm_spark.kafka.batches.wire import FetchedPartition

log = logging.getLogger(__name__)

_WAIT_MS = 50


@dataclass(kw_only=True)
class PartitionReading(Place):
    """How far one partition is read; every offset before `next` is in a piece, or has no record."""

    form: Form
    pieces: deque[Packed] = field(default_factory=deque)
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
        several: list[Batch | Skimmed] = []
        # Where none was aborted, what lies in front of the last stable offset is committed.
        takes = not (self._committed and answer.aborted)
        error = sound_sources(place.partition, answer.records, place.end, several, takes_transactions=takes)
        sources = [
            one if isinstance(one, Skimmed) else (one, answer.records[one.at : one.at + one.size])
            for one in self._present(several, answer)
        ]
        found = sort(place.partition, sources, place.next, place.end, place.form)
        place.pieces.extend(found.pieces)
        self.ahead += sum(piece.batch.size for piece in found.pieces)
        place.next, place.stop, place.hold = found.next, found.stop, found.hold
        if error is not None and place.is_open:
            if isinstance(error, OddTimes):
                self._give_up(place)
            else:
                place.hold = broken_hold(place.next, str(error))
        if place.next == before and place.is_open:
            self._give_up(place)  # not one whole batch came: larger than any answer, or cut off
