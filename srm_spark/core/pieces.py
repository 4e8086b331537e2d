"""A log as it is read to be compared: record by record, or as batches that nobody has looked into yet.

Two batches that were copied whole have the same bytes behind their headers, so nobody needs the records inside. Where
that is not so, both are opened and compared in columns, and only what is not equal there becomes records:

```
Sealed == Sealed          a comparison of bytes, for as many records as a producer has packed
Run == Run                of Arrow's columns
TailRecord, TailRecord    whatever has to be looked at
```
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import pyarrow as pa

from srm_spark.core.record_batch import MAGIC, Batch
from srm_spark.core.rows import Run, list_begins
from srm_spark.core.tail import TailRecord

END = 2**63
"""The offset of what stands behind its last record."""
_LISTED = 256
"""Records of a run that become objects at a time."""


@dataclass(frozen=True)
class Sealed:
    """A batch, and what of it is wanted."""

    batch: Batch
    content: memoryview
    """Everything behind its header."""
    start: int
    end: int
    """Offsets from `start` to before `end` are wanted."""
    opened: Callable[[], Iterable[Run]]
    """The wanted records."""

    @property
    def is_whole(self) -> bool:
        """Whether all of it is wanted, and its records lie side by side."""
        batch = self.batch
        is_inside = self.start <= batch.base_offset and batch.end <= self.end
        return is_inside and batch.magic == MAGIC and batch.records == batch.last_delta + 1

    def is_like(self, other: Sealed) -> bool:
        """Whether it has the same records, byte for byte, and the same times; both are whole."""
        mine, theirs = self.batch, other.batch
        if (mine.records, mine.codec, mine.base_timestamp, mine.max_timestamp) != (
            theirs.records,
            theirs.codec,
            theirs.base_timestamp,
            theirs.max_timestamp,
        ):
            return False
        if mine.is_append_time or theirs.is_append_time:
            return False  # the times of its records are not those in its bytes
        return bool(pa.py_buffer(self.content).equals(pa.py_buffer(other.content)))


Piece = Sealed | TailRecord


def size_of(piece: Piece | Run) -> int:
    """Bytes that it takes, about."""
    if isinstance(piece, Sealed):
        return piece.batch.size
    if isinstance(piece, Run):
        return piece.bytes
    headers = sum(len(name) + len(value or b"") for name, value in piece.headers)
    return len(piece.key or b"") + len(piece.value or b"") + headers


def count_of(piece: Piece | Run) -> int:
    """Records, about: of a batch, all that it says it has."""
    if isinstance(piece, Sealed):
        return piece.batch.records
    return piece.count if isinstance(piece, Run) else 1


class Cursor:
    """Where somebody stands in a log, in front of one record, or behind all of them."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._pieces = iter(pieces)
        self.sealed: Sealed | None = None
        """A whole batch in front of whose first record it stands, unless somebody has opened it."""
        self._single: TailRecord | None = None
        self._runs: deque[Run] = deque()
        self._run: Run | None = None
        self._at = 0
        """The next one in the run."""
        self._listed: list[TailRecord] = []
        self._listed_at = 0
        """The place in the run of the first one that is listed."""
        self._is_append_time = False
        self.offset = END
        """Of the next record."""
        self._load()

    @property
    def is_over(self) -> bool:
        """Whether there is no record any more."""
        return self.offset == END

    def take(self) -> TailRecord:
        """The next record, and stand behind it; `is_over` says whether there is one."""
        if self._single is not None:
            record, self._single = self._single, None
            self._load()
            return record
        run = self.ahead()
        assert run is not None
        if not self._listed_at <= self._at < self._listed_at + len(self._listed):
            self._listed_at = self._at
            self._listed = _records(run.slice(self._at, min(self._at + _LISTED, run.count)), self._is_append_time)
        record = self._listed[self._at - self._listed_at]
        self.skip(1)
        return record

    def ahead(self) -> Run | None:
        """The run whose records are next, from `at` on; opens a batch. None for a single record."""
        if self.sealed is not None:
            sealed, self.sealed = self.sealed, None
            self._open(sealed)
        return self._run

    @property
    def at(self) -> int:
        """Where in that run it stands."""
        return self._at

    @property
    def is_append_time(self) -> bool:
        """Whether the times of that run are the broker's."""
        return self._is_append_time

    def skip(self, count: int) -> None:
        """Stand behind so many records of the run, or behind a whole batch that is still sealed."""
        if self.sealed is not None:
            assert count == self.sealed.batch.records
            self.sealed = None
            self._load()
            return
        assert self._run is not None
        self._at += count
        if self._at < self._run.count:
            self.offset = int(self._run.offsets[self._at])
        else:
            self._next_run()

    def _load(self) -> None:
        """Stand in front of the next piece that has a record."""
        for piece in self._pieces:
            if isinstance(piece, TailRecord):
                self._single, self.offset = piece, piece.offset
                return
            if piece.is_whole:
                self.sealed, self.offset = piece, piece.batch.base_offset
                return
            self._open(piece)
            if self._run is not None:
                return
        self.offset = END

    def _open(self, sealed: Sealed) -> None:
        self._is_append_time = sealed.batch.is_append_time
        self._runs = deque(run for run in sealed.opened() if run.count)
        self._run, self._at, self._listed = None, 0, []
        if self._runs:
            self._run = self._runs.popleft()
            self.offset = int(self._run.offsets[0])

    def _next_run(self) -> None:
        self._run, self._at, self._listed = None, 0, []
        if self._runs:
            self._run = self._runs.popleft()
            self.offset = int(self._run.offsets[0])
        else:
            self._load()


def equal_ahead(here: Cursor, there: Cursor, most: int) -> int:
    """How many of the next `most` offsets of both logs hold equal records, side by side from here on: those may be
    skipped. 0 where the next two are not equal, or single records.
    """
    one, other = here.sealed, there.sealed
    if one is not None and other is not None and one.batch.records <= most and one.is_like(other):
        return one.batch.records
    mine, theirs = here.ahead(), there.ahead()
    if mine is None or theirs is None:
        return 0
    a, b = here.at, there.at
    count = min(mine.count - a, theirs.count - b, most)
    mine, theirs = mine.slice(a, a + count), theirs.slice(b, b + count)
    is_next = np.diff(mine.offsets) == np.diff(theirs.offsets)
    # A client library sends 0, and -1 is none: both were written with the time of the copy.
    times = (mine.timestamps == theirs.timestamps) | (mine.timestamps == 0) | (mine.timestamps == -1)
    if there.is_append_time:
        times[:] = True
    is_near = mine.offsets - mine.offsets[0] < most
    count = min(_first_false(times), _first_false(is_near), _first_false(is_next) + 1)
    count = _equal_values(mine.keys, theirs.keys, count)
    count = _equal_values(mine.values, theirs.values, count)
    if not (_has_headers(mine) or _has_headers(theirs)):  # an empty list of headers is as good as none
        return count
    return _equal_values(mine.headers, theirs.headers, count)


def _has_headers(run: Run) -> bool:
    if not run.has_headers:
        return False
    begins = list_begins(run.headers)
    return bool(begins[0] < begins[-1])


def _first_false(flags: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    """Where it is; the length where there is none."""
    return len(flags) if flags.all() else int(np.argmin(flags))


def _equal_values(one: pa.Array, other: pa.Array, count: int) -> int:
    """How many of the first `count` are equal from the front on."""
    if one.slice(0, count).equals(other.slice(0, count)):
        return count
    low, high = 0, count - 1  # so many are equal at least, and at most
    while low < high:
        middle = (low + high + 1) // 2
        if one.slice(low, middle - low).equals(other.slice(low, middle - low)):
            low = middle
        else:
            high = middle - 1
    return low


def _records(run: Run, is_append_time: bool) -> list[TailRecord]:
    headers = run.header_lists() if run.has_headers else repeat(None)
    columns = run.offsets.tolist(), run.timestamps.tolist(), run.keys.to_pylist(), run.values.to_pylist(), headers
    rows = zip(*columns, strict=False)  # headers may be without end
    return [
        TailRecord(offset, timestamp, key, value, tuple(named or ()), is_append_time)
        for offset, timestamp, key, value, named in rows
    ]
