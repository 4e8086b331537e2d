"""Fetches the records of some partitions from the leaders of the source: batches, taken apart some at a time, or as far
as somebody has to look inside.

While a range is taken apart and written, its next answer is on its way. What this cannot read is `left` to a
client library: logs of old message formats, timestamps beyond what is counted with here, brokers before Kafka 2.7.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any, TypeVar

from confluent_kafka import KafkaError
from kafka.errors import for_code

from srm_spark.core.model import OffsetRange, PausedPartition, Ranges, TopicPartition
from srm_spark.core.record_batch import MAGIC, Batch, OddTimes
from srm_spark.core.rows import Run
from srm_spark.errors import CodecError, ProtocolUnavailable, SourceChanged, SourceUnavailable
from srm_spark.kafka.batches.bounds import fetch_bounds
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.damage import broken_hold, sound
from srm_spark.kafka.batches.fetching import AHEAD_BYTES, Fetching, Place
from srm_spark.kafka.batches.sorting import Form, Pieces, opened
from srm_spark.kafka.batches.sources import Part
from srm_spark.kafka.batches.unpacking import Broken, unpack
from srm_spark.kafka.batches.wire import FetchedPartition
from srm_spark.kafka.failures import named
from srm_spark.kafka.fetch import Fetch, denied

_OUT_OF_RANGE, _UNKNOWN_TOPIC, _DENIED = 1, 3, 29
_GATHER_SECONDS = 0.75
"""How long topics that may not be read are gathered: each of them would end a generation of its own."""
_GONE_SECONDS = 5.0
"""So long a topic that a broker does not know is taken for a new one."""
_NAP_SECONDS = 0.05
T = TypeVar("T")


@dataclass
class RunPlace(Place):
    """How far one partition is fetched; what lies before `next` need not be taken apart yet."""

    is_over: bool = False
    """Nothing more of it is read here."""

    @property
    def is_open(self) -> bool:
        """Whether there is more to fetch."""
        return not self.is_over and self.next < self.end


@dataclass(frozen=True)
class _Piece:
    """What has come of a partition, and how its reading ends behind it, if it does."""

    place: RunPlace
    start: int
    """The first offset that is wanted."""
    parts: list[Part] = field(default_factory=list)
    hold: PausedPartition | None = None
    left: int | None = None

    @property
    def bytes(self) -> int:
        """Held of an answer."""
        return sum(len(data) for _, data in self.parts)


class RunReader(Fetching[RunPlace]):
    """The records of some ranges as runs, in offset order within each partition."""

    def __init__(self, brokers: Brokers, fetch: Fetch, ranges: Ranges, *, wait_ms: int, is_live: bool = False) -> None:
        """A broker that has nothing lets the answer wait for `wait_ms` at most.

        What comes is asked for before what came is written, but for what `is_live`, without an end: there the next
        answer has everything until then, and brokers are told what is wanted once.
        """
        self._each = {p: RunPlace(p, end, start) for p, (start, end) in ranges.items() if start < end}
        super().__init__(
            brokers,
            self._each,
            fetch.topic_ids,
            committed=fetch.committed,
            rack=fetch.rack,
            wait_ms=wait_ms,
            bounds=fetch_bounds(fetch.options),
            in_sessions=is_live,
        )
        self._cluster, self._is_live = fetch.cluster, is_live
        self._pieces: deque[_Piece] = deque()
        self.open = set(self._each)
        """Partitions of which more is read here."""
        self.holds: dict[TopicPartition, PausedPartition] = {}
        """Batches that are damaged, with everything in front of them given."""
        self._left: dict[TopicPartition, OffsetRange] = {}
        """What a client library has to read, with everything in front of it given."""
        self.is_reached = False
        """Whether the cluster has answered at all."""
        self._is_away = False
        self._denied: set[str] = set()
        self._unknown_since: dict[str, float] = {}

    @property
    def is_busy(self) -> bool:
        """Whether there is more to read here; what is left is none of it."""
        return bool(self.open) and (self.is_reached or not self._is_away)

    @property
    def unread(self) -> set[TopicPartition]:
        """Partitions that are not read to the end of their range yet, here or elsewhere."""
        return self.open | self._left.keys()

    def hand_over(self) -> dict[TopicPartition, OffsetRange]:
        """What a client library has to read from now on: all of it, where this has never reached the cluster."""
        if self._is_away and not self.is_reached:
            self._left = {p: OffsetRange(place.next, place.end) for p, place in self._each.items()}
            for place in self._each.values():
                place.is_over = True
            self.open.clear()
        left, self._left = self._left, {}
        return left

    @property
    def is_gone(self) -> bool:
        """Whether there is no topic of one of these names."""
        late = time.monotonic() - _GONE_SECONDS
        return any(since < late for since in self._unknown_since.values())

    def runs(self, seconds: float) -> Iterator[Run]:
        """What has come, once something has; nothing after `seconds`.

        Raises SourceDenied for all topics that may not be read, SourceUnavailable for another refusal, SourceChanged
        where a log went back or a topic was created anew.
        """
        return self._taken(seconds, self._records)

    def parts(self, seconds: float) -> Iterator[Part]:
        """The same as batches that nobody has looked into, control batches among them; in order."""
        return self._taken(seconds, lambda piece: iter(piece.parts))

    def copies(self, seconds: float, forms: Mapping[str, Form]) -> Iterator[Run | Pieces]:
        """The same as batches of these forms, by topic, and as records where somebody has to look at them; in order."""

        def copies_of(piece: _Piece) -> Iterator[Run | Pieces]:
            place = piece.place
            return opened(place.partition, piece.parts, piece.start, place.end, forms[place.partition.topic])

        return self._taken(seconds, copies_of)

    def _taken(self, seconds: float, look: Callable[[_Piece], Iterator[T]]) -> Iterator[T]:
        if not self._pieces:
            self._ask()
            self._receive(seconds)
        self._require_allowed()
        held, is_due = self._held, not self._is_live
        while self._pieces:
            if is_due and held <= AHEAD_BYTES:
                is_due = False
                self._ask()
            piece = self._pieces.popleft()
            held -= piece.bytes
            yield from self._given(piece, look)
        self.open -= {p for p in self.open if not self._each[p].is_open}

    def silence(self, seconds: float) -> str:
        """What to say where nothing came for so long."""
        partition = min(self.open)
        place, seen = self._each[partition], self.last_error
        if (bounds := self._log_range(partition)) is not None:
            seen = f"{seen}; the partition holds offsets {bounds[0]} to {bounds[1]}"
        return (
            f"cluster {self._cluster}: {partition} gave nothing for {seconds:.0f} s at offset {place.next} "
            f"of {place.end}; last seen: {seen}"
        )

    def close(self) -> None:
        """Let go of the connections."""
        self._brokers.close()

    def _log_range(self, partition: TopicPartition) -> tuple[int, int] | None:
        leader = self._leaders.get(partition)
        with suppress(ProtocolUnavailable):
            return None if leader is None else self._brokers.log_range(partition, leader.node)
        return None

    @property
    def _held(self) -> int:
        """Bytes that came and were not taken apart yet."""
        return sum(piece.bytes for piece in self._pieces)

    def _ask(self) -> None:
        try:
            self.ask()
        except ProtocolUnavailable as error:
            self._is_away = True
            self._away(error)

    def _receive(self, seconds: float) -> None:
        waiting: list[Any] = list(self._asked)
        if not waiting:
            time.sleep(min(seconds, _NAP_SECONDS))
            return
        ready: list[Any] = [one for one in waiting if one.has_more] or wait(waiting, seconds)
        for connection in ready:
            if self._held > AHEAD_BYTES:
                return  # the other answers wait where they are
            try:
                self.take(connection)
            except (OSError, CodecError) as error:
                self.last_error = str(error)
                self.lost(connection)

    def _require_allowed(self) -> None:
        if not self._denied:
            return
        deadline = time.monotonic() + _GATHER_SECONDS
        while self._asked and (left := deadline - time.monotonic()) > 0:
            self._receive(left)
        raise denied(self._cluster, sorted(self._denied))

    def _records(self, piece: _Piece) -> Iterator[Run]:
        place = piece.place
        for run in unpack(place.partition, piece.parts, piece.start, place.end):
            if run.offsets[-1] >= place.end - 1:
                self.open.discard(place.partition)
            yield run

    def _given(self, piece: _Piece, look: Callable[[_Piece], Iterator[T]]) -> Iterator[T]:
        place, partition = piece.place, piece.place.partition
        try:
            yield from look(piece)
        except Broken as error:
            place.is_over = True
            self._pieces = deque(later for later in self._pieces if later.place is not place)
            if error.is_time:
                self._leave(place, error.at)
            else:
                self._hold(partition, broken_hold(error.at, str(error)))
            return
        if piece.hold is not None:
            self._hold(partition, piece.hold)
        if piece.left is not None:
            self._leave(place, piece.left)

    def _leave(self, place: RunPlace, at: int) -> None:
        self._left[place.partition] = OffsetRange(at, place.end)
        self.open.discard(place.partition)

    def _hold(self, partition: TopicPartition, hold: PausedPartition) -> None:
        self.holds[partition] = hold
        self.open.discard(partition)

    def _take_in(self, place: RunPlace, answer: FetchedPartition) -> None:
        self.is_reached = True
        if not self._come(place, answer):
            return
        start = place.next
        batches: list[Batch] = []
        parts: list[Part] = []
        error = sound(place.partition, answer.records, place.end, batches)
        for batch in self._present(batches, answer):
            if batch.magic != MAGIC:
                error = OddTimes("it is of an old message format")
                break
            if batch.base_offset >= place.end:
                place.next = place.end
                break
            if batch.end > place.next:
                parts.append((batch, answer.records[batch.at : batch.at + batch.size]))
                place.next = min(batch.end, place.end)
        is_stuck = place.next == start
        if place.is_open and (error is not None or is_stuck):
            place.is_over = True
            is_left = isinstance(error, OddTimes) or error is None  # not one whole batch came: larger than any answer
            hold = None if is_left else broken_hold(place.next, str(error))
            self._pieces.append(_Piece(place, start, parts, hold, place.next if is_left else None))
        elif parts:
            self._pieces.append(_Piece(place, start, parts))

    def _refused(self, place: RunPlace, error: int) -> None:
        partition = place.partition
        if error == _OUT_OF_RANGE:
            self._find(place)
        elif error == _DENIED:
            self._denied.add(partition.topic)
        else:
            self.last_error = named(KafkaError(error))
            if not for_code(error).retriable:
                raise SourceUnavailable(
                    f"cluster {self._cluster}: cannot read {partition}: {self.last_error}; the next start tries again"
                )
            self._leaders.pop(partition, None)

    def _find(self, place: RunPlace) -> None:
        """Go on where the log begins by now, if it begins behind what is next."""
        partition = place.partition
        leader = self._leaders[partition]
        if self._nodes[partition] != leader.node:
            self._nodes[partition] = leader.node  # who follows may not have it yet
            return
        bounds = self._log_range(partition)
        if bounds is None:
            self._leaders.pop(partition, None)
        elif place.next < bounds[0]:
            place.next = min(place.end, bounds[0])
        elif place.next > bounds[1]:
            raise SourceChanged(
                f"cluster {self._cluster}: {partition} ends at offset {bounds[1]} where {place.next} was next: its log "
                "went back, or another topic has its name now; the next generation finds out"
            )

    def _away(self, error: ProtocolUnavailable) -> None:
        self.last_error = str(error)

    def _cannot(self, place: RunPlace) -> None:
        place.is_over = True
        self._pieces.append(_Piece(place, place.next, left=place.next))

    def _is_another(self, place: RunPlace) -> None:
        topic = place.partition.topic
        raise SourceChanged(f"cluster {self._cluster}: topic {topic} was created anew while it was read")

    def _leaderless(self, errors: Mapping[TopicPartition, int]) -> None:
        self.is_reached = True
        unknown = {partition.topic for partition, error in errors.items() if error == _UNKNOWN_TOPIC}
        self._unknown_since = {topic: self._unknown_since.get(topic, time.monotonic()) for topic in unknown}
        self._denied |= {partition.topic for partition, error in errors.items() if error == _DENIED}
        for partition, error in sorted(errors.items()):
            self.last_error = f"{partition}: {_meaning(error)}"


def _meaning(error: int) -> str:
    return "the topic does not exist" if error == _UNKNOWN_TOPIC else named(KafkaError(error))
