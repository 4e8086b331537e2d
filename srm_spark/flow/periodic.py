"""Periodic work of one driver: named tasks by APScheduler's clock, in one pool of threads.

What a task waits for or knows is its own business. Here is when it runs, that it never runs twice at a time, that
nothing which it raises ends it, and that who stops it can wait until it is over.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone

from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

from srm_spark.core.news import News
from srm_spark.flow.daemons import QUIET, Daemons

log = logging.getLogger(__name__)

_MANY = 10**9
"""A task itself sees to it that it does not run twice; APScheduler would warn each time."""


class Task:
    """One of them; begins with `Periodic.every`."""

    def __init__(
        self,
        name: str,
        seconds: float,
        work: Callable[[], object],
        *,
        rest: float,
        slow: float,
        last: Callable[[Task], object],
    ) -> None:
        self.name = name
        self._seconds, self._work, self._rest, self._slow, self._last = seconds, work, rest, slow, last
        self._not_before = 0.0
        self._news = News()
        self._lock = threading.Lock()
        self._is_running = False
        self._over, self._ended = threading.Event(), threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether it was told to stop: what it is at is to end soon."""
        return self._over.is_set()

    def run(self) -> None:
        """Run once, unless it is over, at it already, or resting."""
        began = time.monotonic()
        with self._lock:
            if self.is_over or self._is_running or began < self._not_before:
                return
            self._is_running = True
        try:
            self._work()
            self._news.is_new("failure", None)
        except Exception as error:  # one that died in silence would leave undone for ever what it does
            if self._news.is_new("failure", str(error)):
                log.exception("task=%s failed, and is tried again", self.name)
        took = time.monotonic() - began
        self._not_before = time.monotonic() + self._rest * took
        if self._news.is_new("slow", took > self._slow or None):
            log.warning("task=%s took %.1f s, and is to run every %g s", self.name, took, self._seconds)
        with self._lock:
            self._is_running = False
            is_over = self.is_over
        if is_over:
            self._end()

    def stop(self) -> None:
        """Run no more; what it is at goes on to its end, and `join` waits for that."""
        with self._lock:
            is_last = not self.is_over and not self._is_running
            self._over.set()
        if is_last:
            self._end()

    def join(self, seconds: float) -> bool:
        """Wait until it has ended; False when it is still at it."""
        return self._ended.wait(max(0.0, seconds))

    def _end(self) -> None:
        try:
            self._last(self)
        finally:
            self._ended.set()


class Periodic:
    """The tasks of one driver; those that come before `start` wait for it."""

    def __init__(self, wall: Callable[[], float] = time.time, watch_seconds: float = 5.0) -> None:
        """`wall` is the clock that may be set, which is looked at every so many seconds."""
        self._wall, self._watch_seconds = wall, watch_seconds
        self._over = threading.Event()
        self._scheduler = BackgroundScheduler(
            logger=QUIET,
            executors={"default": Daemons()},
            job_defaults={"max_instances": _MANY, "coalesce": True, "misfire_grace_time": None},
        )
        self._tasks: dict[str, Task] = {}
        """By the ids of their jobs."""
        self._lock = threading.Lock()

    def every(
        self,
        seconds: float,
        name: str,
        work: Callable[[], object],
        *,
        at_once: bool = True,
        rest: float = 0.0,
        slow: float | None = None,
        last: Callable[[], object] = lambda: None,
    ) -> Task:
        """Do `work` every so many seconds; without `at_once` for the first time after these.

        After each time it rests `rest` times as long as that took. One that takes longer than `slow` seconds (None: as
        the interval) is told. `last` is called once, when it has ended, in whichever thread that is.
        """

        def end(task: Task) -> None:
            with self._lock:
                del self._tasks[f"{id(task)}"]
                with suppress(JobLookupError):  # the clock has been stopped before
                    self._scheduler.remove_job(f"{id(task)}")
            last()

        task = Task(name, seconds, work, rest=rest, slow=seconds if slow is None else slow, last=end)
        first = datetime.now(timezone.utc) + timedelta(seconds=0.0 if at_once else seconds)
        with self._lock:
            self._tasks[f"{id(task)}"] = task
            trigger = {"trigger": "interval", "seconds": seconds, "next_run_time": first}
            self._scheduler.add_job(task.run, id=f"{id(task)}", name=name, **trigger)
        return task

    def start(self) -> None:
        """Let the clock run."""
        self._scheduler.start()
        threading.Thread(target=self._watch, name="srm clock", daemon=True).start()

    def stop(self, seconds: float) -> bool:
        """Stop all tasks and wait for what they are at; False where one of them did not end in time."""
        self._over.set()
        with self._lock:
            tasks = list(self._tasks.values())
        for task in tasks:
            task.stop()
        deadline = time.monotonic() + seconds
        late = [task.name for task in tasks if not task.join(deadline - time.monotonic())]
        for name in late:
            log.info("task=%s did not end within %g s", name, seconds)
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        return not late

    def _watch(self) -> None:
        """APScheduler goes by the wall's clock: where that is set back, tasks would wait until it is there again."""
        before = self._wall() - time.monotonic()
        while not self._over.wait(self._watch_seconds):
            now = self._wall() - time.monotonic()
            if now < before - self._watch_seconds:
                log.warning("the clock was set back by %.0f s: all that is periodic begins anew", before - now)
                with self._lock, suppress(JobLookupError):  # the end may be faster
                    for name in self._tasks:
                        self._scheduler.modify_job(name, next_run_time=datetime.now(timezone.utc))
            before = now
