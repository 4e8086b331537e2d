"""A real broker behind the port: the same contract as `tests/unit/test_memory_cluster.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.cluster import Cluster
from srm_spark.core.model import TopicPartition
from srm_spark.errors import SourceUnavailable
from srm_spark.kafka.cluster import ClusterClient
from tests.broker.conftest import Pair
from tests.cluster_contract import ClusterContract
from tests.kafka_io import Kafka

TIMEOUT = 30


class TestKafkaCluster(ClusterContract):
    @pytest.fixture
    def kafka(self, pair: Pair) -> Kafka:
        return pair.source

    @pytest.fixture
    def cluster(self, kafka: Kafka) -> Cluster:
        self._kafka = kafka
        settings = ClusterSettings("A", kafka.bootstrap_servers)
        return ClusterClient(settings, SourceUnavailable, timeout=TIMEOUT)

    @pytest.fixture
    def topic(self, pair: Pair) -> str:
        return pair.topic()

    def delete(self, _: Cluster, topic: str) -> None:
        self._kafka.delete(topic)

    def delete_before(self, _: Cluster, partition: TopicPartition, offset: int) -> None:
        self._kafka.delete_records(partition.topic, partition.partition, offset)

    def transaction(self, _: Cluster, partition: TopicPartition, values: list[bytes], end: str) -> Callable[[], None]:
        producer = self._kafka.producer(transactional_id=f"tx-{partition.topic}")
        producer.init_transactions(TIMEOUT)
        producer.begin_transaction()
        for value in values:
            producer.produce(partition.topic, value, partition=partition.partition)
        producer.flush(TIMEOUT)
        if end != "open":
            {"commit": producer.commit_transaction, "abort": producer.abort_transaction}[end](TIMEOUT)
        return lambda: producer.commit_transaction(TIMEOUT)
