"""Ranges and streams of records by librdkafka's consumer and confluent-kafka's calls, a call per record and field: what
our own requests cannot read (`batches/runs.py`), and logins that only librdkafka makes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from srm_spark.core.model import OffsetRange, Ranges, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.errors import SourceChanged, SourceUnavailable
from srm_spark.kafka.clients import QUIET, LastError, kafka_partition
from srm_spark.kafka.failures import is_denied, is_passing, named
from srm_spark.kafka.fetch import Fetch, denied
from srm_spark.kafka.records import record_of
from srm_spark.kafka.tokens import with_tokens
from srm_spark.kafka.topic_ids import TopicIds

_AT_ONCE = 20_000
"""Records of one look into the queue; its bytes are bounded by what the consumer fetches ahead."""
_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_MORE_SECONDS = 0.5
"""How long topics that may not be read are gathered: each of them would end a generation of its own."""
_ASK_SECONDS = 5.0
_GATHER_FACTOR, _GATHER_BYTES = 4, 16_777_216
"""So many times as long as asking for topics takes is gathered before they are asked for again, and so much at most."""


@dataclass(frozen=True)
class Event:
    """An error of a partition, or that its end was reached, as a consumer says it among the records."""

    partition: TopicPartition
    error: KafkaError
    offset: int


class ConsumedReader:
    """A reader as `RunReader` is one."""

    def __init__(
        self, fetch: Fetch, ranges: Ranges, consumer: Consumer | None = None, topic_ids: TopicIds | None = None
    ) -> None:
        """With a client and a look at topics of its own, where none is given."""
        self.open = {partition for partition, (start, end) in ranges.items() if start < end}
        self.last_error = LastError()
        if consumer is None:
            consumer = Consumer(with_tokens({**fetch.options, "error_cb": self.last_error}), logger=QUIET)
        self._consumer = consumer
        self._topic_ids = topic_ids or TopicIds(fetch.options, self.last_error)
        self._fetch, self._ranges = fetch, ranges
        self._next = {partition: start for partition, (start, _) in ranges.items()}
        self._ask_at = 0.0
        self._consumer.assign([kafka_partition(partition, self._next[partition]) for partition in sorted(self.open)])

    @property
    def is_busy(self) -> bool:
        """Whether there is more to read."""
        return bool(self.open)

    @property
    def unread(self) -> set[TopicPartition]:
        """Partitions that are not read to the end of their range yet."""
        return set(self.open)

    def hand_over(self) -> dict[TopicPartition, OffsetRange]:
        """Nothing: there is nobody else."""
        return {}

    @property
    def is_gone(self) -> bool:
        """Whether a topic or partition was said not to exist."""
        newest = self.last_error.newest
        return newest is not None and newest.code() in _GONE

    def runs(self, seconds: float) -> Iterator[Run]:
        """What has come, once something has; nothing after `seconds`. Raises what `RunReader.runs` raises."""
        before = frozenset(self.open)
        pieces = self._taken(seconds)
        if topics := _denied_in(pieces):
            raise denied(self._fetch.cluster, sorted(topics | self._denied()))
        for piece in pieces:
            if isinstance(piece, Event):
                self._take_in(piece)
            elif (run := self._within(piece)).count:
                yield run
        if over := before - self.open:
            self._consumer.pause([kafka_partition(partition) for partition in over])

    def silence(self, seconds: float) -> str:
        """What to say where nothing came for so long."""
        partition = min(self.open)
        asked = kafka_partition(partition)
        offset = max(self._consumer.position([asked])[0].offset, self._ranges[partition].start)
        seen = str(self.last_error)
        with suppress(KafkaException):
            low, high = self._consumer.get_watermark_offsets(asked, timeout=_ASK_SECONDS)
            seen = f"{seen}; the partition holds offsets {low} to {high}"
        return (
            f"cluster {self._fetch.cluster}: {partition} gave nothing for {seconds:.0f} s at offset {offset} "
            f"of {self._ranges[partition].end}; last seen: {seen}"
        )

    def close(self) -> None:
        """Let go of the consumer; not in the way of who calls, for closing waits for brokers that may be gone."""
        threading.Thread(target=self._consumer.close, daemon=True).start()

    def _taken(self, seconds: float) -> list[Run | Event]:
        """What has come, of the topics that were asked for: they are looked at once it is here, before it is written.

        A topic that is created anew and filled again would give its records for the old ones.
        """
        expected = self._fetch.topic_ids
        pieces = self._look(seconds)
        while expected and pieces and (left := self._ask_at - time.monotonic()) > 0:
            if sum(piece.bytes for piece in pieces if isinstance(piece, Run)) > _GATHER_BYTES:
                break
            pieces += self._look(left)
        topics = {piece.partition.topic for piece in pieces if isinstance(piece, Run)}
        if known := {topic: expected[topic] for topic in topics if topic in expected}:
            began = time.monotonic()
            self._topic_ids.check(known, self._fetch.cluster, self._fetch.timeout)
            now = time.monotonic()
            self._ask_at = now + _GATHER_FACTOR * (now - began)
        return pieces

    def _look(self, seconds: float) -> list[Run | Event]:
        messages = self._consumer.consume(1, seconds)
        return list(_pieces(messages + self._consumer.consume(_AT_ONCE - 1, 0))) if messages else []

    def _within(self, run: Run) -> Run:
        """The part of a run that belongs to its range; behind the range the partition is done."""
        partition = run.partition
        if partition not in self.open:
            return run.head(0)
        # Where a log is shorter than it was, a consumer begins it anew: what it then gives is not what was asked for.
        first, expected = int(run.offsets[0]), self._next[partition]
        if first < expected:
            raise SourceChanged(
                f"cluster {self._fetch.cluster}: {partition} gave offset {first} where {expected} was next: its log "
                "went back, or another topic has its name now; the next generation finds out"
            )
        self._next[partition] = int(run.offsets[-1]) + 1
        start, end = np.searchsorted(run.offsets, self._ranges[partition]).tolist()
        if run.offsets[-1] >= self._ranges[partition].end - 1:
            self.open.discard(partition)
        return run if end - start == run.count else run.slice(start, end)

    def _take_in(self, event: Event) -> None:
        """What a consumer says beside records. An end before the range's is none: the leader may lag behind."""
        partition = event.partition
        if event.error.code() != KafkaError._PARTITION_EOF:
            self._check(event)
        elif partition in self.open and event.offset >= self._ranges[partition].end:
            self.open.discard(partition)

    def _check(self, event: Event) -> None:
        """Raises SourceUnavailable unless an error passes by itself."""
        if not is_passing(event.error):
            what = f"cannot read {event.partition}: {named(event.error)}"
            raise SourceUnavailable(f"cluster {self._fetch.cluster}: {what}; the next start tries again")

    def _denied(self) -> set[str]:
        """Further topics that may not be read."""
        topics: set[str] = set()
        deadline = time.monotonic() + _MORE_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            topics |= _denied_in(self._look(left))
        return topics


def _denied_in(pieces: Iterable[Run | Event]) -> set[str]:
    """Topics that may not be read."""
    return {
        piece.partition.topic
        for piece in pieces
        if isinstance(piece, Event) and is_denied(piece.error) and piece.partition.topic
    }


def _pieces(messages: list[Message]) -> Iterator[Run | Event]:
    for (topic, number, is_event), several in groupby(messages, lambda m: (m.topic(), m.partition(), bool(m.error()))):
        partition = TopicPartition(topic or "", -1 if number is None else number)
        if not is_event:
            yield Run.of(partition, [record_of(message) for message in several])
            continue
        for message in several:
            if (error := message.error()) is not None:
                yield Event(partition, error, message.offset() or 0)
