"""Batches between records, on their way to one target by one task: what is refused of them is looked into, and what
comes behind in its partition waits meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from srm_spark.core.model import TopicPartition
from srm_spark.core.rows import Run
from srm_spark.kafka.batches.damage import broken_hold
from srm_spark.kafka.batches.refusals import records_of
from srm_spark.kafka.batches.sink import BatchSink, Refused
from srm_spark.kafka.batches.sorting import Pieces
from srm_spark.kafka.batches.unpacking import Broken
from srm_spark.kafka.batches.ways import best
from srm_spark.kafka.writer import WriteTask, Writing


class Copying:
    """What one task writes, in order within each partition."""

    def __init__(self, task: WriteTask, slot: int) -> None:
        """Raises TargetUnavailable for a login that cannot be made here."""
        best()  # to load the loops later would be seen in the latency of the first batches that need them
        self._routes = task.routes
        self._sink = BatchSink(task.hand(slot))
        self.writing = Writing(task, slot, self._sink)
        """Of single records."""

    def write(self, some: Run | Pieces) -> None:
        """Produce records, or let batches wait for their turn."""
        if isinstance(some, Run):
            self.writing.write(some)
        elif some.batches and (report := self.writing.open(some.partition)) is not None:
            self._sink.copy(self._routes[some.partition.topic], some)
            report.next_offset = some.batches[-1].stretches[-1].end

    def open_refused(self, is_over: Callable[[TopicPartition], bool]) -> None:
        """Write the records of batches that were refused, as far as the target takes them, and what was behind.

        Nothing of a partition that `is_over`.
        """
        for one in self._sink.refused():
            if is_over(one.behind.partition):
                continue
            report = self.writing.reports[one.behind.partition]
            later, report.hold = report.hold, one.hold
            if one.hold is None:
                self._open(one)
            report.hold = report.hold or later
            if report.hold is not None:
                report.next_offset = report.hold.offset

    def _open(self, one: Refused) -> None:
        partition = one.behind.partition
        try:
            for run in records_of(partition, one.batch):
                self.writing.write(run)
        except Broken as error:
            self.writing.hold({partition: broken_hold(error.at, str(error))})
        self.write(one.behind)
