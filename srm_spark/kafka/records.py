"""Reads a range of one partition record by record with a plain consumer, in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import FlowError
from srm_spark.kafka.clients import LastError, reader
from srm_spark.kafka.failures import is_passing, named, remedy
from srm_spark.model import OffsetRange, TopicPartition
from srm_spark.tail import TailRecord

_SILENT_SECONDS = 60.0
_POLL_SECONDS = 0.2


def read_range(
    cluster: ClusterSettings,
    properties: Mapping[str, str],
    partition: TopicPartition,
    offsets: OffsetRange,
    error: type[FlowError],
) -> Iterator[TailRecord]:
    """The records in `offsets`; ends behind the last one even if markers or compacted offsets follow it."""
    last_error = LastError()
    consumer = reader(cluster, properties, f"tail-{partition}", last_error)
    asked = KafkaTopicPartition(partition.topic, partition.partition, offsets.start)
    consumer.assign([asked])
    silent_since = time.monotonic()
    try:
        position = offsets.start
        while position < offsets.end:
            messages = consumer.consume(1000, _POLL_SECONDS)
            for message in messages:
                if (failure := message.error()) is not None:
                    if not is_passing(failure):
                        hint = remedy(failure, f"READ on topic {partition.topic}", "the next start tries again")
                        raise error(f"cluster {cluster.alias}: cannot read {partition}: {named(failure)}; {hint}")
                    continue
                record = _record(message)
                if record.offset >= offsets.end:
                    return
                silent_since = time.monotonic()
                yield record
            position = max(position, consumer.position([asked])[0].offset)
            if time.monotonic() - silent_since > _SILENT_SECONDS:
                raise error(
                    f"cluster {cluster.alias}: {partition} gave nothing for {_SILENT_SECONDS:g} s at offset {position} "
                    f"of {offsets.end}; last seen: {last_error}"
                )
    finally:
        consumer.close()


def _record(message: Message) -> TailRecord:
    kind, timestamp = message.timestamp()
    headers: list[Any] = list(message.headers() or ())
    offset = message.offset()
    assert offset is not None
    key: Any = message.key()
    value: Any = message.value()
    return TailRecord(offset, -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp, key, value, tuple(headers))
