"""What a controller takes in one request is bounded; what a flow needs is not."""

from __future__ import annotations

import pytest

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.cluster import TopicSpec
from srm_spark.errors import TargetUnavailable
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.testing import LocalKafka
from tests.awaiting import await_until

pytestmark = pytest.mark.slow


def test_topics_of_many_partitions_are_made_in_several_requests() -> None:
    with LocalKafka("many", heap="1g") as broker:
        cluster = ClusterClient(ClusterSettings("b", broker.bootstrap_servers), TargetUnavailable)
        names = [f"t{number}" for number in range(12)]
        assert set(cluster.create(TopicSpec(name, 900, 1, {}) for name in names).values()) == {None}
        await_until(lambda: cluster.topics().keys() >= set(names), 300, "11 topics of 900 partitions")
