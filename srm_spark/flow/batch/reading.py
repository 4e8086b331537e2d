"""How the records of a pass come to the tasks that write them.

Directly, where compiled loops are there: each task fetches its share of the ranges by itself (`kafka.batches`), and
what is not worth a Spark job is copied by the batch function. Without Spark, tasks are threads. Else by
Spark's source, as rows: through the JVM and Arrow, which costs most of what a small record costs.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import pyarrow as pa

from srm_spark.config.render import spark_kafka_options
from srm_spark.config.settings import FlowSettings
from srm_spark.core.model import OffsetRange, Ranges, TopicPartition
from srm_spark.core.reports import REPORT_SCHEMA, PartitionReport, read_report
from srm_spark.flow.batch.passes import PROBE, RecordSizes
from srm_spark.kafka.batches.copy import FetchTask, copy_ranges
from srm_spark.kafka.batches.ways import is_used
from srm_spark.kafka.clients import options
from srm_spark.kafka.fetch import Fetch, fetch_options
from srm_spark.kafka.rows_task import RowsTask
from srm_spark.kafka.writer import WriteTask
from srm_spark.spark import DataFrame, SparkSession
from srm_spark.spark.source import bounded
from srm_spark.spark.write import bare_tasks, run

_SMALL_RECORDS = 10_000
THREADS = "srm task"
"""What those are called that write where there is no Spark."""


def fetch_of(settings: FlowSettings, more: Mapping[str, str | int] = MappingProxyType({})) -> Fetch:
    """How tasks read the source of a flow; `more` options win."""
    rendered = options(settings.source, settings.consumer, f"{settings.flow}|consumer")
    return Fetch(
        {**fetch_options(rendered), **more},
        settings.flow.source,
        settings.admin_timeout_seconds,
        settings.batch.in_loop,
    )


@dataclass(frozen=True)
class Reading:
    """How one generation reads."""

    settings: FlowSettings
    tasks: int
    """Most Spark tasks of a pass."""
    sizes: RecordSizes
    """What records weigh."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Of the source topics, as far as they are known."""

    def write(
        self, session: SparkSession | None, write: WriteTask, ranges: Ranges, rows: DataFrame | None, pass_bytes: int
    ) -> list[PartitionReport]:
        """Read `ranges`, or take their `rows`, and write them: what the tasks say of it.

        Without a session all of it is done right here, which only compiled loops can do.
        """
        if session is None or (rows is None and is_used(self.settings.batch.in_loop)):
            return self._directly(session, write, ranges)
        return self._as_rows(self._by_spark(session, ranges) if rows is None else rows, write, ranges, pass_bytes)

    def _directly(self, session: SparkSession | None, write: WriteTask, ranges: Ranges) -> list[PartitionReport]:
        fetch = self._fetch(ranges)
        if self.is_small(ranges):
            return _reports(copy_ranges(fetch, write, ranges, self.tasks))
        shares = even_shares(ranges, {p: self.sizes.weigh({p: offsets}) for p, offsets in ranges.items()}, self.tasks)
        if session is None:
            # A broker answers a connection's requests one by one: by a single one most of a pass is waiting for it.
            with ThreadPoolExecutor(len(shares), THREADS) as threads:
                tasks = [threads.submit(copy_ranges, fetch, write, share, slot) for slot, share in enumerate(shares)]
            return [report for task in tasks for report in _reports(task.result())]
        task = FetchTask(fetch, write, shares)
        return [read_report(row) for row in run(bare_tasks(session, len(shares)), task, REPORT_SCHEMA, len(shares))]

    def _fetch(self, ranges: Ranges) -> Fetch:
        topics = {partition.topic for partition in ranges} & self.topic_ids.keys()
        return replace(fetch_of(self.settings), topic_ids={topic: self.topic_ids[topic] for topic in topics})

    def is_small(self, ranges: Ranges) -> bool:
        """Whether a Spark job would take longer than copying right here, as far as one knows what records weigh."""
        most = self.settings.batch.driver_max_bytes
        count = sum(end - start for start, end in ranges.values())
        most_records = _SMALL_RECORDS
        if not self.sizes.knows({partition.topic for partition in ranges}):
            # The first records of a topic tell what they weigh. Here they need not wait for Python on the executors.
            # Under a limit a task ends early, so there all topics come on only where they are in several tasks.
            most_records = 0 if self.settings.limits.is_limited else 2 * PROBE
        return most > 0 and count <= most_records and self.sizes.weigh(ranges) <= most

    def _by_spark(self, session: SparkSession, ranges: Ranges) -> DataFrame:
        settings = self.settings
        rendered = spark_kafka_options(settings.source, settings.consumer, settings.admin_timeout_seconds)
        return bounded(session, rendered, ranges)

    def _as_rows(self, rows: DataFrame, write: WriteTask, ranges: Ranges, pass_bytes: int) -> list[PartitionReport]:
        batch, topics = self.settings.batch, {partition.topic for partition in ranges}
        bounds = self.sizes.arrow_bounds(topics, batch.arrow_max_records, min(batch.arrow_max_bytes, pass_bytes))
        task = RowsTask(self._fetch(ranges), write)
        return [read_report(row) for row in run(rows, task, REPORT_SCHEMA, min(self.tasks, len(ranges)), bounds)]


def _reports(rows: pa.RecordBatch) -> list[PartitionReport]:
    return [read_report(row) for row in rows.to_pylist()]


def even_shares(
    ranges: Ranges, weights: Mapping[TopicPartition, float], tasks: int
) -> Sequence[Mapping[TopicPartition, OffsetRange]]:
    """The ranges in at most `tasks` shares of about the same weight, the heaviest first to the lightest share."""
    shares: list[dict[TopicPartition, OffsetRange]] = [{} for _ in range(min(tasks, len(ranges)))]
    loads = [(0.0, number) for number in range(len(shares))]
    for partition in sorted(ranges, key=lambda p: (-weights[p], p)):
        load, number = heapq.heappop(loads)
        shares[number][partition] = ranges[partition]
        # Each range costs something by itself; without that, ranges of no known weight would all go to one task.
        heapq.heappush(loads, (load + max(1.0, weights[partition]), number))
    return shares
