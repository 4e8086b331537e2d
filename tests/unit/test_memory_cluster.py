"""The cluster in memory does what brokers do: the same contract as `tests/broker/test_cluster.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from srm_spark.core.cluster import Cluster
from srm_spark.core.model import TopicPartition
from srm_spark.core.tail import TailRecord
from srm_spark.errors import SourceUnavailable
from tests.cluster_contract import ClusterContract
from tests.memory_cluster import MemoryCluster, MemoryProducer


class TestMemoryCluster(ClusterContract):
    @pytest.fixture
    def cluster(self) -> Cluster:
        return MemoryCluster("A", SourceUnavailable)

    @pytest.fixture
    def topic(self) -> str:
        return "t"

    def delete(self, cluster: Cluster, topic: str) -> None:
        cast("MemoryCluster", cluster).delete(topic)

    def delete_before(self, cluster: Cluster, partition: TopicPartition, offset: int) -> None:
        cast("MemoryCluster", cluster).log(partition).delete_before(offset)

    def transaction(
        self, cluster: Cluster, partition: TopicPartition, values: list[bytes], end: str
    ) -> Callable[[], None]:
        producer = MemoryProducer(cast("MemoryCluster", cluster))
        for value in values:
            producer.write(partition, TailRecord(0, 0, None, value))
        if end == "commit":
            producer.commit()
        elif end == "abort":
            producer.abort()
        return producer.commit

    def test_a_cluster_that_is_down_answers_nothing(self, cluster: Cluster) -> None:
        cast("MemoryCluster", cluster).down = "no route"
        for call in (cluster.topics, cluster.ping, cluster.broker_count, lambda: cluster.end_offsets([])):
            with pytest.raises(SourceUnavailable, match="no route"):
                call()
