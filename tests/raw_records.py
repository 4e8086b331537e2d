"""Records whose header names are any bytes, written and read by kafka-python's requests and record format.

Its own producer and consumer take names for UTF-8, as every client library does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from kafka import KafkaAdminClient
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from srm_spark.core.record_batch import batches_in
from srm_spark.testing import KafkaCluster

_WAIT_MS, _MOST_BYTES = 500, 50_000_000


class RawRecord(NamedTuple):
    """What must be the same on both sides."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]
    timestamp: int = 1_700_000_000_000


class _Name(bytes):
    """What the builder takes for a text."""

    def encode(self, _: str) -> bytes:
        return self


class _Buffer(bytearray):
    """What the batch takes for bytes of UTF-8."""

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return found if isinstance(found, int) else _Buffer(found)

    def decode(self, *_: object, **__: object) -> Any:
        return bytes(self)


def write_raw(cluster: KafkaCluster, topic: str, found: Sequence[RawRecord], partition: int = 0) -> None:
    """All of them as one batch, to a cluster of one broker."""
    error = offer_raw(cluster, topic, found, partition)
    assert error == 0, error


def offer_raw(
    cluster: KafkaCluster,
    topic: str,
    found: Sequence[RawRecord],
    partition: int = 0,
    author: tuple[int, int] = (-1, -1),
) -> int:
    """The same under a producer id and an epoch of it, with the first sequence number: the broker's error code."""
    producer, epoch = author
    builder = DefaultRecordBatchBuilder(2, 0, 0, producer, epoch, 0 if producer >= 0 else -1, _MOST_BYTES)
    for at, record in enumerate(found):
        headers = [(_Name(name), value) for name, value in record.headers]
        assert builder.append(at, record.timestamp, record.key, record.value, headers) is not None
    places = ProduceRequest.TopicProduceData
    place = places.PartitionProduceData(index=partition, records=bytes(builder.build()))
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[places(name=topic, partition_data=[place])],
        max_version=9,
    )
    with _connected(cluster) as send:
        return int(send(request).responses[0].partition_responses[0].error_code)


def read_raw(cluster: KafkaCluster, topic: str, partition: int = 0) -> list[RawRecord]:
    """The records of a partition of a cluster of one broker, from offset 0 on, as far as one answer goes."""
    with _connected(cluster) as send:
        return list(_records(MemoryRecords(_fetched(send, topic, partition, 0))))


def read_batches(cluster: KafkaCluster, topic: str, partition: int, end: int) -> bytes:
    """The log of a partition of a cluster of one broker, from offset 0 up to `end`, as it lies there."""
    found, at = bytearray(), 0
    with _connected(cluster) as send:
        while at < end:
            answer = _fetched(send, topic, partition, at)
            batches = list(batches_in(memoryview(answer)))
            if not batches:
                break  # compaction has taken what was last
            found += answer[: batches[-1].at + batches[-1].size]
            at = batches[-1].end
    return bytes(found)


def _fetched(send: Any, topic: str, partition: int, offset: int) -> bytes:
    places = FetchRequest.FetchTopic
    place = places.FetchPartition(
        partition=partition, current_leader_epoch=-1, fetch_offset=offset, partition_max_bytes=_MOST_BYTES
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=_WAIT_MS,
        min_bytes=1,
        max_bytes=_MOST_BYTES,
        isolation_level=0,
        topics=[places(topic=topic, partitions=[place])],
        max_version=11,
    )
    answer = send(request).responses[0].partitions[0]
    assert answer.error_code == 0, answer
    return bytes(answer.records or b"")


def _records(found: MemoryRecords) -> Iterator[RawRecord]:
    while (batch := found.next_batch()) is not None:
        batch._buffer = _Buffer(batch._buffer)  # nothing else is given the bytes of a name
        for record in batch:
            yield RawRecord(record.key, record.value, tuple(record.headers), record.timestamp)


@contextmanager
def _connected(cluster: KafkaCluster) -> Iterator[Any]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        yield lambda request: admin._manager.run(admin._manager.send, request)
    finally:
        admin.close()
