"""Fills the source's topic of a workload, with a plain producer."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message, Producer

from srm_spark.bench.workloads import Workload, payloads
from srm_spark.config.settings import ClusterSettings
from srm_spark.core.cluster import TopicSpec
from srm_spark.errors import SourceUnavailable, SrmError
from srm_spark.kafka.cluster import ClusterClient

_RUN = 250
"""So many records in a row go to one partition: batches are full, whatever the number of partitions."""
_FLUSH_SECONDS = 120.0


def fill(servers: str, workload: Workload, records: int) -> None:
    """Make the topic and write its records.

    Raises SrmError when the topic or a record is refused, or a record is not written in time.
    """
    source = ClusterClient(ClusterSettings("source", servers), SourceUnavailable)
    if reason := source.create([TopicSpec(workload.topic, workload.partitions, 1, {})])[workload.topic]:
        raise SrmError(f"topic {workload.topic} cannot be created: {reason}")
    refused: list[str] = []

    def note(error: KafkaError | None, _: Message) -> None:
        refused.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": workload.codec,
            "batch.size": workload.batch_bytes,
            "batch.num.messages": 1_000_000,
            "message.max.bytes": 2_000_000,
            "linger.ms": 50,
            "log_level": 3,  # a new broker's coordinator is still loading, and is asked again
            "enable.idempotence": True,
            "on_delivery": note,
            "delivery.report.only.error": True,
        }
    )
    _write(producer, workload, records)
    left = producer.flush(_FLUSH_SECONDS)
    if refused or left:
        reason = refused[0] if refused else f"not written in {_FLUSH_SECONDS:g} s"
        raise SrmError(f"{workload.topic}: {len(refused) + left} of {records} records were not written: {reason}")


def _write(producer: Producer, workload: Workload, records: int) -> None:
    values = payloads(workload.sizes)
    headers: list[tuple[str, str | bytes | None]] = [
        (f"header-{number}", b"0123456789abcdef") for number in range(workload.headers)
    ]
    for number in range(records):
        value, partition = values[number % len(values)], number // _RUN % workload.partitions
        while True:
            try:
                if headers:
                    producer.produce(workload.topic, value, partition=partition, headers=headers)
                else:
                    producer.produce(workload.topic, value, partition=partition)
                break
            except BufferError:
                producer.poll(0.1)
