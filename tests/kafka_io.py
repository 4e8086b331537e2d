"""The independent reader and writer of the broker tests: plain confluent_kafka clients, nothing of the product.

A record here is what must be equal on both sides; where it lies (offset) is kept beside it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from srm_spark.testing import KafkaCluster

TIMEOUT = 30.0
_SOON = 10.0
"""Seconds after which a consumer that was kept is given up for a new one."""
_IN_ORDER = {"max.in.flight.requests.per.connection": 1}
"""A leader that has just been elected may refuse one request and take the next: tried again, the first lies behind."""
_COMMITTED, _ALL = "read_committed", "read_uncommitted"
_NEWEST, _OLDEST = -1, -2
"""Where a timestamp is asked for: the end and the beginning of a log."""
_QUIET = logging.getLogger("tests.librdkafka")
_QUIET.propagate = False
_QUIET.addHandler(logging.NullHandler())
HeaderPairs = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """What a replicated record keeps. `timestamp` in ms; None lets the producer take the time of day."""

    key: bytes | None
    value: bytes | None
    partition: int = 0
    timestamp: int | None = None
    headers: HeaderPairs = ()


class Stored(NamedTuple):
    """A record and where it lies."""

    offset: int
    record: Record
    timestamp_type: int


Log = dict[int, list[Stored]]
"""Partition → records in order."""


def records(log: Log) -> dict[int, list[Record]]:
    """What must be the same on both sides."""
    return {partition: [stored.record for stored in found] for partition, found in log.items()}


def numbered(count: int, partitions: int = 1, prefix: str = "v") -> list[Record]:
    """`count` records, spread over the partitions in turn; the values tell them apart."""
    return [Record(f"k{i}".encode(), f"{prefix}{i}".encode(), i % partitions) for i in range(count)]


class Kafka:
    """One cluster, as a test sees it."""

    def __init__(self, cluster: KafkaCluster, **security: Any) -> None:
        """`security`: librdkafka options of every client, `_` stands for `.`."""
        self.bootstrap_servers = cluster.bootstrap_servers
        self._base: dict[str, Any] = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "allow.auto.create.topics": False,
            "topic.metadata.refresh.interval.ms": 1000,
            **_dotted(security),
        }
        self._security = _dotted(security)
        self._admin_client: AdminClient | None = None
        self._asking: dict[str, Consumer] = {}
        """Who is asked for offsets, by isolation level."""
        self._kept: dict[str, Consumer] = {}
        """Consumers that nobody reads with now, by their isolation level."""

    @property
    def _admin(self) -> AdminClient:
        if self._admin_client is None:  # `or` would make one each time: the length of an admin client is 0
            options = {
                "bootstrap.servers": self.bootstrap_servers,
                "allow.auto.create.topics": False,  # to look for a topic must not make it
                **self._security,
            }
            self._admin_client = AdminClient(options, logger=_QUIET)
        return self._admin_client

    def _consumer(self, level: str) -> Consumer:
        return Consumer(
            {
                **self._base,
                "topic.metadata.refresh.interval.ms": 60_000,
                "group.id": "reader-of-the-tests",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "isolation.level": level,
                "fetch.message.max.bytes": 10_000_000,
                "fetch.wait.max.ms": 10,  # an end is told by an answer without records
            },
            logger=_QUIET,
        )

    @property
    def admin(self) -> AdminClient:
        """For what this class does not do."""
        return self._admin

    @property
    def options(self) -> dict[str, Any]:
        """librdkafka options of every client."""
        return dict(self._base)

    def create(self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Make a topic and wait until the broker knows it."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                _results(self._admin.create_topics([NewTopic(topic, partitions, 1, config=dict(configs or {}))]))
                break
            except KafkaException as error:  # a broker that had no core for nine seconds is fenced for a moment
                is_fenced = error.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR
                if not is_fenced or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
        self._await_partitions(topic, partitions)

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions."""
        _results(self._admin.create_partitions([NewPartitions(topic, partitions)]))
        self._await_partitions(topic, partitions)

    def delete(self, topic: str) -> None:
        """Delete a topic and wait until it is gone."""
        _results(self._admin.delete_topics([topic]))
        self._await_partitions(topic, 0)

    def delete_all(self, part: str) -> None:
        """Let all topics go that have `part` in their names, as far as they can; nobody waits for it."""
        with suppress(KafkaException):
            if found := [topic for topic in self.topics() if part in topic]:
                self._admin.delete_topics(found)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Let the log start at offset `before`."""
        _results(self._admin.delete_records([TopicPartition(topic, partition, before)]))

    def configure(self, topic: str, **configs: str) -> None:
        """Set configs of a topic; `_` stands for `.`."""
        entries = [
            ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for key, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        _results(self._admin.incremental_alter_configs([resource]))

    def configs(self, topic: str) -> dict[str, str]:
        """The configs that were set on the topic itself."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries: Mapping[str, ConfigEntry] = self._admin.describe_configs([resource])[resource].result(TIMEOUT)
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG
        return {key: str(entry.value) for key, entry in entries.items() if ConfigSource(entry.source) == own}

    def topics(self) -> dict[str, int]:
        """Topic → partitions."""
        found = self._admin.list_topics(timeout=TIMEOUT).topics
        return {name: len(topic.partitions) for name, topic in found.items() if topic.error is None}

    def write(self, topic: str, found: Iterable[Record], **options: Any) -> None:
        """Write records and wait until each one is acknowledged; `_` in options stands for `.`."""
        producer = self.producer(**options)
        produce(producer, topic, found)
        assert producer.flush(TIMEOUT) == 0

    def producer(self, **options: Any) -> Producer:
        """A producer for more than `write`, which keeps the order of each partition; `_` in options stands for `.`."""
        return Producer({**self._base, **_IN_ORDER, "linger.ms": 5, **_dotted(options)}, logger=_QUIET)

    def read(self, topic: str, committed: bool = False) -> Log:
        """Every record of a topic, up to the end of each partition; more where it is written to meanwhile."""
        level = _COMMITTED if committed else _ALL
        ends = self._offsets(topic, _NEWEST, level)
        count = len(ends) or self.topics()[topic]
        kept = self._kept.pop(level, None)  # to make one takes a broker more than to read
        if kept is not None:
            # What it knows of a topic that was made anew, or has grown, may be too old.
            with suppress(AssertionError, KafkaException):
                return self._log(kept, level, (topic, count), ends, _SOON)
        return self._log(self._consumer(level), level, (topic, count), ends, TIMEOUT)

    def _log(
        self, consumer: Consumer, level: str, asked: tuple[str, int], ends: Mapping[int, int], seconds: float
    ) -> Log:
        topic, count = asked
        log: Log = {partition: [] for partition in range(count)}
        try:
            consumer.assign([TopicPartition(topic, partition, 0) for partition in log])
            _read_to_the_end(consumer, topic, log, ends, seconds)
            consumer.unassign()
        except BaseException:
            consumer.close()
            raise
        if self._kept.setdefault(level, consumer) is not consumer:  # another thread has read meanwhile
            consumer.close()
        return log

    def ends(self, topic: str) -> dict[int, int]:
        """Offset behind the last record or marker of each partition; nothing for a topic that is not there."""
        return self._offsets(topic, _NEWEST)

    def _offsets(self, topic: str, timestamp: int, level: str = _COMMITTED) -> dict[int, int]:
        # Not an admin client: that one may wait three seconds where a leader has just begun to lead.
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                asked = [TopicPartition(topic, number, timestamp) for number in range(self._partitions(topic))]
                if level not in self._asking:
                    self._asking[level] = self._consumer(level)
                found = self._asking[level].offsets_for_times(asked, timeout=5.0) if asked else []
                for place in found:
                    if place.error is not None:
                        raise KafkaException(place.error)
                return {place.partition: place.offset for place in found}
            except KafkaException as error:
                # A topic that was just made or deleted has no leader, or none that everybody knows.
                if time.monotonic() > deadline:
                    raise AssertionError(f"no offsets of {topic}") from error
                # They may know a topic as it was before it grew, or be connected to a broker that hangs.
                self._asking.pop(level, None)
                self._admin_client = None
                time.sleep(0.05)

    def _partitions(self, topic: str) -> int:
        found = self._admin.list_topics(topic, timeout=_SOON).topics[topic]
        return len(found.partitions) if found.error is None else 0

    def count(self, topic: str) -> int:
        """Offsets given so far: for a topic without markers and deletions, the number of records."""
        return sum(self.ends(topic).values())

    def given(self, topic: str) -> int:
        """Records given so far: those that are there, and the offsets that were deleted in front of them."""
        starts = self._offsets(topic, _OLDEST)
        return sum(starts.values()) + sum(map(len, self.read(topic).values())) if starts else 0

    def place(self, topic: str, replicas: Sequence[Sequence[int]], **configs: str) -> None:
        """A topic with these replicas for each partition, the leader first; `_` in names of configs stands for `.`."""
        new = NewTopic(
            topic, len(replicas), replica_assignment=[list(each) for each in replicas], config=_dotted(configs)
        )
        _results(self._admin.create_topics([new]))
        self._await_partitions(topic, len(replicas))

    def _await_partitions(self, topic: str, count: int) -> None:
        deadline = time.monotonic() + TIMEOUT
        while self._partitions(topic) != count:
            assert time.monotonic() < deadline, f"{topic} has not got {count} partitions"
            time.sleep(0.05)


def produce(producer: Producer, topic: str, found: Iterable[Record]) -> None:
    """Hand records to a producer; a refused one fails the test at the next poll or flush."""
    for record in found:
        extra: dict[str, Any] = {} if record.timestamp is None else {"timestamp": record.timestamp}
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=record.partition,
            headers=list(record.headers) or None,
            on_delivery=_acknowledged,
            **extra,
        )
        producer.poll(0)


def _acknowledged(error: KafkaError | None, _: Any) -> None:
    assert error is None, error


def _read_to_the_end(consumer: Consumer, topic: str, log: Log, ends: Mapping[int, int], seconds: float) -> None:
    """An end is told where nothing comes at that moment: of a busy partition it is never told, but passed."""
    waiting = set(log)
    deadline = time.monotonic() + seconds
    has_begun: set[int] = set()  # the position of others may be that of an earlier reading
    while waiting:
        positions = consumer.position([TopicPartition(topic, partition) for partition in waiting & has_begun])
        waiting -= {position.partition for position in positions if position.offset >= ends.get(position.partition, 0)}
        assert time.monotonic() < deadline, f"partitions {sorted(waiting)} were not read to their end"
        for message in consumer.consume(500, 0.03):
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                waiting.discard(partition)
                continue
            has_begun.add(partition)
            kind, timestamp = message.timestamp()
            pairs: list[Any] = list(message.headers() or ())
            headers = tuple((name, _bytes(value)) for name, value in pairs)
            record = Record(_bytes(message.key()), _bytes(message.value()), partition, timestamp, headers)
            log[partition].append(Stored(offset, record, kind))


def _dotted(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key if key == "oauth_cb" else key.replace("_", "."): value for key, value in options.items()}


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _results(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(TIMEOUT)
