"""CPU time of a process and everything below it, threads and dead children included."""

from __future__ import annotations

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
