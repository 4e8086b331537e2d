"""Small topics that hold the state of replication: read to their end, and written one acknowledged record at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.cluster import ControlRecord, ReadRecord
from srm_spark.core.wording import count
from srm_spark.errors import FlowError
from srm_spark.kafka.clients import LastError, bytes_of, control_producer, reader
from srm_spark.kafka.failures import is_denied, is_passing, named, remedy
from srm_spark.kafka.librdkafka import headers_of

_POLL_SECONDS = 0.5
_OTHERWISE = "check that the topic exists and that WRITE is allowed"
Acknowledge = Callable[[KafkaError | None, Message], None]


def produce(producer: Producer, record: ControlRecord, acknowledged: Acknowledge | None) -> None:
    """Hand a record to a producer. Raises BufferError where its queue is full, KafkaException where it is refused."""
    extra: dict[str, Any] = {} if record.partition is None else {"partition": record.partition}
    if record.timestamp is not None:
        extra["timestamp"] = record.timestamp
    headers: list[Any] | None = list(record.headers.items()) or None
    producer.produce(record.topic, record.value, record.key, headers=headers, on_delivery=acknowledged, **extra)


class ControlWriter:
    """Writes control records to one cluster; `error` is raised when one of them is not acknowledged."""

    def __init__(
        self, cluster: ClusterSettings, properties: Mapping[str, str], role: str, error: type[FlowError], timeout: float
    ) -> None:
        self._cluster = cluster
        self._role = role
        self._error = error
        self._timeout = timeout
        self._last_error = LastError()
        self._properties = dict(properties)
        self._producer: Producer | None = None

    def write(self, records: Iterable[ControlRecord]) -> None:
        """Write records in order and wait until each one is acknowledged."""
        producer = self._producer or control_producer(self._cluster, self._properties, self._role, self._last_error)
        self._producer = producer
        failed: list[tuple[str, KafkaError]] = []
        topics: set[str] = set()

        def acknowledge(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed.append((str(message.topic()), error))

        deadline = time.monotonic() + self._timeout
        for record in records:
            topics.add(record.topic)
            self._produce(producer, record, acknowledge, deadline)
        left = self._flush(producer, deadline, topics)
        if left or failed:
            # A record that is late must not arrive behind the ones of the next attempt.
            producer.purge(in_queue=True, in_flight=True)
            self._producer = None
            if failed:
                topic, error = failed[0]
                raise self._refused(topic, error)
            what = f"{count(left, 'record')} for {', '.join(sorted(topics))}"
            raise self._failure(f"{what} not acknowledged in {self._timeout:g} s")

    def _flush(self, producer: Producer, deadline: float, topics: Collection[str]) -> int:
        """How many records are left. Raises where the producer is not allowed to write anywhere."""
        try:
            return producer.flush(max(0.1, deadline - time.monotonic()))
        except (KafkaException, SystemError) as error:
            # The client raises what is fatal amid its callbacks, and Python a SystemError where one more was due.
            self._producer = None
            fatal = error if isinstance(error, KafkaException) else error.__cause__
            if fatal is None and threading.current_thread() is threading.main_thread():
                # Ctrl-C amid the call: confluent-kafka (2.16) may lose what the signal has raised.
                raise KeyboardInterrupt from error
            if not isinstance(fatal, KafkaException):
                raise
            raise self._refused(", ".join(sorted(topics)), fatal.args[0]) from error

    def _produce(
        self,
        producer: Producer,
        record: ControlRecord,
        acknowledge: Acknowledge,
        deadline: float,
    ) -> None:
        while True:
            try:
                produce(producer, record, acknowledge)
                return
            except BufferError:
                producer.poll(_POLL_SECONDS)
                if time.monotonic() > deadline:
                    raise self._failure(f"the queue stayed full for {self._timeout:g} s") from None
            except KafkaException as error:
                raise self._refused(record.topic, error.args[0]) from error

    def _refused(self, topic: str, error: KafkaError) -> FlowError:
        # Without a right to write anywhere the producer gets no id, and later errors only say that it is fatal.
        seen = self._last_error.newest
        cause = seen if seen is not None and is_denied(seen) else error
        is_large = cause.code() == KafkaError.MSG_SIZE_TOO_LARGE
        otherwise = f"raise max.message.bytes of topic {topic}" if is_large else _OTHERWISE
        return self._failure(f"{topic}: {named(cause)}", remedy(cause, f"WRITE on topic {topic}", otherwise))

    def _failure(self, reason: str, hint: str = _OTHERWISE) -> FlowError:
        return self._error(
            f"cluster {self._cluster.alias} ({self._cluster.bootstrap_servers}): {self._role} cannot write: {reason}; "
            f"last seen: {self._last_error}; {hint}"
        )


class ControlReader:
    """Follows one topic from its beginning; each call returns what came since the last one."""

    def __init__(
        self, cluster: ClusterSettings, topic: str, partitions: Sequence[int], role: str, error: type[FlowError]
    ) -> None:
        self._last_error = LastError()
        self._error = error
        self._where = f"cluster {cluster.alias} ({cluster.bootstrap_servers}), topic {topic}"
        self._topic = topic
        self._consumer: Consumer = reader(cluster, {}, role, self._last_error)
        self._next = dict.fromkeys(partitions, 0)
        self._consumer.assign([KafkaTopicPartition(topic, partition, 0) for partition in partitions])

    @property
    def next_offsets(self) -> Mapping[int, int]:
        """Where each partition is read on."""
        return self._next

    def read(self, ends: Mapping[int, int], timeout: float) -> Iterator[ReadRecord]:
        """Records up to `ends` (partition → next offset); raises when they do not come in `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while left := self._left(ends):
            if time.monotonic() > deadline:
                text = f"not read to its end in {timeout:g} s: {left}; last seen: {self._last_error}"
                raise self._error(f"{self._where}: {text}")
            refused: KafkaError | None = None
            # Asked for 1000 it would wait the whole time for the thousandth.
            for message in self._consumer.consume(1, _POLL_SECONDS) + self._consumer.consume(1000, 0):
                if (error := message.error()) is not None:
                    refused = error if not is_passing(error) else refused
                    continue
                yield self._record(message)  # what came behind an error is not given again
            if refused is not None:
                hint = remedy(refused, f"READ on topic {self._topic}", "the next start tries again")
                raise self._error(f"{self._where}: cannot read: {named(refused)}; {hint}")
            self._skip_markers(ends)

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()

    def _left(self, ends: Mapping[int, int]) -> str:
        """Partitions that are not read to their ends, in words; empty when all are."""
        left = [f"{p} at {self._next[p]} of {end}" for p, end in ends.items() if self._next[p] < end]
        return f"partition {', '.join(left)}" if left else ""

    def _record(self, message: Message) -> ReadRecord:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self._next[partition] = offset + 1
        key, value, headers = bytes_of(message.key()), bytes_of(message.value()), dict(headers_of(message))
        kind, timestamp = message.timestamp()
        return ReadRecord(
            partition, offset, key, value, headers, None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp
        )

    def _skip_markers(self, ends: Mapping[int, int]) -> None:
        # Transaction markers and compacted ends hold no record: the consumer's position is the only sign of them. Asked
        # for only when nothing came, a partition that ends so would wait as long as another one is written to.
        asked = [KafkaTopicPartition(self._topic, partition) for partition in ends]
        for position in self._consumer.position(asked):
            self._next[position.partition] = max(self._next[position.partition], position.offset)
