"""Takes one batch apart: its records as a run of Arrow's columns, laid out as those of `kafka/fetched.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import MAGIC, Batch
from srm_spark.core.rows import Run
from srm_spark.errors import CodecError
from srm_spark.kafka.batches import loop_fields
from srm_spark.kafka.batches.sources import arena, broken, plain_records, table_of
from srm_spark.kafka.batches.ways import Way, best

_HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))


def unpack(
    partition: TopicPartition, batch: Batch, data: memoryview, start: int, end: int, *, way: Way | None = None
) -> Run:
    """The records of a batch at offsets `start` to before `end`; none of one that is said to have none.

    `data` begins where the batch does. Raises CodecError for a batch that is damaged, or of an old format.
    """
    if batch.magic != MAGIC:
        raise CodecError(f"{partition}: the batch at offset {batch.base_offset} has message format {batch.magic}")
    if not batch.records or batch.is_control:
        return Run.of(partition, [])
    with arena() as memory:
        try:
            view = plain_records(batch, data, memory)
        except CodecError as error:
            raise CodecError(f"{partition}: {error}") from error
        return _Unpacking(partition, batch, view, way or best()).run(start, end)


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
    """The two loops over one batch."""

    def __init__(self, partition: TopicPartition, batch: Batch, view: memoryview, way: Way) -> None:
        self._partition, self._batch, self._view, self._way = partition, batch, view, way
        self._base, places = way.memory([view])
        self._table = way.array(table_of([batch], [view], places))
        self._fields = way.array(np.zeros(loop_fields.FIELDS, np.int64))

    def run(self, start: int, end: int) -> Run:
        limits = self._way.array(np.array([start, end], np.int64))
        totals = np.zeros(loop_fields.TOTALS, np.int64)
        code = self._way.measure(self._base, self._table, limits, self._way.array(totals), self._fields)
        if code != loop_fields.DONE:
            behind = self._batch.base_offset + int(totals[loop_fields.BEHIND])
            raise CodecError(broken(self._partition, self._batch, code, behind))
        return self._filled(limits, totals.tolist())

    def _filled(self, limits: Any, totals: list[int]) -> Run:
        rows, keys, values, headers, names, contents, _ = totals
        offsets, times, lists = np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows + 1, np.int32)
        columns = _Columns(rows, keys), _Columns(rows, values), _Columns(headers, names), _Columns(headers, contents)
        key, value, name, content = (column.arrays(self._way) for column in columns)
        array = self._way.array
        code = self._way.fill(
            self._base,
            self._table,
            limits,
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
        return Run(
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
