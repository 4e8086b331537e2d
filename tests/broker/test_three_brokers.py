"""Leaders change under load, on the source and on the target, and either one elects one that lacks records."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import ElectionType, KafkaException

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import TopicPartition
from srm_spark.errors import SourceUnavailable
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.testing import KafkaCluster, LocalCluster
from tests.awaiting import await_until
from tests.broker.conftest import Start
from tests.broker.mirror import SOON, await_count, await_held, await_lag_zero, await_losses
from tests.group_io import commit
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


def leader(kafka: Kafka, topic: str) -> tuple[int, list[int]]:
    """Of partition 0, and its in-sync replicas."""
    found = kafka.admin.list_topics(topic, timeout=30).topics[topic].partitions[0]
    return found.leader, sorted(found.isrs)


def test_a_partition_without_a_leader_is_not_taken_for_one_that_is_gone(cluster: LocalCluster, unique: str) -> None:
    kafka, place = Kafka(cluster), TopicPartition(f"t-{unique}", 0)
    kafka.place(place.topic, [(3,)])
    kafka.write(place.topic, numbered(3))
    client = ClusterClient(ClusterSettings("a", cluster.bootstrap_servers), SourceUnavailable, timeout=6)
    cluster.brokers[2].kill()
    await_until(
        lambda: kafka.admin.list_topics(place.topic, timeout=30).topics[place.topic].partitions[0].leader < 0,
        SOON,
        "no leader",
    )
    with pytest.raises(SourceUnavailable, match=str(place)):
        client.end_offsets([place])
    assert client.end_offsets([place], waits=False) == {}
    assert client.end_offsets([TopicPartition(f"never-{unique}", 0)]) == {}
    cluster.brokers[2].start()
    await_until(lambda: client.end_offsets([place], waits=False) == {place: 3}, SOON, "its leader is back")


def test_groups_are_not_overlooked_while_their_broker_hangs(cluster: LocalCluster, unique: str) -> None:
    kafka, groups = Kafka(cluster), [f"g{number}-{unique}" for number in range(12)]
    kafka.place(f"t-{unique}", [(1,)])
    for group in groups:
        commit(kafka, group, {(f"t-{unique}", 0): 0})
    client = ClusterClient(ClusterSettings("a", cluster.bootstrap_servers), SourceUnavailable, timeout=60)

    def others() -> list[int]:
        """Not broker 1: it is the only controller, and while that hangs no other broker takes its groups over."""
        kafka.admin.elect_leaders(ElectionType.PREFERRED, None).result(30)  # brokers that were stopped lead nothing yet
        try:
            described = [each.result() for each in kafka.admin.describe_consumer_groups(groups).values()]
        except KafkaException:  # a coordinator that has just moved still reads its groups
            return []
        return [each.coordinator.id for each in described if each.coordinator.id != 1]

    broker = cluster.broker(await_until(others, SOON, "a group whose coordinator is no controller")[0])
    with closing(client.groups("DESCRIBE")) as asked:
        # Leaders have just been moved: one that was told so, and has not begun to read, lists nothing yet.
        await_until(lambda: set(groups) <= set(asked.names()), SOON, "all groups")
        broker.pause()
        try:
            assert set(groups) <= set(asked.names())
        finally:
            broker.resume()


def test_nothing_is_lost_doubled_or_reordered_while_leaders_change(
    cluster: LocalCluster, unique: str, start: Start
) -> None:
    kafka, topic, remote = Kafka(cluster), f"t-{unique}", f"a{unique}.t-{unique}"
    kafka.place(topic, [(2, 3, 1), (3, 1, 2), (1, 2, 3), (2, 1, 3)])
    clusters, keys = {f"a{unique}": cluster, f"b{unique}": cluster}, {**KEYS, "topics": topic}
    driver = start(clusters, [f"a{unique}->b{unique}"], keys)
    written, is_over = 0, threading.Event()

    def write() -> None:
        nonlocal written
        producer = kafka.producer(acks="all", enable_idempotence=True)
        while not is_over.wait(0.1):
            produce(producer, topic, numbered(40, 4, f"{written} "))
            written += 40
        assert producer.flush(60) == 0

    load = threading.Thread(target=write)
    load.start()
    try:
        await_until(lambda: remote in kafka.topics(), SOON, "the remote topic")
        await_count(kafka, remote, 400, 2 * SOON)
        for node in (2, 3):
            before = kafka.given(remote)
            cluster.broker(node).kill()
            await_count(kafka, remote, before + 1000, 2 * SOON)
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
    kafka.place(topic, [(2, 3)], min_insync_replicas="1", unclean_leader_election_enable="true")
    kafka.write(topic, numbered(10))
    cluster.broker(3).kill()
    await_until(lambda: leader(kafka, topic) == (2, [2]), 2 * SOON, lambda: f"2 alone, {leader(kafka, topic)}")
    kafka.write(topic, numbered(5, prefix="lost "))
    # On the source nobody could write syncs at the end: of the brokers that were there at the start one is left.
    flow, keys = f"a{unique}->b{unique}", {"topics": topic, "offset-syncs.topic.location": "target"}
    driver = start({f"a{unique}": cluster, f"b{unique}": secondary}, [flow], keys)
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


def test_partitions_without_a_leader_keep_no_others_waiting(
    cluster: LocalCluster, secondary: KafkaCluster, unique: str, start: Start
) -> None:
    """Before the start, and under a running query."""
    kafka, target, topic, remote = Kafka(cluster), Kafka(secondary), f"t-{unique}", f"a{unique}.t-{unique}"
    kafka.place(topic, [(1,), (2,), (3,)])
    kafka.write(topic, numbered(30, 3))
    for node in (2, 3):
        cluster.broker(node).kill()
    await_until(lambda: len(without_leader(kafka, topic)) == 2, SOON, "no leaders")
    flow, keys = f"a{unique}->b{unique}", {"topics": topic, "offset-syncs.topic.location": "target"}
    driver = start({f"a{unique}": cluster, f"b{unique}": secondary}, [flow], keys)
    await_count(target, remote, 10, 2 * SOON)
    held = await_held(driver, [f"{topic}-1", f"{topic}-2"])
    assert all("no leader" in reason for reason in held.values())
    assert driver.status()[0].lag_records is None
    cluster.broker(2).start()
    await_count(target, remote, 20, 2 * SOON)
    await_held(driver, [f"{topic}-2"])
    cluster.broker(2).kill()
    await_held(driver, [f"{topic}-1", f"{topic}-2"], 2 * SOON)
    producer = kafka.producer()
    producer.produce(topic, b"meanwhile", partition=0)
    assert producer.flush(30) == 0
    await_count(target, remote, 21)
    for node in (2, 3):
        cluster.broker(node).start()
    await_count(target, remote, 31, 2 * SOON)
    await_lag_zero(driver)
    driver.stop()
    assert records(target.read(remote)) == records(kafka.read(topic))


def without_leader(kafka: Kafka, topic: str) -> list[int]:
    """Partitions."""
    found = kafka.admin.list_topics(topic, timeout=30).topics[topic].partitions
    return [number for number, partition in found.items() if partition.leader < 0]


@pytest.fixture
def target() -> Iterator[LocalCluster]:
    """Three brokers, the first of which keeps what the flow needs beside records: nothing of it is away with others."""
    with LocalCluster("moved", overrides={"offsets.topic.num.partitions": "1"}) as found:
        Kafka(found).place("__consumer_offsets", [(1,)], cleanup_policy="compact")
        yield found


def test_an_unclean_election_of_the_target_is_found_where_others_write_and_no_connection_breaks(
    target: LocalCluster, primary: KafkaCluster, unique: str, start: Start
) -> None:
    """The new leader knows nothing of the flow's producer, so it takes what comes; the old one only hung."""
    source, there, a = Kafka(primary), Kafka(target), f"a{unique}"
    topic, remote = f"t-{unique}", f"a{unique}.t-{unique}"
    for name in ("mm2-leases", "mm2-offset-map", "mm2-control", "mm2-srm-status", *["mm2-offsets"]):
        partitions = 3 if name == "mm2-offsets" else 1
        there.place(f"{name}.{a}.internal", [(1,)] * partitions, cleanup_policy="compact")
    there.place(remote, [(2, 3)], min_insync_replicas="1", unclean_leader_election_enable="true")
    target.broker(3).kill()
    await_until(lambda: leader(there, remote) == (2, [2]), 2 * SOON, lambda: f"2 alone, {leader(there, remote)}")
    source.create(topic)
    source.write(topic, numbered(10, prefix="lost "))
    keys = {"topics": topic, "foreign.writer.policy": "resume", "refresh.topics.interval.seconds": "600"}
    driver = start({a: primary, f"b{unique}": target}, [f"{a}->b{unique}"], keys)
    await_count(there, remote, 10, 2 * SOON)
    await_lag_zero(driver)
    target.broker(2).pause()
    target.broker(3).start()
    # A client that is new asks the broker that it was told of, and not the one that hangs.
    await_until(lambda: leader(Kafka(target.broker(1)), remote)[0] == 3, 2 * SOON, "3 leads")
    target.broker(2).resume()
    await_until(lambda: leader(there, remote) == (3, [2, 3]), 2 * SOON, lambda: f"both, {leader(there, remote)}")
    await_until(lambda: there.given(remote) == 0, SOON, lambda: f"none, {records(there.read(remote))}")
    there.write(remote, numbered(20, prefix="theirs "))
    source.write(topic, numbered(5, prefix="new "))
    await_losses(driver, {f"{topic}-0": "0 to 9"})
    await_count(there, remote, 25, 2 * SOON)
    await_lag_zero(driver)
    driver.stop()
    values = [record.value for record in records(there.read(remote))[0]]
    assert values[20:] == [f"new {number}".encode() for number in range(5)]
