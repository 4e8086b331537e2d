"""`python -m srm_spark.bench.latency`: how long a record takes from its source to a consumer of its copy.

A producer writes at an even rate, each value the moment of its writing; a plain consumer of the copy takes the time.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from srm_spark.bench.contenders import Job, mirror_maker, srm_spark
from srm_spark.bench.idle import Bed
from srm_spark.errors import SrmError
from srm_spark.testing import LocalKafka

TOPIC, PARTITIONS = "latency", 6
_LONGEST_SECONDS = 120.0


@dataclass(frozen=True)
class Latency:
    """Milliseconds between writing a record and reading its copy."""

    rate: int
    """Records per second, all partitions together."""
    p50: float
    p90: float
    p99: float
    p999: float


def measure_latency(
    contender: Callable[[Job], AbstractContextManager[int]], job: Job, rate: int, seconds: float
) -> Latency:
    """Percentiles of `seconds` under an even load, after half as long to warm up."""
    stop = threading.Event()
    writer = threading.Thread(target=_write, args=(job.source, rate, stop), daemon=True)
    with contender(job):
        writer.start()
        try:
            consumer = _consumer(job)
            _take(consumer, seconds / 2)
            found = np.array(_take(consumer, seconds))
            consumer.close()
        finally:
            stop.set()
            writer.join()
    if not len(found):
        raise SrmError(f"{job.alias}: no record arrived in {seconds:g} s; see its log")
    return Latency(rate, *(float(np.percentile(found, part)) for part in (50, 90, 99, 99.9)))


def _write(servers: str, rate: int, stop: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    began, written = time.monotonic(), 0
    while not stop.is_set():
        for number in range(written, int((time.monotonic() - began) * rate)):
            producer.produce(TOPIC, str(time.time_ns()).encode(), partition=number % PARTITIONS)
            written += 1
        producer.poll(0.001)
    producer.flush(10)


def _consumer(job: Job) -> Consumer:
    consumer = Consumer({"bootstrap.servers": job.target, "group.id": job.alias, "fetch.wait.max.ms": 10})
    deadline = time.monotonic() + _LONGEST_SECONDS
    while job.remote_topic not in consumer.list_topics(timeout=30).topics:
        if time.monotonic() > deadline:
            raise SrmError(f"{job.alias}: {job.remote_topic} was not created in {_LONGEST_SECONDS:g} s; see its log")
        time.sleep(0.2)
    consumer.assign([TopicPartition(job.remote_topic, number, 0) for number in range(PARTITIONS)])
    while (first := consumer.poll(1.0)) is None or first.error() is not None:
        if time.monotonic() > deadline:
            raise SrmError(f"{job.alias}: no record arrived in {_LONGEST_SECONDS:g} s; see its log")
    return consumer


def _take(consumer: Consumer, seconds: float) -> list[float]:
    found: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for message in consumer.consume(500, 0.01):
            value = message.value()
            if message.error() is None and value is not None:
                found.append((time.time_ns() - int(value)) / 1e6)
    return found


@click.command()
@click.option("--rate", "rates", type=int, multiple=True, default=(100, 1000, 10_000), show_default=True)
@click.option("--seconds", default=20.0, show_default=True, help="How long each rate is measured.")
@click.option("--theirs/--no-theirs", default=True, help="MirrorMaker 2 as well.")
def main(*, rates: tuple[int, ...], seconds: float, theirs: bool) -> None:
    """Measure latencies."""
    contenders = {"srm-spark": srm_spark, **({"MirrorMaker 2": mirror_maker} if theirs else {})}
    with tempfile.TemporaryDirectory(prefix="srm-latency-") as folder:
        for rate in rates:
            for name, contender in contenders.items():
                with LocalKafka("source", jvm_options=()) as source, LocalKafka("target", jvm_options=()) as target:
                    Bed(source.bootstrap_servers, target.bootstrap_servers).create([TOPIC], PARTITIONS)
                    job = Job("source", TOPIC, source.bootstrap_servers, target.bootstrap_servers, Path(folder))
                    found = measure_latency(contender, job, rate, seconds)
                click.echo(
                    f"{rate:7} records/s {name:<14} p50 {found.p50:7.1f} ms, p90 {found.p90:7.1f} ms, "
                    f"p99 {found.p99:7.1f} ms, p99.9 {found.p999:7.1f} ms"
                )


if __name__ == "__main__":
    main()
