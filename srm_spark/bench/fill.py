"""Fills the source's topic of a workload, with plain producers, and looks at the batches that they made."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from srm_spark.bench.source_batches import SourceBatches, misfit, source_batches
from srm_spark.bench.workloads import RUN, Workload, key_of, payloads
from srm_spark.config.settings import ClusterSettings
from srm_spark.core.cluster import TopicSpec
from srm_spark.errors import SourceUnavailable, SrmError
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.testing import LocalKafka

_FLUSH_SECONDS = 120.0
_JAVA = "org.apache.kafka.tools.ProducerPerformance"
_JAVA_SECONDS = 900.0
_PRODUCERS = 24
"""For batches and transactions of few records, each of which waits for its answer."""
_COMPACTION_SECONDS = 300.0
_LOOK_SECONDS = 2.0
_LINGER_MS, _SHORT_LINGER_MS = 60_000, 1000
"""No batch is sent before it is full, or before the end of all or of its transaction."""
Headers = list[tuple[str, str | bytes | None]]


def fill(source: LocalKafka, workload: Workload, records: int) -> SourceBatches:
    """Make the topic and write its records: the batches that there are now.

    Raises SrmError when the topic or a record is refused, a record is not written in time, or the batches are not
    those of the workload.
    """
    client = ClusterClient(ClusterSettings("source", source.bootstrap_servers), SourceUnavailable)
    # What was compacted while it was filled would keep the rest from it: half of a log must be new by default.
    compacts = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001"}
    configs = compacts if workload.is_compacted else {}
    if reason := client.create([TopicSpec(workload.topic, workload.partitions, 1, configs)])[workload.topic]:
        raise SrmError(f"topic {workload.topic} cannot be created: {reason}")
    if workload.by_java:
        _write_by_java(source, workload, records)
    elif workload.transaction or workload.batch_records:
        _write_by_many(source.bootstrap_servers, workload, records)
    else:
        _write_all(source.bootstrap_servers, workload, records)
    if workload.is_compacted:
        records = _close_logs(source, workload, records)
    found = _await_records(source, workload, records)
    if (why_not := misfit(workload, found)) is not None:
        raise SrmError(f"{workload.topic}: {why_not}")
    return found


def producer_options(workload: Workload) -> dict[str, str | int | bool]:
    """How librdkafka makes the batches of a workload."""
    return {
        "compression.type": workload.codec,
        "batch.size": workload.batch_bytes,
        "batch.num.messages": workload.batch_records or 1_000_000,
        "linger.ms": 0 if workload.batch_records else _SHORT_LINGER_MS if workload.transaction else _LINGER_MS,
        "message.max.bytes": 2_000_000,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": 393_216,
        "log_level": 3,  # a new broker's coordinator is still loading, and is asked again
        "enable.idempotence": True,
    }


class _Writing:
    """A producer, and what it was refused. Nothing of it is left where nobody has it any more."""

    def __init__(self, servers: str, workload: Workload, more: Mapping[str, str | int] = {}) -> None:
        refused: list[str] = []

        def note(error: KafkaError | None, _: Message) -> None:  # knows nothing of the producer: it is no cycle
            refused.append(str(error))

        self._topic, self._refused = workload.topic, refused
        options = {"bootstrap.servers": servers, **producer_options(workload), **more}
        self.producer = Producer({**options, "on_delivery": note, "delivery.report.only.error": True})

    def add(self, value: bytes, key: bytes | None, partition: int, headers: Headers) -> None:
        """Hand over one record."""
        while True:
            try:
                if headers:
                    self.producer.produce(self._topic, value, key, partition=partition, headers=headers)
                else:
                    self.producer.produce(self._topic, value, key, partition=partition)
                return
            except BufferError:
                self.producer.poll(0.1)

    def finish(self) -> None:
        """Wait until all of them are written. Raises SrmError where one was not."""
        left = self.producer.flush(_FLUSH_SECONDS)
        if self._refused or left:
            reason = self._refused[0] if self._refused else f"not written in {_FLUSH_SECONDS:g} s"
            raise SrmError(f"{self._topic}: {len(self._refused) + left} records were not written: {reason}")


def _write_all(servers: str, workload: Workload, records: int) -> None:
    writing, record = _Writing(servers, workload), _records(workload)
    for number in range(records):
        value, key, partition, headers = record(number, number // RUN)
        writing.add(value, key, partition, headers)
    writing.finish()


def _records(workload: Workload) -> Callable[[int, int], tuple[bytes, bytes | None, int, Headers]]:
    """What a workload's record with a number is, where its partition has one, too."""
    values = payloads(workload.sizes)
    headers: Headers = [(f"header-{number}", b"0123456789abcdef") for number in range(workload.headers)]

    def record(number: int, place: int) -> tuple[bytes, bytes | None, int, Headers]:
        return values[number % len(values)], key_of(workload, number), place % workload.partitions, headers

    return record


def _write_by_many(servers: str, workload: Workload, records: int) -> None:
    """Several producers, each one batch or transaction after the other, each of these in one partition."""
    count, record = workload.transaction or workload.batch_records, _records(workload)
    parts = [range(at, min(at + count, records)) for at in range(0, records, count)]

    def write(who: int) -> None:
        ids = {"transactional.id": f"{workload.topic}-{who}"} if workload.transaction else {}
        writing = _Writing(servers, workload, ids)
        if ids:
            writing.producer.init_transactions(_FLUSH_SECONDS)
        for numbers in parts[who::_PRODUCERS]:
            if ids:
                writing.producer.begin_transaction()
            for number in numbers:
                value, key, partition, headers = record(number, numbers.start // count)
                writing.add(value, key, partition, headers)
            if ids:
                writing.producer.commit_transaction(_FLUSH_SECONDS)
        writing.finish()

    with ThreadPoolExecutor(_PRODUCERS) as pool:
        try:
            list(pool.map(write, range(_PRODUCERS)))
        except KafkaException as error:
            raise SrmError(f"{workload.topic}: a transaction failed: {error}") from error


def _write_by_java(source: LocalKafka, workload: Workload, records: int) -> None:
    with tempfile.TemporaryDirectory(prefix="srm-values-") as folder:
        path = Path(folder) / "values"
        path.write_bytes(b"\n".join(payloads(workload.sizes)))
        options = ("--topic", workload.topic, "--num-records", f"{records}", "--throughput", "-1")
        codec = ("--command-property", f"compression.type={workload.codec}")
        source.tool(_JAVA, *options, "--payload-file", str(path), *codec, timeout=_JAVA_SECONDS)


def _close_logs(source: LocalKafka, workload: Workload, records: int) -> int:
    """Have everything compacted: a record more in each partition begins a new file. How many records will be left."""
    servers = source.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    before = _files(source, workload)
    _configure(admin, workload.topic, AlterConfigOpType.SET)
    deadline = time.monotonic() + _COMPACTION_SECONDS
    while left := [number for number, count in before.items() if _files(source, workload)[number] == count]:
        if time.monotonic() > deadline:
            raise SrmError(f"{workload.topic}: partitions {left} have begun no new file")
        writing = _Writing(servers, workload)
        for partition in left:  # the broker may not know of the setting yet
            writing.add(b"last", b"last", partition, [])
        writing.finish()
    _configure(admin, workload.topic, AlterConfigOpType.DELETE)
    return len({key_of(workload, number) for number in range(records)}) + workload.partitions


def _files(source: LocalKafka, workload: Workload) -> dict[int, int]:
    """How many files each partition has."""
    folders = {
        number: source.directory / "data" / f"{workload.topic}-{number}" for number in range(workload.partitions)
    }
    return {number: len(list(folder.glob("*.log"))) for number, folder in folders.items()}


def _configure(admin: AdminClient, topic: str, operation: AlterConfigOpType) -> None:
    """Have a log's file end before the next record, or as by default."""
    entry = ConfigEntry("segment.ms", "1", incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def _await_records(source: LocalKafka, workload: Workload, records: int) -> SourceBatches:
    """What lies in the log; where that is compacted, once that is done. Raises SrmError where it is something else."""
    deadline = time.monotonic() + _COMPACTION_SECONDS * workload.is_compacted
    while True:
        with suppress(FileNotFoundError):  # compaction replaces files
            found = source_batches(source.directory / "data", workload.topic, workload.partitions)
            if found.records == records:
                return found
            if time.monotonic() > deadline:
                raise SrmError(f"{workload.topic}: {found.records} records lie in the source's log, not {records}")
        time.sleep(_LOOK_SECONDS)
