"""Bytes per second: the rate over time, sharing, and what a wait does; on a clock of the test's own."""

from __future__ import annotations

import threading

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from srm_spark.core.bandwidth import CREDIT_SECONDS, LEAST_SHARE, PASS_SECONDS, Bandwidth, budget, readable
from srm_spark.flow.batch.pace import Pace

RATE = 1_000_000
KEY = "A->B.bandwidth.limit.bytes"


class Clock:
    """Time goes on by sleeping only."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def _never() -> bool:
    return False


@given(
    st.integers(1024, 10**9),
    st.lists(st.tuples(st.floats(0.01, 0.5), st.floats(0.5, 2.0)), min_size=40, max_size=80),
)
def test_whoever_has_enough_to_write_meets_the_limit(rate: int, passes: list[tuple[float, float]]) -> None:
    """Each pass takes some time, and writes another size than was thought."""
    clock = Clock()
    pace = Pace({KEY: Bandwidth(rate)}, clock, clock.sleep)
    began, written, last = clock.now, 0, 0
    for seconds, error in passes:
        assert pace.pass_bytes is not None
        assert pace.admit(pace.pass_bytes, _never)
        last = int(pace.pass_bytes * error)
        clock.now += seconds
        pace.finish(last)
        written += last
    # The next one could begin when the last one's share of the line is over.
    assert pace.admit(0, _never)
    assert written / (clock.now - began) == pytest.approx(rate, rel=0.1)


@example([(0.0, 1), (30.0, 1), *[(0.0, 3 * RATE)] * 5])
@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 3 * RATE)), min_size=1, max_size=50))
def test_no_stretch_of_time_has_more_than_the_limit_a_pass_and_the_credit(writes: list[tuple[float, int]]) -> None:
    line, now = Bandwidth(RATE), 0.0
    log = []
    for pause, size in writes:
        now = max(now + pause, line.reserve(size, now + pause))
        log.append((now, size))
    largest = max(size for _, size in log)
    for first in range(len(log)):
        for last in range(first, len(log)):
            total = sum(size for _, size in log[first : last + 1])
            seconds = log[last][0] - log[first][0]
            assert total <= RATE * (seconds + CREDIT_SECONDS) + largest + 1


def test_passes_grow_with_the_time_that_they_take() -> None:
    line = Bandwidth(RATE)
    found = []
    for seconds in (0.1, 0.7, 100.0, 100.0, 100.0, 0.6):
        line.learn(seconds)
        found.append(line.pass_bytes / RATE)
    shortest, longest = PASS_SECONDS
    assert found == [shortest, 1.4, 2.8, 5.6, longest, 1.2]


def test_two_flows_share_a_cluster_by_turns() -> None:
    line = Bandwidth(RATE)
    starts = [line.reserve(RATE, 0.0) for _ in ("first", "second")]
    assert starts == [0.0, 1.0]
    # Each comes again when its pass is over, and finds its place behind the other.
    assert line.reserve(RATE, 0.3) == 2.0
    assert line.reserve(RATE, 1.3) == 3.0


def test_the_smallest_limit_counts_and_is_named() -> None:
    clock = Clock()
    lines = {KEY: Bandwidth(RATE), "B.bandwidth.limit.bytes": Bandwidth(RATE // 2)}
    pace = Pace(lines, clock, clock.sleep)
    assert pace.pass_bytes == RATE // 2
    for _ in range(2):
        assert pace.describe() is None
        assert pace.admit(RATE // 2, _never)
        pace.finish(RATE // 2)
    assert pace.describe() == "limited to 500 kB/s by B.bandwidth.limit.bytes"
    clock.now += 10
    assert pace.describe() is None


def test_without_a_limit_nothing_waits() -> None:
    pace = Pace({}, sleep=_refuse)
    assert pace.pass_bytes is None
    assert pace.admit(10**12, lambda: True)
    pace.finish(10**12)
    assert pace.admit(10**12, _never)
    assert pace.describe() is None


def _refuse(_: float) -> None:
    raise AssertionError("it waits")


def test_a_stop_ends_a_wait_at_once_and_gives_back_what_was_reserved() -> None:
    clock, stop = Clock(), threading.Event()
    own, shared = Bandwidth(RATE), Bandwidth(RATE)
    pace = Pace({KEY: own, "B": shared}, clock, clock.sleep)
    shared.reserve(100 * RATE, clock.now)

    def is_stopping() -> bool:
        if clock.now > 102:
            stop.set()
        return stop.is_set()

    assert not pace.admit(RATE, is_stopping)
    assert clock.now < 103
    assert own.reserve(0, clock.now) < clock.now
    assert shared.reserve(0, clock.now) == pytest.approx(200)


@given(st.integers(1, 10**9), st.integers(0, 2), st.floats(0, 1))
def test_a_class_leaves_something_to_those_that_wait_and_gets_something(size: int, waiting: int, left: float) -> None:
    found = budget(left * size, size, [0] * waiting)
    assert found >= LEAST_SHARE * size
    assert found <= max(left * size, LEAST_SHARE * size)
    assert budget(size, size, [0] * waiting) == pytest.approx(size * (1 - LEAST_SHARE * waiting))


def test_limits_are_readable() -> None:
    assert [readable(rate) for rate in (1024, 500_000, 1_000_000, 12_345_678, 3 * 10**9, 12)] == [
        "1.02 kB/s",
        "500 kB/s",
        "1 MB/s",
        "12.3 MB/s",
        "3 GB/s",
        "12 B/s",
    ]
