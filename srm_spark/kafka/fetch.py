"""Reads ranges of source partitions inside an executor, by librdkafka, and writes them: no record passes through a JVM.

Which ranges, Spark's Kafka source has decided: they come with the task. Consumers are kept from task to task.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException

from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.errors import SourceChanged, SourceDenied, SourceUnavailable
from srm_spark.kafka.clients import QUIET, ClientOptions, LastError, kafka_partition
from srm_spark.kafka.compiled import is_used
from srm_spark.kafka.failures import is_denied, is_passing, named, remedy
from srm_spark.kafka.fetched import Consumed, Event, Fetched
from srm_spark.kafka.producers import options_key
from srm_spark.kafka.tokens import with_tokens
from srm_spark.kafka.topic_ids import TopicIds

_WAIT_SECONDS = 0.2
_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_MORE_SECONDS = 0.5
"""How long topics that may not be read are gathered: each of them would end a generation of its own."""
_ASK_SECONDS = 5.0
_GATHER_FACTOR, _GATHER_BYTES = 4, 16_777_216
"""So many times as long as asking for topics takes is gathered before they are asked for again, and so much at most."""


def fetch_options(rendered: Mapping[str, str | int | float | bool]) -> ClientOptions:
    """Options of the consumer of ranges: what the user set, over defaults that were measured.

    Fixed is what the promises rest on: what is read is what the flow's isolation level lets it read, from the first
    offset that is still there, and the end of a partition is told.
    """
    return {
        "isolation.level": "read_uncommitted",  # as Java's consumers, and so Spark's
        "check.crcs": True,
        **rendered,
        "group.id": "srm-ranges",  # librdkafka insists on one; it is never joined
        # A fetch that waits for more than there is would keep the next range waiting behind it.
        "fetch.wait.max.ms": 1,
        # What is fetched ahead of a range's end is fetched again: little ahead, and asked for as soon as there is room.
        "queued.max.messages.kbytes": 8192,
        "fetch.queue.backoff.ms": 1,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "allow.auto.create.topics": False,
        # So long a topic that a broker does not know is taken for a new one; the driver has seen it already.
        "topic.metadata.propagation.max.ms": 5000,
        "log_level": 0,  # where no logger can be set, see `Fetched`
    }


@dataclass(frozen=True)
class Fetch:
    """How a source is read; shipped to the executors, so it holds plain values only."""

    options: ClientOptions = field(repr=False)
    cluster: str
    """Alias of the source."""
    timeout: float
    """Seconds without a record after which the task gives up."""
    in_loop: bool = True
    """Whether compiled loops take the records over, where they can."""
    is_whole: bool = True
    """Whether batches are copied as they are, where they can be."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Of which topics the ranges are: another one of the same name has other records at these offsets."""


class RangeReader:
    """The records of some ranges as runs, in offset order within each partition."""

    def __init__(self, fetch: Fetch, ranges: Mapping[TopicPartition, OffsetRange]) -> None:
        self.open = {partition for partition, (start, end) in ranges.items() if start < end}
        """Partitions that are not read to the end of their range yet."""
        self._fetch = fetch
        self._ranges = ranges
        self._next = {partition: start for partition, (start, _) in ranges.items()}
        self._ask_at = 0.0

    def __iter__(self) -> Generator[Run]:
        """Raises SourceUnavailable where the source refuses or gives nothing for too long, SourceChanged where a log
        went back or a topic was created anew.
        """
        if not self.open:
            return
        source = _take_kept(self._fetch)
        try:
            yield from self._runs(source)
        except GeneratorExit:  # enough was read
            _keep(self._fetch, source)
            raise
        except BaseException:
            source.discard()
            raise
        _keep(self._fetch, source)

    def _runs(self, source: Source) -> Generator[Run]:
        source.last_error.error = None  # what an earlier task met is over
        source.fetched.assign({partition: self._ranges[partition].start for partition in sorted(self.open)})
        silent_since = time.monotonic()
        while self.open:
            before = frozenset(self.open)
            is_moving = False
            for piece in self._taken(source):
                if isinstance(piece, Event):
                    self._take_in(piece, source)
                elif (run := self._within(piece)).count:
                    is_moving = True
                    yield run
            if over := before - self.open:
                source.consumer.pause([kafka_partition(partition) for partition in over])
            if is_moving or over:
                silent_since = time.monotonic()
            elif source.is_gone or time.monotonic() - silent_since > self._fetch.timeout:
                raise SourceUnavailable(self._silence(source, time.monotonic() - silent_since))

    def _taken(self, source: Source) -> list[Run | Event]:
        """What has come, of the topics that were asked for: they are looked at once it is here, before it is written.

        A topic that is created anew and filled again would give its records for the old ones.
        """
        expected = self._fetch.topic_ids
        pieces = source.fetched.take(_WAIT_SECONDS)
        while expected and pieces and (left := self._ask_at - time.monotonic()) > 0:
            if sum(piece.bytes for piece in pieces if isinstance(piece, Run)) > _GATHER_BYTES:
                break
            pieces += source.fetched.take(left)
        topics = {piece.partition.topic for piece in pieces if isinstance(piece, Run)}
        if known := {topic: expected[topic] for topic in topics if topic in expected}:
            began = time.monotonic()
            source.topic_ids.check(known, self._fetch.cluster, self._fetch.timeout)
            now = time.monotonic()
            self._ask_at = now + _GATHER_FACTOR * (now - began)
        return pieces

    def _within(self, run: Run) -> Run:
        """The part of a run that belongs to its range; behind the range the partition is done."""
        if run.partition not in self.open:
            return run.head(0)
        _check_order(run, self._next, self._fetch.cluster)
        start, end = np.searchsorted(run.offsets, self._ranges[run.partition]).tolist()
        if run.offsets[-1] >= self._ranges[run.partition].end - 1:
            self.open.discard(run.partition)
        return run if end - start == run.count else run.slice(start, end)

    def _take_in(self, event: Event, source: Source) -> None:
        """What a consumer says beside records. An end before the range's is none: the leader may lag behind."""
        partition = event.partition
        if event.error.code() != KafkaError._PARTITION_EOF:
            source.check(event, self._fetch.cluster)
        elif partition in self.open and event.offset >= self._ranges[partition].end:
            self.open.discard(partition)

    def _silence(self, source: Source, seconds: float) -> str:
        partition = min(self.open)
        asked = kafka_partition(partition)
        offset = max(source.consumer.position([asked])[0].offset, self._ranges[partition].start)
        seen = str(source.last_error)
        with suppress(KafkaException):
            low, high = source.consumer.get_watermark_offsets(asked, timeout=_ASK_SECONDS)
            seen = f"{seen}; the partition holds offsets {low} to {high}"
        return (
            f"cluster {self._fetch.cluster}: {partition} gave nothing for {seconds:.0f} s at offset {offset} "
            f"of {self._ranges[partition].end}; last seen: {seen}"
        )


class Follower:
    """Records as they come, without an end."""

    def __init__(self, fetch: Fetch, starts: Mapping[TopicPartition, int]) -> None:
        self._source = Source.of(fetch.options, is_compiled=_is_compiled(fetch))
        self._cluster = fetch.cluster
        self._next = dict(starts)
        self._source.fetched.assign(starts)

    def take(self, seconds: float) -> Iterator[Run]:
        """What has come, once something has; nothing after `seconds`.

        Raises SourceUnavailable where the source refuses, SourceChanged where a log went back.
        """
        for piece in self._source.fetched.take(seconds):
            if isinstance(piece, Run):
                _check_order(piece, self._next, self._cluster)
                yield piece
            elif piece.error.code() != KafkaError._PARTITION_EOF:
                self._source.check(piece, self._cluster)
        if self._source.is_gone:
            raise SourceUnavailable(f"cluster {self._cluster}: {self._source.last_error}")

    def close(self) -> None:
        """Let go of the connections."""
        self._source.discard()


def _check_order(run: Run, expected: dict[TopicPartition, int], cluster: str) -> None:
    """Where a log is shorter than it was, a consumer begins it anew: what it then gives is not what was asked for."""
    first = int(run.offsets[0])
    if first < expected[run.partition]:
        raise SourceChanged(
            f"cluster {cluster}: {run.partition} gave offset {first} where {expected[run.partition]} was next: its log "
            "went back, or another topic has its name now; the next generation finds out"
        )
    expected[run.partition] = int(run.offsets[-1]) + 1


@dataclass(frozen=True)
class Source:
    """A consumer and what it fetches."""

    consumer: Consumer
    last_error: LastError
    fetched: Fetched | Consumed
    topic_ids: TopicIds

    @classmethod
    def of(cls, options: ClientOptions, *, is_compiled: bool) -> Source:
        last_error = LastError()
        topic_ids = TopicIds(options, last_error)
        if is_compiled:
            consumer = Consumer(with_tokens(options))
            return cls(consumer, last_error, Fetched(consumer, last_error), topic_ids)
        consumer = Consumer(with_tokens({**options, "error_cb": last_error}), logger=QUIET)
        return cls(consumer, last_error, Consumed(consumer), topic_ids)

    @property
    def is_gone(self) -> bool:
        """Whether a topic or partition was said not to exist since the task began."""
        newest = self.last_error.newest
        return newest is not None and newest.code() in _GONE

    def check(self, event: Event, cluster: str) -> None:
        """Raises SourceUnavailable unless an error passes by itself."""
        topic, error = event.partition.topic, event.error
        if is_denied(error) and topic:
            topics = sorted({topic, *self._denied()})
            hint = remedy(error, f"READ on topic {', '.join(topics)}", "")
            raise SourceDenied(
                f"cluster {cluster}: Not authorized to access topics: [{', '.join(topics)}]; {hint}", topics
            )
        if not is_passing(error):
            what = f"cannot read {event.partition}: {named(error)}"
            raise SourceUnavailable(f"cluster {cluster}: {what}; the next start tries again")

    def _denied(self) -> set[str]:
        """Further topics that may not be read."""
        denied: set[str] = set()
        deadline = time.monotonic() + _MORE_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            pieces = self.fetched.take(left)
            denied |= {piece.partition.topic for piece in pieces if isinstance(piece, Event) and is_denied(piece.error)}
        return denied

    def rest(self) -> None:
        """Fetch nothing until it is used again."""
        self.consumer.resume(self.consumer.assignment())  # or the next task's would be paused
        self.consumer.unassign()

    def discard(self) -> None:
        """Not in the way of the error: closing waits for brokers that may be gone."""
        threading.Thread(target=self.fetched.close, daemon=True).start()


_lock = threading.Lock()
idle_sources: dict[tuple[tuple[tuple[str, str], ...], bool], list[Source]] = {}
"""What no task of this process uses now, by options, and whether it is compiled."""


def _take_kept(fetch: Fetch) -> Source:
    with _lock:
        idle = idle_sources.get(_key(fetch))
        if idle:
            return idle.pop()
    return Source.of(fetch.options, is_compiled=_is_compiled(fetch))


def _keep(fetch: Fetch, source: Source) -> None:
    source.rest()
    with _lock:
        idle_sources.setdefault(_key(fetch), []).append(source)


def _key(fetch: Fetch) -> tuple[tuple[tuple[str, str], ...], bool]:
    return options_key(fetch.options), _is_compiled(fetch)


def _is_compiled(fetch: Fetch) -> bool:
    return is_used(fetch.in_loop)
