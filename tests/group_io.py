"""Consumer groups and checkpoints as anybody sees them: plain clients, bytes taken apart by hand."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from tests.awaiting import await_until
from tests.kafka_io import TIMEOUT, Kafka, Log

_NO_COORDINATOR = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
Place = tuple[str, int]
"""Topic and partition."""


class Checkpoint(NamedTuple):
    """One record of a checkpoints topic."""

    upstream: int
    downstream: int
    metadata: str


def commit(cluster: Kafka, group: str, offsets: Mapping[Place, int], metadata: str = "") -> None:
    """Let a group without members stand at these offsets."""
    asked = [TopicPartition(topic, number, offset, metadata) for (topic, number), offset in offsets.items()]

    def is_done() -> bool:  # a coordinator may hear of a new topic a moment later
        request = ConsumerGroupTopicPartitions(group, asked)
        done = cluster.admin.alter_consumer_group_offsets([request])[group].result(TIMEOUT)
        return all(p.error is None for p in done.topic_partitions)

    await_until(is_done, TIMEOUT, f"offsets of group {group}")


def committed(cluster: Kafka, group: str, topic: str) -> dict[Place, tuple[int, str]]:
    """Where a group stands, with its metadata.

    Asked by a consumer that does not join: an admin client crashes when a coordinator moves (librdkafka issue 5040).
    """
    consumer = Consumer({**cluster.options, "group.id": group})
    try:
        asked = [TopicPartition(topic, number) for number in range(cluster.topics().get(topic, 0))]
        found = _committed(consumer, asked) if asked else []
    finally:
        consumer.close()
    return {(p.topic, p.partition): (p.offset, p.metadata or "") for p in found if p.offset >= 0}


def _committed(consumer: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    """As soon as the group has a coordinator that has loaded it: a broker that has just started has none."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return consumer.committed(asked, TIMEOUT)
        except KafkaException as error:
            if error.args[0].code() not in _NO_COORDINATOR or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def member(cluster: Kafka, group: str, topic: str, **options: str) -> Consumer:
    """A consumer that has joined its group; the caller closes it."""
    consumer = Consumer(
        {
            **cluster.options,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{key.replace("_", "."): value for key, value in options.items()},
        }
    )
    consumer.subscribe([topic])
    return consumer


def next_record(consumer: Consumer) -> Message:
    """The next record that a consumer gets."""
    found = await_until(lambda: consumer.poll(1), TIMEOUT, "a record")
    assert found is not None
    assert found.error() is None, found.error()
    return found


def take(consumer: Consumer, count: int) -> list[bytes]:
    """Read and commit so many records, one by one; their values."""
    found = []
    for _ in range(count):
        message = next_record(consumer)
        consumer.commit(message=message, asynchronous=False)
        found.append(message.value() or b"")
    return found


def read_checkpoints(cluster: Kafka, topic: str) -> dict[tuple[str, str, int], list[Checkpoint]]:
    """Every checkpoint in order; (group, topic, partition) → history."""
    found: dict[tuple[str, str, int], list[Checkpoint]] = {}
    for stored in cluster.read(topic)[0]:
        key, value = stored.record.key, stored.record.value
        assert key is not None
        assert value is not None, "a tombstone in the checkpoints topic"
        group, rest = _string(key)
        name, rest = _string(rest)
        version, upstream, downstream = struct.unpack_from(">hqq", value)
        assert version == 0
        history = found.setdefault((group, name, struct.unpack(">i", rest)[0]), [])
        history.append(Checkpoint(upstream, downstream, _string(value[18:])[0]))
    return found


def next_unread(source: Log, remote: Log, partition: int, offset: int) -> int:
    """Where a group goes on that stands at `offset` on the source: found record by record, all of them distinct."""
    unread = [stored for stored in source[partition] if stored.offset >= offset]
    if not unread:
        return remote[partition][-1].offset + 1 if remote[partition] else 0
    return next(stored.offset for stored in remote[partition] if stored.record == unread[0].record)


def _string(data: bytes) -> tuple[str, bytes]:
    (length,) = struct.unpack_from(">h", data)
    return data[2 : 2 + length].decode(), data[2 + length :]
