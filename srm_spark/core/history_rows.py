"""Rows of the table of history, as Arrow: one per cell, and one per partition of a metrics topic that says how far it
is counted.

```
grain     kind       day         start                flow  topic        partition  records  …  next_offset  topic_id
minute    partition  2026-11-26  2026-11-26 12:01:00  A->B  orders       3          17
position  position   1970-01-01  1970-01-01 00:00:00        srm-metri…   0                      4711         dG9w…
```

Both are written by one commit: what is counted and how far never differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta, timezone
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from srm_spark.core.history import Cell, Grain, Key, Kind, Series
from srm_spark.core.metrics import Histogram
from srm_spark.core.model import TopicPartition

_LATENCIES = ("replication_latency", "checkpoint_latency")
_MOMENT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("grain", pa.string()),
        ("kind", pa.string()),
        ("day", pa.date32()),
        ("start", _MOMENT),
        ("flow", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("group", pa.string()),
        ("newest", _MOMENT),
        ("seconds", pa.float64()),
        ("records", pa.int64()),
        ("bytes", pa.int64()),
        *(
            (f"{latency}_{part}", kind)
            for latency in _LATENCIES
            for part, kind in (
                ("count", pa.int64()),
                ("total", pa.float64()),
                ("least", pa.float64()),
                ("most", pa.float64()),
                ("counts", pa.list_(pa.int64())),
            )
        ),
        ("lag_at", _MOMENT),
        ("lag_records", pa.int64()),
        ("lag_seconds", pa.float64()),
        ("next_offset", pa.int64()),
        ("topic_id", pa.string()),
    ]
)
"""Times are moments in UTC; latencies milliseconds, `counts` those of the buckets of a histogram (docs/metrics.md)."""
PARTITIONED_BY = ("grain", "kind", "day")
POSITION = "position"
"""Grain and kind of the rows that say how far is counted."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY_MS = Grain.DAY.ms
_FIELDS = ("newest", "seconds", "records", "bytes", "lag_at", "lag_records", "lag_seconds")
_PARTS = ("counts", "total", "least", "most")
_GRAINS, _KINDS = {one.value: one for one in Grain}, {one.value: one for one in Kind}
_NONE = Histogram()


class Position(NamedTuple):
    """How far a partition of a metrics topic is counted."""

    next_offset: int
    topic_id: str | None
    """Of the topic that was read; None where the cluster has no ids."""


def moment(at: int) -> datetime:
    """Milliseconds since the epoch, in UTC."""
    return _EPOCH + timedelta(milliseconds=at)


def day_of(at: int) -> date:
    """The day of a moment, in UTC."""
    return moment(at).date()


def table_of(cells: Mapping[Key, Cell], positions: Mapping[TopicPartition, Position]) -> pa.Table:
    """The rows of both."""
    columns: dict[str, list[Any]] = {
        "grain": [key.grain.value for key in cells],
        "kind": [key.series.kind.value for key in cells],
        "day": [key.start // _DAY_MS for key in cells],
        "start": [key.start for key in cells],
        "flow": [key.series.flow for key in cells],
        "topic": [key.series.topic for key in cells],
        "partition": [key.series.partition for key in cells],
        "group": [key.series.group for key in cells],
        **{name: [getattr(cell, name) for cell in cells.values()] for name in _FIELDS},
    }
    for latency in _LATENCIES:
        told = [getattr(cell, latency) if getattr(cell, latency).count else None for cell in cells.values()]
        columns[f"{latency}_count"] = [one and one.count for one in told]
        for part in ("total", "least", "most", "counts"):
            columns[f"{latency}_{part}"] = [one and getattr(one, part) for one in told]
    rows = _table(columns, len(cells))
    return pa.concat_tables([rows, _positions(positions)]) if positions else rows


def _positions(positions: Mapping[TopicPartition, Position]) -> pa.Table:
    count = len(positions)
    columns: dict[str, list[Any]] = {
        "grain": [POSITION] * count,
        "kind": [POSITION] * count,
        "day": [0] * count,
        "start": [0] * count,
        "topic": [partition.topic for partition in positions],
        "partition": [partition.partition for partition in positions],
        "next_offset": [position.next_offset for position in positions.values()],
        "topic_id": [position.topic_id for position in positions.values()],
    }
    return _table(columns, count)


def _table(columns: Mapping[str, list[Any]], count: int) -> pa.Table:
    """Of columns that are there; times are in milliseconds, and days since the epoch."""
    return pa.Table.from_arrays(
        [_array(columns.get(field.name, [None] * count), field.type) for field in SCHEMA], schema=SCHEMA
    )


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == _MOMENT:  # by way of numbers: a datetime for each would take most of the time
        return pa.array(values, pa.timestamp("ms", tz="UTC")).cast(_MOMENT)
    return pa.array(values, pa.int32()).cast(kind) if kind == pa.date32() else pa.array(values, kind)


def cells_in(table: pa.Table) -> Iterator[tuple[Key, Cell]]:
    """The cells of such rows; several may lie at the same place."""
    rows = table.filter(pc.field("grain") != POSITION)
    names = ("grain", "start", "kind", "flow", "topic", "partition", "group")
    keys = zip(*(_values(rows, name) for name in names), strict=True)
    histograms = (map(_histogram, *(_values(rows, f"{name}_{part}") for part in _PARTS)) for name in _LATENCIES)
    fields = (_values(rows, name) for name in _FIELDS)
    cells = zip(*fields, *histograms, strict=True)
    for (grain, start, kind, *series), cell in zip(keys, cells, strict=True):
        newest, seconds, records, size, lag_at, lag_records, lag_seconds, copies, checkpoints = cell
        key = Key(_GRAINS[grain], start, Series(_KINDS[kind], *series))
        yield key, Cell(newest, seconds, records, size, copies, checkpoints, lag_at, lag_records, lag_seconds)


def positions_in(table: pa.Table) -> dict[TopicPartition, Position]:
    """How far is counted, of such rows."""
    return {
        TopicPartition(row["topic"], row["partition"]): Position(row["next_offset"], row["topic_id"])
        for row in table.filter(pc.field("grain") == POSITION).to_pylist()
    }


def _values(rows: pa.Table, name: str) -> list[Any]:
    """A column; times in milliseconds."""
    column = rows[name]
    if pa.types.is_timestamp(column.type):
        column = pc.divide(column.cast(_MOMENT).cast(pa.int64()), 1000)
    found: list[Any] = column.to_pylist()
    return found


def _histogram(counts: list[int] | None, total: float | None, least: float | None, most: float | None) -> Histogram:
    return _NONE if counts is None or total is None else Histogram(tuple(counts), total, least, most)
