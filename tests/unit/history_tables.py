"""Tables of history that are written without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from deltalake import write_deltalake

from srm_spark.core.history import Gathered, MetricsRecord
from srm_spark.core.history_rows import PARTITIONED_BY, Position, table_of
from srm_spark.core.metrics import Sample, encode
from srm_spark.core.model import TopicPartition

_LATER = 2**42


def write(folder: Path, samples: Iterable[Sample], target: str = "B") -> None:
    """Add what samples come to; no two calls may tell of the same bucket."""
    made = Gathered()
    made.add((MetricsRecord("m", 0, 0, one.at, *encode(one)) for one in samples), _LATER)
    rows = table_of(made.cells, {TopicPartition("m", 0): Position(1, None)})
    write_deltalake(folder / target, rows, partition_by=list(PARTITIONED_BY), mode="append")
