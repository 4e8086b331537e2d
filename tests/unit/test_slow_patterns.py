"""Patterns that take for ever are found by whichever thread asks."""

from __future__ import annotations

import threading

from srm_spark.flow.slow_patterns import slow_ones

ENTRIES = ["orders", "(a+)+b", ".*-orders-.*"]


def test_another_thread_finds_the_same_ones() -> None:
    found: list[list[str]] = []
    thread = threading.Thread(target=lambda: found.append(slow_ones(ENTRIES)))
    thread.start()
    thread.join()
    assert found == [slow_ones(ENTRIES)] == [["(a+)+b"]]
