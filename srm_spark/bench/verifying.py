"""How fast copies are compared with their records, and whether every fault among many is found.

`python -m srm_spark.bench.verifying --workload 1kb --records 2000000 --faults 1000`
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from srm_spark.bench.contenders import CONTENDERS, OURS, Job, create_remote_topic
from srm_spark.bench.fill import fill
from srm_spark.bench.measure import measure
from srm_spark.bench.processes import end_in_order
from srm_spark.bench.records import DELETE, Bench, bench
from srm_spark.bench.workloads import BY_NAME, short
from srm_spark.errors import SrmError

_KINDS = ("key", "value", "headers", "timestamp")
_WORKLOADS = {short(name): one for name, one in BY_NAME.items()}
Fault = tuple[int, int]
"""Partition and offset."""


@click.command()
@click.option(
    "--workload", type=click.Choice(list(_WORKLOADS)), default="1kb", show_default=True, help="What is copied."
)
@click.option("--records", default=2_000_000, show_default=True, help="Of all partitions together.")
@click.option("--faults", default=0, show_default=True, help="Copies that are changed before they are compared.")
def main(*, workload: str, records: int, faults: int) -> None:
    """Copy a topic, change some of its copies by a plain client, and compare all of them with srm-control verify."""
    end_in_order()
    one = _WORKLOADS[workload]
    with bench() as on:
        filled = fill(on.source, one, records)
        servers = on.source.bootstrap_servers, on.target.bootstrap_servers
        job = Job("source", one.topic, *servers, on.folder, one.codec)
        brokers = on.source.pid, on.target.pid
        measure(CONTENDERS[OURS], job, filled.records, brokers=brokers)
        chosen = frozenset(_choose(faults, filled.records, one.partitions))
        if chosen:
            _rewrite(on, job, chosen)
        _compare(job, filled.records, chosen)


def _choose(faults: int, records: int, partitions: int) -> Iterator[Fault]:
    """Places far enough from each other to be told apart; the same in every run."""
    chance = random.Random(11)  # noqa: S311 - no secret
    each = records // partitions
    for partition in range(partitions):
        share = faults // partitions + (partition < faults % partitions)
        yield from ((partition, offset) for offset in chance.sample(range(each * 9 // 10), share))


def _rewrite(on: Bench, job: Job, faults: frozenset[Fault]) -> None:
    """Write the copies once more, at the same offsets, by a plain client, and those `faults` another way each."""
    on.target.tool(*DELETE, job.remote_topic)
    create_remote_topic(job)
    consumer = Consumer({"bootstrap.servers": job.source, "group.id": "bench", "enable.partition.eof": True})
    settings = {"bootstrap.servers": job.target, "enable.idempotence": True, "compression.type": job.codec}
    producer = Producer({**settings, "linger.ms": 50, "batch.size": 1_000_000})
    partitions = consumer.list_topics(job.topic, 30).topics[job.topic].partitions
    consumer.assign([TopicPartition(job.topic, number, 0) for number in partitions])
    left = set(partitions)
    try:
        while left:
            for message in consumer.consume(10_000, 1.0):
                error = message.error()
                if error is None:
                    _write(producer, job.remote_topic, message, faults)
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                else:
                    raise SrmError(f"{job.topic}: {error}")
    finally:
        consumer.close()
    if producer.flush(60):
        raise SrmError(f"{job.remote_topic} could not be written again")


def _write(producer: Producer, topic: str, message: Message, faults: frozenset[Fault]) -> None:
    partition, offset = message.partition() or 0, message.offset() or 0
    key, value, headers = message.key(), message.value() or b"", message.headers() or []
    _, timestamp = message.timestamp()
    if (partition, offset) in faults:
        fault = _KINDS[offset % len(_KINDS)]
        key = b"another" if fault == "key" else key
        value = bytes([value[0] ^ 1]) + value[1:] if fault == "value" else value
        headers = [*headers, ("another", None)] if fault == "headers" else headers
        timestamp += fault == "timestamp"
    while True:
        try:
            producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers or None)
            return
        except BufferError:
            producer.poll(0.1)


def _compare(job: Job, records: int, faults: frozenset[Fault]) -> None:
    """Raises SrmError where a fault is not found, or something else is."""
    program = str(Path(sys.executable).parent / "srm-control")
    command = [program, "verify", "--config", str(job.config({})), "-o", "json"]
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):
        raise SrmError(done.stderr[-2000:])
    (flow,) = json.loads(done.stdout)["flows"]
    found = {(one["partition"], finding["source"]) for one in flow["partitions"] for finding in one["findings"]}
    equal = sum(one["equal"] for one in flow["partitions"])
    if found != faults or equal != records - len(faults):
        what = f"{len(faults - found)} of {len(faults)} faults not found, {len(found - faults)} found that are none"
        raise SrmError(f"{flow['verdict']}: {what}, {equal} of {records} records equal")
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    click.echo(f"{flow['verdict']}: {equal:,} records equal, all of {len(faults):,} faults found")
    click.echo(
        f"{records / seconds:,.0f} records/s, {records / cpu:,.0f} records a second of one core "
        f"({cpu / seconds:.2f} cores, its start included), {seconds:.1f} s"
    )


if __name__ == "__main__":
    main()
