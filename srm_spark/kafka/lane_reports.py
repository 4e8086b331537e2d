"""What the tasks of the real-time lane report, and how the driver reads it: a topic, numbered reports, an end.

Reports of one task are numbered, and its last one says so: one that is missing is noticed before anything behind it is
recorded.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from confluent_kafka import TopicPartition as KafkaTopicPartition

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import TopicPartition
from srm_spark.core.reports import PartitionReport, report_fields, report_of
from srm_spark.errors import TargetUnavailable, TargetWriteFailed
from srm_spark.kafka.clients import LastError, bytes_of, control_producer, reader
from srm_spark.kafka.failures import is_passing, named, remedy


@dataclass(frozen=True)
class LaneReport:
    """What a task has done since its report before; its first one and its last one are of no partition."""

    task: str
    number: int
    """From 0 on, per task."""
    report: PartitionReport | None
    is_last: bool = False

    def encode(self) -> bytes:
        """JSON."""
        row = None if self.report is None else report_fields(self.report)
        return json.dumps({"task": self.task, "number": self.number, "report": row, "is_last": self.is_last}).encode()

    @classmethod
    def decode(cls, value: bytes) -> LaneReport:
        """What `encode` made."""
        document = json.loads(value)
        report = None if document["report"] is None else report_of(document["report"])
        return cls(document["task"], document["number"], report, document["is_last"])


@dataclass(frozen=True)
class ReportsPlace:
    """Where the tasks of one generation report, and are told to end."""

    topic: str
    """On the target."""
    generation: str
    """The key of its reports."""
    start: int
    """Where the topic ended before."""

    @property
    def ending(self) -> str:
        """The key of the record that ends the tasks."""
        return f"{self.generation} ends"


def end_tasks(cluster: ClusterSettings, place: ReportsPlace, role: str, seconds: float) -> None:
    """Tell all tasks to end. Raises TargetUnavailable where that cannot be written in so many seconds."""
    last_error = LastError()
    producer = control_producer(cluster, {}, role, last_error)
    producer.produce(place.topic, LaneReport("", 0, None, is_last=True).encode(), place.ending, partition=0)
    if producer.flush(seconds):
        raise TargetUnavailable(f"cluster {cluster.alias}: cannot write to {place.topic}; last seen: {last_error}")


class ReportReader:
    """Follows the records of one key, the reports of a generation or what ends it."""

    def __init__(self, cluster: ClusterSettings, place: ReportsPlace, key: str, role: str) -> None:
        self._last_error = LastError()
        self._topic = place.topic
        self._where = f"cluster {cluster.alias} ({cluster.bootstrap_servers})"
        self._key = key.encode()
        self._consumer = reader(cluster, {}, role, self._last_error)
        self._consumer.assign([KafkaTopicPartition(place.topic, 0, place.start)])

    def read(self, seconds: float) -> list[LaneReport]:
        """What comes within so many seconds. Raises TargetUnavailable where the topic cannot be read."""
        reports = []
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for message in self._consumer.consume(1, left) + self._consumer.consume(1000, 0):
                if (error := message.error()) is not None:
                    if not is_passing(error):
                        hint = remedy(error, f"READ on topic {self._topic}", "the next start tries again")
                        raise TargetUnavailable(f"{self._where}: cannot read {self._topic}: {named(error)}; {hint}")
                elif message.key() == self._key and (value := bytes_of(message.value())) is not None:
                    reports.append(LaneReport.decode(value))
        return reports

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()


class Chains:
    """Whether the reports of one generation are complete."""

    def __init__(self, tasks: int) -> None:
        """`tasks` run at a time."""
        self._tasks = tasks
        self._begun = 0
        self._open: dict[str, int] = {}
        """Task → number of its next report."""
        self._owners: dict[TopicPartition, str] = {}

    @property
    def have_begun(self) -> bool:
        """Whether every partition has got its task."""
        return self._begun >= self._tasks

    @property
    def are_over(self) -> bool:
        """Whether all tasks have begun, and all have ended: then nobody writes any more."""
        return self._begun > 0 and self._begun % self._tasks == 0 and not self._open

    def take(self, report: LaneReport) -> None:
        """The next report. Raises TargetWriteFailed where one in front of it is missing."""
        if report.number == 0:
            self._begun += 1
            self._open[report.task] = 0
        is_next = self._open.get(report.task) == report.number
        if report.report is not None:
            owner = self._owners.get(report.report.partition, report.task)
            is_next = is_next and (owner == report.task or owner not in self._open)
            self._owners[report.report.partition] = report.task
        if not is_next:
            raise TargetWriteFailed("reports of what was written are missing, so both sides are compared")
        self._open[report.task] += 1
        if report.is_last:
            del self._open[report.task]
