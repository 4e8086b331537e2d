"""Ownership: one driver writes a flow; another one waits and goes on when the first is gone, however it went."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from srm_spark.flow.status import FlowState
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_count, await_lag_zero, await_state, status_of
from tests.broker.process import END_SECONDS, srm_driver
from tests.broker.progress_reader import assert_map_is_exact, read_progress
from tests.kafka_io import Kafka, numbered, produce, records

FREE_AFTER_CRASH = 5.0
_SLACK = 15.0
"""Seconds; what a busy machine may be late. Kafka's own default for a crash would be 45."""


def test_a_second_driver_waits_says_for_whom_and_takes_over(pair: Pair) -> None:
    pair.source.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(10, 2))
    first = pair.replicate()
    await_state(first, pair.flow, FlowState.RUNNING)
    second = pair.replicate()
    reason = await_state(second, pair.flow, FlowState.WAITING).reason
    assert reason is not None
    assert reason.startswith("another driver owns the flow: ")
    assert f"{socket.gethostname()} pid {os.getpid()}" in reason
    impatient = pair.replicate(waits=False)
    reason = await_state(impatient, pair.flow, FlowState.FAILED).reason
    assert reason is not None
    assert "--no-wait" in reason
    assert impatient.wait(5)
    pair.source.write(pair.topic(), numbered(10, 2, "more"))
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
    assert status_of(first, pair.flow).state is FlowState.RUNNING
    assert status_of(second, pair.flow).records == 0
    first.stop()
    await_state(second, pair.flow, FlowState.RUNNING)
    pair.source.write(pair.topic(), numbered(10, 2, "of the second"))
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())


def test_another_installation_that_calls_another_cluster_by_the_same_name_copies_nothing(
    pair: Pair, tertiary: KafkaCluster
) -> None:
    """Neither beside the first one nor behind it, but where its file says that it is the source now."""
    theirs = Kafka(tertiary)
    for cluster in (pair.source, theirs):
        cluster.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(10, 2))
    theirs.write(pair.topic(), numbered(10, 2, "of another cluster"))
    first = pair.replicate()
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
    clusters = {**pair.clusters, pair.alias: tertiary}
    ids = [str(cluster.admin.list_topics(timeout=10).cluster_id) for cluster in (pair.source, theirs)]
    keys = {**pair.keys, "flow.retry.delay.ms": "200"}
    second = pair.start(clusters, [pair.flow], keys)
    beside = await_state(second, pair.flow, FlowState.RETRYING).reason or ""
    assert f"leads to the Kafka cluster {ids[1]}, but a driver of another installation copies" in beside
    assert f"copies the flow from {ids[0]}: {socket.gethostname()} pid {os.getpid()}" in beside
    first.stop()
    remedy = f"{pair.flow}.flow.source.cluster.id = {ids[1]}"
    await_until(lambda: remedy in (status_of(second, pair.flow).reason or ""), SOON, "it says what to do")
    second.stop()
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
    stated = {**keys, f"{pair.flow}.flow.source.cluster.id": ids[1], "source.recreated.policy": "resume"}
    third = pair.start(clusters, [pair.flow], stated)
    await_state(third, pair.flow, FlowState.RUNNING)
    await_count(pair.target, pair.remote(), 20, SOON)
    back = pair.replicate({"flow.retry.delay.ms": "200"})
    assert ids[0] in (await_state(back, pair.flow, FlowState.RETRYING).reason or "")


@pytest.mark.slow
def test_what_a_frozen_owner_records_when_it_goes_on_is_not_taken(pair: Pair, tmp_path: Path) -> None:
    """It was stopped right behind asking for its lease, so only the target can refuse it: the topics stay true."""
    pair.source.create(pair.topic(), 1)
    pair.source.write(pair.topic(), numbered(20))
    settings = pair.settings(tmp_path)
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.broker.frozen_owner", str(tmp_path / "flow.properties"), pair.topic()],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        frozen = psutil.Process(owner.pid)
        await_until(lambda: frozen.status() == psutil.STATUS_STOPPED, SOON, "it is frozen")
        driver = pair.replicate()
        assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
        await_lag_zero(driver)
        topics = [settings.progress_topic, settings.map_topic, settings.quarantine_topic]
        topics.append(f"{pair.alias}.checkpoints.internal")
        before = {topic: records(pair.target.read(topic)) for topic in topics}
        frozen.resume()
        outcomes, _ = owner.communicate(timeout=SOON)
    finally:
        owner.kill()
    assert outcomes.split() == ["LeaseLost"] * 4
    assert {topic: records(pair.target.read(topic)) for topic in topics} == before
    pair.source.write(pair.topic(), numbered(20, prefix="more"))
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
    await_lag_zero(driver)
    found = read_progress(pair.target, settings.progress_topic)
    assert_map_is_exact(found, pair.source.read(pair.topic()), pair.target.read(pair.remote()))


@pytest.mark.slow
def test_the_lease_of_a_killed_driver_is_free_within_5_seconds(pair: Pair, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), 2)
    producer = pair.source.producer()
    produce(producer, pair.topic(), numbered(2000, 2))
    with srm_driver(tmp_path, pair.clusters, [pair.flow], pair.keys) as killed:
        await_count(pair.target, pair.remote(), 1)
        heir = pair.replicate()
        await_state(heir, pair.flow, FlowState.WAITING)
        produce(producer, pair.topic(), numbered(2000, 2, "w"))
        killed.send_signal(signal.SIGKILL)
        at = time.monotonic()
    await_state(heir, pair.flow, FlowState.RUNNING)
    assert time.monotonic() - at < FREE_AFTER_CRASH + _SLACK
    produce(producer, pair.topic(), numbered(100, 2, "x"))
    assert producer.flush(30) == 0
    # What the killed one had written but not recorded is recognised, not written again.
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
    await_lag_zero(heir)
    here, there = records(pair.source.read(pair.topic())), records(pair.target.read(pair.remote()))
    assert there == here


def test_sigterm_ends_the_batch_records_progress_and_exits_with_0(pair: Pair, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), 2)
    producer = pair.source.producer()
    produce(producer, pair.topic(), numbered(20_000, 2))
    with srm_driver(tmp_path, pair.clusters, [pair.flow], {**pair.keys, "batch.max.records": "3000"}) as process:
        await_count(pair.target, pair.remote(), 1)
        produce(producer, pair.topic(), numbered(1000, 2, "w"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS) == 0, (tmp_path / "driver.log").read_text()
    assert producer.flush(30) == 0
    log = (tmp_path / "driver.log").read_text()
    assert "state=stopped" in log
    assert "interrupted" not in log
    pair.replicate()
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sign", "asked"),
    [
        ("status: a line", signal.SIGTERM),
        ("status: a line", signal.SIGINT),
        ("state=waiting", signal.SIGTERM),
        ("state=running", signal.SIGTERM),
        ("state=running", signal.SIGINT),
    ],
)
def test_a_stop_in_each_phase_ends_cleanly_and_frees_the_flow(
    sign: str, asked: signal.Signals, pair: Pair, tmp_path: Path
) -> None:
    """While Spark starts, while the flow waits for another driver, and while there is nothing to do."""
    pair.source.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(100, 2))
    other = pair.replicate() if "waiting" in sign else None
    path = tmp_path / "driver.log"
    with srm_driver(tmp_path, pair.clusters, [pair.flow], pair.keys) as process:
        await_until(lambda: sign in path.read_text(), SOON, path.read_text)
        if "running" in sign:
            await_count(pair.target, pair.remote(), 100)
        os.killpg(process.pid, asked)  # as Ctrl-C and service managers do
        assert process.wait(END_SECONDS) == 0, path.read_text()
    assert "interrupted" not in path.read_text()
    heir = other or pair.replicate()
    pair.source.write(pair.topic(), numbered(100, 2, "more"))
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
    await_lag_zero(heir)
    assert pair.target.given(pair.remote()) == 200
