"""What Spark says of a pass counts only if all of it has arrived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock, PropertyMock

import pyarrow as pa
import pytest

from srm_spark.errors import SessionEnded
from srm_spark.spark.write import records_at_once, run


def nothing(batches: Iterator[pa.RecordBatch], number: int) -> Iterator[pa.RecordBatch]:
    return batches


def frame(context: MagicMock) -> Any:
    """One whose rows break off without an error, as pyspark's do when the JVM dies while it sends them."""
    made = MagicMock()
    made.coalesce.return_value.mapInArrow.return_value.collect.return_value = []
    made.sparkSession.sparkContext = context
    return made


def test_rows_of_a_spark_that_died_say_nothing() -> None:
    dead = MagicMock()
    type(dead).defaultParallelism = PropertyMock(side_effect=ConnectionRefusedError)
    with pytest.raises(SessionEnded, match="while it told what was written"):
        run(frame(dead), nothing, "a int", 1, (1, 1))


def test_rows_of_a_spark_that_lives_are_all_of_them() -> None:
    assert run(frame(MagicMock()), nothing, "a int", 1, (1, 1)) == []


@pytest.mark.parametrize(
    ("version", "size", "records"),
    [
        ("3.5.9", 16 * 2**20, 16),
        ("4.0.5", 16 * 2**20, 16),
        ("4.0.5", 1000, 1),
        ("4.1.1", 16 * 2**20, 10_000),
        ("4.10.0", 16 * 2**20, 10_000),
        ("3.5.9", 2**31 - 1, 10_000),  # what they weigh is known, so the records are few enough
    ],
)
def test_few_records_at_once_where_spark_does_not_look_at_bytes(version: str, size: int, records: int) -> None:
    assert records_at_once(10_000, size, version) == records
