"""What a flow's status tells the log."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from unittest.mock import MagicMock

import pytest

from srm_spark.config import load_settings
from srm_spark.core.acts import Scope
from srm_spark.core.model import Flow
from srm_spark.core.standstills import Standstill
from srm_spark.errors import SourceUnavailable
from srm_spark.flow.generation import Running
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.runner import FlowRunner
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.spark.opening import Spark
from tests.awaiting import await_until
from tests.unit.memory_run import World

CONFIG = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"


def _runner(tmp_path: Path, before: FlowStatus | None = None) -> FlowRunner:
    path = tmp_path / "srm.properties"
    path.write_text(CONFIG)
    return FlowRunner(load_settings([path]).flows[0], Spark.given(MagicMock()), Periodic(), before=before)


def test_numbers_of_the_moment_end_with_it_and_say_since_when(tmp_path: Path) -> None:
    runner = _runner(tmp_path)
    runner.show(FlowState.RUNNING, None, records=5, lag_records=3, latency_ms=40, limit="slow")
    assert (runner.status.lag_records, runner.status.unknown_since) == (3, None)
    runner.show(FlowState.STALLED, "B does not answer", unknown_since=1000.0)
    stalled = runner.status
    assert (stalled.records, stalled.lag_records, stalled.latency_ms, stalled.limit) == (5, None, None, None)
    runner.show(FlowState.RETRYING, "it failed")
    assert runner.status.unknown_since == 1000.0
    runner.show(FlowState.RUNNING, None, records=1)
    running = runner.status
    assert (running.records, running.latency_ms, running.unknown_since) == (6, None, None)


def test_totals_go_on_when_a_flow_starts_by_other_settings(tmp_path: Path) -> None:
    before = FlowStatus(
        Flow("A", "B"), FlowState.RUNNING, records=7, lag_records=1, losses={"t-0": "5"}, lost_records=1
    )
    status = _runner(tmp_path, before).status
    assert (status.state, status.records, status.lost_records, status.losses) == (
        FlowState.STARTING,
        7,
        1,
        {"t-0": "5"},
    )
    assert status.lag_records is None


def test_what_stands_still_is_logged_once_with_its_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runner = _runner(tmp_path)
    with caplog.at_level(logging.WARNING):
        for reason in ("too large", "too large", "too old"):
            runner.show(
                FlowState.RUNNING, None, standing=(Standstill(Scope("orders", 0), f"held at offset 5: {reason}"),)
            )
            runner.show(FlowState.RUNNING, None)  # nothing new about it
    assert [record.getMessage() for record in caplog.records if record.name == "srm_spark.flow.runner"] == [
        "flow=A->B orders-0 held at offset 5: too large",
        "flow=A->B orders-0 held at offset 5: too old",
    ]


def _running(world: World, *, waits: bool = True) -> FlowRunner:
    return FlowRunner(world.flow.settings, Spark.given(MagicMock()), Periodic(), waits=waits, means=world.means)


def _ended(world: World, runner: FlowRunner) -> FlowStatus:
    """What is shown of it when it was given up; it waits for somebody who starts it."""
    runner.start()
    await_until(lambda: runner.status.state is FlowState.FAILED, 20, "it is given up")
    runner.stop()
    assert runner.join(20)
    return runner.status


RETRIES = {"flow.retry.count": "2", "flow.retry.delay.ms": "1"}


def test_a_flow_that_cannot_start_is_tried_as_often_as_it_may_be() -> None:
    world = World(RETRIES)
    world.flow.source.down = "no route"
    status = _ended(world, _running(world))
    assert status.state is FlowState.FAILED
    assert (status.reason or "").startswith("given up after 3 failed starts: cluster A")


def test_a_flow_comes_back_when_its_cluster_does(caplog: pytest.LogCaptureFixture) -> None:
    world = World({"flow.retry.count": "-1", "flow.retry.delay.ms": "1"})
    world.flow.source.down = "no route"
    runner = _running(world)
    with caplog.at_level(logging.INFO):
        runner.start()
        await_until(lambda: runner.status.state is FlowState.RETRYING, 10, "it is away")
        world.flow.source.down = None
        await_until(lambda: runner.status.state is FlowState.RUNNING, 10, "it is back")
        runner.stop()
        assert runner.join(20)
    assert runner.status.state is FlowState.STOPPED
    states = [one.split()[1] for one in caplog.messages if " state=" in one]
    assert states[-2:] == ["state=running", "state=stopped"]


def test_a_flow_of_another_driver_fails_at_once_where_it_is_not_waited_for() -> None:
    world = World(RETRIES)
    world.flow.lease.owner = "driver@host"
    status = _ended(world, _running(world, waits=False))
    assert status.state is FlowState.FAILED
    assert "another driver owns the flow: driver@host" in (status.reason or "")


class Client:
    """One that its own threads and callbacks refer to, as librdkafka's."""

    def __init__(self) -> None:
        self.callback = self.close

    def close(self) -> None:
        """Nothing."""


def test_clients_of_a_run_that_failed_are_given_back_before_the_next_one() -> None:
    """Python looks for circles of references when it likes: a flow that tries for hours would gather hundreds."""
    world, clients = World(RETRIES), list[weakref.ref[Client]]()

    def reach(*_: object) -> NoReturn:
        if threading.current_thread().name == f"srm {world.flow.settings.flow}":  # others tell of it
            assert not any(client() for client in clients)
            made = Client()
            clients.append(weakref.ref(made))
        raise SourceUnavailable("no route")

    world.means = replace(world.means, reach=reach)
    gc.disable()
    try:
        status = _ended(world, _running(world))
    finally:
        gc.enable()
    assert status.state is FlowState.FAILED
    assert "no route" in (status.reason or ""), "and not what a look at them has found"
    assert len(clients) >= 3


def test_what_spark_raises_is_told_by_its_first_line() -> None:
    world = World({"flow.retry.count": "0"})

    def generate(*_: object, **__: object) -> Running:
        raise RuntimeError("the reason\nat a stack")

    world.means = replace(world.means, generate=generate)
    status = _ended(world, _running(world))
    assert status.reason == "given up after 1 failed starts: flow A->B: RuntimeError: the reason"


def test_one_that_never_started_has_ended() -> None:
    runner = _running(World())
    runner.stop()
    assert runner.join(0)


def test_one_that_fails_while_it_is_stopped_is_stopped_and_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World({"flow.retry.count": "-1", "flow.retry.delay.ms": "1"})

    def generate(*_: object, **__: object) -> Running:
        runner.stop()
        raise SourceUnavailable("no route")

    world.means = replace(world.means, generate=generate)
    runner = _running(world)
    with caplog.at_level(logging.INFO):
        runner.start()
        assert runner.join(20)
    assert (runner.status.state, runner.status.reason) == (FlowState.STOPPED, "not in peace: no route")
    assert not any("state=retrying" in one for one in caplog.messages)
