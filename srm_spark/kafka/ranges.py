"""Records of a source inside an executor, by our own requests: no record passes through a JVM or a client library.

What they cannot read, librdkafka's consumer reads: old message formats, and logins that are not made here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from srm_spark.core.model import OffsetRange, PausedPartition, Ranges, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.errors import SourceUnavailable
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.runs import RunReader
from srm_spark.kafka.batches.sorting import Form, Pieces
from srm_spark.kafka.batches.source_pool import keep_source, take_source
from srm_spark.kafka.batches.ways import is_used
from srm_spark.kafka.consumed import ConsumedReader
from srm_spark.kafka.fetch import Fetch

_LOOK_SECONDS = 0.2
_RANGE_WAIT_MS, _LIVE_WAIT_MS = 10, 500
"""How long a broker that has nothing lets us wait: at the end of a range, and for the next record there ever is."""
_ENDLESS = 2**62
T = TypeVar("T")


class RangeReader:
    """The records of some ranges as runs, in offset order within each partition."""

    def __init__(self, fetch: Fetch, ranges: Ranges) -> None:
        self.open = {partition for partition, (start, end) in ranges.items() if start < end}
        """Partitions that are not read to the end of their range yet."""
        self.holds: Mapping[TopicPartition, PausedPartition] = {}
        """Partitions that wait in front of a batch that is damaged."""
        self._fetch = fetch
        self._left = {partition: ranges[partition] for partition in self.open}

    def __iter__(self) -> Generator[Run]:
        """Raises SourceUnavailable where the source refuses or gives nothing for too long, SourceChanged where a log
        went back or a topic was created anew.
        """
        if self._left:
            yield from self._fetched()
        if self._left:
            consumed = ConsumedReader(self._fetch, self._left)
            try:
                yield from self._runs(consumed)
            finally:
                consumed.close()

    def _fetched(self) -> Generator[Run]:
        fetch = self._fetch
        if (brokers := brokers_of(fetch)) is None:
            return
        reader = RunReader(brokers, fetch, self._left, wait_ms=_RANGE_WAIT_MS)
        self.holds = reader.holds
        with lent(fetch, brokers, reader):
            yield from self._runs(reader, lambda: reader.moved_at)
            self._left = reader.hand_over()

    def _runs(
        self, reader: RunReader | ConsumedReader, moved_at: Callable[[], float] = lambda: -math.inf
    ) -> Generator[Run]:
        """`moved_at` says when something came: a long stretch of aborted transactions has no run, and is no silence."""
        silent_since = time.monotonic()
        while reader.is_busy:
            before = len(self.open)
            is_moving = False
            for run in reader.runs(_LOOK_SECONDS):
                is_moving = True
                self.open = reader.unread
                yield run
            self.open = reader.unread
            if is_moving or len(self.open) < before or not reader.is_busy:
                silent_since = time.monotonic()
                continue
            silent_since = max(silent_since, moved_at())
            if reader.is_gone or time.monotonic() - silent_since > self._fetch.timeout:
                raise SourceUnavailable(reader.silence(time.monotonic() - silent_since))


class Follower:
    """Records as they come, without an end."""

    def __init__(self, fetch: Fetch, starts: Mapping[TopicPartition, int]) -> None:
        self._fetch = fetch
        self.holds: Mapping[TopicPartition, PausedPartition] = {}
        """Partitions that wait in front of a batch that is damaged."""
        ranges = {partition: OffsetRange(start, _ENDLESS) for partition, start in starts.items()}
        self._readers: list[RunReader | ConsumedReader] = []
        if (brokers := brokers_of(fetch)) is None:
            self._readers.append(ConsumedReader(fetch, ranges))
        else:
            self._readers.append(own := RunReader(brokers, fetch, ranges, wait_ms=_LIVE_WAIT_MS, is_live=True))
            self.holds = own.holds

    def take(self, seconds: float) -> Iterator[Run]:
        """What has come, once something has; nothing after `seconds`.

        Raises SourceUnavailable where the source refuses, SourceChanged where a log went back.
        """
        return self._taken(lambda reader: reader.runs(seconds / len(self._readers)))

    def copies(self, seconds: float, forms: Mapping[str, Form]) -> Iterator[Run | Pieces]:
        """The same, as batches of these forms, by topic, wherever nobody has to look inside."""

        def copies_of(reader: RunReader | ConsumedReader) -> Iterator[Run | Pieces]:
            share = seconds / len(self._readers)
            return reader.copies(share, forms) if isinstance(reader, RunReader) else reader.runs(share)

        return self._taken(copies_of)

    def _taken(self, look: Callable[[RunReader | ConsumedReader], Iterator[T]]) -> Iterator[T]:
        left: dict[TopicPartition, OffsetRange] = {}
        for reader in self._readers:
            yield from look(reader)
            if reader.is_gone:
                raise SourceUnavailable(f"cluster {self._fetch.cluster}: {reader.last_error}")
            left |= reader.hand_over()
        if left:
            self._readers.append(ConsumedReader(self._fetch, left))

    def close(self) -> None:
        """Let go of the connections."""
        for reader in self._readers:
            reader.close()


@contextmanager
def lent(fetch: Fetch, brokers: Brokers, reader: RunReader) -> Iterator[None]:
    """The connections are kept for the next reader, unless this one fails or never reaches the cluster."""
    is_clean = False
    try:
        yield
        is_clean = reader.is_reached
    except GeneratorExit:  # enough was read
        is_clean = True
        raise
    finally:
        if is_clean:
            reader.finish()
            keep_source(fetch.options, brokers)
        else:
            reader.close()


def brokers_of(fetch: Fetch) -> Brokers | None:
    """Connections for our own requests; None where librdkafka reads: taken apart without compiled loops, records cost
    ten times as much.
    """
    return take_source(fetch.options, fetch.cluster) if is_used(fetch.in_loop) else None
