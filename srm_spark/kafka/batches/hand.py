"""By what one task writes, from its first batch to its last word: connections, an author, in the exactly-once mode a
transaction. Whole batches and records that were looked at go by the same hand, in turns.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaError

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Authorship
from srm_spark.core.reports import PartitionReport
from srm_spark.errors import ProtocolUnavailable, TargetUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.batches.bounds import write_bounds
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.transaction import Transaction
from srm_spark.kafka.batches.writer import BatchWriter, Lane
from srm_spark.kafka.failures import kind_of, named, remedy
from srm_spark.kafka.producers import options_key
from srm_spark.kafka.recording import Recording

_STEP_SECONDS = 0.1


class Hand:
    """Of one task. A context manager: what is not ended by then is given up."""

    def __init__(
        self, writer: BatchWriter, options: Mapping[str, Any], seconds: float, author: Authorship | Transaction
    ) -> None:
        """It fails after `seconds` without an acknowledgement; `options` are a producer's, as librdkafka calls them."""
        self.writer, self.options = writer, options
        self._transaction = author if isinstance(author, Transaction) else None
        self._sources: dict[TopicPartition, TopicPartition] = {}
        """Source → remote partition."""
        writer.begin(author, seconds)

    def __enter__(self) -> Hand:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            self.give_up()

    def turn(self) -> None:
        """Go on along other lanes, behind everything that was written."""
        self.writer.turn()

    def open(self, source: TopicPartition, remote: TopicPartition) -> Lane:
        """The lane of a partition, which begins here where there is none."""
        self._sources[source] = remote
        return self.writer.open(source, remote)

    def end(self, reports: Sequence[PartitionReport], *, is_failed: bool = False) -> None:
        """Commit, with the progress of all reports, or say in all of them that nothing was; hand the connections on.

        Without a transaction the reports get the numbers that come next. Raises QueryFailed where it is not known what
        became of a transaction: the next generation finds out.
        """
        try:
            if self._transaction is not None:
                self._end(self._transaction, reports)
            else:
                for report in reports:
                    if (remote := self._sources.get(report.partition)) is not None:
                        report.next_sequence = self.writer.next_sequence(remote)
        except BaseException:
            self.writer.close()
            raise
        if is_failed or self.writer.is_broken or any(report.failure is not None for report in reports):
            self.writer.close()
        else:
            _keep(self.options, self.writer)

    def give_up(self) -> None:
        """Let go of the connections, and of what was begun."""
        if self._transaction is not None:
            self._transaction.abandon()
        self.writer.close()

    def _end(self, transaction: Transaction, reports: Sequence[PartitionReport]) -> None:
        if not transaction.has_begun:
            return
        failed = next((report.failure for report in reports if report.failure is not None), None)
        failed = failed or self._unanswered() or self._record(transaction, reports) or self._unanswered()
        if failed is None:
            transaction.commit(self.writer.sequences, reports)
            for report in reports:
                report.in_transaction = self._is_in(transaction, report)
            return
        transaction.abandon()
        for report in reports:
            report.undo(failed, gets_marker=self._is_in(transaction, report))

    def _is_in(self, transaction: Transaction, report: PartitionReport) -> bool:
        """Whether the remote partition was taken in."""
        return self._sources.get(report.partition) in transaction.partitions

    def _unanswered(self) -> Failure | None:
        """Why the transaction may not be committed although no report says so: not all of it is known to be there."""
        writer = self.writer
        if writer.is_idle and not writer.is_broken and not any(lane.flying for lane in writer.lanes):
            return None
        return Failure(FailureKind.NOT_ACKNOWLEDGED, "not everything that was written is answered for")

    def _record(self, transaction: Transaction, reports: Sequence[PartitionReport]) -> Failure | None:
        """Write the progress: why it could not be."""
        writer = self.writer
        writer.turn()
        try:
            for partition, piece in transaction.progress(reports):
                writer.open(partition, partition)
                writer.add(partition, piece)
        except ProtocolUnavailable as error:
            return Failure(FailureKind.NOT_COMMITTED, f"progress could not be written: {error}")
        while not writer.is_idle:
            writer.step(_STEP_SECONDS)
        found = next((failure for lane in writer.lanes if (failure := failure_of(lane)) is not None), None)
        return found and Failure(FailureKind.NOT_COMMITTED, f"progress could not be written: {found}")


def take_hand(options: Mapping[str, Any], seconds: float, right: Authorship | Recording, slot: int) -> Hand:
    """One with connections of this process that no task uses now.

    Raises TargetUnavailable for a login that cannot be made here.
    """
    try:
        writer = _taken(options)
    except ProtocolUnavailable as error:
        raise TargetUnavailable(f"{error}: no batches are written by this login, and no transactions") from error
    if isinstance(right, Authorship):
        return Hand(writer, options, seconds, right)
    return Hand(writer, options, seconds, Transaction(right, slot, options, writer.brokers))


def failure_of(lane: Lane) -> Failure | None:
    """Why nothing more of a lane is written."""
    if lane.failure is not None or lane.refusal is None:
        return lane.failure
    error = KafkaError(lane.refusal.error)
    hint = remedy(error, f"WRITE on topic {lane.remote.topic}", lane.refusal.message or "see the broker's log")
    return Failure(kind_of(error), f"{named(error)}; {hint}")


_lock = threading.Lock()
_idle: dict[object, list[BatchWriter]] = {}


def _taken(options: Mapping[str, Any]) -> BatchWriter:
    with _lock:
        if idle := _idle.get(options_key(options)):
            return idle.pop()
    return BatchWriter(Brokers(options, "that copies are written to"), write_bounds(options))


def _keep(options: Mapping[str, Any], writer: BatchWriter) -> None:
    with _lock:
        _idle.setdefault(options_key(options), []).append(writer)
