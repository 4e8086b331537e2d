"""Flows are islands: a cluster that is away stops its own flows, which say why and come back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from srm_spark.flow.status import FlowState
from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_count, await_state, status_of
from tests.kafka_io import Kafka, numbered


@pytest.mark.slow
def test_a_cluster_that_goes_away_stops_its_own_flow_only(pair: Pair, local_kafka: Callable[..., LocalKafka]) -> None:
    """Two flows: the usual one, and one from a cluster that goes and comes."""
    lost = local_kafka("lost")
    topic, other = pair.topic(), f"l{pair.unique}"
    flow = f"{other}->{pair.target_alias}"
    there = Kafka(lost)
    for kafka in (pair.source, there):
        kafka.create(topic)
        kafka.write(topic, numbered(5))
    keys = {**pair.keys, "flow.retry.delay.ms": "500", "admin.timeout.ms": "8000"}
    driver = pair.start({**pair.clusters, other: lost}, [pair.flow, flow], keys)
    assert_copied(pair.source, topic, pair.target, pair.remote())
    assert_copied(there, topic, pair.target, f"{other}.{topic}")

    lost.stop()
    await_until(
        lambda: lost.bootstrap_servers in (status_of(driver, flow).reason or ""),
        SOON,
        lambda: f"a reason with the address in {status_of(driver, flow)}",
    )
    assert status_of(driver, flow).state in (FlowState.STALLED, FlowState.RETRYING)
    pair.source.write(topic, numbered(5, prefix="meanwhile"))
    assert_copied(pair.source, topic, pair.target, pair.remote())
    assert status_of(driver, pair.flow).state is FlowState.RUNNING

    lost.start()
    await_state(driver, flow, FlowState.RUNNING)
    there.write(topic, numbered(5, prefix="back"))
    await_count(pair.target, f"{other}.{topic}", 10)
    assert_copied(there, topic, pair.target, f"{other}.{topic}")
    assert status_of(driver, pair.flow).records == 10
