"""How long a record takes from its source to a consumer of its copy.

A producer writes at an even rate, each value the moment of its writing; a consumer of the copy takes the time. That one
reads by compiled loops, since it shares the cores with what it measures; a record costs librdkafka's producer 2 µs.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from srm_spark.bench.bed import Bed
from srm_spark.bench.contenders import CONTENDERS, IN_TIME, OURS, THEIRS, Contender, Job
from srm_spark.bench.figures import Spread, spreads
from srm_spark.bench.processes import cpu_seconds
from srm_spark.bench.records import check_copy
from srm_spark.core.model import TopicPartition
from srm_spark.core.rows import Run
from srm_spark.errors import SrmError
from srm_spark.kafka.fetch import Fetch, fetch_options
from srm_spark.kafka.ranges import Follower
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
_TICK_SECONDS = 0.001
_STEP = 5000
_DIGITS = 19
"""Of a moment."""
_SLOWEST = 0.98
"""Share of a rate that has to be written for the rate to be true."""


@dataclass(frozen=True)
class Latency:
    """Milliseconds between writing a record and reading its copy, and what that took."""

    p50: float
    p90: float
    p99: float
    p999: float
    cores: float
    """CPU seconds per second of the process tree."""


def latencies(rate: int, rounds: int, seconds: float) -> dict[str, dict[str, Spread]]:
    """Contender → percentile → median, min and max of the rounds, each under `rate` records per second."""
    by_contender: dict[str, list[Latency]] = {name: [] for name in IN_TIME}
    for number in range(rounds):
        for name, several in by_contender.items():
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
                f"p99 {one.p99:7.1f} ms, p99.9 {one.p999:7.1f} ms, {one.cores:.2f} cores",
                err=True,
            )
    return {name: spreads(several) for name, several in by_contender.items()}


def with_half_of_maximum(workloads: Mapping[str, Any]) -> tuple[int, ...]:
    """The rates, and half of what the slower program copies of records of 100 B from a backlog, if that is known."""
    contenders = workloads.get("100 B", {}).get("contenders", {})
    if not {OURS, THEIRS} <= contenders.keys():
        return RATES
    slower = min(contenders[name]["backlog_rate"]["median"] for name in (OURS, THEIRS))
    return (*RATES, int(slower / 2 // _STEP * _STEP))


def measure_latency(contender: Contender, job: Job, rate: int, seconds: float) -> Latency:
    """Percentiles of `seconds` under an even load, once the contender is warm; then every record is compared.

    Raises SrmError when nothing arrives, when this machine does not write at that rate, or when a copy is not one.
    """
    stop = threading.Event()
    wrote: list[float] = []
    writer = threading.Thread(target=write_evenly, args=(job.source, rate, stop, wrote), daemon=True)
    with contender(job) as pid:
        writer.start()
        try:
            reader = _reader(job)
            _catch_up(reader)
            _take(reader, _WARM_SECONDS)
            began, used = time.monotonic(), cpu_seconds(pid)
            delays = _take(reader, seconds)
            cores = (cpu_seconds(pid) - used) / (time.monotonic() - began)
        finally:
            stop.set()
            writer.join()
        _take(reader, None)
        reader.close()
    if wrote[0] < rate * _SLOWEST:
        raise SrmError(f"only {wrote[0]:,.0f} records per second were written, not {rate:,}; choose a lower rate")
    if not len(delays):
        raise SrmError(f"{job.alias}: no record arrived in {seconds:g} s; see its log")
    check_copy(job.source, job.target, {job.topic: job.remote_topic})
    p50, p90, p99, p999 = np.percentile(delays, (50, 90, 99, 99.9)).tolist()
    return Latency(p50, p90, p99, p999, cores)


def write_evenly(servers: str, rate: int, stop: threading.Event, wrote: list[float]) -> None:
    """Write at `rate` until `stop`, then put into `wrote` how many records per second it was."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "queue.buffering.max.messages": 1_000_000})
    began, written, partitions = time.monotonic(), 0, cycle(range(PARTITIONS))
    while not stop.is_set():
        due = int((time.monotonic() - began) * rate) - written
        if due > 0:
            written += _write(producer, next(partitions), due)
        producer.poll(0)
        time.sleep(_TICK_SECONDS)
    wrote.append(written / (time.monotonic() - began))
    producer.flush(10)


def _write(producer: Producer, partition: int, count: int) -> int:
    """Write so many records of this moment: how many were taken."""
    value = str(time.time_ns()).encode().ljust(SIZE)
    for taken in range(count):
        try:
            producer.produce(TOPIC, value, partition=partition)
        except BufferError:
            return taken
    return count


def _reader(job: Job) -> Follower:
    """Reads the copy from its beginning, once it is there."""
    admin = AdminClient({"bootstrap.servers": job.target})
    deadline = time.monotonic() + _LONGEST_SECONDS
    while job.remote_topic not in admin.list_topics(timeout=30).topics:
        if time.monotonic() > deadline:
            raise SrmError(f"{job.alias}: {job.remote_topic} was not created in {_LONGEST_SECONDS:g} s; see its log")
        time.sleep(0.2)
    options = fetch_options({"bootstrap.servers": job.target})
    live = {**options, "fetch.wait.max.ms": 10, "queued.max.messages.kbytes": 65_536, "enable.partition.eof": False}
    starts = {TopicPartition(job.remote_topic, number): 0 for number in range(PARTITIONS)}
    return Follower(Fetch(live, job.alias, _LONGEST_SECONDS), starts)


def _catch_up(reader: Follower) -> None:
    """Read what was written before the contender had started; one that never catches up is measured as it is.

    Raises SrmError where nothing is copied at all.
    """
    deadline, has_come = time.monotonic() + _LONGEST_SECONDS, False
    while time.monotonic() < deadline:
        delays = _take(reader, 0.2)
        if delays.size and not has_come:
            deadline, has_come = time.monotonic() + _CATCH_UP_SECONDS, True
        if delays.size and delays.min() <= _CAUGHT_UP_MS:
            return
    if not has_come:
        raise SrmError(f"no record arrived in {_LONGEST_SECONDS:g} s; see the log of the contender")


def _take(reader: Follower, seconds: float | None) -> npt.NDArray[np.float64]:
    """Milliseconds of what arrives in that time; with None of what arrives until a second brings nothing."""
    batches = [np.zeros(0)]
    end = None if seconds is None else time.monotonic() + seconds
    while end is None or time.monotonic() < end:
        began = time.thread_time()
        arrived = [_ages(run) for run in reader.take(0.1 if seconds is not None else 1.0)]
        if not arrived and seconds is None:
            break
        batches.extend(arrived)
        time.sleep(min(_TICK_SECONDS, time.thread_time() - began))  # or a reader alone would keep a core busy
    return np.concatenate(batches)


def _ages(run: Run) -> npt.NDArray[np.float64]:
    """How many milliseconds ago each value was written."""
    now = time.time_ns()
    letters = np.frombuffer(run.values.buffers()[2], np.uint8, run.count * SIZE).reshape(run.count, SIZE)
    written = (letters[:, :_DIGITS].astype(np.int64) - ord("0")) @ 10 ** np.arange(_DIGITS - 1, -1, -1)
    return (now - written) / 1e6
