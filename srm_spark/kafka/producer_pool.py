"""The producers of one write task: one for each kind of batch that its topics take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import KafkaException, Producer

from srm_spark.core.limits import Limits
from srm_spark.kafka.clients import ClientOptions, LastError
from srm_spark.kafka.producers import discard_producer, for_trials, record_producer, suited

_TRIAL = -1


class ProducerPool:
    """Made when they are first needed, and kept for the next task of this process."""

    def __init__(self, options: Mapping[str, str | int | float | bool], last_error: LastError, silence: float) -> None:
        """`silence` is how many seconds without any acknowledgement are too many."""
        self._base = options
        self._last_error = last_error
        self._silence = silence
        self._producers: dict[tuple[int, str], Producer] = {}
        """By the size and codec of their batches."""
        self._options: dict[tuple[int, str], ClientOptions] = {}
        self._last_sign = time.monotonic()

    def __iter__(self) -> Iterator[Producer]:
        return iter(self._producers.values())

    def of(self, limits: Limits, *, is_trial: bool = False) -> Producer:
        """The one whose batches fit."""
        kind = (_TRIAL if is_trial else limits.batch_bytes, limits.codec)
        producer = self._producers.get(kind)
        if producer is None:
            producer = self._producers[kind] = self._made(kind, limits, is_trial=is_trial)
            self.has_moved()
        return producer

    def poll(self, producer: Producer, seconds: float) -> None:
        """Take acknowledgements. Not by `flush`: a fatal error is raised there amid further callbacks, which then fail
        one by one and leave their records without an answer.
        """
        try:
            producer.poll(seconds)
        except KafkaException:
            # What was refused says so itself; what waits behind it never goes out.
            producer.purge(in_queue=True, in_flight=False)

    def has_moved(self) -> None:
        """There was a sign of life of the target just now."""
        self._last_sign = time.monotonic()

    def watch(self, moved: bool) -> None:
        """Give up, and leave nothing behind in a queue, when the target has been silent for too long.

        librdkafka would drop the oldest records at their timeout and still send the ones behind them.
        """
        if moved:
            self.has_moved()
        elif time.monotonic() - self._last_sign > self._silence:
            for producer in self:
                producer.purge(in_queue=True, in_flight=True)
            self.has_moved()

    def drain(self) -> None:
        """Wait until everything that was written is acknowledged, or given up."""
        self.has_moved()
        for producer in self:
            left = len(producer)
            while left:
                self.poll(producer, min(1.0, self._silence))
                now_left = len(producer)
                self.watch(now_left != left)
                left = now_left

    def discard_broken(self, is_failed: bool) -> None:
        """Forget producers that still wait for something, or all of them after a failure."""
        for kind in [kind for kind, producer in self._producers.items() if is_failed or len(producer) > 0]:
            discard_producer(self._options[kind])

    def _made(self, kind: tuple[int, str], limits: Limits, *, is_trial: bool) -> Producer:
        options = suited(self._base, limits)
        self._options[kind] = for_trials(options) if is_trial else options
        return record_producer(self._options[kind], self._last_error)
