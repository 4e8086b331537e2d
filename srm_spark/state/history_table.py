"""The Delta table of one target's history: rows of `srm_spark.core.history_rows`, put together by Spark SQL.

A batch of records is one commit, with how far the metrics topics are counted by it. Several writers may meet, of
several services: the one that comes second finds that more is counted than it knew, and its commit fails as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path

import pyarrow as pa

from srm_spark.core.history import Cell, Grain, Key, add_to
from srm_spark.core.history_rows import (
    PARTITIONED_BY,
    POSITION,
    SCHEMA,
    Position,
    cells_in,
    day_of,
    moment,
    positions_in,
    table_of,
)
from srm_spark.core.model import TopicPartition
from srm_spark.spark import SparkSession
from srm_spark.spark.arrow import collected, run_with
from srm_spark.state.map_table import SETTINGS

HISTORY_SETTINGS = {
    **SETTINGS,
    # Spark's own form of a moment has no least and most, by which a reader passes by what it does not want.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""SQL settings of the session that writes."""
HISTORY_PROPERTIES = {
    # Readers of other makers know no deletion vectors; a file is small, and written again where a row of it changes.
    "delta.enableDeletionVectors": "false",
    "delta.checkpointPolicy": "classic",
    "delta.checkpointInterval": "10",
    # Opening it reads the newest checkpoint and what came since, but lists everything that lies there.
    "delta.logRetentionDuration": "interval 1 day",
    # The rows of the current hour and day are written again by every batch; nobody reads a version for an hour.
    "delta.deletedFileRetentionDuration": "interval 1 hour",
}
_TYPES = {
    pa.string(): "STRING",
    pa.date32(): "DATE",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.list_(pa.int64()): "ARRAY<BIGINT>",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
}
HISTORY_COLUMNS = ", ".join(f"`{field.name}` {_TYPES[field.type]}" for field in SCHEMA)
"""As SQL has them."""
_SAME = " AND ".join(
    f"t.`{name}` <=> c.`{name}`" for name in (*PARTITIONED_BY, "start", "flow", "topic", "partition", "group")
)
_KNOWN = pa.schema([("known_offset", pa.int64()), ("known_id", pa.string())])
_UNLESS_OTHERS_WRITE = (
    "WHEN MATCHED AND c.grain = 'position' AND NOT (t.next_offset <=> c.known_offset AND t.topic_id <=> c.known_id) "
    "THEN UPDATE SET next_offset = CAST(raise_error('another writer has counted more') AS BIGINT) "
    "WHEN MATCHED THEN UPDATE SET * "
    "WHEN NOT MATCHED AND c.known_offset IS NOT NULL "
    "THEN INSERT (next_offset) VALUES (CAST(raise_error('another writer has made the table anew') AS BIGINT)) "
    "WHEN NOT MATCHED THEN INSERT *"
)


class HistoryTable:
    """Writes one table; what Spark or Delta refuses is raised as it comes."""

    def __init__(self, session: SparkSession, path: str) -> None:
        """`session` has `HISTORY_SETTINGS`; `path` is a folder that driver and executors reach."""
        self._session = session
        self._path = Path(path)
        self._name = f"delta.`{path.replace('`', '``')}`"

    def make(self) -> None:
        """Make it where it is not there."""
        _remove_empty_log(self._path / "_delta_log")
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in HISTORY_PROPERTIES.items())
        self._do(
            "CREATE TABLE IF NOT EXISTS",
            f"({HISTORY_COLUMNS}) USING DELTA PARTITIONED BY ({', '.join(PARTITIONED_BY)}) "
            f"TBLPROPERTIES ({properties})",
        )

    def positions(self) -> dict[TopicPartition, Position]:
        """How far each partition of the metrics topics is counted."""
        return positions_in(self._read(f"t.grain = '{POSITION}'"))

    def add(
        self,
        cells: Mapping[Key, Cell],
        positions: Mapping[TopicPartition, Position],
        known: Mapping[TopicPartition, Position],
    ) -> None:
        """Add cells, which bring what is counted from `known` to `positions`: all of it, or nothing.

        Raises where something else than `known` is counted: somebody else writes, too.
        """
        where = _where(cells)
        whole = dict(cells)
        add_to(whole, ((key, cell) for key, cell in cells_in(self._read(where)) if key in cells))
        rows = table_of(whole, positions)
        before = [None] * len(whole) + [known.get(partition) for partition in positions]
        rows = rows.append_column(_KNOWN.field(0), pa.array([one and one.next_offset for one in before], pa.int64()))
        rows = rows.append_column(_KNOWN.field(1), pa.array([one and one.topic_id for one in before], pa.string()))
        rest = f"{_SAME} AND {where} {_UNLESS_OTHERS_WRITE}"
        run_with(self._session, lambda changes: f"MERGE INTO {self._name} AS t USING {changes} AS c ON {rest}", rows)

    def forget(self, before: date) -> None:
        """Remove the days before this one."""
        self._do("DELETE FROM", f"WHERE day < DATE'{before}' AND grain <> '{POSITION}'")

    def tidy(self, since: date) -> None:
        """Put small files of the days since this one together, and remove those that nobody needs any more."""
        self._do("OPTIMIZE", f"WHERE day >= DATE'{since}'")
        self._do("VACUUM")

    def _do(self, verb: str, rest: str = "") -> None:
        self._session.sql(f"{verb} {self._name} {rest}")

    def _read(self, where: str) -> pa.Table:
        return collected(self._session.table(self._name).alias("t").where(where))


def _remove_empty_log(log: Path) -> None:
    """A batch that was writing when its table was deleted leaves a log without a commit: Delta makes no table where one
    is, and finds none in it. No file is ever removed."""
    folders = list(os.walk(log, topdown=False))
    if not any(files for _, _, files in folders):
        for folder, _, _ in folders:
            with suppress(OSError):  # somebody else writes there by now
                os.rmdir(folder)


def _where(keys: Collection[Key]) -> str:
    """Where cells and positions lie, so that Delta reads no other file: by days, and by when buckets begin.

    Conditions of a file's partition do no good between OR, so that these ranges are of all grains together.
    """
    days = ", ".join(f"DATE'{day}'" for day in sorted({day_of(0), *(day_of(key.start) for key in keys)}))
    ranges = [f"t.`start` = {_literal(0)}"]
    for grain in Grain:
        starts = [key.start for key in keys if key.grain is grain]
        if starts:
            ranges.append(f"t.`start` BETWEEN {_literal(min(starts))} AND {_literal(max(starts))}")
    return f"t.day IN ({days}) AND ({' OR '.join(ranges)})"


def _literal(at: int) -> str:
    return f"TIMESTAMP'{moment(at).isoformat(sep=' ')}'"
