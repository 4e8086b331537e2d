"""Copies by threads of the driver's own until a query of Spark's does: a failover waits for neither JVM nor planning.

The passes are those of the batch function, in the driver's process: the same tasks, guard, reports and committer. What
takes over goes on from recorded progress, as after every generation.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace

from srm_spark.config.settings import FlowSettings
from srm_spark.errors import SrmError
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.batch.replicate import Assignment, Replication
from srm_spark.flow.clusters import Clusters
from srm_spark.kafka.batches.ways import is_used

log = logging.getLogger(__name__)

_PASS_BYTES = 64_000_000
"""Who takes over waits for the pass in progress."""
_REST_SECONDS = 0.05
_MOST_THREADS = 4
"""More of one process wait for Python's lock."""


def can_copy_early(settings: FlowSettings) -> bool:
    """Whether a flow's records can be copied without Spark, and its settings let the driver do so."""
    is_plain = not settings.is_exactly_once and not settings.is_realtime
    return is_plain and settings.batch.driver_max_bytes > 0 and is_used(settings.batch.in_loop)


def early_tasks(settings: FlowSettings) -> int:
    """How many threads copy, where there is enough for several."""
    return settings.batch.tasks_max or min(os.cpu_count() or 1, _MOST_THREADS)


class EarlyGeneration:
    """One of them; begins at once."""

    def __init__(self, clusters: Clusters, assignment: Assignment, may_go_on: Callable[[], bool]) -> None:
        """`may_go_on` is asked between passes, and ends them."""
        self.assignment = assignment
        self._clusters = clusters
        self._may_go_on = may_go_on
        self._over = threading.Event()
        self._failure: Failure | None = None
        batch = clusters.settings.batch
        settings = replace(clusters.settings, batch=replace(batch, max_bytes=min(batch.max_bytes, _PASS_BYTES)))
        self._replication = Replication(settings, assignment, is_stopping=self._is_stopping)
        self._thread = threading.Thread(target=self._run, name=f"srm early {settings.flow}", daemon=True)
        self._thread.start()

    def failure(self) -> Failure | None:
        """Why it ended by itself; None while it runs."""
        return self._failure

    def phases(self) -> dict[str, int]:
        """Nothing: these are Spark's."""
        return {}

    def stop(self, timeout: float) -> bool:
        """End with the pass in progress; False where that did not end in time."""
        self._over.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _is_stopping(self) -> bool:
        return self._over.is_set() or not self._may_go_on()

    def _run(self) -> None:
        settings = self._clusters.settings
        try:
            source = self._clusters.source.beside(f"{settings.flow}|early", settings.admin_timeout_seconds)
            while not self._is_stopping():
                ends = source.end_offsets(self.assignment.starts, waits=False, committed=settings.reads_committed)
                self._replication.replicate_to(ends)
                self._over.wait(_REST_SECONDS)
        except SrmError as error:
            self._failure = error.failure
        except Exception as error:
            log.debug("flow=%s failed before a query of Spark's ran", settings.flow, exc_info=True)
            self._failure = Failure(FailureKind.OTHER, f"{type(error).__name__}: {error}")
