"""The real-time lane, inside an executor: records are written as they come, and reports go through a topic.

A task here lasts as long as its generation and ends with no row: it fetches its partitions by itself, and what it has
written it says some times a second, each time as a record of the reports topic; there it is told to end, too. Reports
of one task are numbered, and its last one says so: a report that is missing is noticed before anything behind it is
recorded.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import PausedPartition, TopicPartition
from srm_spark.core.reports import PartitionReport
from srm_spark.core.rows import Run
from srm_spark.errors import TargetWriteFailed
from srm_spark.kafka.batches.live import Copying
from srm_spark.kafka.batches.sorting import Form, Pieces, form_of
from srm_spark.kafka.clients import LastError
from srm_spark.kafka.failures import named
from srm_spark.kafka.fetch import Fetch
from srm_spark.kafka.lane_reports import LaneReport, ReportReader, ReportsPlace
from srm_spark.kafka.lease import Permit, Watch
from srm_spark.kafka.producers import record_producer
from srm_spark.kafka.ranges import Follower
from srm_spark.kafka.sinks import Answer
from srm_spark.kafka.writer import WriteTask, Writing

_REPORT_SECONDS = 0.1
"""How long what is acknowledged waits to be reported: it would have to be matched again after a crash."""
_TAKE_SECONDS = 0.1
_GATHER_SECONDS, _GATHER_FACTOR = 0.005, 3
"""Between two turns: so many times the CPU that the last one took. Under load the next turn finds several records, that
cost little more than one; a longer pause would be seen in the latency."""
_ANSWER_SECONDS = 0.1
_GLANCE_SECONDS = 0.001


@dataclass(frozen=True)
class LaneTask:
    """What every task of one generation does; shipped to the executors, so it holds plain values only."""

    fetch: Fetch
    write: WriteTask
    shares: Sequence[Mapping[TopicPartition, int]]
    """Partitions and where they are read from, by the number of the task."""
    target: ClusterSettings
    place: ReportsPlace
    permit: Permit | None = None
    """Whether it may still be written: tasks may outlive their driver, or go on while it stands still."""

    def __call__(self, batches: Iterator[pa.RecordBatch], slot: int = 0) -> Iterator[pa.RecordBatch]:
        """Write what comes and report it, until told to end; yields nothing, and what comes from Spark says nothing.

        Raises TargetWriteFailed where a partition stands still, SourceUnavailable where the source refuses.
        """
        for _ in batches:
            pass
        lane, forms = _Lane(self, slot), self.forms
        with closing(Follower(self.fetch, self.shares[slot])) as follower:
            try:
                while not lane.is_over:
                    began = time.thread_time()
                    lane.write(follower.take(_TAKE_SECONDS) if forms is None else follower.copies(_TAKE_SECONDS, forms))
                    lane.hold(follower.holds)
                    time.sleep(min(_GATHER_SECONDS, _GATHER_FACTOR * (time.thread_time() - began)))
                    await_answer(lane)
            finally:
                lane.end()
        lane.check()
        yield from ()

    @property
    def forms(self) -> Mapping[str, Form] | None:
        """What batches of each source topic must become; None where every record is looked at."""
        if not (self.fetch.is_whole and self.write.takes_batches):
            return None
        return {topic: form_of(route, self.write.options) for topic, route in self.write.routes.items()}


@dataclass
class LanePartition:
    """One partition within a task."""

    report: PartitionReport
    """What is acknowledged and not reported yet."""
    is_stuck: bool = False
    """Nothing behind this point is reported any more."""
    target_end: int | None = None
    is_new: bool = False
    """Whether there is something to report."""

    def take(self, answer: Answer) -> None:
        """The next acknowledgements."""
        answer.into(self.report)
        self.is_new, self.is_stuck = True, self.report.failure is not None
        if not self.is_stuck:
            self.target_end, self.report.next_offset = answer.last + 1, answer.sent.stretches[-1].end

    def reported(self) -> LanePartition:
        """Where the next report begins."""
        report = self.report
        follow = PartitionReport(
            report.partition, next_offset=report.next_offset, target_end=self.target_end, slack=report.slack
        )
        return replace(self, report=follow, is_new=False)


@dataclass
class _Lane:
    """The course of one task: its own thread writes, a second one reports."""

    task: LaneTask
    slot: int
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        write = self.task.write
        self._copying = Copying(write, self.slot) if write.is_in_batches else None
        self._writing = Writing(write, self.slot) if self._copying is None else self._copying.writing
        self._sink = self._writing.sink
        self._partitions: dict[TopicPartition, LanePartition] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._reports = self._producer()
        role = str(self.task.write.options.get("client.id", ""))
        self._watch = None if self.task.permit is None else Watch(self.task.permit)
        self._told = ReportReader(self.task.target, self.task.place, self.task.place.ending, f"{role}|end")
        self._unsent = self._number = 0
        self._failure: str | None = None
        self._send(None)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether it was told to end."""
        return self._over.is_set()

    @property
    def is_unanswered(self) -> bool:
        """Whether the target has yet to answer for anything that was written."""
        return self._sink.is_unanswered

    def write(self, copies: Iterable[Run | Pieces]) -> None:
        """Produce what has come.

        Raises TargetWriteFailed where reports cannot be written any more, the driver would not learn of it, and where
        nothing that comes may be written any more; LeaseLost where another driver writes.
        """
        if not self._may_write():
            return
        for some in copies:
            # It may have come after a while: when the source was away.
            if not self._may_write():
                return
            with self._lock:
                if not self._is_over(some.partition):
                    self._write(some)
        with self._lock:
            if self._copying is not None:
                self._copying.open_refused(self._is_over)
            self._sink.poll()

    def _is_over(self, partition: TopicPartition) -> bool:
        """Whether nothing more of a partition is written."""
        lane_partition = self._partitions.get(partition)
        return lane_partition is not None and lane_partition.is_stuck

    def _write(self, some: Run | Pieces) -> None:
        if self._copying is not None:
            self._copying.write(some)
        elif isinstance(some, Run):
            self._writing.write(some)

    def hold(self, holds: Mapping[TopicPartition, PausedPartition]) -> None:
        """Let partitions wait in front of what cannot be read."""
        if holds:
            with self._lock:
                self._writing.hold(holds)

    def _may_write(self) -> bool:
        """Waits while nobody says so; False where the task is told to end meanwhile, and nothing else is written."""
        self.check_reports()
        while self._watch is not None and not self._watch.is_sure():
            if self._over.wait(_GLANCE_SECONDS):
                return False
        return True

    def end(self) -> None:
        """Wait for the acknowledgements, and report them."""
        self._over.set()
        if self._watch is not None:
            self._watch.end()
        self._thread.join()
        self._told.close()
        self._sink.drain()
        self._report()
        self._send(None, is_last=True)
        deadline = time.monotonic() + self.task.write.timeout
        while self._unsent and time.monotonic() < deadline:
            self._reports.poll(0.1)
        if self._unsent:
            self._failure = self._failure or "reports were not acknowledged in time"
        self._sink.end((), is_failed=self.is_stuck)

    def check_reports(self) -> None:
        """Raises where the driver does not learn any more what is written."""
        if self._failure is not None:
            raise TargetWriteFailed(self._failure)

    @property
    def is_stuck(self) -> bool:
        """Whether this task must not be followed by another one."""
        return self._failure is not None or any(lane_partition.is_stuck for lane_partition in self._partitions.values())

    def check(self) -> None:
        """Raises where the task must not be followed by another one."""
        if self.is_stuck:
            raise TargetWriteFailed(self._failure or "a record could not be written, see the report of its partition")

    def _run(self) -> None:
        try:
            while not self._over.wait(_REPORT_SECONDS):
                with self._lock:
                    self._sink.poll()
                    self._report()
                self._reports.poll(0)
                if self._told.read(_GLANCE_SECONDS):
                    self._over.set()
        except Exception as error:  # nothing may be written of which nobody is told
            self._failure = self._failure or f"what was written cannot be reported: {error!r}"

    def _report(self) -> None:
        self._collect()
        for partition, lane_partition in self._partitions.items():
            if lane_partition.is_new:
                self._send(lane_partition.report)
                self._partitions[partition] = lane_partition.reported()

    def _collect(self) -> None:
        """Take in what was acknowledged, and a record that would be refused once everything before it is."""
        for partition, taken in self._writing.reports.items():
            if partition not in self._partitions:
                self._partitions[partition] = LanePartition(
                    PartitionReport(partition, target_end=taken.target_end, slack=taken.slack)
                )
        for answer in self._sink.acknowledged():
            lane_partition = self._partitions[answer.partition]
            if not lane_partition.is_stuck:
                lane_partition.take(answer)
        for partition, taken in self._writing.reports.items():
            lane_partition = self._partitions[partition]
            if taken.hold is not None and not lane_partition.is_stuck and not self._sink.is_waiting:
                lane_partition.report.hold, lane_partition.report.next_offset = taken.hold, taken.hold.offset
                lane_partition.is_stuck = lane_partition.is_new = True

    def _send(self, report: PartitionReport | None, *, is_last: bool = False) -> None:
        if self._failure is not None:
            return  # what comes behind a missing report is of no use
        value = LaneReport(self.name, self._number, report, is_last).encode()
        self._number += 1
        try:
            self._reports.produce(
                self.task.place.topic, value, self.task.place.generation, partition=0, on_delivery=self._delivered
            )
            self._unsent += 1
        except (KafkaException, BufferError) as error:
            self._failure = f"a report could not be written to {self.task.place.topic}: {error}"

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self._unsent -= 1
        if error is not None:
            self._failure = f"a report could not be written to {self.task.place.topic}: {named(error)}"

    def _producer(self) -> Producer:
        """Not the one of the records: what happens to them must be told in any case."""
        name = f"{self.task.write.options.get('client.id', '')}|reports"
        return record_producer({**self.task.write.options, "client.id": name}, LastError())


def await_answer(lane: _Lane) -> None:
    """Let the target answer, for a while, before it gets more: what comes meanwhile goes together in larger batches.

    Where librdkafka writes, it would soon have as many requests on their way as it may, and then keep a core busy with
    asking itself whether there is room for the next.
    """
    until = time.monotonic() + _ANSWER_SECONDS
    while lane.is_unanswered and not lane.is_over and time.monotonic() < until:
        time.sleep(_GLANCE_SECONDS)
        lane.write(())
