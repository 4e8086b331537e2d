"""Appends single records to topics of the target, each in one transaction with what has to be recorded for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException, Message

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.model import TopicPartition
from srm_spark.core.rows import Run
from srm_spark.errors import TargetWriteFailed
from srm_spark.kafka.clients import ClientOptions, LastError
from srm_spark.kafka.exact import produce_call
from srm_spark.kafka.failures import named, remedy
from srm_spark.kafka.fencing import DRIVER_SLOT, FencingToken, open_producer, persist
from srm_spark.kafka.transactions import produce_control


class AppendingWriter:
    """Writes as the driver of a flow, for as long as `fencing` lasts."""

    def __init__(self, fencing: FencingToken, options: ClientOptions) -> None:
        self._fencing = fencing
        self._last_error = LastError()
        self._producer = open_producer(fencing, DRIVER_SLOT, options, self._last_error)

    def append(self, remote: TopicPartition, run: Run, follow: Callable[[int], Iterable[ControlRecord]]) -> int:
        """Write the only record of `run` at the end of `remote`, and what `follow` makes of its target offset.

        All of it or nothing; returns the offset. Raises TargetWriteFailed.
        """
        try:
            self._producer.begin_transaction()
            offset = self._produce(remote, run)
            for record in follow(offset):
                produce_control(self._producer, record)
            persist(lambda: self._producer.commit_transaction(self._fencing.timeout), self._fencing.timeout)
        except KafkaException as error:
            with suppress(KafkaException):  # in vain: the next one to initialise the id does it
                self._producer.abort_transaction(self._fencing.timeout)
            hint = remedy(error.args[0], f"WRITE on topic {remote.topic}", f"last seen: {self._last_error}")
            raise TargetWriteFailed(f"{remote}: nothing was written: {named(error.args[0])}; {hint}") from error
        return offset

    def _produce(self, remote: TopicPartition, run: Run) -> int:
        acknowledged: list[tuple[KafkaError | None, int]] = []

        def take(error: KafkaError | None, message: Message) -> None:
            acknowledged.append((error, message.offset() or 0))

        ((key, value, timestamp, headers),) = run.records()
        produce = produce_call(self._producer, [headers])
        produce(remote.topic, value, key, remote.partition, take, None, timestamp, headers or None)
        self._producer.flush(self._fencing.timeout)
        error, offset = acknowledged[0] if acknowledged else (KafkaError(KafkaError._TIMED_OUT), 0)
        if error is not None:
            raise KafkaException(error)
        return offset
