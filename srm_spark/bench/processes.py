"""CPU time and memory of a process and everything below it, threads and dead children included."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import suppress

import psutil

from srm_spark.errors import SrmError


def cpu_seconds(pid: int) -> float:
    """User and system time of the tree under `pid` so far; of processes that ended, what their parents waited for.

    Raises SrmError when that process has ended.
    """
    cpu = 0.0
    for process in _living_tree(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            cpu += times.user + times.system + times.children_user + times.children_system
    return cpu


def memory_mib(pid: int) -> float:
    """Resident memory of the tree under `pid` now; of a page that several processes share each counts its part.

    Takes milliseconds of the kernel's time. Raises SrmError when that process has ended.
    """
    memory = 0
    for process in _living_tree(pid):
        with suppress(psutil.NoSuchProcess):
            found = process.memory_full_info()
            memory += getattr(found, "pss", found.rss)
    return memory / 2**20


def cpu_by_process(pid: int) -> dict[int, float]:
    """User and system time of each living process of the tree under `pid`, without what dead children took."""
    seconds = {}
    for process in _tree(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds[process.pid] = times.user + times.system
    return seconds


def suspended(pid: int) -> list[psutil.Process]:
    """The tree under `pid`, stopped as a machine is that hangs."""
    found = list(_tree(pid))
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    return found


def killed(pid: int) -> None:
    """The tree under `pid`, killed as a machine is that loses power."""
    for process in suspended(pid):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _living_tree(pid: int) -> Iterator[psutil.Process]:
    if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
        raise SrmError(f"process {pid} has ended")
    return _tree(pid)


def _tree(pid: int) -> Iterator[psutil.Process]:
    root = psutil.Process(pid)
    yield root
    yield from root.children(recursive=True)


def end_in_order() -> None:
    """Let SIGTERM unwind this program as Ctrl-C does, so that it leaves no contender running."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
