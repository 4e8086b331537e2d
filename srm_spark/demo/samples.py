"""Sample data for the demo: topics that show what records can be like, filled once and then kept moving.

Plain confluent_kafka producers, one per codec, and a transactional one that aborts now and then.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.cluster import TopicSpec
from srm_spark.core.wording import count
from srm_spark.errors import SourceUnavailable
from srm_spark.kafka.clients import QUIET, LastError, options, reader
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.tokens import with_tokens

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

_TICK_SECONDS = 0.1
_TIMEOUT_SECONDS = 30.0
_COMPACTION_SECONDS = 15.0
_DAY_MS = "86400000"
_TRANSACTION_RECORDS = 20
_LARGE_BYTES = 900_000
_CUSTOMERS = 60


@dataclass(frozen=True)
class SampleTopic:
    """A topic and what it is there for."""

    name: str
    partitions: int
    shows: str
    configs: Mapping[str, str] = field(default_factory=dict)


SAMPLE_TOPICS = (
    SampleTopic("orders", 6, "keys, JSON values, headers", {"retention.ms": "259200000"}),
    SampleTopic("clicks", 4, "no keys, batches of every codec"),
    SampleTopic(
        "customers",
        3,
        "compacted: gaps and tombstones",
        # Every batch closes a segment, so that the cleaner finds work at once; taken back after the first round.
        {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"},
    ),
    SampleTopic("payments", 3, "transactions, some aborted"),
    SampleTopic("oddities", 2, "null, empty, doubled, old, large"),
)

_Headers = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True)
class _Record:
    topic: str
    key: bytes | None
    value: bytes | None
    headers: _Headers = field(default_factory=list)
    timestamp: int = 0
    """0: now."""


class Samples:
    """Writes the sample data of one cluster. `sent` counts the records that were not aborted."""

    def __init__(self, cluster: ClusterSettings) -> None:
        self._settings = cluster
        self._cluster = ClusterClient(cluster, SourceUnavailable, timeout=_TIMEOUT_SECONDS, role="samples-admin")
        self._last_error = LastError()
        self._producers = {codec: self._producer({"compression.type": codec}) for codec in CODECS}
        self._transactional: Producer | None = None
        self._random = random.Random(1)  # noqa: S311 - the same data every time
        self._numbers = itertools.count()
        self.sent = 0

    def create(self) -> None:
        """Create the topics."""
        specs = [TopicSpec(topic.name, topic.partitions, 1, topic.configs) for topic in SAMPLE_TOPICS]
        for name, reason in self._cluster.create(specs).items():
            if reason:
                raise SourceUnavailable(f"cluster {self._settings.alias}: topic {name} cannot be created: {reason}")

    def fill(self, rounds: int = 40) -> None:
        """Write a backlog and let the broker compact what can be compacted, so that offsets have gaps."""
        for number in range(10):
            self._send_all(_customer(self._random, key, number) for key in range(_CUSTOMERS))
            self._flush()
        for _ in range(rounds):
            self.round(factor=5)
        self._flush()
        self._await_compaction()

    def keep_moving(self, stop: threading.Event) -> None:
        """Write a little all the time until `stop` is set; everything is acknowledged when this returns."""
        while not stop.wait(_TICK_SECONDS):
            self.round()
        self._flush()

    def round(self, factor: int = 1) -> None:
        """One round of records for every topic, in a batch of another codec each time."""
        number = next(self._numbers)
        codec = CODECS[number % len(CODECS)]
        self._send_all((_order(self._random, number) for _ in range(30 * factor)), codec)
        self._send_all((_click(self._random) for _ in range(20 * factor)), codec)
        self._send_all((_customer(self._random, self._random.randrange(_CUSTOMERS), number) for _ in range(5)), codec)
        self._send_all(_oddities(number), codec)
        if number % 5 == 0:
            self._transaction(number, is_aborted=number % 15 == 0)

    def _producer(self, extra: Mapping[str, Any]) -> Producer:
        fixed: dict[str, Any] = {
            **options(self._settings, {}, "samples"),
            "linger.ms": 20,
            "message.max.bytes": 2_000_000,
            "allow.auto.create.topics": False,
            "error_cb": self._last_error,
            **extra,
        }
        return Producer(with_tokens(fixed), logger=QUIET)

    def _send_all(self, records: Iterator[_Record], codec: str = "none") -> None:
        producer = self._producers[codec]
        for record in records:
            self._send(producer, record)
            self.sent += 1
        producer.poll(0)

    def _send(self, producer: Producer, record: _Record) -> None:
        while True:
            try:
                producer.produce(
                    record.topic, record.value, record.key, headers=record.headers, timestamp=record.timestamp
                )
                return
            except BufferError:
                producer.poll(_TICK_SECONDS)

    def _transaction(self, number: int, *, is_aborted: bool) -> None:
        producer = self._transactional
        if producer is None:
            producer = self._transactional = self._producer({"transactional.id": "srm-spark-samples"})
            self._attempt(producer.init_transactions, _TIMEOUT_SECONDS)
        self._attempt(producer.begin_transaction)
        for part in range(_TRANSACTION_RECORDS):
            value = json.dumps({"payment": number, "part": part, "aborted": is_aborted}).encode()
            self._send(producer, _Record("payments", f"account-{part}".encode(), value))
        if is_aborted:
            self._attempt(producer.flush, _TIMEOUT_SECONDS)  # else nothing of it would reach the log
            self._attempt(producer.abort_transaction, _TIMEOUT_SECONDS)
        else:
            self._attempt(producer.commit_transaction, _TIMEOUT_SECONDS)
            self.sent += _TRANSACTION_RECORDS

    def _flush(self) -> None:
        for producer in self._producers.values():
            if left := producer.flush(_TIMEOUT_SECONDS):
                raise self._failure(f"{count(left, 'record')} not acknowledged; last seen: {self._last_error}")

    def _attempt(self, call: Callable[..., Any], *arguments: float) -> None:
        try:
            call(*arguments)
        except KafkaException as error:
            raise self._failure(error.args[0].str()) from error

    def _failure(self, reason: str) -> SourceUnavailable:
        return SourceUnavailable(
            f"cluster {self._settings.alias} ({self._settings.bootstrap_servers}): cannot write sample data: {reason}"
        )

    def _await_compaction(self) -> None:
        """Wait until the broker removed something, then stop it: two sides that compact on their own differ."""
        deadline = time.monotonic() + _COMPACTION_SECONDS
        while not self._has_gaps("customers") and time.monotonic() < deadline:
            time.sleep(_TICK_SECONDS)
        admin = AdminClient(with_tokens(options(self._settings, {}, "samples-admin")), logger=QUIET)
        entries = [
            ConfigEntry(name, _DAY_MS, incremental_operation=AlterConfigOpType.SET)
            for name in ("segment.ms", "min.compaction.lag.ms")
        ]
        topic = ConfigResource(ResourceType.TOPIC, "customers", incremental_configs=entries)
        for future in admin.incremental_alter_configs([topic]).values():
            self._attempt(future.result)

    def _has_gaps(self, topic: str) -> bool:
        consumer = reader(self._settings, {}, "samples", self._last_error)
        try:
            partitions = range(self._cluster.topics()[topic])
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
            expected = dict.fromkeys(partitions, 0)
            while messages := consumer.consume(1000, 0.5):
                for message in messages:
                    partition, offset = message.partition(), message.offset()
                    if partition is None or offset is None or offset > expected[partition]:
                        return True
                    expected[partition] = offset + 1
            return False
        finally:
            consumer.close()


def _order(source: random.Random, number: int) -> _Record:
    customer = source.randrange(1000)
    value = {"order": f"{number}-{customer}", "amount": round(source.uniform(1, 500), 2), "note": "Grüße " * 4}
    headers: _Headers = [("trace", source.randbytes(8)), ("content-type", b"application/json")]
    return _Record("orders", f"customer-{customer}".encode(), json.dumps(value).encode(), headers)


def _click(source: random.Random) -> _Record:
    return _Record("clicks", None, f"/page/{source.randrange(50)}?session={source.randrange(10**9)}".encode() * 3)


def _customer(source: random.Random, key: int, version: int) -> _Record:
    is_gone = source.random() < 0.1
    return _Record("customers", f"customer-{key}".encode(), None if is_gone else f"version {version}".encode())


def _oddities(number: int) -> Iterator[_Record]:
    topic = "oddities"
    yield _Record(topic, None, None)
    yield _Record(topic, b"", b"")
    yield _Record(topic, b"", None, [("", b"a header without a name"), ("null", None), ("empty", b"")])
    yield _Record(topic, b"same", b"twice", [("again", b"1"), ("other", b"x"), ("again", b"2"), ("again", b"1")])
    yield _Record(topic, bytes(range(256)), bytes(range(255, -1, -1)), [("schlüssel", b"\x00\xff")])
    yield _Record(topic, b"long ago", b"1970", timestamp=1 + number)
    # A batch's latency is that of its last record: with this one behind it, it is not that of half a century.
    yield _Record(topic, b"long ago", b"and now")
    if number % 50 == 0:
        yield _Record(topic, b"large", b"x" * _LARGE_BYTES)
