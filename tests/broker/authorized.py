"""Brokers with an authorizer to which the tests' own clients may do everything."""

from __future__ import annotations

from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import SourceUnavailable
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.testing import KafkaCluster

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def client(cluster: KafkaCluster) -> ClusterClient:
    """What makes and reads topics, ACLs and quotas there."""
    return ClusterClient(ClusterSettings("x", cluster.bootstrap_servers), SourceUnavailable, timeout=30.0)
