"""Runs a write task over a DataFrame on the executors and brings its report rows back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark import __version__ as pyspark_version
from pyspark.sql import DataFrame, SparkSession

from srm_spark.errors import SessionEnded, TargetWriteFailed
from srm_spark.failure import CrossedFailure, crossing
from srm_spark.spark.session import is_alive, is_connect

log = logging.getLogger(__name__)

_BOUNDS_BYTES = (4, 1)
"""Spark of before knows no bound of bytes for an Arrow batch (SPARK-51316)."""
_NO_BOUND = 2**31 - 1
_LARGE_RECORD = 2**20
"""What a record is taken to weigh there, in bytes, before it is known; larger ones are few."""

ArrowTask = Callable[[Iterator[pa.RecordBatch], int], Iterator[pa.RecordBatch]]
"""Takes the rows of one task and the task's number within its batch."""


@dataclass(frozen=True)
class FirstAttempt:
    """Lets a task run once: a second attempt cannot know what the first one wrote."""

    task: ArrowTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is not None and context.attemptNumber():
            raise CrossedFailure(
                TargetWriteFailed(
                    "a task or its executor died, and Spark runs it again; what the first attempt wrote is not known, "
                    "so the flow starts again from its recorded progress"
                ).failure
            )
        with crossing():
            yield from self.task(batches, 0 if context is None else context.partitionId())


def bare_tasks(session: SparkSession, count: int) -> DataFrame:
    """A row for each of `count` tasks, for those that find their work by themselves."""
    rows: DataFrame = session.range(0, count, 1, count)
    return rows


def prepare_workers(session: SparkSession, task: ArrowTask, count: int) -> None:
    """Let the executors start their Python processes and import what `task` needs, beside everything else.

    Takes seconds the first time, and then almost nothing. Where it fails, the first pass does the same and says why.
    """
    if is_connect(session):
        return
    frame = bare_tasks(session, count)

    def prepare() -> None:
        try:
            frame.mapInArrow(FirstAttempt(task), "nothing string").collect()
        except Exception:
            log.debug("workers could not be prepared", exc_info=True)

    threading.Thread(target=prepare, name="srm workers", daemon=True).start()


def records_at_once(most: int, size: int, version: str = pyspark_version) -> int:
    """How many records of an Arrow batch keep it within `size` bytes where Spark does not look at bytes."""
    if size >= _NO_BOUND or tuple(map(int, version.split(".")[:2])) >= _BOUNDS_BYTES:
        return most
    return max(1, min(most, size // _LARGE_RECORD))


def run(
    frame: DataFrame, task: ArrowTask, schema: str, tasks: int, arrow_bounds: tuple[int, int] | None = None
) -> list[dict[str, Any]]:
    """Run `task` over the rows in at most `tasks` Spark tasks, each source partition whole in one of them.

    `arrow_bounds` are the most records and bytes of one Arrow batch. Raises SessionEnded where rows may be missing.
    """
    if arrow_bounds is not None:
        records, size = arrow_bounds
        records = records_at_once(records, size)
        frame.sparkSession.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(records))
        frame.sparkSession.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(size))
    reports = frame.coalesce(tasks).mapInArrow(FirstAttempt(task), schema)
    rows = [row.asDict() for row in reports.collect()]
    if not is_alive(frame.sparkSession):
        # pyspark takes the end of a connection for the end of the rows, and a range without a row counts as empty.
        raise SessionEnded("Spark ended while it told what was written; the next start finds that out by itself")
    return rows
