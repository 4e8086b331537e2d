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
_Row = dict[str, Any]


class Position(NamedTuple):
    """How far a partition of a metrics topic is counted."""

    next_offset: int
    topic_id: str | None
    """Of the topic that was read; None where the cluster has no ids."""


def moment(at: int) -> datetime:
    """Milliseconds since the epoch, in UTC."""
    return _EPOCH + timedelta(milliseconds=at)


def milliseconds(at: datetime) -> int:
    """The other way round."""
    return (at - _EPOCH) // timedelta(milliseconds=1)


def day_of(at: int) -> date:
    """The day of a moment, in UTC."""
    return moment(at).date()


def table_of(cells: Mapping[Key, Cell], positions: Mapping[TopicPartition, Position]) -> pa.Table:
    """The rows of both."""
    rows = [_cell_row(key, cell) for key, cell in cells.items()]
    rows += [_position_row(partition, position) for partition, position in positions.items()]
    return pa.Table.from_pylist(rows, SCHEMA)


def cells_in(table: pa.Table) -> Iterator[tuple[Key, Cell]]:
    """The cells of such rows; several may lie at the same place."""
    return ((_key(row), _cell(row)) for row in table.to_pylist() if row["grain"] != POSITION)


def positions_in(table: pa.Table) -> dict[TopicPartition, Position]:
    """How far is counted, of such rows."""
    return {
        TopicPartition(row["topic"], row["partition"]): Position(row["next_offset"], row["topic_id"])
        for row in table.filter(pc.field("grain") == POSITION).to_pylist()
    }


def _cell_row(key: Key, cell: Cell) -> _Row:
    grain, start, series = key
    row: _Row = {
        "grain": grain.value,
        "kind": series.kind.value,
        "day": day_of(start),
        "start": moment(start),
        "flow": series.flow,
        "topic": series.topic,
        "partition": series.partition,
        "group": series.group,
        "newest": moment(cell.newest),
        "seconds": cell.seconds,
        "records": cell.records,
        "bytes": cell.bytes,
        "lag_at": None if cell.lag_at is None else moment(cell.lag_at),
        "lag_records": cell.lag_records,
        "lag_seconds": cell.lag_seconds,
    }
    for name, histogram in zip(_LATENCIES, (cell.replication_latency, cell.checkpoint_latency), strict=True):
        if histogram.count:
            row[f"{name}_count"], row[f"{name}_total"] = histogram.count, histogram.total
            row[f"{name}_least"], row[f"{name}_most"] = histogram.least, histogram.most
            row[f"{name}_counts"] = list(histogram.counts)
    return row


def _position_row(partition: TopicPartition, position: Position) -> _Row:
    return {
        "grain": POSITION,
        "kind": POSITION,
        "day": _EPOCH.date(),
        "start": _EPOCH,
        "topic": partition.topic,
        "partition": partition.partition,
        "next_offset": position.next_offset,
        "topic_id": position.topic_id,
    }


def _key(row: _Row) -> Key:
    series = Series(Kind(row["kind"]), row["flow"], row["topic"], row["partition"], row["group"])
    return Key(Grain(row["grain"]), milliseconds(row["start"]), series)


def _cell(row: _Row) -> Cell:
    return Cell(
        milliseconds(row["newest"]),
        row["seconds"],
        row["records"],
        row["bytes"],
        _histogram(row, "replication_latency"),
        _histogram(row, "checkpoint_latency"),
        None if row["lag_at"] is None else milliseconds(row["lag_at"]),
        row["lag_records"],
        row["lag_seconds"],
    )


def _histogram(row: _Row, name: str) -> Histogram:
    if not row[f"{name}_count"]:
        return Histogram()
    counts = tuple(row[f"{name}_counts"])
    return Histogram(counts, row[f"{name}_total"], row[f"{name}_least"], row[f"{name}_most"])
