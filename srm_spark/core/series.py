"""Figures of the last hours in memory: what samples say, added up per bucket of time, and questions about it. No I/O.

A ring has a line of buckets for each key (a topic, or the flow as a whole), and takes the oldest bucket anew for the
newest:

```
               12:00:00   12:00:15   12:00:30  …     480 buckets of 15 s
the flow           …          …          …           cell: records, bytes, seconds, lag; or latencies
orders             …          …          …
payments           …          …          …
```

Per partition it is only kept which samples were counted, so that one that comes twice counts once. 10,000 partitions of
500 topics take 60 MB over two hours, and of 10,000 topics 350 MB, however often drivers report.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from srm_spark.core.metrics import Histogram

BUCKET_MS = 15_000
WINDOW_MS = 2 * 3_600_000
"""How far back it goes; SRM's default range."""
_SLOTS = 64
"""Moments that a bucket tells apart: one per 234 ms."""
_KNOWN = 1.0
"""Is added to what may be 0, in cells where 0 means that nothing was told."""

Array = npt.NDArray[np.float64]
K = TypeVar("K", bound=Hashable)


class Metric(Enum):
    """What can be asked for; the names are SRM's and MirrorMaker 2's."""

    BYTE_RATE = "byte-rate"
    """Bytes per second."""
    BYTE_COUNT = "byte-count"
    RECORD_RATE = "record-rate"
    RECORD_COUNT = "record-count"
    REPLICATION_LATENCY = "replication-latency-ms"
    CHECKPOINT_LATENCY = "checkpoint-latency-ms"
    RECORDS_LAG = "replication-records-lag"
    """Records that the target does not have yet."""
    SECONDS_LAG = "replication-seconds-lag"
    """How long the oldest of them has waited, the most that was told in a bucket: what a failover would lose."""

    @property
    def is_latency(self) -> bool:
        """Whether one observation is a record, or a checkpoint; of all others it is a bucket."""
        return self in (Metric.REPLICATION_LATENCY, Metric.CHECKPOINT_LATENCY)


@dataclass(frozen=True)
class Span:
    """From `start` (included) to `end` (excluded), in milliseconds since the epoch."""

    start: int
    end: int

    @property
    def midpoint(self) -> int:
        """Half-way."""
        return (self.start + self.end) // 2


@dataclass(frozen=True)
class Stats:
    """What was seen in a span: see `Metric.is_latency` for what one observation is."""

    span: Span
    samples: int = 0
    """Observations; with none of them nothing else is known."""
    least: float | None = None
    most: float | None = None
    total: float | None = None
    latest: float | None = None
    """Of the newest bucket; of latencies their mean."""
    latest_at: int | None = None

    @property
    def mean(self) -> float | None:
        """Of the observations."""
        return None if self.total is None or not self.samples else self.total / self.samples


@dataclass(frozen=True)
class Line:
    """One metric of some keys: arrays of keys by buckets. Where `count` is 0 nothing is known."""

    starts: Array
    """When each bucket begins, ascending."""
    newest: Array
    """Time of the newest sample in it."""
    count: Array
    total: Array
    least: Array
    most: Array
    bucket_ms: int = field(default=BUCKET_MS, kw_only=True)
    """How wide a bucket is."""

    def plus(self, other: Line, metric: Metric) -> Line:
        """Both together, of as many keys: latencies are joined, of seconds the more counts, all else is added up."""
        starts = np.union1d(self.starts, other.starts)
        one, two = self._at(starts), other._at(starts)
        count, total, newest = one.count + two.count, one.total + two.total, np.maximum(one.newest, two.newest)
        if metric.is_latency:
            least, most = np.fmin(one.least, two.least), np.fmax(one.most, two.most)
            return Line(starts, newest, count, total, least, most, bucket_ms=self.bucket_ms)
        if metric is Metric.SECONDS_LAG:
            total = np.maximum(one.total, two.total)
        return replace(_shown(starts, newest, np.minimum(count, 1.0), total), bucket_ms=self.bucket_ms)

    def followed_by(self, other: Line) -> Line:
        """Both, one behind the other, of the same keys in buckets of the same width."""
        arrays = zip(self._arrays, other._arrays, strict=True)
        return Line(*(np.concatenate(pair, axis=-1) for pair in arrays), bucket_ms=self.bucket_ms)

    @property
    def _arrays(self) -> tuple[Array, ...]:
        return (self.starts, self.newest, self.count, self.total, self.least, self.most)

    def coarser(self, metric: Metric, bucket_ms: int) -> Line:
        """The same in wider buckets: rates are the mean of theirs, records of lag the newest, its seconds the most."""
        if not len(self.starts):
            return replace(self, bucket_ms=bucket_ms)
        starts = self.starts // bucket_ms * bucket_ms
        edges = np.flatnonzero(np.diff(starts, prepend=-1.0))
        known = self.count > 0
        count, total = (np.add.reduceat(array, edges, axis=1) for array in (self.count, self.total))
        newest = np.maximum.reduceat(self.newest, edges)
        if metric.is_latency:
            least = np.minimum.reduceat(np.where(known, self.least, np.inf), edges, axis=1)
            most = np.maximum.reduceat(np.where(known, self.most, -np.inf), edges, axis=1)
            return Line(starts[edges], newest, count, total, least, most, bucket_ms=bucket_ms)
        if metric in (Metric.BYTE_RATE, Metric.RECORD_RATE):
            total = total / np.maximum(count, 1.0)
        elif metric is Metric.SECONDS_LAG:
            total = np.maximum.reduceat(np.where(known, self.total, 0.0), edges, axis=1)
        elif metric is Metric.RECORDS_LAG:
            last = np.maximum.reduceat(np.where(known, np.arange(len(starts)), 0), edges, axis=1)
            total = np.take_along_axis(self.total, last, axis=1)
        return replace(_shown(starts[edges], newest, np.minimum(count, 1.0), total), bucket_ms=bucket_ms)

    def _at(self, starts: Array) -> Line:
        """The same with a bucket for each of these, among which are its own."""
        rows, shape = np.searchsorted(starts, self.starts), (len(self.count), len(starts))
        newest = np.full(len(starts), -1.0)
        newest[rows] = self.newest
        spread = []
        for array, empty in ((self.count, 0.0), (self.total, 0.0), (self.least, np.nan), (self.most, np.nan)):
            spread.append(np.full(shape, empty))
            spread[-1][:, rows] = array
        return Line(starts, newest, *spread)

    def stats(self, span: Span) -> list[Stats]:
        """Of each key."""
        if not len(self.starts):
            return [Stats(span)] * len(self.count)
        return [
            _stats(span, row)
            for row in zip(*(column[:, 0].tolist() for column in self._parts(np.zeros(1, np.int64))), strict=True)
        ]

    def timeline(self, span: Span, samples: int) -> list[Stats]:
        """Of the first key: at most `samples` parts in which something was seen, in order, each whole buckets wide."""
        if not len(self.starts):
            return []
        first = span.start // self.bucket_ms * self.bucket_ms
        buckets = max(1, -(-(span.end - first) // self.bucket_ms))
        width = -(-buckets // max(1, samples)) * self.bucket_ms
        begins = (self.starts - first) // width * width + first
        edges = np.flatnonzero(np.diff(begins, prepend=-np.inf))
        spans = (Span(start, start + width) for start in begins[edges].astype(np.int64).tolist())
        rows = zip(*(column[0].tolist() for column in self._first._parts(edges)), strict=True)
        return [stats for span, row in zip(spans, rows, strict=True) if (stats := _stats(span, row)).samples]

    @property
    def _first(self) -> Line:
        arrays = (array[:1] for array in (self.count, self.total, self.least, self.most))
        return Line(self.starts, self.newest, *arrays, bucket_ms=self.bucket_ms)

    def _parts(self, edges: npt.NDArray[np.int64]) -> tuple[Array, ...]:
        """What `_stats` takes, of keys by parts, each of which begins with the bucket of an edge."""
        known = self.count > 0
        last = np.maximum.reduceat(np.where(known, np.arange(len(self.starts)), 0), edges, axis=1)
        count, total = (np.take_along_axis(array, last, axis=1) for array in (self.count, self.total))
        return (
            np.add.reduceat(self.count, edges, axis=1),
            np.minimum.reduceat(np.where(known, self.least, np.inf), edges, axis=1),
            np.maximum.reduceat(np.where(known, self.most, -np.inf), edges, axis=1),
            np.add.reduceat(self.total, edges, axis=1),
            total / np.maximum(count, 1.0),
            self.newest[last],
        )


def _stats(span: Span, row: tuple[float, ...]) -> Stats:
    samples, least, most, total, latest, at = row
    return Stats(span, int(samples), least, most, total, latest, int(at)) if samples else Stats(span)


def _shown(starts: Array, newest: Array, count: Array, total: Array) -> Line:
    """Where a bucket is one observation."""
    return Line(starts, newest, count, total, total, total)


class _Ring(Generic[K]):
    """Cells of some fields, of keys by buckets. Not safe to use from several threads."""

    def __init__(self, fields: Mapping[str, type], window_ms: int = WINDOW_MS, bucket_ms: int = BUCKET_MS) -> None:
        self._fields = fields
        self._bucket = bucket_ms
        self._buckets = -(-window_ms // bucket_ms) + 1
        self._keys: dict[K, int] = {}
        self._number = np.full(self._buckets, -self._buckets, np.int64)
        """Which bucket of all times each one is now."""
        self._newest = np.full(self._buckets, -1.0)
        self._of = self._allocated(4)

    def _allocated(self, keys: int) -> dict[str, npt.NDArray[Any]]:
        # Zeros that nobody has written to take no memory yet.
        return {name: np.zeros((keys, self._buckets), kind) for name, kind in self._fields.items()}

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return sum(array.itemsize for array in self._of.values()) * self._buckets * len(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def _cell(self, key: K, at: int) -> tuple[int, int] | None:
        """Where a moment of a key is counted; None where it is too long ago."""
        number = at // self._bucket
        bucket = number % self._buckets
        if number != self._number[bucket]:
            if number <= self._number.max() - self._buckets:
                return None
            for array in self._of.values():
                array[:, bucket] = 0
            self._number[bucket], self._newest[bucket] = number, -1.0
        found = self._keys.get(key)
        if found is None:
            if len(self._keys) == len(next(iter(self._of.values()))):
                self._make_room()
            found = self._keys[key] = len(self._keys)
        self._newest[bucket] = max(self._newest[bucket], at)
        return found, bucket

    def _make_room(self) -> None:
        """For more keys, after those are forgotten of which nothing is there any more."""
        used = np.flatnonzero(np.any([array.any(axis=1) for array in self._of.values()], axis=0))
        places = {place: number for number, place in enumerate(used.tolist())}
        self._keys = {key: places[place] for key, place in self._keys.items() if place in places}
        before, self._of = self._of, self._allocated(max(4, 2 * len(used)))
        for name, array in before.items():
            self._of[name][: len(used)] = array[used]

    def _slot(self, at: int) -> int:
        return 1 << (at % self._bucket * _SLOTS // self._bucket)

    def _chosen(self, span: Span) -> npt.NDArray[np.int64]:
        """The buckets that touch a span, the oldest first."""
        low = max(span.start // self._bucket, int(self._number.max()) - self._buckets + 1)
        chosen = np.flatnonzero((self._number >= low) & (self._number < -(-span.end // self._bucket)))
        return chosen[np.argsort(self._number[chosen])]

    def _axis(self, buckets: npt.NDArray[np.int64]) -> tuple[Array, Array]:
        return (self._number[buckets] * self._bucket).astype(np.float64), self._newest[buckets]

    def _taken(self, name: str, keys: Sequence[K], buckets: npt.NDArray[np.int64]) -> Array:
        """A field of these keys; zeros for those of which there is nothing."""
        places = np.array([self._keys.get(key, -1) for key in keys], np.int64)
        found = self._of[name][np.ix_(places, buckets)].astype(np.float64)
        found[places < 0] = 0.0
        return found


class Seen(_Ring[K]):
    """Which samples were counted."""

    def __init__(self, window_ms: int = WINDOW_MS) -> None:
        super().__init__({"slots": np.uint64}, window_ms)

    def add(self, key: K, at: int) -> bool:
        """Whether a sample of this moment is to be counted: not where it is too old, or was counted already."""
        cell, slot = self._cell(key, at), self._slot(at)
        if cell is None or int(self._of["slots"][cell]) & slot:
            return False
        self._of["slots"][cell] |= np.uint64(slot)
        return True


class Traffic(_Ring[K]):
    """What was copied, and what was left to copy."""

    def __init__(self, window_ms: int = WINDOW_MS) -> None:
        fields = {"records": np.float64, "bytes": np.float64, "lag": np.float64, "slots": np.uint64}
        super().__init__({**fields, "seconds": np.float32, "wait": np.float32}, window_ms)

    def add(self, key: K, at: int, seconds: float, records: int, size: int) -> None:
        """Count a sample of one of the key's partitions; those of one report have one moment, and its length once."""
        cell, slot = self._cell(key, at), self._slot(at)
        if cell is None:
            return
        of = self._of
        of["records"][cell] += records
        of["bytes"][cell] += size
        if not int(of["slots"][cell]) & slot:
            of["slots"][cell] |= np.uint64(slot)
            of["seconds"][cell] += seconds

    def set_lag(self, key: K, at: int, lag: float) -> None:
        """The lag of all its partitions together at that moment; NaN is unknown."""
        cell = self._cell(key, at)
        if cell is not None:
            self._of["lag"][cell] = lag

    def add_wait(self, key: K, at: int, seconds: float) -> None:
        """So long the oldest record that one of its partitions has not copied waited at that moment."""
        cell = self._cell(key, at)
        if cell is not None:
            wait = self._of["wait"]
            wait[cell] = max(wait[cell], seconds + _KNOWN)

    def line(self, metric: Metric, span: Span, keys: Sequence[K]) -> Line:
        """A rate, a count or the lag of each of these keys, in the buckets that touch the span."""
        buckets = self._chosen(span)
        count = (self._taken("slots", keys, buckets) > 0).astype(np.float64)
        if metric is Metric.RECORDS_LAG:
            lag = self._taken("lag", keys, buckets)
            unknown = np.isnan(lag)
            return _shown(*self._axis(buckets), np.where(unknown, 0.0, count), np.where(unknown, 0.0, lag))
        if metric is Metric.SECONDS_LAG:
            wait = self._taken("wait", keys, buckets)
            return _shown(*self._axis(buckets), (wait > 0).astype(np.float64), np.maximum(wait - _KNOWN, 0.0))
        is_of_bytes = metric in (Metric.BYTE_RATE, Metric.BYTE_COUNT)
        total = self._taken("bytes" if is_of_bytes else "records", keys, buckets)
        if metric in (Metric.BYTE_RATE, Metric.RECORD_RATE):
            seconds = self._taken("seconds", keys, buckets)
            total = total / np.where(seconds > 0, seconds, np.inf)
        return _shown(*self._axis(buckets), count, total)


class Latencies(_Ring[K]):
    """How long copies took."""

    def __init__(self, window_ms: int = WINDOW_MS) -> None:
        fields = {"count": np.float64, "total": np.float64, "least": np.float32, "most": np.float32}
        super().__init__(fields, window_ms)

    def add(self, key: K, at: int, told: Histogram) -> None:
        """Count them, in milliseconds."""
        if told.least is None or told.most is None or (cell := self._cell(key, at)) is None:
            return
        of = self._of
        is_first = not of["count"][cell]
        of["least"][cell] = told.least if is_first else min(of["least"][cell], told.least)
        of["most"][cell] = told.most if is_first else max(of["most"][cell], told.most)
        of["count"][cell] += told.count
        of["total"][cell] += told.total

    def line(self, span: Span, keys: Sequence[K]) -> Line:
        """Of each of these keys, in the buckets that touch the span."""
        buckets = self._chosen(span)
        fields = (self._taken(name, keys, buckets) for name in ("count", "total", "least", "most"))
        return Line(*self._axis(buckets), *fields)
