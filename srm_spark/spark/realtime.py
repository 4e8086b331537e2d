"""A Spark job whose tasks last as long as a generation does, and the task slots that such jobs take.

Spark's own Real-Time Mode (4.2) keeps tasks as well, one for each source partition. Its way into Python takes a row at
a time, about a millisecond of CPU each: a thousand records per second kept two cores busy. So tasks fetch for
themselves.
"""

from __future__ import annotations

import os
import re
import threading
import uuid
from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from srm_spark.failure import Failure, FailureKind
from srm_spark.spark.failures import failure_in
from srm_spark.spark.session import is_connect, parallelism
from srm_spark.spark.write import ArrowTask, FirstAttempt, bare_tasks

_IN_CONNECT = "Spark Connect keeps its slots to itself; run the driver in the Spark application"
WIDE_SESSION: Mapping[str, str] = {
    "spark.master": "local[64]",
    "spark.default.parallelism": str(os.cpu_count() or 1),
    # When the lane ends, Spark interrupts its tasks and soon kills their Python processes, which have to report first.
    "spark.python.task.killTimeout": "30s",
}
"""For an embedded session: task slots for the lanes of many flows, which mostly wait; micro-batches still take as many
tasks as there are cores."""


def why_not(session: SparkSession) -> str | None:
    """Why this session cannot run such a job; None where it can."""
    return _IN_CONNECT if is_connect(session) else None


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
                return f"{count} tasks need a slot each and one must be left over, there are {there}{rest}"
            self._taken[name] = count
            return None

    def free(self, name: str) -> None:
        """Give back what `name` has."""
        with self._lock:
            self._taken.pop(name, None)


SLOTS = Slots()


class LastingJob:
    """A Spark job whose tasks last; in a thread of its own, for a job keeps whoever runs it waiting."""

    def __init__(self, session: SparkSession, name: str, task: ArrowTask, tasks: int, source: str) -> None:
        """`source` is the cluster that the tasks read."""
        self._session = session
        self._name = name
        self._source = source
        self._tag = f"srm-{uuid.uuid4().hex}"
        self._failure: Failure | None = None
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, args=(task, tasks), name=name, daemon=True)
        self._thread.start()

    def failure(self) -> Failure | None:
        """Why it ended by itself; None while it runs, and once it was told to end."""
        if self._is_ending or self._thread.is_alive():
            return None
        return self._failure or Failure(FailureKind.OTHER, "the tasks ended")

    def stop(self, tell: Callable[[], None], timeout: float) -> bool:
        """`tell` the tasks to end and wait for it; False where they had to be interrupted after `timeout` seconds."""
        self._is_ending = True
        try:
            if self._thread.is_alive():
                tell()
            self._thread.join(timeout)
            return not self._thread.is_alive()
        finally:
            if self._thread.is_alive():
                self._session.sparkContext.cancelJobsWithTag(self._tag)

    def _run(self, task: ArrowTask, tasks: int) -> None:
        context = self._session.sparkContext
        try:
            context.setLocalProperty("spark.scheduler.pool", self._name)
            context.addJobTag(self._tag)
            bare_tasks(self._session, tasks).mapInArrow(FirstAttempt(task), "nothing string").collect()
        except Exception as error:  # its reader decides what it means
            self._failure = failure_in(str(error), self._source)
