"""The Delta table of one flow's offset map. A row is a stretch of source offsets, see `srm_spark.core.map_rows`.

A flow has one owner and a table of its own, so no two writers ever meet.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from srm_spark.core.model import Flow
from srm_spark.errors import StateFailed
from srm_spark.spark import SparkSession
from srm_spark.spark.arrow import frame_of, run_with

SETTINGS = {
    # For this small table Delta would read its log in 50 tasks, sort changes into 200, and VACUUM list files in 10 000.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
}
"""SQL settings of the session that writes."""
PROPERTIES = {
    # What changed is written again every minute, and nobody asks what the map was last week.
    "delta.logRetentionDuration": "interval 1 day",
    "delta.deletedFileRetentionDuration": "interval 1 day",
}
ROWS_PER_WRITE = 500_000
"""Bounds the driver's memory at the first write of a map with many gaps."""
_SCHEMA = pa.schema(
    [
        ("flow", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("source_start", pa.int64()),
        ("source_end", pa.int64()),
        ("target_start", pa.int64()),
        ("records", pa.int64()),
    ]
)
_IS_GONE = pa.field("is_gone", pa.bool_())


class TableRow(NamedTuple):
    """One row of the table but for the flow. One that goes is known by its partition and `source_start`."""

    topic: str
    partition: int
    topic_id: str | None
    source_start: int
    source_end: int | None = None
    target_start: int | None = None
    records: int | None = None


class OffsetMapTable:
    """Writes the table of one flow; what Spark or Delta refuses is raised as it comes."""

    def __init__(self, session: SparkSession, flow: Flow, path: str, *, rows_per_write: int = ROWS_PER_WRITE) -> None:
        """`session` has `SETTINGS`; `path` is a folder or a URI that driver and executors reach."""
        self.path = path
        self._rows_per_write = rows_per_write
        self._session = session
        self._flow = str(flow)
        self._name = f"delta.`{path.replace('`', '``')}`"

    def is_there(self) -> bool:
        """Whether there is a table that can be changed."""
        try:
            _ = self._session.table(self._name).schema  # unlike DESCRIBE DETAIL reads no list of files: no Spark job
        except Exception:  # whatever it is: writing the whole table mends it, or says why not
            return False
        return True

    def replace(self, rows: Iterable[TableRow]) -> None:
        """Write the whole table anew; older rows are never read, so their files may be damaged or gone."""
        mode = "overwrite"
        for part in _cut(rows, self._rows_per_write, at_least_one=True):
            writer = frame_of(self._session, self._arrow(part)).coalesce(1).write.format("delta").mode(mode)
            if mode == "overwrite":
                writer = writer.option("overwriteSchema", "true").options(**PROPERTIES)
            writer.save(self.path)
            mode = "append"

    def merge(self, put: Iterable[TableRow], gone: Iterable[TableRow]) -> None:
        """Add or change the rows `put`, and remove the rows `gone`."""
        for is_gone, rows in ((True, gone), (False, put)):
            for part in _cut(rows, self._rows_per_write):
                table = self._arrow(part).append_column(_IS_GONE, pa.array([is_gone] * len(part)))
                run_with(self._session, self._merging, table)

    def _merging(self, changes: str) -> str:
        return (
            f"MERGE INTO {self._name} AS t USING {changes} AS c "
            "ON t.topic = c.topic AND t.`partition` = c.`partition` AND t.source_start = c.source_start "
            "WHEN MATCHED AND c.is_gone THEN DELETE WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED AND NOT c.is_gone THEN INSERT *"
        )

    def tidy(self) -> None:
        """Put small files together and remove those that nobody needs any more."""
        self._session.sql(f"OPTIMIZE {self._name}")
        self._session.sql(f"VACUUM {self._name}")

    def _arrow(self, rows: Sequence[TableRow]) -> pa.Table:
        columns = zip(*rows, strict=True) if rows else ([] for _ in TableRow._fields)
        arrays = [pa.array([self._flow] * len(rows), pa.string())]
        arrays += [pa.array(list(column), of.type) for column, of in zip(columns, list(_SCHEMA)[1:], strict=True)]
        return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def own_folder(path: str) -> None:
    """Make a folder that nobody else may write to, below the temporary one. Raises StateFailed where others own it."""
    folder = Path(path)
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise StateFailed(f"{path} belongs to somebody else; set state.path to a folder of your own")


def first_line(error: Exception) -> str:
    """What an error says, without the stack behind it and without Py4J's own words in front of it."""
    lines = [line.removeprefix(": ") for line in (str(error) or repr(error)).strip().splitlines()]
    return lines[1] if len(lines) > 1 and lines[0].startswith("An error occurred while calling") else lines[0]


def _cut(rows: Iterable[TableRow], most: int, *, at_least_one: bool = False) -> Iterator[list[TableRow]]:
    left = iter(rows)
    part = list(islice(left, most))
    if part or at_least_one:
        yield part
    while part := list(islice(left, most)):
        yield part
