"""Ids of idempotent producers, for tests that write as tasks do."""

from __future__ import annotations

from contextlib import closing

from srm_spark.core.record_batch import Author
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.testing import KafkaCluster


def author_of(cluster: KafkaCluster) -> Author:
    """One that nobody else has."""
    with closing(Brokers({"bootstrap.servers": cluster.bootstrap_servers}, "test")) as brokers:
        return brokers.new_author()
