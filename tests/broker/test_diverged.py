"""The source loses records that were replicated, and keeps its topic id: a disk from a backup, an unclean election.

Its log may end before our position then, or have grown past it with other records. Both are found by reading the last
replicated record again, and what the target alone has left is told as exact offsets.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from srm_spark.driver import Driver
from srm_spark.flow.recovery import identity
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.broker.backup import backup
from tests.broker.conftest import Pair, Start
from tests.broker.map_reader import read_map
from tests.broker.mirror import await_count, await_held, await_lag_zero, await_losses
from tests.kafka_io import Kafka, Record, numbered, records

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(local_kafka: Callable[..., LocalKafka]) -> LocalKafka:
    """The source of this test alone."""
    return local_kafka("diverged")


@pytest.fixture
def pair(broker: LocalKafka, secondary: KafkaCluster, unique: str, start: Start) -> Pair:
    """One flow from it."""
    clusters = {f"a{unique}": broker, f"b{unique}": secondary}
    return Pair(Kafka(broker), Kafka(secondary), clusters, unique, start)


def replicate_all(pair: Pair, keys: dict[str, str] | None = None) -> Driver:
    driver = pair.replicate(keys)
    await_count(pair.target, pair.remote(), pair.source.count(pair.topic()))
    await_lag_zero(driver)
    return driver


def copied(pair: Pair) -> list[Record]:
    return records(pair.target.read(pair.remote()))[0]


def mapped(pair: Pair) -> list[tuple[int, int]]:
    """Source and target offset of each record, by the offset map."""
    parts = read_map(pair.target, pair.map_topic)[pair.topic(), 0]
    intervals = [interval for start in sorted(parts) for interval in parts[start][1]]
    return [(up + n, down + n) for up, down, count in intervals for n in range(count)]


NEW = numbered(8, prefix="new ")


@pytest.mark.parametrize(("count", "is_running"), [(3, True), (8, False)])
def test_what_the_source_has_lost_is_named_and_what_is_new_there_is_copied(
    pair: Pair, broker: LocalKafka, count: int, is_running: bool
) -> None:
    """With 3 new records it ends before the position, with 8 behind it."""
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    with backup(broker, pair.topic()):
        pair.source.write(pair.topic(), numbered(5, prefix="lost "))
        driver = replicate_all(pair)
        old = copied(pair)
        if not is_running:
            driver.stop()
    pair.source.write(pair.topic(), NEW[:count])
    assert pair.source.count(pair.topic()) == 10 + count
    if not is_running:
        driver = pair.replicate()
    await_count(pair.target, pair.remote(), 15 + count)
    await_losses(driver, {f"{pair.topic()}-0": "10 to 14"})
    await_lag_zero(driver)
    driver.stop()
    left = records(pair.source.read(pair.topic()))[0]
    assert copied(pair) == old + left[10:]
    places = [stored.offset for stored in pair.target.read(pair.remote())[0]]  # a marker may lie between them
    assert mapped(pair) == list(enumerate([*places[:10], *places[15:]]))


def test_without_the_comparison_records_would_be_skipped(
    pair: Pair, broker: LocalKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "differing_copies", lambda *_: set())
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    with backup(broker, pair.topic()):
        pair.source.write(pair.topic(), numbered(5, prefix="lost "))
        replicate_all(pair).stop()
    pair.source.write(pair.topic(), NEW)
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 18)
    await_lag_zero(driver)
    driver.stop()
    assert [record.value for record in copied(pair)[15:]] == [b"new 5", b"new 6", b"new 7"]


def test_with_the_policy_to_stop_the_partition_is_held_where_it_differs(pair: Pair, broker: LocalKafka) -> None:
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    with backup(broker, pair.topic()):
        pair.source.write(pair.topic(), numbered(5, prefix="lost "))
        driver = replicate_all(pair, {"source.diverged.policy": "stop"})
    pair.source.write(pair.topic(), NEW)
    held = await_held(driver, [f"{pair.topic()}-0"])
    assert "held at offset 10: offsets 10 to 14 were replicated" in held[f"{pair.topic()}-0"]
    assert len(copied(pair)) == 15
    driver.stop()
    assert driver.status()[0].losses == {}


def test_a_new_leader_with_the_same_log_changes_nothing(pair: Pair, broker: LocalKafka) -> None:
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    driver = replicate_all(pair)
    broker.kill()
    broker.start()
    pair.source.write(pair.topic(), NEW)
    await_count(pair.target, pair.remote(), 18)
    await_lag_zero(driver)
    driver.stop()
    assert copied(pair) == records(pair.source.read(pair.topic()))[0]
    assert driver.status()[0].losses == {}


def _log_append_time(pair: Pair, kind: str) -> None:
    if pair.remote() not in pair.target.topics():
        pair.target.create(pair.remote())
    pair.target.configure(pair.remote(), message_timestamp_type=kind)


@pytest.mark.parametrize("what", ["provenance", "timestamps"])
def test_copies_that_were_made_in_another_way_are_still_copies(pair: Pair, broker: LocalKafka, what: str) -> None:
    """The source has a new leader, so they are compared; a header or a timestamp of then makes them no others."""
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    if what == "timestamps":
        _log_append_time(pair, "LogAppendTime")
    replicate_all(pair, {"provenance.header.enabled": str(what == "provenance").lower()}).stop()
    _log_append_time(pair, "CreateTime")
    broker.kill()
    broker.start()
    pair.source.write(pair.topic(), NEW)
    driver = replicate_all(pair)
    driver.stop()
    assert [record.value for record in copied(pair)] == [r.value for r in records(pair.source.read(pair.topic()))[0]]
    assert driver.status()[0].losses == {}
