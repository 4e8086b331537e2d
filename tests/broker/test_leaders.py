"""What the product asks of a cluster whose partitions get another leader epoch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import TopicPartition
from srm_spark.errors import SourceUnavailable
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.testing import LocalKafka
from tests.kafka_io import Kafka, numbered


def test_offsets_and_epochs_are_listed_after_a_change_of_leader(local_kafka: Callable[..., LocalKafka]) -> None:
    """The client library would go on asking with the epoch that it knew, until its metadata is five minutes old."""
    broker = local_kafka("leaders")
    kafka = Kafka(broker)
    kafka.create("t")
    kafka.write("t", numbered(3))
    place = TopicPartition("t", 0)
    cluster = ClusterClient(ClusterSettings("a", broker.bootstrap_servers), SourceUnavailable, timeout=30)
    assert cluster.end_offsets([place]) == {place: 3}
    before = cluster.log_ends([place])[place]
    broker.kill()
    broker.start()
    assert cluster.end_offsets([place]) == {place: 3}
    assert cluster.first_offsets([place]) == {place: 0}
    now = cluster.log_ends([place])[place]
    assert before.offset == now.offset == 3
    assert before.epoch is not None
    assert now.epoch is not None
    assert now.epoch > before.epoch


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_leader_that_is_away_is_no_end_of_its_partitions(local_kafka: Callable[..., LocalKafka], how: str) -> None:
    """The client library calls it a success where a leader that it knows does not answer."""
    broker = local_kafka("away")
    kafka, place = Kafka(broker), TopicPartition("t", 0)
    kafka.create("t")
    kafka.write("t", numbered(3))
    cluster = ClusterClient(ClusterSettings("a", broker.bootstrap_servers), SourceUnavailable, timeout=6)
    assert cluster.end_offsets([place]) == {place: 3}
    (broker.kill if how == "kill" else broker.pause)()
    try:
        for ask in (cluster.end_offsets, cluster.log_ends):
            with pytest.raises(SourceUnavailable, match=r"cluster a .*cannot list"):
                ask([place])
    finally:
        (broker.start if how == "kill" else broker.resume)()
    assert cluster.end_offsets([place]) == {place: 3}
