"""Control records of a flow (progress, offset map and the like) as batches of the flow's author.

So a partition that has heard of a newer author refuses them, as it does the author's copies (`fence.py`). What lies in
the topics, and in which partition, is what any of Kafka's producers writes: plain records, spread by their keys.

What is not acknowledged in time is sent again in front of whatever is written next to that partition, under the same
numbers: it can come twice no more than it can come late.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from confluent_kafka import KafkaError

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.codec import partition_for_key
from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author, Authorship
from srm_spark.core.wording import some
from srm_spark.errors import NotWritten, ProtocolUnavailable
from srm_spark.failure import FailureKind
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.small import small_batches
from srm_spark.kafka.batches.writer import BatchWriter, Lane
from srm_spark.kafka.failures import named, remedy

_STEP_SECONDS = 0.1
_OTHERWISE = "check that the topic exists and that WRITE is allowed"


class Overtaken(Exception):
    """There is a newer author."""


class ControlBatches:
    """Writes for one flow, as one author after the other; by one thread at a time."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._writer = BatchWriter(brokers)
        self._author: Author | None = None
        self._counts: dict[str, int] = {}
        """Topic → partitions."""

    def write(self, author: Author, records: Sequence[ControlRecord], seconds: float) -> None:
        """Write records; returns when each is acknowledged by all in-sync replicas.

        Raises Overtaken, and NotWritten where they are not acknowledged in so many seconds, or refused.
        """
        deadline = time.monotonic() + seconds
        self._become(author)
        try:
            placed = self._placed(records)
        except ProtocolUnavailable as error:
            raise NotWritten(str(error)) from error
        self._drain(placed, deadline)  # what was not acknowledged before
        for partition, group in placed.items():
            self._writer.open(partition, partition)
            for piece in small_batches(group):
                self._writer.add(partition, piece)
        self._drain(placed, deadline)

    def close(self) -> None:
        """Let go of the connections."""
        self._writer.close()

    def _become(self, author: Author) -> None:
        if author == self._author:
            return
        known = self._author
        if known is not None and author.producer_id == known.producer_id and author.epoch < known.epoch:
            raise Overtaken("this flow writes under a newer epoch by now")
        self._writer.begin(Authorship(author), math.inf)
        self._author, self._counts = author, {}

    def _placed(self, records: Sequence[ControlRecord]) -> dict[TopicPartition, list[ControlRecord]]:
        placed: dict[TopicPartition, list[ControlRecord]] = {}
        for record in records:
            if record.topic not in self._counts:
                self._counts[record.topic] = self._brokers.partition_count(record.topic)
            count = self._counts[record.topic]
            if not count or (record.partition or 0) >= count:
                del self._counts[record.topic]
                raise self._failure(f"{record.topic} has {count} partitions; {_OTHERWISE}")
            placed.setdefault(TopicPartition(record.topic, partition_of(record, count)), []).append(record)
        return placed

    def _drain(self, placed: dict[TopicPartition, list[ControlRecord]], deadline: float) -> None:
        lanes = [lane for lane in self._writer.lanes if lane.remote in placed]
        while late := [lane for lane in lanes if _is_open(lane)]:
            if time.monotonic() > deadline:
                raise self._failure(f"{some([str(lane.remote) for lane in late])}: not acknowledged in time")
            self._writer.step(_STEP_SECONDS)
        for lane in lanes:
            self._judge(lane)

    def _judge(self, lane: Lane) -> None:
        topic = lane.remote.topic
        if lane.refusal is not None:
            error = KafkaError(lane.refusal.error)
            is_large = error.code() == KafkaError.MSG_SIZE_TOO_LARGE
            otherwise = f"raise max.message.bytes of topic {topic}" if is_large else _OTHERWISE
            self._writer.forget(lane.remote)
            raise self._failure(f"{topic}: {named(error)}; {remedy(error, f'WRITE on topic {topic}', otherwise)}")
        if lane.failure is not None:
            if lane.failure.kind is FailureKind.OVERTAKEN:
                raise Overtaken(str(lane.failure))
            raise self._failure(str(lane.failure), is_spent=True)

    def _failure(self, why: str, *, is_spent: bool = False) -> NotWritten:
        return NotWritten(f"{self._brokers.where}: {why}", is_spent=is_spent)


def _is_open(lane: Lane) -> bool:
    """Whether anything of it is on its way."""
    return bool(lane.flying) or lane.is_waiting


def partition_of(record: ControlRecord, count: int) -> int:
    """Where a record lies among so many partitions: Kafka's own choice by its key, where nothing else is said."""
    if record.partition is not None:
        return record.partition
    return partition_for_key(record.key, count)
