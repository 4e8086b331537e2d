"""One measured run: from the start of a contender to its last record, watched at the target's end offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from srm_spark.bench.contenders import Job
from srm_spark.bench.processes import cpu_seconds
from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import SrmError, TargetUnavailable
from srm_spark.kafka.cluster import Cluster
from srm_spark.model import TopicPartition

_POLL_SECONDS = 0.2
_STANDING = 10
"""So many samples without a new record are the end of a copy."""
_LONGEST_SECONDS = 600.0


@dataclass(frozen=True)
class Sample:
    """How far a run was at one moment."""

    at: float
    records: int
    cpu: float
    """CPU seconds of the process tree so far."""


@dataclass(frozen=True)
class Run:
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


def measure(
    contender: Callable[[Job], AbstractContextManager[int]], job: Job, records: int, *, has_markers: bool = False
) -> Run:
    """Run a contender until it has copied `records` records; with markers, until its copy no longer grows."""
    target = Cluster(ClusterSettings("target", job.target), TargetUnavailable)
    started = time.monotonic()
    samples: list[Sample] = []
    with contender(job) as pid:
        while not samples or samples[-1].records < records or (has_markers and not _stands(samples)):
            time.sleep(_POLL_SECONDS)
            copied = _copied(target, job.remote_topic)
            if copied:
                samples.append(Sample(time.monotonic(), copied, cpu_seconds(pid)))
            if time.monotonic() - started > _LONGEST_SECONDS:
                raise SrmError(f"{job.alias}: {copied} of {records} records after {_LONGEST_SECONDS:g} s; see its log")
    end = samples[-1].records
    samples = samples[: 1 + next(at for at, sample in enumerate(samples) if sample.records == end)]
    if end != records and not has_markers:
        raise SrmError(f"{job.alias}: {end} records on the target, {records} on the source")
    middle = next(sample for sample in samples if sample.records >= records // 2)
    first, last = samples[0], samples[-1]
    return Run(first.at - started, *_pace(first, last), *_pace(middle, last))


def _stands(samples: Sequence[Sample]) -> bool:
    """Whether the newest samples are the same."""
    return len(samples) >= _STANDING and len({sample.records for sample in samples[-_STANDING:]}) == 1


def _copied(target: Cluster, topic: str) -> int:
    count = target.topics().get(topic, 0)
    return sum(target.end_offsets(TopicPartition(topic, number) for number in range(count)).values())


def _pace(start: Sample, end: Sample) -> tuple[float, float]:
    records = max(1, end.records - start.records)
    return records / max(end.at - start.at, _POLL_SECONDS), (end.cpu - start.cpu) / records * 1e6
