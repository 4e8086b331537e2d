"""What the source itself loses is told as exact offset ranges, and the policy decides whether the topic goes on."""

from __future__ import annotations

import pytest

from srm_spark.driver import Driver
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_count, await_held, await_lag_zero
from tests.kafka_io import numbered, records


def _await_losses(driver: Driver, expected: dict[str, str]) -> None:
    await_until(lambda: driver.status()[0].losses == expected, SOON, lambda: f"{expected}, but {driver.status()}")


def _replicated_then_truncated(pair: Pair) -> None:
    """Ten records flow, ten more come while nobody runs, and the first five of these are deleted."""
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    driver.stop()
    pair.source.write(pair.topic(), numbered(10, prefix="later "))
    pair.source.delete_records(pair.topic(), 0, 15)


def test_records_deleted_before_they_were_replicated_are_told_exactly(pair: Pair) -> None:
    _replicated_then_truncated(pair)
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 15)
    _await_losses(driver, {f"{pair.topic()}-0": "10 to 14"})
    await_lag_zero(driver)
    driver.stop()
    copied, left = records(pair.target.read(pair.remote()))[0], records(pair.source.read(pair.topic()))[0]
    assert copied[10:] == left


def test_with_the_policy_to_stop_the_partition_is_held_and_others_flow(pair: Pair) -> None:
    _replicated_then_truncated(pair)
    pair.source.create(pair.topic("other"))
    pair.source.write(pair.topic("other"), numbered(3))
    driver = pair.replicate({"policy.stop.topics": pair.topic()})
    held = await_held(driver, [f"{pair.topic()}-0"])
    assert "held at offset 10" in held[f"{pair.topic()}-0"]
    assert "source.truncated.policy=resume" in held[f"{pair.topic()}-0"]
    await_count(pair.target, pair.remote("other"), 3)
    assert pair.target.count(pair.remote()) == 10


def test_records_deleted_under_a_running_flow_are_told(pair: Pair) -> None:
    """Nothing reads while the target refuses a record, so the source can lose what waits behind it."""
    pair.source.create(pair.topic(), configs={"max.message.bytes": "200000"})
    pair.target.create(pair.remote(), configs={"max.message.bytes": "1000"})
    big = numbered(1)[0]._replace(value=b"x" * 5000)
    pair.source.write(pair.topic(), [*numbered(3), big, *numbered(4, prefix="behind ")])
    driver = pair.replicate()
    await_held(driver, [f"{pair.topic()}-0"])
    pair.source.delete_records(pair.topic(), 0, 6)
    await_count(pair.target, pair.remote(), 5)
    _await_losses(driver, {f"{pair.topic()}-0": "3 to 5"})


def test_a_topic_created_anew_is_held_where_the_policy_says_so(pair: Pair) -> None:
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(3))
    driver = pair.replicate({"source.recreated.policy": "stop"})
    await_count(pair.target, pair.remote(), 3)
    pair.source.delete(pair.topic())
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(5, prefix="new "))
    held = await_held(driver, [f"{pair.topic()}-0"])
    assert "created anew" in held[f"{pair.topic()}-0"]
    assert pair.target.count(pair.remote()) == 3


@pytest.mark.parametrize(("count", "seconds"), [(20, 600), (2, 6)])
def test_a_topic_created_anew_between_two_looks_is_copied_from_its_beginning(
    pair: Pair, count: int, seconds: int
) -> None:
    """Longer than it was: the batch that skips its first records must see it. Shorter: no batch comes, a look must."""
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(3))
    driver = pair.replicate({"refresh.topics.interval.seconds": str(seconds)})
    await_count(pair.target, pair.remote(), 3)
    pair.source.delete(pair.topic())
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(count, prefix="new "))
    await_count(pair.target, pair.remote(), 3 + count)
    await_until(lambda: driver.status()[0].records == 3 + count, SOON, lambda: f"all counted: {driver.status()}")
    copied, anew = records(pair.target.read(pair.remote()))[0], records(pair.source.read(pair.topic()))[0]
    assert copied[3:] == anew


def test_a_truncated_remote_topic_is_held_where_the_policy_says_so(pair: Pair) -> None:
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(3))
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 3)
    await_lag_zero(driver)
    driver.stop()
    pair.target.delete(pair.remote())
    pair.source.write(pair.topic(), numbered(2, prefix="later "))
    driver = pair.replicate({"target.changed.policy": "stop"})
    held = await_held(driver, [f"{pair.topic()}-0"])
    assert "truncated or created anew" in held[f"{pair.topic()}-0"]
    assert pair.target.count(pair.remote()) == 0
