"""What a controller takes in one request is bounded; a flow's requests (`ClusterClient.create`) stay below that."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.cimpl import NewTopic

from srm_spark.testing import KafkaCluster
from tests.kafka_io import Kafka


@pytest.mark.parametrize(("topics", "is_taken"), [(11, True), (12, False)])
def test_more_than_10000_partitions_in_one_request_are_refused(
    secondary: KafkaCluster, unique: str, topics: int, *, is_taken: bool
) -> None:
    """Only asked, for to make them takes a minute. tests/unit/test_cluster.py has a controller that refuses so many."""
    new = [NewTopic(f"t{unique}-{number}", 900, 1) for number in range(topics)]
    admin, refusals = Kafka(secondary).admin, set()
    for future in admin.create_topics(new, validate_only=True).values():
        try:
            future.result(60)
        except KafkaException as error:
            refusals.add(error.args[0].code())
    assert refusals == (set() if is_taken else {KafkaError.POLICY_VIOLATION})
