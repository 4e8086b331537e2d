"""The log of leases on a target: records in partition 0 of one topic, appended and read in their order.

Several flows may have the same topic: the key of a record says which one it is about, by the name of its lease. Claims
have a key of their own, for compaction keeps the newest record of each key; and so has what drivers say that stand by.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition

from srm_spark.core.driver_status import DriverId
from srm_spark.core.leases import Act, LeaseRecord, Standing
from srm_spark.core.spreading import StandBy
from srm_spark.errors import TargetUnavailable
from srm_spark.kafka.clients import QUIET, ClientOptions, LastError, bytes_of, reader_by
from srm_spark.kafka.failures import is_denied, is_passing
from srm_spark.kafka.tokens import with_tokens

_AT_ONCE = 500
_TAIL = 500
"""Records at the end in which an owner that is there is heard; where none is, all are read."""
_APPEND_MS = 2000
"""A record that did not get there in this time says nothing any more of now."""
_TRY_SECONDS, _PAUSE_SECONDS = 2.0, 0.1
_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> float:
    """Seconds of a clock that goes on while a machine is suspended: what was sure before is not when it wakes up."""
    return time.clock_gettime(_CLOCK)


class LeaseLog:
    """Of one flow. What the target refuses is not raised: time tells, and `refused` and `last_error` say why."""

    def __init__(self, options: Mapping[str, str | int | float | bool], topic: str, group: str) -> None:
        """`options` are librdkafka's, of the target."""
        self._options, self._topic, self._group = dict(options), topic, group
        self.last_error = LastError()
        self._consumer: Consumer | None = None
        self._producer: Producer | None = None
        self._is_tail, self._next = False, 0
        self.standing = Standing()
        self.standing_by: dict[DriverId, tuple[float, StandBy]] = {}
        """Driver → when it was heard last, by `clock`, and what it said; of what came while we read."""
        self.is_at_end = False
        """Whether all that was there has been read, once."""
        self.refused: KafkaError | None = None
        """That we are not allowed to do something, and what right that takes."""
        self.missing_right = ""

    def read(self, seconds: float) -> list[LeaseRecord]:
        """What came within so many seconds; the standing has taken it.

        Where the topic does not exist, nobody has ever taken a lease there: that is its end.
        """
        if self._producer is not None:
            self._producer.poll(0)  # only so is heard what became of what was sent
        consumer = self._consumer or self._open(seconds)
        if consumer is None:
            return []
        messages = consumer.consume(1, seconds)
        while more := consumer.consume(_AT_ONCE, 0):
            messages += more
        found = list(self._taken(messages))
        if self.is_at_end and not self.standing.term and self._is_tail:
            self._from(consumer, 0)
        return found

    def caught_up(self, seconds: float) -> Standing:
        """The standing behind all that is there when this is called.

        Raises TargetUnavailable where that cannot be read in so many seconds.
        """
        deadline, end, self.refused = time.monotonic() + seconds, None, None  # a right may have been given since
        while (left := deadline - time.monotonic()) > 0 and self.refused is None:
            if self._consumer is None:
                self.read(0)
            elif end is None:
                places = self._places(self._consumer, left)
                if places is None:
                    time.sleep(_PAUSE_SECONDS)
                    continue
                first, end = places
                if self._next > end:  # the topic is another one
                    self._near_end(self._consumer, first, end)
            elif self._next >= end:
                return self.standing
            else:
                self.read(left)
        way = f"allow {self.missing_right}" if self.refused else f"check the leader of topic {self._topic}"
        raise TargetUnavailable(
            f"topic {self._topic} does not say who holds the lease {self._group}; last seen: {self.last_error}; {way}"
        )

    def append(self, record: LeaseRecord | StandBy) -> None:
        """Send a record; that it arrived is seen by reading it."""
        if self._producer is None:
            fixed: ClientOptions = {
                **self._options,
                "acks": "all",
                "max.in.flight": 1,  # in order, whatever is sent again: an older note must not come behind a newer one
                "linger.ms": 0,
                "message.timeout.ms": _APPEND_MS,
                "retry.backoff.ms": 50,
                "allow.auto.create.topics": False,
            }
            self._producer = Producer(with_tokens({**fixed, "error_cb": self.last_error}), logger=QUIET)
        try:
            self._producer.produce(
                self._topic, record.encode(), self._key(record), partition=0, on_delivery=self._delivered
            )
            self._producer.poll(0)
        except KafkaException as error:
            self._met(error.args[0], "WRITE")

    def _key(self, record: LeaseRecord | StandBy) -> str:
        if isinstance(record, StandBy):
            return f"{self._group} stands by"
        return f"{self._group} claims" if record.act is Act.CLAIM else self._group

    def flush(self, seconds: float) -> None:
        """Wait so long for what was sent."""
        if self._producer is not None:
            self._producer.flush(seconds)

    def close(self) -> None:
        """Let go of the connections."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = self._producer = None

    def _open(self, seconds: float) -> Consumer | None:
        """A consumer near the end of the topic; None while the target does not say where that is."""
        more: ClientOptions = {"enable_partition_eof": True, "fetch_error_backoff_ms": 100}
        consumer = reader_by(self._options, self._group, self.last_error, isolation_level="read_uncommitted", **more)
        places = self._places(consumer, max(seconds, _TRY_SECONDS))
        if places is None:
            consumer.close()
            time.sleep(_PAUSE_SECONDS)
            return None
        self._near_end(consumer, *places)
        self._consumer = consumer
        return consumer

    def _near_end(self, consumer: Consumer, first: int, end: int) -> None:
        self._from(consumer, max(first, end - _TAIL))
        self._is_tail = end - _TAIL > first

    def _places(self, consumer: Consumer, seconds: float) -> tuple[int, int] | None:
        """Where the topic begins and ends now; None where the target does not say so."""
        try:
            return consumer.get_watermark_offsets(KafkaTopicPartition(self._topic, 0), timeout=seconds)
        except KafkaException as error:
            self._met(error.args[0], "READ")
            self.is_at_end = error.args[0].code() in _MISSING
            return None

    def _from(self, consumer: Consumer, offset: int) -> None:
        self.standing, self.is_at_end, self._is_tail, self._next = Standing(), False, False, offset
        self.standing_by.clear()
        consumer.assign([KafkaTopicPartition(self._topic, 0, offset)])

    def _taken(self, messages: list[Message]) -> Iterator[LeaseRecord]:
        keys, beside = {self._group.encode(), f"{self._group} claims".encode()}, f"{self._group} stands by".encode()
        for message in messages:
            error, offset = message.error(), message.offset()
            if error is None:
                assert offset is not None
                self._next = offset + 1
                if message.key() == beside:
                    self._note(StandBy.decode(bytes_of(message.value())))
                record = LeaseRecord.decode(bytes_of(message.value())) if message.key() in keys else None
                if record is not None:
                    self.standing = self.standing.after(offset, record)
                    yield record
            elif error.code() == KafkaError._PARTITION_EOF:
                self.is_at_end, self._next = True, max(self._next, offset or 0)
            else:
                self._met(error, "READ")

    def _note(self, said: StandBy | None) -> None:
        if said is not None and self.is_at_end:
            self.standing_by[said.driver] = clock(), said

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._met(error, "WRITE")

    def _met(self, error: KafkaError, operation: str) -> None:
        self.last_error(error)
        if is_denied(error) and not is_passing(error):
            self.refused, self.missing_right = error, f"{operation} on topic {self._topic}"
