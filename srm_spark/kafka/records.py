"""Reads ranges of partitions record by record with plain consumers, in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaError, Message

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.tail import TailRecord
from srm_spark.errors import FlowError
from srm_spark.kafka.clients import LastError, kafka_partition, reader
from srm_spark.kafka.failures import is_passing, named, remedy
from srm_spark.kafka.librdkafka import headers_of

_SILENT_SECONDS = 60.0
_POLL_SECONDS = 0.2
_ONE_RECORD = "65536"
"""Bytes per fetch and partition: only the first record counts, and a larger one comes all the same."""


def read_range(
    cluster: ClusterSettings,
    properties: Mapping[str, str],
    partition: TopicPartition,
    offsets: OffsetRange,
    error: type[FlowError],
) -> Generator[TailRecord]:
    """The records in `offsets`; ends behind the last one even if markers or compacted offsets follow it."""
    last_error = LastError()
    consumer = reader(cluster, properties, f"tail-{partition}", last_error)
    asked = kafka_partition(partition, offsets.start)
    consumer.assign([asked])
    silent_since = time.monotonic()
    try:
        position = offsets.start
        while position < offsets.end:
            messages = consumer.consume(1000, _POLL_SECONDS)
            for message in messages:
                if (failure := message.error()) is not None:
                    if not is_passing(failure):
                        raise _refused(cluster, partition, failure, error)
                    continue
                record = record_of(message)
                if record.offset >= offsets.end:
                    return
                yield record
                silent_since = time.monotonic()  # behind who took it: that may have lasted, and is no silence
            position = max(position, consumer.position([asked])[0].offset)
            if time.monotonic() - silent_since > _SILENT_SECONDS:
                raise error(
                    f"cluster {cluster.alias}: {partition} gave nothing for {_SILENT_SECONDS:g} s at offset {position} "
                    f"of {offsets.end}; last seen: {last_error}"
                )
    finally:
        consumer.close()


def first_timestamps(
    cluster: ClusterSettings,
    properties: Mapping[str, str],
    ranges: Mapping[TopicPartition, OffsetRange],
    error: type[FlowError],
    seconds: float,
) -> dict[TopicPartition, int | None]:
    """Timestamp (ms) of the first record in each range; None where the range holds no record.

    Partitions that did not answer within `seconds` are left out.
    """
    first = first_records(cluster, properties, ranges, error, seconds)
    return {partition: None if record is None else record.timestamp for partition, record in first.items()}


def first_records(
    cluster: ClusterSettings,
    properties: Mapping[str, str],
    ranges: Mapping[TopicPartition, OffsetRange],
    error: type[FlowError],
    seconds: float,
) -> dict[TopicPartition, TailRecord | None]:
    """The first record in each range, of many partitions at once; None where the range holds no record.

    Partitions that did not answer within `seconds` are left out.
    """
    first: dict[TopicPartition, TailRecord | None] = {p: None for p, (start, end) in ranges.items() if start >= end}
    asked = [kafka_partition(p, ranges[p].start) for p in ranges if p not in first]
    if not asked:
        return first
    consumer = reader(cluster, {**properties, "max.partition.fetch.bytes": _ONE_RECORD}, "first-records", LastError())
    consumer.assign(asked)
    deadline = time.monotonic() + seconds
    try:
        while first.keys() != ranges.keys() and time.monotonic() < deadline:
            for message in consumer.consume(1, _POLL_SECONDS) + consumer.consume(1000, 0):
                partition = TopicPartition(message.topic() or "", message.partition() or 0)
                if (failure := message.error()) is not None:
                    if not is_passing(failure):
                        raise _refused(cluster, partition, failure, error)
                elif partition in ranges and partition not in first:
                    record = record_of(message)
                    first[partition] = record if record.offset < ranges[partition].end else None
                    consumer.pause([kafka_partition(partition)])  # the others are waited for
            for place in consumer.position(asked):  # markers and compacted offsets give no record
                partition = TopicPartition(place.topic, place.partition)
                if partition not in first and place.offset >= ranges[partition].end:
                    first[partition] = None
    finally:
        consumer.close()
    return first


def _refused(
    cluster: ClusterSettings, partition: TopicPartition, failure: KafkaError, error: type[FlowError]
) -> FlowError:
    hint = remedy(failure, f"READ on topic {partition.topic}", "the next start tries again")
    return error(f"cluster {cluster.alias}: cannot read {partition}: {named(failure)}; {hint}")


def record_of(message: Message) -> TailRecord:
    """A message that is no error."""
    kind, timestamp = message.timestamp()
    offset = message.offset()
    assert offset is not None
    key: Any = message.key()
    value: Any = message.value()
    timestamp = -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp
    return TailRecord(offset, timestamp, key, value, tuple(headers_of(message)), kind == TIMESTAMP_LOG_APPEND_TIME)
