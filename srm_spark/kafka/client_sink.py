"""Records on their way through librdkafka's producers: those of logins that only librdkafka makes.

No callback per record: the first and the last record of a run are acknowledged with their target offsets, and
`last - first == count - 1` proves that the run lies there in one piece. Only a flow with provenance headers, whose
remote topics others write to as well, has every record acknowledged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Producer

from srm_spark.core.limits import Route
from srm_spark.core.model import TopicPartition
from srm_spark.core.reports import PartitionReport, Sent
from srm_spark.core.rows import Run
from srm_spark.errors import TargetWriteFailed
from srm_spark.failure import Failure
from srm_spark.kafka.acks import Acks, EachAck
from srm_spark.kafka.clients import LastError
from srm_spark.kafka.exact import produce_call
from srm_spark.kafka.failures import kind_of, named, remedy
from srm_spark.kafka.producer_pool import ProducerPool
from srm_spark.kafka.producers import codec_of
from srm_spark.kafka.sinks import Answer

_FULL_QUEUE_SECONDS = 0.05


class ClientSink:
    """The producers of one task."""

    def __init__(self, options: Mapping[str, str | int | float | bool], timeout: float, *, needs_each: bool) -> None:
        """`needs_each` is for topics to which others write: copies may not lie in one piece."""
        self._options = dict(options)
        self._needs_each = needs_each
        self._sent: deque[tuple[TopicPartition, str, Sent, Acks]] = deque()
        self._last_error = LastError()
        self._pool = ProducerPool(self._options, self._last_error, timeout)

    def produce(self, route: Route, run: Run) -> None:
        """Hand the records of a run to the producer of their topic."""
        self._produce(route, run)

    def takes(self, route: Route, run: Run) -> bool:
        """Write a record that is too large as it is, where the producer compresses; whether the target takes it.

        Only the broker knows. It is asked behind everything that was written, and with nothing else in the same batch.
        """
        if codec_of(self._options, route.limits) is None:
            return False
        self.drain()
        acks = self._produce(route, run, is_trial=True)
        self.drain()
        if acks.error is None:
            return True
        if acks.error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
            reason = self._reason(route.remote_topic, acks)
            raise TargetWriteFailed(f"{run.partition} at offset {run.offsets[0]}: {reason}")
        self._sent.pop()
        return False

    @property
    def is_waiting(self) -> bool:
        """Whether anything was written of which nothing is known yet."""
        return bool(self._sent)

    @property
    def is_unanswered(self) -> bool:
        """Whether the target has yet to answer for anything that was written."""
        return any(len(producer) > 0 for producer in self._pool)

    def acknowledged(self) -> Iterator[Answer]:
        """Take what is known by now of what was written, in order."""
        while self._sent and self._sent[0][-1].is_over:
            self._pool.has_moved()
            yield from self._next_answers()

    def poll(self) -> None:
        """Take acknowledgements; gives up where there was none for too long."""
        for producer in self._pool:
            self._pool.poll(producer, 0)
        self._pool.watch(not self._sent)

    def drain(self) -> None:
        """Wait until everything that was written is acknowledged, or given up."""
        self._pool.drain()

    def finish(self) -> Iterator[Answer]:
        """Wait for everything, and take what is known of it: of what was not answered, that."""
        self._pool.drain()
        while self._sent:
            yield from self._next_answers()

    def end(self, reports: Sequence[PartitionReport], *, is_failed: bool) -> None:
        """Forget producers that cannot be used again."""
        del reports
        self._pool.discard_broken(is_failed)

    def give_up(self) -> None:
        """Forget the producers: what is in them is nobody's."""
        self._pool.discard_broken(is_failed=True)

    def _next_answers(self) -> Iterator[Answer]:
        partition, topic, sent, acks = self._sent.popleft()
        for part, first, last in acks.ends(sent):
            yield Answer(partition, part, first, last, acks.at, self._reason(topic, acks))

    def _produce(self, route: Route, run: Run, *, is_trial: bool = False) -> Acks:
        producer = self._pool.of(route.limits, is_trial=is_trial)
        acks = EachAck() if self._needs_each else Acks()
        self._sent.append((run.partition, route.remote_topic, Sent.of(run), acks))
        if self._one_by_one(producer, route.remote_topic, run, acks):
            self._pool.poll(producer, 0)
        return acks

    def _one_by_one(self, producer: Producer, topic: str, run: Run, acks: Acks) -> bool:
        """Each record by a call of its own; False when one is refused for good."""
        number, columns = run.partition.partition, run.columns()
        produce = produce_call(producer, columns[-1] if run.has_headers else ())
        # This loop is what a small record costs; nothing belongs in it that can be done per run.
        for key, value, timestamp, headers, callback in zip(*columns, acks.callbacks(run.count), strict=False):
            try:
                produce(topic, value, key, number, callback, None, timestamp, headers)
            except BufferError:
                late = partial(produce, topic, value, key, number, callback, None, timestamp, headers)
                if not self._produce_late(producer, acks, late):
                    return False
            except KafkaException as error:
                acks.error = error.args[0]
                return False
        return True

    def _produce_late(self, producer: Producer, acks: Acks, produce: Callable[[], None]) -> bool:
        """Produce a record for which the queue had no room; False when that is refused for good."""
        while True:
            self._wait(producer)
            try:
                produce()
            except BufferError:
                continue
            except KafkaException as error:
                acks.error = error.args[0]
                return False
            return True

    def _wait(self, producer: Producer) -> None:
        before = len(producer)
        self._pool.poll(producer, _FULL_QUEUE_SECONDS)
        self._pool.watch(before != len(producer))

    def _reason(self, topic: str, acks: Acks) -> Failure | None:
        if acks.error is None:
            return None
        seen = self._last_error.newest
        # Without a right to write anywhere the producer gets no id, and its records only say that they were given up.
        no_id = KafkaError.CLUSTER_AUTHORIZATION_FAILED
        cause = seen if seen is not None and seen.code() == no_id else acks.error
        hint = remedy(cause, f"WRITE on topic {topic}", f"last seen: {self._last_error}")
        return Failure(kind_of(cause), f"{named(cause)}; {hint}")
