"""The exactly-once mode: records and the progress they make, committed in one transaction (KIP-618).

`kafka/fencing.py` says who may; a task that fails, or was overtaken by a newer generation, leaves nothing behind.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.codec import progress_records
from srm_spark.core.model import LogIdentity, OffsetRange, TopicPartition
from srm_spark.core.reports import PartitionReport
from srm_spark.errors import FlowError
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.clients import ClientOptions, LastError
from srm_spark.kafka.control import Acknowledge, produce
from srm_spark.kafka.failures import named, remedy
from srm_spark.kafka.fencing import DRIVER_SLOT, RECORDS_SLOT, FencingToken, initialised, open_producer, persist


class TransactionalWriter:
    """Writes control records of the driver, each call one transaction; `error` where that cannot be committed."""

    def __init__(self, fencing: FencingToken, role: str, error: type[FlowError]) -> None:
        self._fencing = fencing
        self._role = role
        self._error = error
        self._last_error = LastError()
        self._producer: Producer | None = None

    def write(self, records: Iterable[ControlRecord]) -> None:
        """All of them or none."""
        rows = list(records)
        if not rows:
            return
        if self._producer is None:
            self._producer = self._opened()
        producer = self._producer
        try:
            producer.begin_transaction()
            for record in rows:
                produce_control(producer, record)
            persist(lambda: producer.commit_transaction(self._fencing.timeout), self._fencing.timeout)
        except (KafkaException, BufferError) as error:
            self._producer = None  # the next one, with a new token, ends what this one has left
            reason = named(error.args[0]) if isinstance(error, KafkaException) else str(error)
            raise self._error(f"{self._role}: not committed: {reason}; last seen: {self._last_error}") from error

    def _opened(self) -> Producer:
        return open_producer(self._fencing, DRIVER_SLOT, {"linger.ms": 0}, self._last_error)


class SettledWriter(TransactionalWriter):
    """The same; what is written is there for who reads committed records when a call returns.

    A commit is answered before its markers are written, and who takes the transactional id over waits for them.
    """

    def write(self, records: Iterable[ControlRecord]) -> None:
        """All of them or none. Raises LeaseLost as well."""
        super().write(records)
        if self._producer is not None:
            self._opened()  # it waits for the markers
            self._producer = None  # the id may be taken over before the next call, for something else that is written


class LeasedWriter(SettledWriter):
    """Writes as who writes the records of the default mode, whose producer id each start of a driver takes over.

    It does so before it reads anything: what is not committed by then never will be. `require_lease` raises where the
    lease is not ours any more when the id is.
    """

    def __init__(
        self, fencing: FencingToken, role: str, error: type[FlowError], require_lease: Callable[[], None]
    ) -> None:
        super().__init__(fencing, role, error)
        self._require_lease = require_lease

    def _opened(self) -> Producer:
        producer = initialised(self._fencing, RECORDS_SLOT, {"linger.ms": 0}, self._last_error)
        self._require_lease()
        return producer


def produce_control(producer: Producer, record: ControlRecord, acknowledged: Acknowledge | None = None) -> None:
    """Hand one control record to a producer, as soon as its queue has room."""
    while True:
        try:
            produce(producer, record, acknowledged)
            return
        except BufferError:
            producer.poll(0.1)


@dataclass(frozen=True)
class Recording:
    """What a write task needs to record progress in the transaction of its records."""

    fencing: FencingToken
    connector: str
    """First element of the progress keys."""
    source: str
    """Alias of the source."""
    progress_topic: str
    ranges: Mapping[TopicPartition, OffsetRange]
    """What the pass is to replicate."""
    target_ends: Mapping[TopicPartition, int | None]
    logs: Mapping[TopicPartition, LogIdentity]
    writers: Mapping[int, str] = field(default_factory=dict)
    """Slot → the process that wrote it last: its producer is the newest."""


class SlotTransaction:
    """The transaction of one task; nothing is begun before the first record."""

    def __init__(self, recording: Recording, slot: int, options: ClientOptions, on_error: LastError) -> None:
        self.slot = slot
        self._recording = recording
        self._options = options
        self._on_error = on_error
        self._producer: Producer | None = None

    def producer(self) -> Producer:
        """The slot's producer, in a transaction."""
        if self._producer is None:
            self._producer = _kept(self._recording, self.slot, self._options, self._on_error)
            self._producer.begin_transaction()
        return self._producer

    def end(self, reports: Sequence[PartitionReport]) -> None:
        """Commit, with the progress of all reports; where one of them failed, abort and say so in all of them.

        Raises KafkaException where it is not known what became of the transaction: the next generation finds out.
        """
        if self._producer is None:
            return
        producer, seconds = self._producer, self._recording.fencing.timeout
        failed = next((report.failure for report in reports if report.failure is not None), None)
        if failed is None:
            failed = self._commit(producer, reports)
        if failed is None:
            for report in reports:
                report.slot, report.writer = self.slot, process_id()
            return
        _forget(self._recording.fencing, self.slot)
        with suppress(KafkaException):  # fenced, or in vain: the next one to initialise the id does it
            producer.abort_transaction(seconds)
        for report in reports:
            report.undo(failed)

    def _commit(self, producer: Producer, reports: Sequence[PartitionReport]) -> Failure | None:
        refused: list[KafkaError] = []

        def acknowledged(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                refused.append(error)

        try:
            for report in reports:
                for record in self._progress(report):
                    produce_control(producer, record, acknowledged)
            persist(
                lambda: producer.commit_transaction(self._recording.fencing.timeout), self._recording.fencing.timeout
            )
        except KafkaException as error:
            failure: KafkaError = refused[0] if refused else error.args[0]
            if error.args[0].retriable():
                raise
            hint = remedy(failure, f"WRITE on topic {self._recording.progress_topic}", "the flow starts again")
            sentence = f"the transaction could not be committed: {named(failure)}; {hint}"
            return Failure(FailureKind.NOT_COMMITTED, sentence)
        return None

    def _progress(self, report: PartitionReport) -> Iterator[ControlRecord]:
        recording, partition = self._recording, report.partition
        start, end = recording.ranges[partition]
        detail = report.detail(
            OffsetRange(start, report.reached(start, end)),
            recording.target_ends.get(partition),
            recording.logs[partition],
        )
        for key, value, headers in progress_records(recording.connector, recording.source, partition, detail):
            yield ControlRecord(recording.progress_topic, key, value, headers)


_lock = threading.Lock()
_producers: dict[str, tuple[ClientOptions, str, Producer]] = {}
"""Transactional id → options and token of its producer, and the producer."""
_process: tuple[int, str] = (0, "")


def process_id() -> str:
    """Of this process; another one after a fork."""
    global _process  # noqa: PLW0603 - the identity of the process
    if _process[0] != os.getpid():
        _process = (os.getpid(), uuid.uuid4().hex)
    return _process[1]


def _kept(recording: Recording, slot: int, options: ClientOptions, on_error: LastError) -> Producer:
    """The slot's producer of this process, unless another process has initialised the id since."""
    fencing, name = recording.fencing, recording.fencing.transactional_id(slot)
    with _lock:
        kept = _producers.get(name)
        is_newest = recording.writers.get(slot) == process_id()
        if kept is not None and is_newest and kept[:2] == (options, fencing.note.token):
            return kept[2]
        _producers.pop(name, None)
        producer = open_producer(fencing, slot, options, on_error)
        _producers[name] = options, fencing.note.token, producer
        return producer


def _forget(fencing: FencingToken, slot: int) -> None:
    with _lock:
        _producers.pop(fencing.transactional_id(slot), None)
