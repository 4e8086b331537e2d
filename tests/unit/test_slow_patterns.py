"""Patterns that take for ever are found by whichever thread asks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from srm_spark.errors import PatternError
from srm_spark.flow.slow_patterns import slow_ones

ENTRIES = ["orders", "(a+)+b", ".*-orders-.*"]


def test_another_thread_finds_the_same_ones() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(slow_ones, ENTRIES).result() == slow_ones(ENTRIES) == ["(a+)+b"]


def test_what_is_no_pattern_is_told_to_any_thread() -> None:
    with pytest.raises(PatternError):
        slow_ones(["a("])
    with ThreadPoolExecutor(1) as pool, pytest.raises(PatternError):
        pool.submit(slow_ones, ["a("]).result()
