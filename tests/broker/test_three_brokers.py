"""Leaders change under load, on the source and on the target, and the source elects one that lacks records."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka.cimpl import NewTopic

from srm_spark.testing import KafkaCluster, LocalCluster
from tests.awaiting import await_until
from tests.broker.conftest import Start
from tests.broker.mirror import SOON, await_count, await_lag_zero, await_losses
from tests.kafka_io import Kafka, numbered, produce, records

pytestmark = pytest.mark.slow

KEYS = {
    "replication.factor": "3",
    "offset-syncs.topic.replication.factor": "3",
    "checkpoints.topic.replication.factor": "3",
    "offset.storage.replication.factor": "3",
    "flow.retry.delay.ms": "500",
}


@pytest.fixture(scope="module")
def brokers() -> Iterator[LocalCluster]:
    """One cluster for both tests."""
    with LocalCluster("three", overrides={"min.insync.replicas": "2"}) as found:
        yield found


@pytest.fixture
def cluster(brokers: LocalCluster) -> Iterator[LocalCluster]:
    """All brokers run before and after."""
    yield brokers
    for broker in brokers.brokers:
        if not broker.running:
            broker.start()


def make(kafka: Kafka, topic: str, replicas: Sequence[Sequence[int]], **configs: str) -> None:
    """A topic with these replicas per partition, the leader first."""
    config = {key.replace("_", "."): value for key, value in configs.items()}
    (done,) = kafka.admin.create_topics(
        [NewTopic(topic, len(replicas), replica_assignment=[list(each) for each in replicas], config=config)]
    ).values()
    done.result(30)


def leader(kafka: Kafka, topic: str) -> tuple[int, list[int]]:
    """Of partition 0, and its in-sync replicas."""
    found = kafka.admin.list_topics(topic, timeout=30).topics[topic].partitions[0]
    return found.leader, sorted(found.isrs)


def test_nothing_is_lost_doubled_or_reordered_while_leaders_change(
    cluster: LocalCluster, unique: str, start: Start
) -> None:
    kafka, topic, remote = Kafka(cluster), f"t-{unique}", f"a{unique}.t-{unique}"
    make(kafka, topic, [(2, 3, 1), (3, 1, 2), (1, 2, 3), (2, 1, 3)])
    clusters, keys = {f"a{unique}": cluster, f"b{unique}": cluster}, {**KEYS, "topics": topic}
    driver = start(clusters, [f"a{unique}->b{unique}"], keys)
    written, is_over = 0, threading.Event()

    def write() -> None:
        nonlocal written
        producer = kafka.producer(acks="all", enable_idempotence=True)
        while not is_over.wait(0.02):
            produce(producer, topic, numbered(40, 4, f"{written} "))
            written += 40
        assert producer.flush(60) == 0

    load = threading.Thread(target=write)
    load.start()
    try:
        await_until(lambda: remote in kafka.topics(), SOON, "the remote topic")
        await_count(kafka, remote, 400, 2 * SOON)
        for node in (2, 3):
            before = kafka.count(remote)
            cluster.broker(node).kill()
            await_count(kafka, remote, before + 2000, 2 * SOON)
            cluster.broker(node).start()
            await_until(lambda: leader(kafka, remote)[1] == [1, 2, 3], 2 * SOON, "all replicas in sync")
    finally:
        is_over.set()
        load.join()
    await_count(kafka, remote, written, 2 * SOON)
    await_lag_zero(driver)
    driver.stop()
    assert records(kafka.read(remote)) == records(kafka.read(topic))
    assert sum(kafka.ends(topic).values()) == written
    assert driver.status()[0].losses == {}


def test_an_unclean_election_is_found_and_told(
    cluster: LocalCluster, secondary: KafkaCluster, unique: str, start: Start
) -> None:
    kafka, target, topic, remote = Kafka(cluster), Kafka(secondary), f"t-{unique}", f"a{unique}.t-{unique}"
    make(kafka, topic, [(2, 3)], min_insync_replicas="1", unclean_leader_election_enable="true")
    kafka.write(topic, numbered(10))
    cluster.broker(3).kill()
    await_until(lambda: leader(kafka, topic) == (2, [2]), 2 * SOON, lambda: f"2 alone, {leader(kafka, topic)}")
    kafka.write(topic, numbered(5, prefix="lost "))
    driver = start({f"a{unique}": cluster, f"b{unique}": secondary}, [f"a{unique}->b{unique}"], {"topics": topic})
    await_count(target, remote, 15, 2 * SOON)
    await_lag_zero(driver)
    old = records(target.read(remote))[0]
    cluster.broker(2).kill()
    cluster.broker(3).start()
    await_until(lambda: leader(kafka, topic)[0] == 3, 2 * SOON, lambda: f"3 leads, {leader(kafka, topic)}")
    kafka.write(topic, numbered(8, prefix="new "))
    assert kafka.ends(topic) == {0: 18}
    await_count(target, remote, 23, 2 * SOON)
    await_losses(driver, {f"{topic}-0": "10 to 14"})
    driver.stop()
    assert records(target.read(remote))[0] == old + records(kafka.read(topic))[0][10:]
