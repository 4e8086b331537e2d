"""Rows between Arrow and Spark; before Spark 4 there is no public way, so they go as Python's."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

_HAS_ARROW = hasattr(DataFrame, "toArrow")


def frame_of(session: SparkSession, table: pa.Table) -> DataFrame:
    """A table's rows as Spark has them."""
    if _HAS_ARROW:
        return session.createDataFrame(table)
    return session.createDataFrame(table.to_pylist(), from_arrow_schema(table.schema))


def collected(frame: DataFrame) -> pa.Table:
    """All rows of a frame, in memory."""
    if _HAS_ARROW:
        return frame.toArrow()
    rows = [{name: _in_utc(value) for name, value in row.asDict().items()} for row in frame.collect()]
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(frame.schema))


def run_with(session: SparkSession, statement: Callable[[str], str], table: pa.Table) -> None:
    """Run the statement that is made of the name of a view of these rows, which is there for as long."""
    view = f"srm_{uuid.uuid4().hex}"
    frame_of(session, table).createOrReplaceTempView(view)
    try:
        session.sql(statement(view))
    finally:
        session.catalog.dropTempView(view)


def _in_utc(value: Any) -> Any:
    """A moment that Spark gives in the time of this machine, without saying so."""
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value
