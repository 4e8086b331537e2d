"""The offset map of a partition as rows of a table, for SQL: every source offset that is known lies in one row. No I/O.

```
source   0 1 2 3 4  M  5 …        rows (source_start, source_end, target_start, records)
         │ │ │ │ │     │            (0, 5, 0, 5)   five records
target   0 1 2 3 4     5            (5, 6, 5, 0)   no record: a consumer goes on at 5
                                    (6, 7, 5, 1)
```

An offset that lies in no row is unknown. A partition that has never held a record is one row without offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.translation import IntervalMap


class MapRow(NamedTuple):
    """Source offsets from `source_start` up to, not including, `source_end`."""

    source_start: int
    source_end: int
    target_start: int | None
    """Where the first of them lies; of a gap, where a consumer in it goes on. None while that is not known."""
    records: int
    """How many records: all of the offsets, or 0 for a gap."""


class RowChanges(NamedTuple):
    """What turns the rows of a partition into newer ones; `source_start` tells them apart."""

    put: list[MapRow]
    gone: list[int]


def rows(part: IntervalMap) -> Iterator[MapRow]:
    """The rows of one part, in order."""
    at = part.source.start
    for interval in part.intervals:
        if at < interval.upstream:
            yield MapRow(at, interval.upstream, interval.downstream, 0)
        yield MapRow(interval.upstream, interval.upstream_end, interval.downstream, interval.count)
        at = interval.upstream_end
    if at < part.source.end or not part.intervals:
        yield MapRow(at, part.source.end, part.target_end, 0)


def row_changes(older: PartitionMap, newer: PartitionMap) -> RowChanges:
    """How the rows change. Only parts that differ are looked into, so a large map costs little."""
    came, went = newer.difference(older)
    before, now = _by_start(went), _by_start(came)
    if older.topic_id != newer.topic_id:  # every row names it
        return RowChanges(list(now.values()), [start for start in before if start not in now])
    return RowChanges(
        [row for start, row in now.items() if before.get(start) != row],
        [start for start in before if start not in now],
    )


def _by_start(parts: Iterable[IntervalMap]) -> dict[int, MapRow]:
    return {row.source_start: row for part in parts for row in rows(part)}
