"""Batches as they were fetched, made ready for a loop: decompressed, and what their headers say as a table."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import HEADER_BYTES, Batch
from srm_spark.errors import CodecError
from srm_spark.kafka.batches import loop_fields
from srm_spark.kafka.batches.codecs import NONE, decompress_into
from srm_spark.kafka.batches.skimming import Skimmed
from srm_spark.kafka.batches.ways import Way

MOST_BYTES = 134_217_728
"""No batch has more when it is decompressed: one that has is taken for damaged, and costs no more memory than that."""
_GROUP_BYTES = 1_048_576
"""So much is decompressed before it is packed; it stays in the processor's cache."""
_KEPT_BYTES = 16_777_216
"""A thread keeps memory for so much."""

Part = tuple[Batch, memoryview]
"""A batch that was fetched, and its bytes, which begin where it does."""
Source = Part | Skimmed


class _Arena(threading.local):
    memory: memoryview | None = None
    is_large = False
    """Much of it was written to."""


_arena = _Arena()


@contextmanager
def arena() -> Iterator[memoryview]:
    """Where this thread decompresses. Pages that nobody wrote to take no memory; where many were, it is let go."""
    if _arena.memory is None:
        _arena.memory = np.empty(MOST_BYTES, np.uint8).data
    try:
        yield _arena.memory
    finally:
        if _arena.is_large:
            _arena.memory, _arena.is_large = None, False


def plain_records(batch: Batch, data: memoryview, memory: memoryview) -> memoryview:
    """The records of a batch, decompressed into a part of the arena where they are compressed. Raises CodecError."""
    if len(data) < batch.size or batch.size < HEADER_BYTES:
        raise CodecError(f"the batch at offset {batch.base_offset} has {len(data)} bytes instead of {batch.size}")
    records = data[HEADER_BYTES : batch.size]
    if batch.codec == NONE:
        return records
    try:
        view = memory[: decompress_into(batch.codec, records, memory)]
    except CodecError as error:
        _arena.is_large = True
        raise CodecError(f"the batch at offset {batch.base_offset}: {error}") from error
    _arena.is_large |= len(view) > _KEPT_BYTES
    return view


def table_of(batches: Sequence[Batch], views: Sequence[memoryview], places: Sequence[int]) -> npt.NDArray[np.int64]:
    """What loops need to know of batches whose records are `views`."""
    rows = [
        (
            place,
            place + len(view),
            batch.base_offset,
            batch.base_timestamp,
            batch.max_timestamp if batch.is_append_time else loop_fields.NO_STAMP,
            batch.records,
            batch.last_delta,
        )
        for batch, view, place in zip(batches, views, places, strict=True)
    ]
    return np.array(rows, np.int64)


def broken(partition: TopicPartition, batch: Batch, code: int, behind: int) -> str:
    """What is wrong with a batch, and where in it."""
    where = f"{partition}: the batch at offset {batch.base_offset} cannot be read from offset {behind} on"
    return f"{where}: {loop_fields.MEANINGS[code]}"


@dataclass(frozen=True)
class Group:
    """Batches whose records lie in memory as they are."""

    batch: Callable[[int], Batch]
    """By its row."""
    base: Any
    table: Any
    views: Sequence[memoryview]
    """Kept while the loop reads."""
    ratio: float
    """How many times smaller they were in the log."""


class Groups:
    """Batches, decompressed some at a time. Raises CodecError at one that is damaged, behind the ones before it."""

    def __init__(self, way: Way, parts: Sequence[Source], memory: memoryview) -> None:
        self._way, self._parts, self._memory = way, parts, memory
        self.broken: Batch | None = None

    def __iter__(self) -> Iterator[Group]:
        used = 0
        batches: list[Batch] = []
        views: list[memoryview] = []
        for part in self._parts:
            if batches and (isinstance(part, Skimmed) or used >= _GROUP_BYTES):
                yield self._group(batches, views)
                batches, views, used = [], [], 0
            if isinstance(part, Skimmed):
                yield self._skimmed(part)
                continue
            batch, data = part
            try:
                view = plain_records(batch, data, self._memory[used:])
            except CodecError:
                if batches:
                    yield self._group(batches, views)
                self.broken = batch
                raise
            used += len(view) if batch.codec != NONE else 0
            batches.append(batch)
            views.append(view)
        if batches:
            yield self._group(batches, views)

    def _group(self, batches: list[Batch], views: list[memoryview]) -> Group:
        base, places = self._way.memory(views)
        table = self._way.array(table_of(batches, views, places))
        ratio = sum(map(len, views)) / max(1, sum(batch.size - HEADER_BYTES for batch in batches))
        return Group(batches.__getitem__, base, table, views, ratio)

    def _skimmed(self, part: Skimmed) -> Group:
        base, _ = self._way.memory([part.data])
        return Group(part.batch, base, self._way.array(part.table), [part.data], 1.0)
