"""Limits in bytes per second are met; under them some topics go first, none starves, and a stop does not wait."""

from __future__ import annotations

import time

import pytest

from srm_spark.core.bandwidth import CREDIT_SECONDS
from srm_spark.driver import Driver
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_count, await_lag_zero
from tests.broker.progress_reader import read_progress
from tests.kafka_io import Record

RATE = 200_000
SIZE = 1000
LOW = 12_000
"""Records that take a minute."""
HIGH = 2500
"""More than the first pass takes, which does not know yet what a record weighs."""
SOON_ENOUGH = 30.0
"""Seconds for a record that goes first, on a loaded machine; behind the backlog it would take twice as long."""
SAME_PASS_MS = 100


def _records(count: int) -> list[Record]:
    """Of `SIZE` bytes each, key included, that do not shrink."""
    return [Record(b"%08d" % i, (b"%08d" % (i * 7919)) * (SIZE // 8 - 1)) for i in range(count)]


def _progress(pair: Pair, topic: str) -> list[tuple[int, int]]:
    """Of a topic of one partition: when a pass was recorded (ms), and how many records were done by then."""
    found = [p for p in read_progress(pair.target, pair.progress_topic) if p.topic == topic and p.offset >= 0]
    return [(p.record.timestamp or 0, p.offset + 1) for p in found]


def _await_limited(driver: Driver, text: str) -> None:
    await_until(
        lambda: driver.status()[0].limit == text, SOON, lambda: f"limit {text}, but it is {driver.status()[0].limit}"
    )


def test_a_limit_is_not_exceeded_by_more_than_a_tenth(pair: Pair) -> None:
    """Progress is recorded right behind each pass, and the next pass begins when the last one's bytes are paid for.

    How close a flow stays below it is up to the machine; the arithmetic of it is a unit test's.
    """
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), _records(2400))
    driver = pair.replicate({f"{pair.flow}.bandwidth.limit.bytes": str(RATE)})
    _await_limited(driver, f"limited to 200 kB/s by {pair.flow}.bandwidth.limit.bytes")
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
    await_lag_zero(driver)
    driver.stop()
    passes = _progress(pair, pair.topic())
    seconds = (passes[-1][0] - passes[0][0]) / 1000
    written = (passes[-2][1] - passes[0][1]) * SIZE
    assert RATE / 4 * seconds < written < 1.1 * RATE * (seconds + CREDIT_SECONDS), passes


@pytest.mark.slow
def test_topics_go_first_none_starves_and_a_stop_does_not_wait_for_the_backlog(pair: Pair) -> None:
    for name, count in (("low", LOW), ("high", HIGH)):
        pair.source.create(pair.topic(name))
        pair.source.write(pair.topic(name), _records(count))
    limits = {
        f"{pair.target_alias}.bandwidth.limit.bytes": str(RATE),
        "priority.high.topics": "high-.*",
        "priority.low.topics": "low-.*",
    }
    driver = pair.replicate(limits)
    _await_limited(driver, f"limited to 200 kB/s by {pair.target_alias}.bandwidth.limit.bytes")
    await_count(pair.target, pair.remote("high"), HIGH)
    pair.source.write(pair.topic("high"), _records(10))
    await_count(pair.target, pair.remote("high"), HIGH + 10, SOON_ENOUGH)
    assert pair.target.given(pair.remote("low")) < LOW, "a backlog that is done shows nothing"

    began = time.monotonic()
    assert driver.stop()
    assert time.monotonic() - began < SOON_ENOUGH
    high, low = (_progress(pair, pair.topic(name)) for name in ("high", "low"))
    still_waiting = max(at for at, done in high if done < HIGH)
    meanwhile = [done for at, done in low if at <= still_waiting + SAME_PASS_MS]
    assert meanwhile[-1] > meanwhile[0], (high, low)

    pair.replicate()
    for name in ("high", "low"):
        assert_copied(pair.source, pair.topic(name), pair.target, pair.remote(name))
