"""The real-time lane of a flow: Spark's executors write records as they come, and the driver records what they report.

```
read      topics of the flow    → records as they come, on executors       kafka.ranges
write     records               → target records                           kafka.lane_task
report    acknowledgements      → reports topic, ten times a second        kafka.lane_reports
check     topics of the source  → the same, under the same leaders         flow.guard
judge … commit                  → as for a micro-batch, twice a second      flow.replicate
```

What a crash leaves is the same as in the micro-batch lane, records on the target that are not recorded, and the next
start finds it in the same way (`flow.resume`).
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from srm_spark.core.cluster import TopicSpec
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.reports import PartitionReport
from srm_spark.errors import FlowError
from srm_spark.failure import Failure, failure_of
from srm_spark.flow.batch.reading import fetch_of
from srm_spark.flow.batch.replicate import Replication
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.internal_topics import InternalTopic, ensure_topic
from srm_spark.kafka.lane_reports import Chains, LaneReport, ReportReader, ReportsPlace, end_tasks
from srm_spark.kafka.lane_task import LaneTask
from srm_spark.spark import SparkSession
from srm_spark.spark.realtime import LastingJob

log = logging.getLogger(__name__)

_RECORD_SECONDS = 0.5
"""How often progress is recorded."""
_EMPTY_SECONDS = 5.0
"""How long a range stands still before it is looked at whether it holds any record."""
_LAST_SECONDS = 20.0
"""How long a clean stop waits for the last reports."""
_BEGIN_SECONDS = 120.0
"""How long tasks may take to begin, with a Python process of each."""
_KEPT_MS = 3_600_000
_LIVE = {"fetch.wait.max.ms": 500, "queued.max.messages.kbytes": 65_536}
"""Where librdkafka reads: a fetch waits for the next record, and nobody else waits behind it."""
_NO_SLOTS = (
    "flow {flow}: not every task has begun in {seconds:g} s: executors still unpack what they need, which passes, or "
    "something else in this Spark application takes the task slots; give it more cores, or set {flow}.mode=micro-batch"
)


def reports_topic(clusters: Clusters) -> InternalTopic:
    """How the reports topic is made: nothing in it counts any more once its generation has ended."""
    settings = clusters.settings
    configs = {"cleanup.policy": "delete", "retention.ms": str(_KEPT_MS), "segment.ms": str(_KEPT_MS)}
    return InternalTopic(TopicSpec(settings.reports_topic, 1, settings.progress_replication_factor, configs))


def _shares(positions: Mapping[TopicPartition, int], tasks: int) -> list[dict[TopicPartition, int]]:
    """The partitions of each task, in turn."""
    ordered = sorted(positions)
    count = min(tasks, len(ordered))
    return [{p: positions[p] for p in ordered[number::count]} for number in range(count)]


class RealtimeLane:
    """A running query of one generation, and the thread that records what it writes.

    No task of the driver's clock: it reads without a pause, and what it finds wrong ends the generation.
    """

    def __init__(self, session: SparkSession, clusters: Clusters, replication: Replication) -> None:
        """Copy all partitions of `replication`, from its positions on; `session` is the flow's own."""
        settings, positions = clusters.settings, dict(replication.positions)
        ensure_topic(clusters.target, reports_topic(clusters))
        reports = TopicPartition(settings.reports_topic, 0)
        start = clusters.target.end_offsets([reports])[reports]
        self._place = ReportsPlace(settings.reports_topic, uuid.uuid4().hex, start)
        self._clusters = clusters
        self._replication = replication
        shares = _shares(positions, replication.assignment.tasks)
        self._chains = Chains(len(shares))
        self._failure: Failure | None = None
        self._ending: float | None = None
        """When, by the clock of `time.monotonic`, the last reports must have come."""
        self._seen: Mapping[TopicPartition, int] = {}
        self._next_look = time.monotonic() + _EMPTY_SECONDS
        self._begin_until = time.monotonic() + _BEGIN_SECONDS
        write = replication.write_task({p: OffsetRange(at, at) for p, at in positions.items()})
        write = replace(write, options={**write.options, "linger.ms": 1})
        permit = replication.assignment.permit
        fetch = replace(fetch_of(settings, _LIVE), topic_ids=replication.topic_ids)
        task = LaneTask(fetch, write, shares, settings.target, self._place, permit)
        self._job = LastingJob(session, f"srm {settings.flow} realtime", task, len(shares), settings.flow.source)
        self._role = f"{settings.flow}|reports"
        self._reports = ReportReader(settings.target, self._place, self._place.generation, self._role)
        self._thread = threading.Thread(target=self._follow, name=f"srm {settings.flow} reports", daemon=True)
        self._thread.start()

    def failure(self) -> Failure | None:
        """Why it ended by itself; None while it runs."""
        return self._failure or self._job.failure()

    def stop(self, timeout: float) -> bool:
        """Stop writing, and record what was written; False where something may lie on the target unrecorded."""
        target, until = self._clusters.settings.target, min(timeout, _LAST_SECONDS)
        with suppress(FlowError):  # then they are interrupted
            self._job.stop(lambda: end_tasks(target, self._place, self._role, until), until)
        self._ending = time.monotonic() + until
        self._thread.join(timeout)
        return self._failure is None and self._chains.are_over and not self._thread.is_alive()

    def _follow(self) -> None:
        try:
            while not self._is_over():
                self._take_in(self._reports.read(_RECORD_SECONDS))
                if not self._chains.have_begun and time.monotonic() > self._begin_until and self._ending is None:
                    raise FlowError(_NO_SLOTS.format(flow=self._clusters.settings.flow, seconds=_BEGIN_SECONDS))
                if time.monotonic() >= self._next_look:
                    self._pass_empty()
        except Exception as error:  # it goes to the flow, which knows what to do about it
            log.debug("flow=%s the real-time lane failed", self._clusters.settings.flow, exc_info=True)
            self._failure = failure_of(error)
        finally:
            self._reports.close()

    def _is_over(self) -> bool:
        return self._ending is not None and (self._chains.are_over or time.monotonic() > self._ending)

    def _take_in(self, reports: Iterable[LaneReport]) -> None:
        joined: dict[TopicPartition, PartitionReport] = {}
        for one in reports:
            self._chains.take(one)
            if (report := one.report) is None:
                continue
            if report.partition in joined:
                joined[report.partition].join(report)
            else:
                joined[report.partition] = report
        for partition, report in joined.items():
            start = self._replication.positions[partition]
            if any(interval.upstream < start for interval in report.intervals):
                flow = self._clusters.settings.flow
                raise FlowError(f"flow {flow}: {partition} was reported again in front of offset {start}")
        if joined:
            self._replication.take_in(joined.values())

    def _pass_empty(self) -> None:
        """Pass over offsets that hold no record: markers, what was compacted or deleted. No report tells of them."""
        positions = dict(self._replication.positions)
        waiting = {p: at for p, at in positions.items() if self._seen.get(p) == at and p not in self._replication.holds}
        self._seen, self._next_look = positions, time.monotonic() + _EMPTY_SECONDS
        source, settings = self._clusters.source, self._clusters.settings
        ends = source.end_offsets(waiting, committed=settings.reads_committed)
        ranges = {p: OffsetRange(waiting[p], end) for p, end in ends.items() if end > waiting[p]}
        if not ranges:
            return
        records = source.first_records(ranges, committed=settings.reads_committed, seconds=_EMPTY_SECONDS)
        empty = [p for p, record in records.items() if record is None]
        self._replication.take_in(PartitionReport(p, next_offset=ranges[p].end) for p in empty)
