"""Rows go between Arrow and Spark as they are, by the way that the Spark at hand has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date, datetime, timezone
from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from srm_spark.spark.arrow import collected, frame_of, run_with

MOMENT = datetime(2026, 11, 28, 12, 30, 0, 5, timezone.utc)
SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("number", pa.int64()),
        ("small", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("is_it", pa.bool_()),
        ("several", pa.list_(pa.int64())),
    ]
)
ROWS = [
    {"name": "a", "number": 2**60, "small": 1, "at": MOMENT, "day": date(2026, 11, 28), "is_it": True, "several": [1]},
    dict.fromkeys(SCHEMA.names),
]


@pytest.fixture
def _in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_in_tokyo")
def test_rows_come_back_as_they_went_wherever_this_machine_is(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = frame_of(spark, pa.Table.from_pylist(ROWS, SCHEMA))
    assert (
        frame.where("name = 'a'").selectExpr("unix_micros(at) AS at").collect()[0].at == MOMENT.timestamp() * 1_000_000
    )
    assert collected(frame).to_pylist() == ROWS


def test_a_statement_sees_rows_by_a_view_that_goes_again(spark: SparkSession) -> None:
    views: list[str] = []
    table = pa.Table.from_pylist(ROWS, SCHEMA)

    def select(column: str, view: str) -> str:
        views.append(view)
        return f"SELECT {column} FROM {view}"

    run_with(spark, partial(select, "number"), table)
    with pytest.raises(Exception, match="nothing"):
        run_with(spark, partial(select, "nothing"), table)
    assert [spark.catalog.tableExists(view) for view in views] == [False, False]
