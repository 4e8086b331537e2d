"""Control records that the driver writes in transactions; `kafka/fencing.py` says who may.

Records, and the progress that they make, go in transactions of their own (`kafka/batches/transaction.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from confluent_kafka import KafkaException, Producer

from srm_spark.core.cluster import ControlRecord
from srm_spark.errors import FlowError
from srm_spark.kafka.clients import LastError
from srm_spark.kafka.control import produce
from srm_spark.kafka.failures import named
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


def produce_control(producer: Producer, record: ControlRecord) -> None:
    """Hand one control record to a producer, as soon as its queue has room."""
    while True:
        try:
            produce(producer, record, None)
            return
        except BufferError:
            producer.poll(0.1)
