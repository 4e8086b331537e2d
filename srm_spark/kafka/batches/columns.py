"""Arrow's columns of a run as loops take them: where the bytes lie, where each value begins, which are null."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from srm_spark.core.header_names import raw_name
from srm_spark.core.provenance import Header
from srm_spark.core.rows import Run, header_columns, list_begins
from srm_spark.kafka.batches.ways import Way

_OWN: list[Any] = ["C", "W"]
"""The compiled code knows no read-only numbers, and those of Spark's rows are."""


@dataclass(frozen=True)
class Columns:
    """What the loop takes, and what must live until it has ended."""

    keys: Any
    values: Any
    headers: Any
    offsets: Any
    timestamps: Any
    kept: tuple[Any, ...]


def columns_of(run: Run, way: Way) -> Columns:
    """The columns of a run, with the headers that its records get."""
    begins, names, values = _headers(run)
    return Columns(
        _column(run.keys, way),
        _column(run.values, way),
        (way.array(_frozen(begins)), _column(names, way), _column(values, way)),
        way.array(np.require(run.offsets, np.int64, _OWN)),
        way.array(np.require(run.timestamps, np.int64, _OWN)),
        kept=(run, names, values),
    )


def _headers(run: Run) -> tuple[npt.NDArray[np.int32], pa.Array, pa.Array]:
    """Where each record's headers begin among all of them (empty where there are none), their names and values."""
    if run.stamped is not None:
        return _stamped(run.stamped)
    if not run.has_headers:
        return np.zeros(0, np.int32), pa.nulls(0, pa.binary()), pa.nulls(0, pa.binary())
    return list_begins(run.headers), *header_columns(run.headers)


def _stamped(lists: list[list[Header]]) -> tuple[npt.NDArray[np.int32], pa.Array, pa.Array]:
    begins = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(headers) for headers in lists], out=begins[1:])
    pairs = list(itertools.chain.from_iterable(lists))
    names = pa.array([raw_name(name) for name, _ in pairs], pa.binary())
    return begins, names, pa.array([value for _, value in pairs], pa.binary())


def _column(array: pa.Array, way: Way) -> tuple[Any, Any, Any]:
    _, borders, content = array.buffers()
    view = memoryview(content).cast("B") if content is not None and content.size else memoryview(b"")
    base, (place,) = way.memory([view])
    assert place == 0
    begins = np.frombuffer(borders, np.int32, len(array) + 1, 4 * array.offset) if len(array) else np.zeros(1, np.int32)
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else np.zeros(0, np.bool_)
    return base, way.array(_frozen(begins)), way.array(nulls)


def _frozen(begins: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Read-only, as most of Arrow's buffers are: the compiled code knows no other kind."""
    begins.flags.writeable = False
    return begins
