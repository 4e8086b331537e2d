"""A topic on two clusters, and the copy of its ranges by a task, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.record_batch import Authorship
from srm_spark.core.reports import PartitionReport, read_report
from srm_spark.kafka.batches.copy import copy_ranges
from srm_spark.kafka.fetch import Fetch, fetch_options
from srm_spark.kafka.producers import record_options
from srm_spark.kafka.writer import WriteTask
from srm_spark.testing import KafkaCluster
from tests.broker.authors import author_of
from tests.kafka_io import Kafka


class TopicPair:
    """Tasks behind each other go on where the one before has ended, as those of one generation do."""

    def __init__(
        self, primary: KafkaCluster, secondary: KafkaCluster, topic: str, partitions: int = 1, *, remote: str = ""
    ) -> None:
        """Makes the topics, unless they are there; the remote one may have another name."""
        self.source, self.target, self.topic, self.remote = Kafka(primary), Kafka(secondary), topic, remote or topic
        for kafka, name in ((self.source, self.topic), (self.target, self.remote)):
            if name not in kafka.topics():
                kafka.create(name, partitions)
        self.limits = Limits()
        self._ends: dict[TopicPartition, int | None] = {TopicPartition(topic, n): 0 for n in range(partitions)}
        self._authorship = Authorship(author_of(secondary))
        self._fetch = Fetch(fetch_options({"bootstrap.servers": primary.bootstrap_servers}), "a", 30.0)
        self._options = record_options({"bootstrap.servers": secondary.bootstrap_servers}, timeout=30.0)

    def copy(
        self,
        ranges: Mapping[int, tuple[int, int]],
        isolation: str = "",
        most_bytes: int = 10**9,
        *,
        is_whole: bool = True,
        seconds: float = 30.0,
    ) -> dict[int, PartitionReport]:
        """Partition → what the task says; it gives up after so many seconds in which nothing comes."""
        fetch = replace(self._fetch, is_whole=is_whole, timeout=seconds)
        if isolation:
            fetch = replace(fetch, options={**fetch.options, "isolation.level": isolation})
        route = Route(self.remote, self.limits)
        task = WriteTask(
            self._options,
            {self.topic: route},
            frozenset(),
            most_bytes,
            timeout=30.0,
            target_ends=self._ends,
            authorship=self._authorship,
        )
        asked = {TopicPartition(self.topic, n): OffsetRange(*offsets) for n, offsets in ranges.items()}
        reports = [read_report(row) for row in copy_ranges(fetch, task, asked, 0).to_pylist()]
        numbers = {
            TopicPartition(self.remote, one.partition.partition): one.next_sequence
            for one in reports
            if one.next_sequence is not None
        }
        self._authorship = replace(self._authorship, sequences={**self._authorship.sequences, **numbers})
        for report in reports:
            if report.intervals:
                self._ends[report.partition] = report.intervals[-1].downstream_end
        return {report.partition.partition: report for report in reports}
