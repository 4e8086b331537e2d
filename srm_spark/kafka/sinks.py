"""What a write task needs of whatever carries records to the target: librdkafka's producers, or batches of our own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from srm_spark.core.limits import Route
from srm_spark.core.model import TopicPartition
from srm_spark.core.reports import PartitionReport, Sent
from srm_spark.core.rows import Run
from srm_spark.failure import Failure


class Answer(NamedTuple):
    """What the target says of some records of one source partition, as `PartitionReport.add` takes it."""

    partition: TopicPartition
    sent: Sent
    first: int
    """Target offset of the first one; -1 where it is not known."""
    last: int
    at: float
    """When it came, in seconds of the epoch."""
    failure: Failure | None

    def into(self, report: PartitionReport) -> None:
        """Add it to the report of its partition."""
        report.add(self.sent, self.first, self.last, self.at, self.failure)


class Sink(Protocol):
    """Carries the records of one task, in order within each partition."""

    def produce(self, route: Route, run: Run) -> None:
        """Take the records of a run, none of which the target refuses as far as anybody knows."""

    def takes(self, route: Route, run: Run) -> bool:
        """Whether the target takes a record that is too large as it is; it is written then.

        Raises TargetWriteFailed where that cannot be known.
        """

    @property
    def is_waiting(self) -> bool:
        """Whether anything was written of which nothing is known yet."""

    @property
    def is_unanswered(self) -> bool:
        """Whether the target has yet to answer for anything that was written."""

    def acknowledged(self) -> Iterator[Answer]:
        """Take what is known by now of what was written, in order."""

    def poll(self) -> None:
        """Move what can move without waiting; gives up where nothing did for too long."""

    def drain(self) -> None:
        """Wait until everything that was written is answered, or given up."""

    def finish(self) -> Iterator[Answer]:
        """The same, and take what is known of it, or that nothing is."""

    def end(self, reports: Sequence[PartitionReport], *, is_failed: bool) -> None:
        """Say goodbye, with what is known of all partitions."""

    def give_up(self) -> None:
        """Say goodbye where the task breaks off: nothing that is not answered is waited for."""
