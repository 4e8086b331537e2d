"""One measured run: from the start of a contender to its last record, watched at the target's end offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from srm_spark.bench.contenders import Contender, Job
from srm_spark.bench.processes import cpu_seconds, memory_mib
from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import TopicPartition
from srm_spark.errors import SrmError, TargetUnavailable
from srm_spark.kafka.cluster import ClusterClient

_POLL_SECONDS = 0.1
_STANDING = 10
"""So many samples without a new record are the end of a copy."""
_LONGEST_SECONDS = 600.0
_MEMORY_EVERY = 10
"""Samples: the kernel walks through all pages for it."""


@dataclass(frozen=True)
class Sample:
    """How far a run was at one moment."""

    at: float
    records: int
    cpu: float
    """CPU seconds of the process tree so far."""
    memory_mib: float
    """Resident memory of the process tree."""
    broker_cpu: float = 0.0
    """CPU seconds of the brokers so far."""


@dataclass(frozen=True)
class BenchRun:
    """What one run brought."""

    start_seconds: float
    """From the start of the process to its first record on the target."""
    backlog_rate: float
    """Records per second from the first to the last record, warm-up included."""
    backlog_cpu: float
    """CPU microseconds per record in that time."""
    steady_rate: float
    """The same for the second half of the records."""
    steady_cpu: float
    cores: float
    """CPU seconds per second in the second half."""
    broker_cores: float
    """The same of the brokers, which share the machine."""
    memory_mib: float
    """Most resident memory of the process tree, of some samples per second."""


def measure(
    contender: Contender,
    job: Job,
    records: int,
    *,
    brokers: Collection[int] = (),
    has_markers: bool = False,
    is_part: bool = False,
) -> BenchRun:
    """Run a contender until it has copied `records` records; with markers, until its copy no longer grows.

    `brokers` are the process ids of the brokers that it loads. Where `records` are a part of what there is, it may have
    copied more by the last look.

    Raises SrmError when it ends before, or takes too long, or copies more than there is.
    """
    target = ClusterClient(ClusterSettings("target", job.target), TargetUnavailable)
    started = time.monotonic()
    samples = [Sample(started, 0, 0.0, 0.0, _cpu(brokers))]
    with contender(job) as pid:
        while samples[-1].records < records or (has_markers and not _stands(samples)):
            copied = _copied(target, job.remote_topic)
            at, cpu, of_brokers = time.monotonic(), _used(job, cpu_seconds, pid), _cpu(brokers)
            is_due = len(samples) % _MEMORY_EVERY == 1
            memory = _used(job, memory_mib, pid) if is_due else samples[-1].memory_mib
            samples.append(Sample(at, copied, cpu, memory, of_brokers))
            if time.monotonic() - started > _LONGEST_SECONDS:
                raise SrmError(
                    f"{job.alias}: {samples[-1].records} of {records} records after {_LONGEST_SECONDS:g} s; see its log"
                )
            time.sleep(_POLL_SECONDS)
    if samples[-1].records != records and not (has_markers or is_part):
        raise SrmError(f"{job.alias}: {samples[-1].records} records on the target, {records} on the source")
    return run_of(samples)


def run_of(samples: Sequence[Sample]) -> BenchRun:
    """What the samples say, of which the first is the start, when there was nothing.

    Between two samples nothing is known: times begin at the last sample that has none, or not more than half.
    """
    end = samples[-1].records
    last = next(sample for sample in samples if sample.records == end)
    first = next(sample for sample in samples if sample.records)
    before = [sample for sample in samples if not sample.records][-1]
    middle = [sample for sample in samples if sample.records <= end // 2][-1]
    backlog_rate, backlog_cpu = _pace(before, last)
    steady_rate, steady_cpu = _pace(middle, last)
    return BenchRun(
        start_seconds=first.at - samples[0].at,
        backlog_rate=backlog_rate,
        backlog_cpu=backlog_cpu,
        steady_rate=steady_rate,
        steady_cpu=steady_cpu,
        cores=(last.cpu - middle.cpu) / (last.at - middle.at),
        broker_cores=(last.broker_cpu - middle.broker_cpu) / (last.at - middle.at),
        memory_mib=max(sample.memory_mib for sample in samples),
    )


def _used(job: Job, what: Callable[[int], float], pid: int) -> float:
    try:
        return what(pid)
    except SrmError as error:
        said = job.log_path.read_text(errors="replace")[-2000:]
        raise SrmError(f"{job.alias}: {error}; the end of its log:\n{said}") from error


def _cpu(pids: Collection[int]) -> float:
    return sum(cpu_seconds(pid) for pid in pids)


def _stands(samples: Sequence[Sample]) -> bool:
    """Whether the newest samples are the same."""
    return len(samples) >= _STANDING and len({sample.records for sample in samples[-_STANDING:]}) == 1


def _copied(target: ClusterClient, topic: str) -> int:
    count = target.topics().get(topic, 0)
    return sum(target.end_offsets(TopicPartition(topic, number) for number in range(count)).values())


def _pace(start: Sample, end: Sample) -> tuple[float, float]:
    records = end.records - start.records
    return records / (end.at - start.at), (end.cpu - start.cpu) / records * 1e6
