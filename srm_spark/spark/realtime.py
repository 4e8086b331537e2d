"""Spark's Real-Time Mode (4.2 and newer): one task per source partition, each of which lasts for minutes.

What Spark's documentation does not say (tried with 4.2.0): its way into Python sends a row only when it has seen the
next one, so a record would wait for the one after it, however long that takes. Behind each record goes an empty row
that pushes it out and waits in its place.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from srm_spark.spark.query import failure_of
from srm_spark.spark.session import is_connect, parallelism
from srm_spark.spark.write import ArrowTask, FirstAttempt

_BATCH = "15 minutes"
"""At its end all tasks stop and new ones start, and records wait for 0.6 s: one in 1500 of them."""
_OLDEST = (4, 2)
REALTIME_SETTINGS: Mapping[str, str] = {
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # mapInArrow works, and is not on the list
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # Spark fills this buffer before it sends anything; `spark.buffer.size` is only its default.
    "spark.sql.execution.pandas.udf.buffer.size": "64",
}
WIDE_SESSION: Mapping[str, str] = {
    "spark.master": "local[64]",
    "spark.default.parallelism": str(os.cpu_count() or 1),
    # When the lane ends, Spark interrupts its tasks and soon kills their Python processes, which have to report first.
    "spark.python.task.killTimeout": "30s",
}
"""For an embedded session: a task slot for each of 63 partitions, which mostly wait; micro-batches still take as many
tasks as there are cores."""


def why_not(session: SparkSession) -> str | None:
    """Why this session has no Real-Time Mode; None where it has."""
    if is_connect(session):
        return "Spark Connect keeps its slots to itself; run the driver in the Spark application"
    version = tuple(int(part) for part in re.findall(r"\d+", session.version)[:2])
    return None if version >= _OLDEST else f"Spark is {session.version}, and Real-Time Mode came with 4.2"


def slots(session: SparkSession) -> int:
    """How many tasks can run at a time; `spark.default.parallelism` may be less."""
    local = re.fullmatch(r"local(?:\[(\*|\d+)(?:,.*)?\])?", session.sparkContext.master or "")
    if local is None:
        return parallelism(session)
    return os.cpu_count() or 1 if local[1] == "*" else int(local[1] or 1)


class Slots:
    """Which flows of this process keep task slots for themselves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: dict[str, int] = {}

    def take(self, name: str, count: int, there: int) -> str | None:
        """Take `count` of the slots that are `there`, in place of what `name` had; why not, or None.

        One is left over for everything else that the application does.
        """
        with self._lock:
            others = sum(taken for other, taken in self._taken.items() if other != name)
            if count + others + 1 > there:
                self._taken.pop(name, None)
                rest = f", {others} of them taken by other flows" if others else ""
                return f"{count} partitions need a task slot each and one must be left over, there are {there}{rest}"
            self._taken[name] = count
            return None

    def free(self, name: str) -> None:
        """Give back what `name` has."""
        with self._lock:
            self._taken.pop(name, None)


SLOTS = Slots()


class RealtimeQuery:
    """A running query in Real-Time Mode; its checkpoint is scratch."""

    def __init__(self, frame: DataFrame, name: str, task: ArrowTask) -> None:
        """`task` gets the rows of `frame`, and rows that are null in every column; it writes them itself."""
        self._checkpoint = Path(tempfile.mkdtemp(prefix="srm-spark-"))
        frame.sparkSession.sparkContext.setLocalProperty("spark.scheduler.pool", name)
        pushed = frame.select(F.explode(F.array(F.struct(*frame.columns), F.lit(None))).alias("row")).select("row.*")
        writer = pushed.mapInArrow(FirstAttempt(task), "nothing string").writeStream.queryName(name).format("noop")
        writer = writer.outputMode("update").option("checkpointLocation", self._checkpoint.as_uri())
        trigger: Any = writer.trigger  # pyspark's hints do not know the new one
        self._query: StreamingQuery = trigger(realTime=_BATCH).start()

    def failure(self) -> str | None:
        """Why it ended by itself; None while it runs."""
        return failure_of(self._query)

    def stop(self) -> None:
        """Interrupt the tasks; they still report what they have written."""
        with contextlib.suppress(PySparkException):
            self._query.stop()
        shutil.rmtree(self._checkpoint, ignore_errors=True)
