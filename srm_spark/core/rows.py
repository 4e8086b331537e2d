"""Rows of Spark's Kafka source as they arrive in a Python worker: one Arrow batch, cut into runs of one partition."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from srm_spark.core.codec import PROVENANCE_HEADER
from srm_spark.core.header_names import name_of
from srm_spark.core.model import PausedPartition, TopicPartition
from srm_spark.core.provenance import Header, Stamp
from srm_spark.core.tail import TailRecord

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
"""In this order; `timestamp` as Spark's microseconds, `headers` as a list of key and value, or null.

A header's key is its name: text where Spark has read it, bytes elsewhere.
"""

_HEADER_BYTES = 10
"""At most so many bytes of lengths per header."""

Headers = list[Header]
Record = tuple[bytes | None, bytes | None, int, Headers | None]
"""Key, value, timestamp in ms (0 where the record has none), headers."""

Columns = tuple[Iterable[bytes | None], Iterable[bytes | None], Iterable[int], Iterable[Headers | None]]


@dataclass(frozen=True)
class Run:
    """Rows of one source partition, in offset order."""

    partition: TopicPartition
    offsets: npt.NDArray[np.int64]
    timestamps: npt.NDArray[np.int64]
    """Milliseconds since the epoch; -1 where the record has none."""
    keys: pa.Array
    values: pa.Array
    headers: pa.Array
    stamped: list[list[Header]] | None = None
    """Headers that are written instead, for a flow with provenance headers."""
    is_decoded: bool = False
    """Names of headers came through Java's decoder, which replaces what is not UTF-8."""

    @classmethod
    def of(cls, partition: TopicPartition, records: Sequence[TailRecord]) -> Run:
        """Records as a plain consumer reads them."""
        return cls(
            partition,
            np.array([record.offset for record in records], np.int64),
            np.array([record.timestamp for record in records], np.int64),
            pa.array([record.key for record in records], pa.binary()),
            pa.array([record.value for record in records], pa.binary()),
            pa.nulls(len(records), pa.string()),
            [list(record.headers) for record in records],
        )

    @property
    def count(self) -> int:
        """How many records."""
        return len(self.offsets)

    @property
    def bytes(self) -> int:
        """Bytes of keys and values."""
        return int(self._contents.sum())

    @property
    def has_headers(self) -> bool:
        """Whether any record has a header."""
        return self.stamped is not None or self.headers.null_count < self.count

    def slice(self, start: int, end: int) -> Run:
        """The rows from `start` to before `end`."""
        return Run(
            self.partition,
            self.offsets[start:end],
            self.timestamps[start:end],
            self.keys.slice(start, end - start),
            self.values.slice(start, end - start),
            self.headers.slice(start, end - start),
            None if self.stamped is None else self.stamped[start:end],
            self.is_decoded,
        )

    def head(self, count: int) -> Run:
        """The first `count` rows."""
        return self.slice(0, count)

    def upto(self, size: int) -> Run:
        """The first rows, as many as it takes to reach `size` bytes; all of them where they are less."""
        if self.bytes <= size:
            return self
        return self.head(int(np.searchsorted(np.cumsum(self._contents), size)) + 1)

    def stamp(self, stamp: Stamp) -> Run:
        """The rows that `stamp` lets a flow copy, with the headers of their copies."""
        if self.headers.null_count == self.count:
            prefix = stamp.prefix(self.partition)
            stamped: list[list[Header]] = [
                [(PROVENANCE_HEADER, prefix + offset.to_bytes(8, "big"))] for offset in self.offsets.tolist()
            ]
            return replace(self, stamped=stamped)
        rows = zip(self.offsets.tolist(), self.header_lists(), strict=True)
        copies = [stamp.headers(self.partition, offset, headers or []) for offset, headers in rows]
        kept = [at for at, headers in enumerate(copies) if headers is not None]
        stamped = [headers for headers in copies if headers is not None]
        return replace(self if len(kept) == self.count else self._rows(kept), stamped=stamped)

    def _rows(self, kept: list[int]) -> Run:
        places = pa.array(kept, pa.int64())
        return replace(
            self,
            offsets=self.offsets[kept],
            timestamps=self.timestamps[kept],
            keys=self.keys.take(places),
            values=self.values.take(places),
            headers=self.headers.take(places),
        )

    def sizes(self) -> npt.NDArray[np.int64]:
        """Bytes of each record, at most: headers with the most that their lengths can take."""
        if self.stamped is not None:
            sizes = (sum(_HEADER_BYTES + 4 * len(name) + len(value or b"") for name, value in h) for h in self.stamped)
            return self._contents + np.fromiter(sizes, np.int64, self.count)
        return self._contents + self._header_sizes() if self.has_headers else self._contents

    def _header_sizes(self) -> npt.NDArray[np.int64]:
        names, values = header_columns(self.headers)
        upto = np.concatenate(([0], np.cumsum(_lengths(names) + _lengths(values) + _HEADER_BYTES)))
        begins = list_begins(self.headers)
        return upto[begins[1:]] - upto[begins[:-1]]

    @cached_property
    def _contents(self) -> npt.NDArray[np.int64]:
        return _lengths(self.keys) + _lengths(self.values)

    def records(self) -> Iterator[Record]:
        """The records as Python values."""
        return zip(*self.columns(), strict=False)  # headers may be without end

    def columns(self) -> Columns:
        """Keys, values, timestamps and headers of the records."""
        timestamps = np.where(self.timestamps == -1, 0, self.timestamps)
        headers = self.header_lists() if self.has_headers else repeat(None)
        return self.keys.to_pylist(), self.values.to_pylist(), timestamps.tolist(), headers

    @property
    def names(self) -> pa.Array:
        """Names of all headers that the rows came with, as text or bytes."""
        return self._of_headers(0)

    def _of_headers(self, field: int) -> pa.Array:
        begins = list_begins(self.headers)
        return header_columns(self.headers)[field][begins[0] : begins[-1]]

    def header_lists(self) -> Sequence[list[Header] | None]:
        """The headers that each record gets."""
        if self.stamped is not None:
            return self.stamped
        names = map(name_of, self.names.cast(pa.binary()).to_pylist())
        pairs = list(zip(names, self._of_headers(1).to_pylist(), strict=True))
        begins = list_begins(self.headers)
        begins = (begins - begins[0]).tolist()
        return [pairs[begin:end] or None for begin, end in itertools.pairwise(begins)]


class Rows(Protocol):
    """Where the rows of a task come from."""

    @property
    def open(self) -> Set[TopicPartition]:
        """Partitions of which more may follow, as far as rows were taken."""

    @property
    def holds(self) -> Mapping[TopicPartition, PausedPartition]:
        """Partitions that wait in front of what cannot be read, with everything before it taken."""

    def __iter__(self) -> Generator[Run]:
        """Runs, in offset order within each partition."""


class ArrowRows:
    """Rows that Spark has read: Arrow batches of `COLUMNS`, one partition behind the other."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self.open: set[TopicPartition] = set()
        self.holds: Mapping[TopicPartition, PausedPartition] = {}  # Spark fails instead
        self._batches = batches

    def __iter__(self) -> Generator[Run]:
        for batch in self._batches:
            for run in runs_of(batch):
                self.open = {run.partition}
                yield run
        self.open = set()


def runs_of(batch: pa.RecordBatch) -> Iterator[Run]:
    """Cut an Arrow batch of `COLUMNS` into runs of one partition."""
    if not batch.num_rows:
        return
    topics, partitions, offsets, stamps, keys, values, headers = batch.columns
    number = partitions.to_numpy()
    milliseconds = stamps.cast(pa.int64()).to_numpy() // 1000
    borders = set((np.flatnonzero(np.diff(number)) + 1).tolist())
    borders.update(pc.run_end_encode(topics).run_ends.to_pylist())
    start = 0
    for end in sorted({*borders, batch.num_rows}):
        count = end - start
        yield Run(
            TopicPartition(topics[start].as_py(), int(number[start])),
            offsets.to_numpy()[start:end],
            milliseconds[start:end],
            keys.slice(start, count),
            values.slice(start, count),
            headers.slice(start, count),
            is_decoded=True,
        )
        start = end


def list_begins(lists: pa.Array) -> npt.NDArray[np.int32]:
    """Where each list begins among all of their values, and where the last one ends."""
    return np.frombuffer(lists.buffers()[1], np.int32, len(lists) + 1, 4 * lists.offset)


def header_columns(headers: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Names and values of all headers behind a column of lists, whatever part of it a run is."""
    return headers.values.field(0), headers.values.field(1)


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    """Bytes of each value of a binary or text array; 0 for null."""
    if not len(array):
        return np.zeros(0, np.int64)
    borders = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)
    lengths = np.diff(borders).astype(np.int64)
    if array.null_count:
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return lengths
