"""A pool of daemon threads, as many as are busy at a time: one that hangs holds up nobody else, nor the process's end.

`concurrent.futures` waits for its threads when the process ends, and a call to a cluster or to Spark may never return.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from apscheduler.executors.pool import BasePoolExecutor

QUIET = logging.getLogger("srm_spark.apscheduler")
"""What APScheduler tells of every job that comes, runs and goes says nothing to who embeds a driver."""
QUIET.setLevel(logging.ERROR)


class Daemons(BasePoolExecutor):  # type: ignore[misc] # APScheduler has no types
    """The pool, as APScheduler takes one."""

    def __init__(self) -> None:
        super().__init__(_Pool())

    def start(self, scheduler: Any, alias: str) -> None:
        """As a scheduler begins with it."""
        super().start(scheduler, alias)
        self._logger = QUIET


class _Pool:
    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = self._threads = 0

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """As `concurrent.futures.Executor.submit`."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(work(*arguments))
            except BaseException as error:
                future.set_exception(error)

        with self._lock:
            is_new = self._idle == 0
            self._idle -= not is_new
            self._threads += is_new
        self._work.put(run)
        if is_new:
            threading.Thread(target=self._serve, name="srm periodic", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True) -> None:  # noqa: ARG002 -- nobody waits for a daemon
        """Let the threads end."""
        for _ in range(self._threads):
            self._work.put(None)

    def _serve(self) -> None:
        while (run := self._work.get()) is not None:
            run()
            with self._lock:
                self._idle += 1
