"""What brokers tell beyond librdkafka's calls: where leaders' logs end, which quotas there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.cimpl import NewTopic

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import TopicPartition
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.protocol import Protocol
from srm_spark.testing import LocalCluster, LocalKafka
from tests.kafka_io import Kafka, numbered


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    # A follower that is gone for good is no longer waited for: what only the leader has would count as there.
    long = dict.fromkeys(("replica.lag.time.max.ms", "broker.session.timeout.ms"), "300000")
    with LocalCluster("ends", 2, {"offsets.topic.replication.factor": "1", **long}) as found:
        yield found


def test_a_leader_tells_what_its_followers_do_not_have_yet(cluster: LocalCluster) -> None:
    kafka, place = Kafka(cluster), TopicPartition("t", 0)
    kafka.admin.create_topics([NewTopic("t", 1, replica_assignment=[[1, 2]])])["t"].result(30)
    kafka.write("t", numbered(10))
    follower = cluster.broker(2)
    with Protocol(ClusterSettings("b", cluster.bootstrap_servers), {}, "test", 30) as protocol:
        assert protocol.leader_log_ends([place]) == {place: 10}
        follower.pause()
        try:
            kafka.write("t", numbered(7), acks=1)
            assert kafka.ends("t") == {0: 10}
            assert protocol.leader_log_ends([place, TopicPartition("gone", 0)]) == {place: 17}
        finally:
            follower.resume()


def test_the_smallest_quota_of_those_who_write(local_kafka: Callable[..., LocalKafka]) -> None:
    broker = local_kafka("quotas")
    with Protocol(ClusterSettings("b", broker.bootstrap_servers), {}, "test", 30) as protocol:
        assert protocol.smallest_produce_quota() is None
        for entity, quota in ((("clients", "--entity-default"), 9000), (("users", "--entity-default"), 5000)):
            change = ("--entity-type", *entity, "--add-config", f"producer_byte_rate={quota},consumer_byte_rate=10")
            broker.tool("kafka.admin.ConfigCommand", "--alter", *change)
        assert protocol.smallest_produce_quota() == 5000


def test_who_does_not_answer_is_named(local_kafka: Callable[..., LocalKafka]) -> None:
    broker = local_kafka("silent")
    broker.stop()
    settings = ClusterSettings("b", broker.bootstrap_servers)
    with Protocol(settings, {}, "test", 2) as protocol, pytest.raises(ProtocolUnavailable, match=settings.alias):
        protocol.leader_log_ends([TopicPartition("t", 0)])
