"""CPU time and memory of a process and everything below it, threads and dead children included."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import psutil

from srm_spark.errors import SrmError


class Usage(NamedTuple):
    """What a process tree takes."""

    cpu: float
    """User and system time so far, in seconds; of processes that ended, what their parents waited for."""
    memory_mib: float
    """Resident memory now; a page that two processes share counts twice."""


def usage(pid: int) -> Usage:
    """Of the tree under `pid`. Raises SrmError when that process has ended."""
    if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
        raise SrmError(f"process {pid} has ended")
    cpu = memory = 0.0
    for process in _tree(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            cpu += times.user + times.system + times.children_user + times.children_system
            memory += process.memory_info().rss / 2**20
    return Usage(cpu, memory)


def cpu_by_process(pid: int) -> dict[int, float]:
    """User and system time of each living process of the tree under `pid`, without what dead children took."""
    seconds = {}
    for process in _tree(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds[process.pid] = times.user + times.system
    return seconds


def _tree(pid: int) -> Iterator[psutil.Process]:
    root = psutil.Process(pid)
    yield root
    yield from root.children(recursive=True)


def end_in_order() -> None:
    """Let SIGTERM unwind this program as Ctrl-C does, so that it leaves no contender running."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
