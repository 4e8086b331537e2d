"""What a driver says while a cluster is away, or does not move: within seconds, and nothing that it does not know."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from srm_spark.driver import Driver
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_count, await_lag_zero, await_state
from tests.broker.process import END_SECONDS, srm_driver
from tests.kafka_io import Kafka, numbered
from tests.soak.load import Load

pytestmark = pytest.mark.slow

TOLD_SECONDS = 5.0
_SLACK = 10.0
"""What a busy machine that also runs the brokers may be late; the client's own defaults would be 30 and 60 seconds."""
TROUBLE = (FlowState.STALLED, FlowState.RETRYING)


@pytest.fixture
def own(local_kafka: Callable[..., LocalKafka]) -> LocalKafka:
    """A broker of this test alone."""
    return local_kafka("away")


def _pair(pair: Pair, own: LocalKafka, side: str) -> Pair:
    """The pair with a source or a target of its own."""
    (a, here), (b, there) = pair.clusters.items()
    clusters: dict[str, KafkaCluster] = {a: own, b: there} if side == "source" else {a: here, b: own}
    return replace(pair, source=Kafka(clusters[a]), target=Kafka(clusters[b]), clusters=clusters)


def _await_trouble(driver: Driver, began: float) -> FlowStatus:
    def found() -> FlowStatus | None:
        status = driver.status()[0]
        return status if status.state in TROUBLE else None

    status = await_until(found, SOON, lambda: f"trouble, but {driver.status()[0]}")
    assert status is not None
    assert time.monotonic() - began < TOLD_SECONDS + _SLACK
    return status


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_cluster_that_is_away_is_told_within_seconds(pair: Pair, own: LocalKafka, side: str, how: str) -> None:
    pair = _pair(pair, own, side)
    pair.source.create(pair.topic())
    driver = pair.replicate()
    with Load(pair.source, pair.topic(), 1) as load:
        await_count(pair.target, pair.remote(), 500)
        await_state(driver, pair.flow, FlowState.RUNNING)
        (own.kill if how == "kill" else own.pause)()
        try:
            status = _await_trouble(driver, time.monotonic())
            alias = pair.alias if side == "source" else pair.target_alias
            assert f"cluster {alias} ({own.bootstrap_servers})" in (status.reason or "")
            assert (status.lag_records, status.latency_ms) == (None, None)
            assert status.unknown_since is not None
            assert abs(time.time() - status.unknown_since) < TOLD_SECONDS + _SLACK
        finally:
            (own.start if how == "kill" else own.resume)()
        await_state(driver, pair.flow, FlowState.RUNNING)
        load.end()
        await_lag_zero(driver, 2 * SOON)


def test_an_address_where_nobody_listens_is_told_within_seconds(pair: Pair, own: LocalKafka) -> None:
    own.stop()
    pair = _pair(pair, own, "target")
    driver = pair.replicate()
    status = _await_trouble(driver, time.monotonic())
    assert f"cluster {pair.target_alias} ({own.bootstrap_servers})" in (status.reason or "")
    assert "refused" in (status.reason or "").lower()
    driver.stop()


@pytest.fixture
def running(pair: Pair, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """srm-driver, while it copies."""
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    with srm_driver(tmp_path, pair.clusters, [pair.flow], pair.keys) as process:
        await_count(pair.target, pair.remote(), 10)
        yield process


def test_ctrl_c_says_what_it_waits_for(running: subprocess.Popen[bytes], pair: Pair, tmp_path: Path) -> None:
    running.send_signal(signal.SIGINT)
    assert running.wait(END_SECONDS) == 0
    log = (tmp_path / "driver.log").read_text()
    assert f"stopping: waiting for the batch in progress of {pair.flow}, 150 s at most; Ctrl-C again ends now" in log


def test_a_second_ctrl_c_ends_now(running: subprocess.Popen[bytes], pair: Pair, tmp_path: Path) -> None:
    log = tmp_path / "driver.log"
    running.send_signal(signal.SIGINT)
    await_until(lambda: "stopping: waiting" in log.read_text(), SOON, "the first one is told")
    running.send_signal(signal.SIGINT)
    assert running.wait(3) in (0, 130), "0 where it had ended in peace before"
    driver = pair.replicate()
    await_lag_zero(driver)
    assert pair.target.given(pair.remote()) == 10
