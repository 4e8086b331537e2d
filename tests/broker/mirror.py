"""Configuration files of the broker tests, and what is awaited of a running driver."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from srm_spark.driver import Driver
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.kafka_io import Kafka, records

SOON = 90.0
"""Seconds that a thing may take on a loaded machine with two cores."""

_KEYS = {
    # Single brokers.
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "3",
    # The brokers serve all tests: what is not asked for would be seen by others.
    "emit.heartbeats.enabled": "false",
    "heartbeats.replication.enabled": "false",
    "refresh.topics.interval.seconds": "1",
    # Tables are written by Spark jobs, which only their own tests wait for.
    "state.path": "",
}


def write_config(
    path: Path, clusters: Mapping[str, KafkaCluster], flows: Sequence[str], keys: Mapping[str, str]
) -> Path:
    """A configuration file: aliases with their clusters, the enabled flows, more keys."""
    lines = {
        "clusters": ", ".join(clusters),
        **{f"{alias}.bootstrap.servers": cluster.bootstrap_servers for alias, cluster in clusters.items()},
        **{f"{flow}.enabled": "true" for flow in flows},
        "dialect": "mm2",
        **_KEYS,
        **keys,
    }
    path.write_text("".join(f"{key} = {value}\n".replace("\\", "\\\\") for key, value in lines.items()))
    return path


def status_of(driver: Driver, flow: str) -> FlowStatus:
    """The status of one flow."""
    return next(status for status in driver.status() if str(status.flow) == flow)


def await_state(driver: Driver, flow: str, state: FlowState, timeout: float = SOON) -> FlowStatus:
    """Wait until a flow is in a state."""
    await_until(
        lambda: status_of(driver, flow).state is state,
        timeout,
        lambda: f"{state.value}, but it is {status_of(driver, flow)}",
    )
    return status_of(driver, flow)


def await_lag_zero(driver: Driver, timeout: float = SOON) -> None:
    """Wait until every flow runs and says that nothing is left, looking once more: what it said before may be old."""
    looks = {status.flow: [status] for status in driver.status()}

    def is_done() -> bool:
        for status in driver.status():
            seen = looks.setdefault(status.flow, [status])
            if status.batch_ms is seen[-1].batch_ms:
                seen[-1] = status  # something else has changed
            else:  # found out by each look anew
                seen.append(status)
        # The first new one may come of a look that had begun before.
        return all(
            len(seen) > 2 and seen[-1].state is FlowState.RUNNING and seen[-1].lag_records == 0
            for seen in looks.values()
        )

    await_until(is_done, timeout, lambda: f"lag 0 of {driver.status()}")


def await_held(driver: Driver, names: Sequence[str], timeout: float = SOON) -> Mapping[str, str]:
    """Wait until exactly these topics or partitions stand still; their reasons."""
    await_until(
        lambda: set(driver.status()[0].held) == set(names), timeout, lambda: f"held {names}, but {driver.status()}"
    )
    return driver.status()[0].held


def await_losses(driver: Driver, expected: Mapping[str, str], timeout: float = SOON) -> None:
    """Wait until the driver tells exactly these losses: partition → offsets."""
    await_until(lambda: driver.status()[0].losses == expected, timeout, lambda: f"{expected}, but {driver.status()}")


def await_count(cluster: Kafka, topic: str, count: int, timeout: float = SOON) -> None:
    """Wait until a topic has got so many records, whatever markers lie between them."""
    until, needed = time.monotonic() + timeout, count
    while True:
        left = max(0.1, until - time.monotonic())
        await_until(partial(_has, cluster, topic, needed), left, lambda: f"{count} in {topic}: {cluster.ends(topic)}")
        seen = cluster.count(topic)
        missing = count - cluster.given(topic)
        if missing <= 0:
            return
        needed = seen + missing  # all of them are read as seldom as that


def _has(cluster: Kafka, topic: str, offsets: int) -> bool:
    return cluster.count(topic) >= offsets


def assert_copied(source: Kafka, topic: str, target: Kafka, remote: str, timeout: float = SOON) -> None:
    """Wait for as many records as the source has, then compare all of them, partition by partition, in order."""
    log = source.read(topic)
    await_count(target, remote, sum(map(len, log.values())), timeout)
    assert records(target.read(remote)) == records(log)
