"""CPU time of a process and everything below it, threads and dead children included."""

from __future__ import annotations

from contextlib import suppress

import psutil


def cpu_seconds(pid: int) -> float:
    """User and system time of the tree under `pid`; a process that ends between two calls is kept by its parent."""
    total = 0.0
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return total
    for process in tree:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def cpu_by_process(pid: int) -> dict[int, float]:
    """User and system time of each living process of the tree under `pid`, without what dead children took."""
    found = {}
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            found[process.pid] = times.user + times.system
    return found
