"""One streaming query: started with a name and a batch function, stopped between two batches."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from srm_spark.failure import Failure, FailureKind, crossing
from srm_spark.spark.failures import failure_in
from srm_spark.spark.offsets import is_amid_a_batch
from srm_spark.spark.scratch import scratch
from srm_spark.spark.session import is_connect

BatchFunction = Callable[[DataFrame, int], None]
_POLL_SECONDS = 0.05
_STOPPING = "stopping"
"""A file in the checkpoint directory, which a batch function sees in whatever process it runs."""


class Gate:
    """Open while batches may run. Closing it waits for the batch in progress; those that come later do nothing.

    They are not refused: Spark would print that as a failure of the query, with its trace.

    It works inside one process. Pickled (Spark Connect runs the batch function elsewhere) it arrives open.
    """

    def __init__(self) -> None:
        self._running = threading.Lock()
        self._closed = False

    def __enter__(self) -> bool:
        """Whether it is open."""
        self._running.acquire()
        return not self._closed

    def __exit__(self, *_: object) -> None:
        self._running.release()

    def close(self, timeout: float) -> bool:
        """Close it; False when the batch in progress took longer than `timeout` seconds."""
        self._closed = True
        if not self._running.acquire(timeout=timeout):
            return False
        self._running.release()
        return True

    def __reduce__(self) -> tuple[type[Gate], tuple[()]]:
        return Gate, ()


@dataclass(frozen=True)
class Gated:
    """A batch function behind a gate."""

    gate: Gate
    batch: BatchFunction

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        with crossing(), self.gate as is_open:
            if is_open:
                self.batch(frame, batch_id)


def is_stopping(checkpoint: Path) -> bool:
    """Whether the query is to stop; its batch function may end a batch early then, and no other one follows."""
    return (checkpoint / _STOPPING).exists()


class Query:
    """A running generation of a flow's query; its checkpoint directory lives as long as it does."""

    def __init__(
        self, frame: DataFrame, name: str, make_batch: Callable[[Path], BatchFunction], trigger_ms: int, source: str
    ) -> None:
        """`make_batch` gets the checkpoint directory, where the batch function finds the offset log.

        `source` is the alias of the cluster that `frame` reads.
        """
        self.checkpoint = Path(tempfile.mkdtemp(prefix="query-", dir=scratch()))
        if not is_connect(frame.sparkSession):
            # A pool for each flow, inherited by the thread of the query: jobs of one pool run one after the other.
            frame.sparkSession.sparkContext.setLocalProperty("spark.scheduler.pool", name)
        self._source = source
        self._gate = Gate()
        writer = frame.writeStream.queryName(name).foreachBatch(Gated(self._gate, make_batch(self.checkpoint)))
        writer = writer.option("checkpointLocation", self.checkpoint.as_uri())
        self._query: StreamingQuery = writer.trigger(processingTime=f"{trigger_ms} milliseconds").start()

    def failure(self) -> Failure | None:
        """Why it ended by itself; None while it runs."""
        if self._query.isActive:
            return None
        error = self._query.exception()
        if error is None:
            return Failure(FailureKind.OTHER, "the query ended")
        # The first line often says only which client could not be made; why is at the bottom of the stack.
        trace: str = getattr(error, "_stackTrace", None) or ""
        causes = (line for line in trace.splitlines() if line.startswith("Caused by: "))
        return failure_in("\n".join((str(error), *causes)), self._source)

    def phases(self) -> dict[str, int]:
        """Milliseconds of the newest batch by Spark's phases; empty before the first one."""
        progress = self._query.lastProgress
        return {} if progress is None else dict(progress["durationMs"])

    def stop(self, timeout: float) -> bool:
        """Let the batch in progress end, then stop; False when it had to be interrupted after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        with suppress(OSError):  # the disk may be full: then the batch ends as it would without a limit
            (self.checkpoint / _STOPPING).touch()
        clean = self._gate.close(timeout)
        try:
            while self._query.isActive and is_amid_a_batch(self.checkpoint):
                if time.monotonic() > deadline:
                    clean = False
                    break
                time.sleep(_POLL_SECONDS)
            self._query.stop()
        except PySparkException:
            clean = clean and not self._query.isActive
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        return clean
