"""Tasks of the real-time lane by themselves, without Spark, and without anybody who would say that a driver is gone."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author, Authorship
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.fence import BrokerFence
from srm_spark.kafka.fetch import Fetch, fetch_options
from srm_spark.kafka.lane_reports import LaneReport, ReportReader, ReportsPlace, end_tasks
from srm_spark.kafka.lane_task import LaneTask
from srm_spark.kafka.producers import record_options
from srm_spark.kafka.writer import WriteTask
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.mirror import SOON
from tests.kafka_io import Kafka


class LaneScene:
    """One topic on two clusters, and drivers that follow each other."""

    def __init__(
        self,
        primary: KafkaCluster,
        secondary: KafkaCluster,
        topic: str,
        partitions: int,
        *,
        configs: Mapping[str, str] | None = None,
        isolation: str = "read_uncommitted",
    ) -> None:
        """Makes the topics, but for one that the source has already; the remote one with these configs."""
        self.source, self.target = Kafka(primary), Kafka(secondary)
        self.topic, self.remote = topic, f"{topic}-{uuid.uuid4().hex[:8]}"
        self.reports = f"reports-{self.remote}"
        if topic not in self.source.topics():
            self.source.create(topic, partitions)
        self.target.create(self.remote, partitions, configs)
        self.target.create(self.reports)
        self._partitions = range(partitions)
        self._from, self._to = primary.bootstrap_servers, secondary.bootstrap_servers
        self._isolation = isolation
        self.cluster = ClusterSettings("b", self._to)

    def fence(self) -> Author:
        """As a driver does that takes over."""
        remotes = [TopicPartition(self.remote, number) for number in self._partitions]
        with closing(Brokers({"bootstrap.servers": self._to}, "b")) as brokers:
            return BrokerFence(brokers, f"srm-{self.remote}", 30.0).fence(remotes).author

    def task(self, author: Author) -> LaneTask:
        """It goes on behind what is on the target."""
        there = self.target.read(self.remote)
        starts = {TopicPartition(self.topic, number): len(there.get(number, ())) for number in self._partitions}
        write = WriteTask(
            record_options({"bootstrap.servers": self._to}, timeout=30.0),
            {self.topic: Route(self.remote, Limits())},
            frozenset(),
            max_bytes=10**9,
            timeout=30.0,
            target_ends=dict.fromkeys(starts),
            slack=dict.fromkeys(starts, 0),
            authorship=Authorship(author),
        )
        source = {"bootstrap.servers": self._from, "isolation.level": self._isolation}
        fetch = Fetch(fetch_options(source), "a", 30.0)
        place = ReportsPlace(self.reports, uuid.uuid4().hex, self.target.ends(self.reports)[0])
        return LaneTask(fetch, write, [starts], self.cluster, place)

    def told(self, task: LaneTask, upto: Callable[[LaneReport], bool] = lambda one: one.is_last) -> list[LaneReport]:
        """What a task has reported, up to its last word, or to another one that is waited for."""
        found: list[LaneReport] = []
        with closing(ReportReader(self.cluster, task.place, task.place.generation, "test")) as reader:

            def is_complete() -> bool:
                found.extend(reader.read(1.0))
                return any(map(upto, found))

            await_until(is_complete, SOON, "the reports")
        return found


@contextmanager
def running(task: LaneTask) -> Iterator[list[BaseException]]:
    """It runs in a thread, until it is told to end behind the block; then what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            list(task(iter(())))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield raised
    finally:
        end_tasks(task.target, task.place, "test", 30.0)
        thread.join(SOON)
    assert not thread.is_alive()
