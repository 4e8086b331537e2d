"""Arrow batches as Spark's Kafka source sends them to a Python worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from srm_spark.core.rows import COLUMNS, Headers, Run, runs_of

ArrowRow = tuple[str, int, int, int, bytes | None, bytes | None, Headers | None]
"""Topic, partition, offset, timestamp in ms, key, value, headers."""


def arrow_batch(rows: Sequence[ArrowRow]) -> pa.RecordBatch:
    """One batch of `COLUMNS`."""
    types: list[Any] = [
        pa.string(),
        pa.int32(),
        pa.int64(),
        pa.timestamp("us", "UTC"),
        pa.binary(),
        pa.binary(),
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    ]
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in COLUMNS]
    columns[3] = [stamp * 1000 for stamp in columns[3]]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(COLUMNS))


def run_of(
    offsets: Sequence[int],
    *,
    timestamps: Sequence[int] | None = None,
    keys: Sequence[bytes | None] | None = None,
    values: Sequence[bytes | None] | None = None,
    headers: Sequence[Headers | None] | None = None,
) -> Run:
    """The only run of a batch of one partition."""
    count = len(offsets)
    rows: list[ArrowRow] = [
        ("t", 0, offset, stamp, key, value, header)
        for offset, stamp, key, value, header in zip(
            offsets,
            timestamps or [1] * count,
            keys or [b"k"] * count,
            values or [b"v"] * count,
            headers or [None] * count,
            strict=True,
        )
    ]
    (run,) = runs_of(arrow_batch(rows))
    return run
