"""Takes batches apart: their records as runs of Arrow's columns. No object per record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import MAGIC
from srm_spark.core.rows import Run
from srm_spark.errors import CodecError
from srm_spark.kafka.batches import loop_fields
from srm_spark.kafka.batches.sources import Group, Groups, Part, arena, broken
from srm_spark.kafka.batches.ways import Way, best

_HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))


class Broken(CodecError):
    """A batch that is damaged, with everything in front of it unpacked."""

    def __init__(self, at: int, sentence: str, *, is_time: bool = False) -> None:
        super().__init__(sentence)
        self.at = at
        """The first offset of it that was wanted."""
        self.is_time = is_time
        """Nothing but a timestamp is strange, which may be as its producer wanted it."""


def unpack(
    partition: TopicPartition, parts: Sequence[Part], start: int, end: int, *, way: Way | None = None
) -> Iterator[Run]:
    """The records of consecutive batches at offsets `start` to before `end`, some batches at a time.

    Control batches, and those that are said to have no records, are passed over. Raises Broken for a batch that is
    damaged, CodecError for one of an old format.
    """
    wanted = [part for part in parts if part[0].records and not part[0].is_control]
    if (old := next((batch for batch, _ in wanted if batch.magic != MAGIC), None)) is not None:
        raise CodecError(f"{partition}: the batch at offset {old.base_offset} has message format {old.magic}")
    way = way or best()
    with arena() as memory:
        groups = Groups(way, wanted, memory)
        found = iter(groups)
        while True:
            try:
                group = next(found)
            except StopIteration:
                return
            except CodecError as error:
                assert groups.broken is not None
                raise Broken(max(start, groups.broken.base_offset), f"{partition}: {error}") from error
            # What is yielded is copied out of the arena, which others may use until the next one is asked for.
            yield from _runs(partition, group, start, end, way)


def _runs(partition: TopicPartition, group: Group, start: int, end: int, way: Way) -> Iterator[Run]:
    unpacking = _Unpacking(partition, group, way)
    totals, code = unpacking.measure(start, end)
    batch = group.batch(totals[loop_fields.BATCH])
    if code == loop_fields.DONE:
        yield from unpacking.filled()
        return
    sentence = broken(partition, batch, code, batch.base_offset + totals[loop_fields.BEHIND])
    if before := totals[loop_fields.BATCH]:
        sound = _Unpacking(partition, group, way, before)
        sound.measure(start, end)
        yield from sound.filled()
    raise Broken(max(start, batch.base_offset), sentence, is_time=code == loop_fields.BAD_TIME)


class _Columns:
    """A column of binary values that a loop fills."""

    def __init__(self, count: int, size: int) -> None:
        self._begins = np.zeros(count + 1, np.int32)
        self._there = np.ones(count, np.uint8)
        self._content = np.empty(size, np.uint8)

    def arrays(self, way: Way) -> tuple[Any, ...]:
        """What the loop takes."""
        return way.array(self._begins), way.array(self._there), way.array(self._content)

    def array(self) -> pa.Array:
        """The values."""
        nulls = None if self._there.all() else pa.py_buffer(np.packbits(self._there, bitorder="little"))
        buffers = [nulls, pa.py_buffer(self._begins), pa.py_buffer(self._content)]
        return pa.Array.from_buffers(pa.binary(), len(self._there), buffers)


class _Unpacking:
    """The two loops over the first batches of a group, or all of them."""

    def __init__(self, partition: TopicPartition, group: Group, way: Way, count: int | None = None) -> None:
        self._partition, self._group, self._way = partition, group, way
        self._table = group.table[:count] if count is not None else group.table
        self._fields = way.array(np.zeros(loop_fields.FIELDS, np.int64))
        self._limits = way.array(np.zeros(2, np.int64))
        self._totals = np.zeros(loop_fields.TOTALS, np.int64)

    def measure(self, start: int, end: int) -> tuple[list[int], int]:
        """What the records in a range take, and what is wrong with one of them."""
        self._limits = self._way.array(np.array([start, end], np.int64))
        self._totals[:] = 0
        totals = self._way.array(self._totals)
        code = self._way.measure(self._group.base, self._table, self._limits, totals, self._fields)
        return self._totals.tolist(), code

    def filled(self) -> Iterator[Run]:
        """What was measured, where that is anything."""
        rows, keys, values, headers, names, contents, *_ = self._totals.tolist()
        if not rows:
            return
        offsets, times, lists = np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows + 1, np.int32)
        columns = _Columns(rows, keys), _Columns(rows, values), _Columns(headers, names), _Columns(headers, contents)
        key, value, name, content = (column.arrays(self._way) for column in columns)
        array = self._way.array
        code = self._way.fill(
            self._group.base,
            self._table,
            self._limits,
            self._fields,
            array(offsets),
            array(times),
            key,
            value,
            array(lists),
            name,
            content,
        )
        assert code == loop_fields.DONE
        yield Run(
            self._partition,
            offsets,
            times,
            columns[0].array(),
            columns[1].array(),
            _lists(lists, columns[2].array(), columns[3].array()),
        )


def _lists(begins: npt.NDArray[np.int32], names: pa.Array, values: pa.Array) -> pa.Array:
    if not len(names):
        return pa.nulls(len(begins) - 1, _HEADERS)
    return pa.ListArray.from_arrays(pa.array(begins), pa.StructArray.from_arrays([names, values], ["key", "value"]))
