"""Whether a copy equals its source: plain consumers read every record of both sides, in lockstep, and compare them.

```
source  0 1 2 · 4 5     ·  a gap: an aborted record, a transaction marker, something compacted away
        │ │ │   │ │     the n-th record of one side is the n-th of the other, or the copy is wrong
target  0 1 2   3 4
```

This judges the writer, so it shares nothing with it but how a client is configured and how names of headers are read.
Only committed records count. The provenance header, which a flow may add, is nobody's data and does not count.
Nothing may be written meanwhile: a record that is on one side only when it is looked at counts as a difference.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.codec import PROVENANCE_HEADER
from srm_spark.core.wording import count
from srm_spark.errors import FlowError, SourceUnavailable, TargetUnavailable
from srm_spark.kafka.clients import LastError, reader
from srm_spark.kafka.librdkafka import headers_of

_POLL_SECONDS = 0.1
_SHOWN_BYTES = 24
_READING = {
    "isolation.level": "read_committed",
    # A consumer that goes to the next partition first waits for the answer to what it asked before.
    "fetch.max.wait.ms": "20",
}


@dataclass(frozen=True)
class PartitionComparison:
    """What comparing one partition brought."""

    topic: str
    remote_topic: str
    partition: int
    source_records: int
    target_records: int
    difference: str | None
    """The first difference: both offsets and what differs. None when every record is the same."""


class _Record(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


def compare_topics(
    source: ClusterSettings, target: ClusterSettings, topics: Mapping[str, str], timeout: float = 60.0
) -> Iterator[PartitionComparison]:
    """Compare source topics with their remote topics (`topics`: the one → the other); a row per partition.

    Raises `SourceUnavailable` or `TargetUnavailable` when a side gives nothing for `timeout` seconds.
    """
    with _Side(source, SourceUnavailable, timeout) as left, _Side(target, TargetUnavailable, timeout) as right:
        for topic, remote_topic in topics.items():
            counts = left.partitions(topic), right.partitions(remote_topic)
            for partition in range(max(counts)):
                # The target's end first: what is copied in between is then missing on neither side.
                right.open(remote_topic, partition if partition < counts[1] else None)
                left.open(topic, partition if partition < counts[0] else None)
                difference = _first_difference(left, right)
                left.drain()
                right.drain()
                if partition >= min(counts):
                    difference = f"the source has {count(counts[0], 'partition')}, the target {counts[1]}"
                yield PartitionComparison(topic, remote_topic, partition, left.count, right.count, difference)


def _first_difference(left: _Side, right: _Side) -> str | None:
    while True:
        ours, theirs = left.next(), right.next()
        if ours is None and theirs is None:
            return None
        if theirs is None:
            assert ours is not None
            return f"source offset {ours.offset}: not on the target, which ends at offset {right.end}"
        if ours is None:
            return f"target offset {theirs.offset}: not on the source, which ends at offset {left.end}"
        if ours[1:] != theirs[1:]:
            return f"source offset {ours.offset}, target offset {theirs.offset}: {_what_differs(ours, theirs)}"


def _what_differs(ours: _Record, theirs: _Record) -> str:
    differences = []
    if ours.key != theirs.key:
        differences.append(f"key {_shown(ours.key)} / {_shown(theirs.key)}")
    if ours.value != theirs.value:
        differences.append(f"value {_shown(ours.value)} / {_shown(theirs.value)}{_from_byte(ours.value, theirs.value)}")
    if ours.headers != theirs.headers:
        differences.append(_headers_differ(ours.headers, theirs.headers))
    if ours.timestamp != theirs.timestamp:
        differences.append(f"timestamp {ours.timestamp} / {theirs.timestamp}")
    return "; ".join(differences)


def _headers_differ(ours: tuple[tuple[str, bytes | None], ...], theirs: tuple[tuple[str, bytes | None], ...]) -> str:
    for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return f"header {index} {one[0]!r}: {_shown(one[1])} / {other[0]!r}: {_shown(other[1])}"
    return f"{count(len(ours), 'header')} / {count(len(theirs), 'header')}"


def _shown(content: bytes | None) -> str:
    if content is None:
        return "null"
    if len(content) > _SHOWN_BYTES:
        return f"{content[:_SHOWN_BYTES]!r}… ({len(content)} bytes)"
    return f"{content!r}"


def _from_byte(ours: bytes | None, theirs: bytes | None) -> str:
    """Where two long values part, since what is shown of them may look the same."""
    if not ours or not theirs or ours[:_SHOWN_BYTES] != theirs[:_SHOWN_BYTES]:
        return ""
    pairs = enumerate(zip(ours, theirs, strict=False))
    return f" from byte {next((i for i, (a, b) in pairs if a != b), min(len(ours), len(theirs)))}"


class _Side:
    """One cluster, read one partition after the other. Holds one record; the client's queue is bounded."""

    def __init__(self, cluster: ClusterSettings, error: type[FlowError], timeout: float) -> None:
        self._error = error
        self._timeout = timeout
        self._where = f"cluster {cluster.alias} ({cluster.bootstrap_servers})"
        self._last_error = LastError()
        self._consumer: Consumer = reader(cluster, _READING, "compare", self._last_error)
        self._partition: KafkaTopicPartition | None = None
        self._next = 0
        self.end = 0
        self.count = 0

    def __enter__(self) -> _Side:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has; 0 where it is not there."""
        try:
            metadata = self._consumer.list_topics(topic, timeout=self._timeout).topics[topic]
        except KafkaException as error:
            raise self._failure(f"list topic {topic}", error.args[0].str()) from error
        return len(metadata.partitions) if metadata.error is None else 0

    def open(self, topic: str, partition: int | None) -> None:
        """Go to the start of a partition; None for one that does not exist and holds nothing."""
        self._next = self.end = self.count = 0
        self._partition = None
        if partition is None:
            return
        self._partition = KafkaTopicPartition(topic, partition)
        try:
            marks: Any = self._consumer.get_watermark_offsets(self._partition, timeout=self._timeout)
        except KafkaException as error:
            raise self._failure(f"find the ends of {topic}-{partition}", error.args[0].str()) from error
        if marks is None:
            raise self._failure(f"find the ends of {topic}-{partition}", "timed out")
        self._next, self.end = marks
        if self._next < self.end:
            self._partition.offset = self._next
            self._consumer.assign([self._partition])

    def next(self) -> _Record | None:
        """The next record before the end; None behind the last one."""
        deadline = time.monotonic() + self._timeout
        while self._next < self.end:
            message = self._consumer.poll(_POLL_SECONDS)
            if message is None:
                self._skip_gap()
                if time.monotonic() > deadline:
                    raise self._failure(f"read on at {self._partition} offset {self._next}", "nothing comes")
            elif (error := message.error()) is not None:
                if not error.retriable():
                    raise self._failure(f"read {self._partition}", error.str())
            else:
                record = _record(message)
                self._next = record.offset + 1
                if record.offset < self.end:
                    self.count += 1
                    return record
        self._close_partition()
        return None

    def drain(self) -> None:
        """Count what is left."""
        while self.next() is not None:
            pass

    def _skip_gap(self) -> None:
        # No record may lie at the very end: the consumer's position is the only sign that it was passed.
        assert self._partition is not None
        (position,) = self._consumer.position([self._partition])
        self._next = max(self._next, position.offset)

    def _close_partition(self) -> None:
        if self._partition is not None:
            self._consumer.unassign()
            self._partition = None

    def _failure(self, what: str, reason: str) -> FlowError:
        return self._error(
            f"{self._where}: cannot {what}: {reason}; last seen: {self._last_error}; "
            "check that the cluster answers and that READ is allowed"
        )


def _record(message: Message) -> _Record:
    offset = message.offset()
    assert offset is not None
    key: Any = message.key()
    value: Any = message.value()
    data = tuple((name, content) for name, content in headers_of(message) if name != PROVENANCE_HEADER)
    return _Record(offset, key, value, data, message.timestamp()[1])
