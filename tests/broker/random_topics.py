"""Random topics and records, and what a translated offset has to be: told from the records alone.

Every record carries a number of its own in a header, so a copy says which record it is a copy of.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, Message, Producer

from tests.broker.conftest import Pair
from tests.kafka_io import TIMEOUT, Log

_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "100",
}
_KINDS = ("plain", "growing", "trimmed", "transactional", "compacted")
_HEADER = "number"

Place = tuple[str, int]
"""Topic and partition of the source."""
Copies = list[tuple[int, int]]
"""In order: offset on the source, offset on the target."""


@dataclass
class RandomTopics:
    """The source topics of one test, and where every record was ever written."""

    pair: Pair
    random: random.Random
    partitions: dict[str, int] = field(default_factory=dict)
    """Topic → partitions; a topic's name begins with its kind."""
    offsets: dict[int, int] = field(default_factory=dict)
    """Number of a record → its offset."""

    def create(self) -> None:
        """Make one topic of each kind."""
        for kind in _KINDS:
            name = self.pair.topic(kind)
            self.partitions[name] = self.random.randint(1, 2)
            self.pair.source.create(name, self.partitions[name], _COMPACTED if kind == "compacted" else {})

    def change(self) -> None:
        """Write to every topic, deletions too; one topic may grow."""
        growing = self.pair.topic("growing")
        if self.random.random() < 0.5:
            self.partitions[growing] += 1
            self.pair.source.grow(growing, self.partitions[growing])
        for topic in self.partitions:
            count = self.random.randint(1, 60)
            self._transactions(topic, count) if topic == self.pair.topic("transactional") else self._write(topic, count)

    def trim(self) -> None:
        """Let a topic lose its beginning, which has been copied."""
        topic = self.pair.topic("trimmed")
        for partition, end in self.pair.source.ends(topic).items():
            self.pair.source.delete_records(topic, partition, self.random.randint(0, end))

    def anywhere(self, ends: Mapping[str, Mapping[int, int]]) -> dict[Place, int]:
        """Where a group may stand: anything from the first offset ever to the end of each partition."""
        return {(topic, p): self.random.randint(0, end) for topic, found in ends.items() for p, end in found.items()}

    def copies(self, remote: Log) -> dict[int, Copies]:
        """Partition → what the records of a remote topic are copies of."""
        return {
            partition: [(self.offsets[int(dict(s.record.headers)[_HEADER] or b"")], s.offset) for s in found]
            for partition, found in remote.items()
        }

    def _write(self, topic: str, count: int) -> None:
        producer = self.pair.source.producer()
        self._produce(producer, topic, count)

    def _transactions(self, topic: str, count: int) -> None:
        producer = self.pair.source.producer(transactional_id=f"tx-{self.pair.unique}")
        producer.init_transactions(TIMEOUT)
        while count > 0:
            size = self.random.randint(1, 9)
            producer.begin_transaction()
            self._produce(producer, topic, size)
            is_aborted = self.random.random() < 0.3
            producer.abort_transaction(TIMEOUT) if is_aborted else producer.commit_transaction(TIMEOUT)
            count -= size

    def _produce(self, producer: Producer, topic: str, count: int) -> None:
        for _ in range(count):
            number = len(self.offsets)
            self.offsets[number] = -1

            def acknowledged(error: KafkaError | None, message: Message, number: int = number) -> None:
                assert error is None, error
                offset = message.offset()
                assert offset is not None
                self.offsets[number] = offset

            producer.produce(
                topic,
                None if self.random.random() < 0.2 else b"v%d" % number,
                b"k%d" % self.random.randint(0, 20),
                partition=self.random.randrange(self.partitions[topic]),
                headers=[(_HEADER, str(number).encode())],
                on_delivery=acknowledged,
            )
        assert producer.flush(TIMEOUT) == 0


def wrong(copies: Copies, upstream: int, downstream: int) -> Iterator[tuple[int, int]]:
    """Records that a group would skip or read again that goes from one offset to the other, in either direction."""
    return ((up, down) for up, down in copies if (up >= upstream) != (down >= downstream))
