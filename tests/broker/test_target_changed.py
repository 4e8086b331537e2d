"""The target loses copies: its topic is deleted or made anew while the flow runs, or its log goes back.

What the policies make of it: `tests/unit/test_run.py`, `tests/unit/test_assigning.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from srm_spark.driver import Driver
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.broker.backup import backup
from tests.broker.conftest import Pair, Start
from tests.broker.mirror import await_count, await_lag_zero, await_losses
from tests.kafka_io import Kafka, numbered, records

LATER = numbered(6, 2, "later ")
NO_LOOK = {"refresh.topics.interval.seconds": "600"}


@pytest.fixture
def broker(local_kafka: Callable[..., LocalKafka]) -> LocalKafka:
    """A target that would make any topic that somebody asks for."""
    return local_kafka("changed", overrides={"auto.create.topics.enable": "true"})


@pytest.fixture
def pair(primary: KafkaCluster, broker: LocalKafka, unique: str, start: Start) -> Pair:
    """One flow to it."""
    clusters = {f"a{unique}": primary, f"b{unique}": broker}
    return Pair(Kafka(primary), Kafka(broker), clusters, unique, start)


def replicated(pair: Pair, keys: dict[str, str], partitions: int = 2) -> Driver:
    """Ten records are on both sides."""
    pair.source.create(pair.topic(), partitions, {"max.message.bytes": "54321"})
    pair.source.write(pair.topic(), numbered(10, partitions))
    driver = pair.replicate(keys)
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    return driver


def lost(pair: Pair) -> dict[str, str]:
    return {f"{pair.topic()}-0": "0 to 4", f"{pair.topic()}-1": "0 to 4"}


@pytest.mark.slow
def test_a_deleted_remote_topic_is_made_as_it_was_and_the_flow_goes_on(pair: Pair) -> None:
    driver = replicated(pair, {})
    pair.target.delete(pair.remote())
    pair.source.write(pair.topic(), LATER)
    await_count(pair.target, pair.remote(), 6)
    await_losses(driver, lost(pair))
    await_lag_zero(driver)
    driver.stop()
    assert pair.target.topics()[pair.remote()] == 2
    assert pair.target.configs(pair.remote())["max.message.bytes"] == "54321"
    left = {partition: found[5:] for partition, found in records(pair.source.read(pair.topic())).items()}
    assert records(pair.target.read(pair.remote())) == left


def test_a_topic_made_anew_between_two_looks_is_found_by_the_next_copy(pair: Pair) -> None:
    """What was written to it before that was noticed is recognised, and not written twice."""
    driver = replicated(pair, NO_LOOK)
    pair.target.delete(pair.remote())
    pair.target.create(pair.remote(), 2)
    pair.source.write(pair.topic(), LATER)
    await_losses(driver, lost(pair))
    await_count(pair.target, pair.remote(), 6)
    await_lag_zero(driver)
    driver.stop()
    left = {partition: found[5:] for partition, found in records(pair.source.read(pair.topic())).items()}
    assert records(pair.target.read(pair.remote())) == left


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["default", "exactly-once"])
def test_a_log_of_the_target_that_went_back_is_found_at_the_next_start(
    pair: Pair, broker: LocalKafka, mode: str
) -> None:
    keys = {f"{pair.flow}.exactly.once.support": "required"} if mode == "exactly-once" else {}
    driver = replicated(pair, keys, partitions=1)
    with backup(broker, pair.remote()):
        pair.source.write(pair.topic(), numbered(5, prefix="lost "))
        await_count(pair.target, pair.remote(), 15)
        await_lag_zero(driver)
        driver.stop()
    pair.source.write(pair.topic(), LATER[:1])
    driver = pair.replicate(keys)
    await_losses(driver, {f"{pair.topic()}-0": "10 to 14"})
    await_lag_zero(driver)
    driver.stop()
    here = records(pair.source.read(pair.topic()))[0]
    assert records(pair.target.read(pair.remote(), committed=True))[0] == here[:10] + here[15:]


@pytest.mark.slow
def test_a_log_that_went_back_and_is_filled_by_others_who_may_write_is_told(pair: Pair, broker: LocalKafka) -> None:
    """Others may write there, so that something lies in front of new copies is no cause by itself.

    Here the flow has noticed before that the target was away. `test_three_brokers.py` has the other case.
    """
    driver = replicated(pair, {**NO_LOOK, "foreign.writer.policy": "resume"}, partitions=1)
    with backup(broker, pair.remote()):
        pair.source.write(pair.topic(), numbered(5, prefix="lost "))
        await_count(pair.target, pair.remote(), 15)
        await_lag_zero(driver)
    pair.target.write(pair.remote(), numbered(20, prefix="theirs "))
    pair.source.write(pair.topic(), numbered(5, prefix="new "))
    await_losses(driver, {f"{pair.topic()}-0": "10 to 14"})
    await_count(pair.target, pair.remote(), 35)
    await_lag_zero(driver)
    driver.stop()
    there = [record.value for record in records(pair.target.read(pair.remote()))[0]]
    assert there[-5:] == [b"new 0", b"new 1", b"new 2", b"new 3", b"new 4"]
    assert len(there) == 35
