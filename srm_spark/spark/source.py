"""Reads the source cluster through Spark's Kafka source: as a stream from given positions, or as bounded ranges.

Partitions are assigned, never subscribed to: a subscription loses or repeats records when topics come and go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from srm_spark.core.model import OffsetRange, TopicPartition


def stream(
    session: SparkSession, options: Mapping[str, str], positions: Mapping[TopicPartition, int], max_records: int
) -> DataFrame:
    """All records of the partitions from `positions` on, at most `max_records` a batch."""
    reader = session.readStream.format("kafka").options(**{**_DEFAULTS, **options, **_FIXED})
    reader = reader.option("assign", _assignment(positions)).option("startingOffsets", _offsets(positions))
    return _columns(reader.option("maxOffsetsPerTrigger", max_records).load())


def bounded(
    session: SparkSession, options: Mapping[str, str], ranges: Mapping[TopicPartition, OffsetRange]
) -> DataFrame:
    """The records of `ranges`, none of them empty."""
    reader = session.read.format("kafka").options(**{**_DEFAULTS, **options, **_FIXED})
    reader = reader.option("assign", _assignment(ranges))
    reader = reader.option("startingOffsets", _offsets({p: r.start for p, r in ranges.items()}))
    return _columns(reader.option("endingOffsets", _offsets({p: r.end for p, r in ranges.items()})).load())


UNBOUNDED = 2**62
"""Records of a batch that are never too many; Spark adds offsets to it."""
SourceRow = tuple[str, int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Topic, partition, offset, timestamp in microseconds, key, value, headers."""


def given(session: SparkSession, rows: Sequence[SourceRow]) -> DataFrame:
    """Records that were read by other means."""
    schema = "topic string, partition int, offset bigint, micros bigint, key binary, value binary, "
    schema += "headers array<struct<key: string, value: binary>>"
    timestamp = F.timestamp_micros("micros").alias("timestamp")
    frame = session.createDataFrame(list(rows), schema)
    return frame.select("topic", "partition", "offset", timestamp, "key", "value", "headers")


_DEFAULTS: Mapping[str, str] = {
    # Behind each fetch Spark asks for the partition's ends, on the connection on which the consumer has just begun to
    # wait for more: half a second for every partition of a batch, by Kafka's default.
    "kafka.fetch.max.wait.ms": "1",
}
_FIXED: Mapping[str, str] = {
    "includeHeaders": "true",
    # A truncated topic must not kill the flow's other topics; what is missing is found by comparing offsets.
    "failOnDataLoss": "false",
}


def _columns(frame: DataFrame) -> DataFrame:
    return frame.select("topic", "partition", "offset", "timestamp", "key", "value", "headers")


def _assignment(partitions: Iterable[TopicPartition]) -> str:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return json.dumps(topics)


def _offsets(offsets: Mapping[TopicPartition, int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics)
