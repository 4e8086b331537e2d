"""How long a record takes from its source to a consumer of its copy.

A producer writes at an even rate, each value the moment of its writing; a plain consumer of the copy takes the time.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from srm_spark.bench.bed import Bed
from srm_spark.bench.contenders import CONTENDERS, IN_TIME, OURS, THEIRS, Contender, Job
from srm_spark.bench.figures import Spread, spreads
from srm_spark.bench.records import check_copy
from srm_spark.errors import SrmError
from srm_spark.testing import LocalKafka

TOPIC, PARTITIONS = "latency", 6
RATES = (100, 1000, 10_000)
"""Records per second, all partitions together."""
SIZE = 100
"""Bytes of a value: a moment in nanoseconds, filled up."""
SECONDS = 20.0
"""How long a rate is measured."""
_LONGEST_SECONDS = 120.0
_WARM_SECONDS = 90.0
"""Before it is measured: a JVM compiles for so long, the real-time lane begins after a first micro-batch, and after a
minute the offset map becomes a table for the first time, which keeps two cores busy for some seconds."""
_CAUGHT_UP_MS, _CATCH_UP_SECONDS = 1000.0, 60.0
_SLOWEST = 0.98
"""Share of a rate that has to be written for the rate to be true."""


@dataclass(frozen=True)
class Latency:
    """Milliseconds between writing a record and reading its copy."""

    p50: float
    p90: float
    p99: float
    p999: float


def latencies(rate: int, rounds: int, seconds: float) -> dict[str, dict[str, Spread]]:
    """Contender → percentile → median, min and max of the rounds, each under `rate` records per second."""
    found: dict[str, list[Latency]] = {name: [] for name in IN_TIME}
    for number in range(rounds):
        for name, several in found.items():
            with (
                tempfile.TemporaryDirectory(prefix="srm-latency-") as folder,
                LocalKafka("source", jvm_options=()) as source,
                LocalKafka("target", jvm_options=()) as target,
            ):
                Bed(source.bootstrap_servers, target.bootstrap_servers).create([TOPIC], PARTITIONS)
                job = Job("source", TOPIC, source.bootstrap_servers, target.bootstrap_servers, Path(folder))
                several.append(one := measure_latency(CONTENDERS[name], job, rate, seconds))
            click.echo(
                f"{rate:7,} records/s round {number + 1} {name:<14} p50 {one.p50:7.1f} ms, p90 {one.p90:7.1f} ms, "
                f"p99 {one.p99:7.1f} ms, p99.9 {one.p999:7.1f} ms",
                err=True,
            )
    return {name: spreads(several) for name, several in found.items()}


def with_half_of_maximum(workloads: Mapping[str, Any]) -> tuple[int, ...]:
    """The rates, and half of what the slower program copies of records of 100 B, where that was measured."""
    found = workloads.get("100 B", {}).get("contenders", {})
    if not {OURS, THEIRS} <= found.keys():
        return RATES
    slower = min(found[name]["steady_rate"]["median"] for name in (OURS, THEIRS))
    return (*RATES, int(round(slower / 2, -4)))


def measure_latency(contender: Contender, job: Job, rate: int, seconds: float) -> Latency:
    """Percentiles of `seconds` under an even load, once the contender is warm; then every record is compared.

    Raises SrmError when nothing arrives, when this machine does not write at that rate, or when a copy is not one.
    """
    stop = threading.Event()
    wrote: list[float] = []
    writer = threading.Thread(target=write_evenly, args=(job.source, rate, stop, wrote), daemon=True)
    with contender(job):
        writer.start()
        try:
            consumer = _consumer(job)
            _catch_up(consumer)
            _take(consumer, _WARM_SECONDS)
            found = np.array(_take(consumer, seconds))
        finally:
            stop.set()
            writer.join()
        _take(consumer, None)
        consumer.close()
    if wrote[0] < rate * _SLOWEST:
        raise SrmError(f"only {wrote[0]:,.0f} records per second were written, not {rate:,}; choose a lower rate")
    if not len(found):
        raise SrmError(f"{job.alias}: no record arrived in {seconds:g} s; see its log")
    check_copy(job.source, job.target, {job.topic: job.remote_topic})
    return Latency(*(float(np.percentile(found, part)) for part in (50, 90, 99, 99.9)))


def write_evenly(servers: str, rate: int, stop: threading.Event, wrote: list[float]) -> None:
    """Write at `rate` until `stop`, then put into `wrote` how many records per second it was."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "queue.buffering.max.messages": 1_000_000})
    began, written = time.monotonic(), 0
    while not stop.is_set():
        for number in range(written, int((time.monotonic() - began) * rate)):
            producer.produce(TOPIC, str(time.time_ns()).encode().ljust(SIZE), partition=number % PARTITIONS)
            written += 1
        producer.poll(0.001)
    wrote.append(written / (time.monotonic() - began))
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


def _catch_up(consumer: Consumer) -> None:
    """Read what was written before the contender had started; one that never catches up is measured as it is."""
    deadline = time.monotonic() + _CATCH_UP_SECONDS
    while min(_take(consumer, 0.2), default=np.inf) > _CAUGHT_UP_MS and time.monotonic() < deadline:
        pass


def _take(consumer: Consumer, seconds: float | None) -> list[float]:
    """What arrives in that time; with None what arrives until a second brings nothing."""
    found: list[float] = []
    end = None if seconds is None else time.monotonic() + seconds
    while end is None or time.monotonic() < end:
        first = consumer.poll(0.1 if seconds is not None else 1.0)
        if first is None and seconds is None:
            break
        # A timeout here would be waited for until the list is full, and count as latency.
        for message in [] if first is None else [first, *consumer.consume(1000, 0)]:
            value = message.value()
            if message.error() is None and value is not None:
                found.append((time.time_ns() - int(value)) / 1e6)
    return found
