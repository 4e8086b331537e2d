"""A driver says how its flow is in every state, and nothing that goes wrong with that reaches the flow."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import MagicMock

import pytest

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Committed
from srm_spark.core.driver_status import DriverId, DriverStatus, FlowState, decode_status, driver_key, encode_status
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.tail import TailRecord
from srm_spark.errors import PluginError
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.groups.consumer_groups import ConsumersReport
from srm_spark.flow.groups.positions import Positions
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.publishing import Rate, StatusPublisher, said
from srm_spark.flow.runner import FlowRunner
from srm_spark.flow.status import FlowStatus
from srm_spark.spark.opening import Spark
from tests.awaiting import await_until
from tests.memory_cluster import MemoryLog
from tests.unit.memory_flow import HERE
from tests.unit.memory_run import QUICK, World

ME = DriverId("here", 1, 1)
TOPIC = "mm2-srm-status.A.internal"
OFTEN = replace(QUICK, status_seconds=0.02, silent_seconds=0.2)


def log_of(world: World) -> MemoryLog:
    return world.flow.target.log(TopicPartition(TOPIC, 0))


def words(world: World) -> list[DriverStatus]:
    if TOPIC not in world.flow.target.held:
        return []
    read = [decode_status(record.key, record.value) for record in list(log_of(world).records.values())]
    return [word for word in read if word is not None]


def running(world: World, tasks: Periodic) -> FlowRunner:
    return FlowRunner(world.flow.settings, Spark.given(MagicMock()), tasks, means=world.means, driver=ME)


def said_once(world: World, status: Callable[[], FlowStatus]) -> StatusPublisher:
    return StatusPublisher(world.flow.settings, ME, status, world.flow.reach)


def await_said(world: World, state: FlowState) -> DriverStatus:
    await_until(lambda: bool(words(world)) and words(world)[-1].state is state, 20, lambda: f"{state}: {words(world)}")
    return words(world)[-1]


def test_a_flow_says_how_it_is_in_every_state() -> None:
    world = World({"flow.retry.count": "-1", "flow.retry.delay.ms": "300"}, OFTEN)
    world.flow.lease.owner = "driver@elsewhere"
    tasks = Periodic()
    tasks.start()
    runner = running(world, tasks)
    try:
        runner.start()
        waiting = await_said(world, FlowState.WAITING)
        assert "driver@elsewhere" in (waiting.reason or "")
        world.flow.lease.owner = None
        running_ = await_said(world, FlowState.RUNNING)
        assert (running_.reason, running_.is_last, running_.driver) == (None, False, ME)
        assert running_.every == OFTEN.status_seconds
        world.flow.source.down = "no route"
        troubled = {word.state for word in words(world)}
        await_until(lambda: bool({w.state for w in words(world)} & {FlowState.STALLED, FlowState.RETRYING}), 20, "")
        last = words(world)[-1]
        assert (last.lag_records, last.latency_ms) == (None, None), troubled
        assert last.unknown_since is not None
        assert "no route" in (last.reason or "")
        world.flow.source.down = None
        assert "no route" in (await_said(world, FlowState.RUNNING).last_error or ""), "it is known though it is over"
    finally:
        runner.stop()
        assert runner.join(20)
        tasks.stop(5)
    end = words(world)[-1]
    assert (end.state, end.is_last) == (FlowState.STOPPED, True)
    assert [word.is_last for word in words(world)].count(True) == 1


def test_a_flow_that_is_given_up_says_so_to_its_last_word() -> None:
    world = World({"flow.retry.count": "0"}, OFTEN)
    world.flow.source.down = "no route"
    tasks = Periodic()
    tasks.start()
    runner = running(world, tasks)
    runner.start()
    given_up = (FlowState.FAILED, False)
    await_until(lambda: [(word.state, word.is_last) for word in words(world)[-1:]] == [given_up], 20, "given up")
    runner.stop()
    assert runner.join(20)
    tasks.stop(5)
    end = words(world)[-1]
    assert (end.state, end.is_last) == (FlowState.FAILED, True)
    assert "given up after 1 failed starts" in (end.reason or "")


def test_a_target_that_refuses_is_told_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    publisher = said_once(world, lambda: FlowStatus(Flow("A", "B")))
    with caplog.at_level(logging.INFO):
        for why in ("one", "another"):
            world.flow.target.down = why
            publisher.write()
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert f"status topic {TOPIC} is not written, the flow runs on" in caplog.text
        world.flow.target.down = None
        publisher.write()
        world.flow.target.down = "again"
        publisher.write()
    assert len(words(world)) == 1
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    "error", [PluginError("replication.policy.class", "x:Y", "is gone", "put it back"), ZeroDivisionError("?")]
)
def test_whatever_goes_wrong_never_reaches_the_flow(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    def reach(_: FlowSettings) -> Clusters:
        raise error

    world = World()
    publisher = StatusPublisher(world.flow.settings, ME, lambda: FlowStatus(Flow("A", "B")), reach)
    publisher.write()
    publisher.end()
    assert "is not written" in caplog.text


def test_the_last_word_is_not_waited_for_where_no_other_came_through() -> None:
    world = World()
    publisher = said_once(world, lambda: FlowStatus(Flow("A", "B"), FlowState.STOPPED))
    world.flow.target.down = "away"
    publisher.write()
    asked: list[str] = []
    world.flow.target.happens = asked.append
    publisher.end()
    assert not asked


def test_one_that_ends_before_its_first_word_says_so() -> None:
    world = World()
    said_once(world, lambda: FlowStatus(Flow("A", "B"), FlowState.FAILED, "no")).end()
    assert [(word.state, word.is_last) for word in words(world)] == [(FlowState.FAILED, True)]


def test_nothing_is_said_behind_the_last_word() -> None:
    world = World()
    publisher = said_once(world, lambda: FlowStatus(Flow("A", "B"), FlowState.STOPPED))
    publisher.write()
    publisher.end()
    publisher.write()
    publisher.end()
    assert [word.is_last for word in words(world)] == [False, True]


def test_the_owner_removes_what_drivers_said_that_are_gone_and_nobody_else_does() -> None:
    world = World()
    state = FlowState.WAITING
    publisher = said_once(world, lambda: FlowStatus(Flow("A", "B"), state))
    publisher.write()
    now = words(world)[0].at
    old, recent = DriverId("old", 1, 1), DriverId("recent", 1, 1)
    for driver, hours in ((old, 2.0), (recent, 0.5)):
        at = now - int(3_600_000 * hours)
        word = DriverStatus(driver, at, 5.0, FlowState.RUNNING)
        log_of(world).append(TailRecord(0, at, driver_key(driver), encode_status(word, Flow("A", "B"))))
    publisher.write()
    assert not [record for record in log_of(world).records.values() if record.value is None]
    state = FlowState.RUNNING
    publisher.write()
    assert [record.key for record in log_of(world).records.values() if record.value is None] == [driver_key(old)]


def test_who_may_not_read_the_topic_is_told_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    publisher = said_once(world, lambda: FlowStatus(Flow("A", "B"), FlowState.RUNNING))

    def happens(what: str) -> None:
        if what.startswith("read "):
            raise world.flow.target.refused(what, "READ is not allowed")

    world.flow.target.happens = happens
    publisher.write()
    publisher.write()
    publisher.end()
    assert [word.is_last for word in words(world)] == [False, False, True]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "keeps what drivers said that are gone" in caplog.text


def test_a_rate_is_that_since_the_last_word_and_unknown_where_the_flow_did_not_run() -> None:
    now = 0.0
    rate = Rate(lambda: now)

    def at(seconds: float, records: int, state: FlowState = FlowState.RUNNING) -> tuple[float | None, float | None]:
        nonlocal now
        now = seconds
        return rate.of(FlowStatus(Flow("A", "B"), state, records=records, bytes=10 * records))

    assert at(1, 100) == (None, None)
    assert at(3, 300) == (100.0, 1000.0)
    assert at(4, 300) == (0.0, 0.0)
    assert at(5, 300, FlowState.STALLED) == (None, None)
    assert at(6, 400) == (None, None)


def test_of_groups_nothing_is_said_while_the_flow_does_not_run() -> None:
    found = ConsumersReport(Positions((), {"g": "it is not told"}))
    world = World()
    status = FlowStatus(Flow("A", "B"), FlowState.RUNNING, consumers=found)
    running_, stalled = (
        said(one, ME, world.flow.settings, Rate()).groups for one in (status, replace(status, state=FlowState.STALLED))
    )
    assert running_ is not None
    assert running_.left == {"g": "it is not told"}
    assert stalled is None, "what was true before need not be now"


def test_groups_are_counted_with_why_one_is_not_in_sync() -> None:
    keys = {"sync.group.offsets.enabled": "true", "emit.checkpoints.enabled": "true"}
    world = World(keys, OFTEN)
    world.flow.write(b"a", b"b")
    groups = world.flow.source.group_calls.committed
    groups["g"] = {HERE: Committed(1)}
    groups["busy"] = {HERE: Committed(2)}
    world.flow.target.group_calls.live["busy"] = ("somebody",)
    tasks = Periodic()
    tasks.start()
    runner = running(world, tasks)
    runner.start()
    try:
        await_until(lambda: bool(world.generations), 20, "it runs")
        world.generation.copy()

        def summary() -> bool:
            said = words(world)
            found = said[-1].groups if said else None
            return found is not None and (found.taken, found.in_sync) == (2, 1)

        await_until(summary, 20, lambda: f"one of two in sync: {words(world)[-1:]}")
        found = words(world)[-1].groups
        assert found is not None
        assert found.left == {"busy": "t-0: not synced: the group has members on the target"}
    finally:
        runner.stop()
        assert runner.join(20)
        tasks.stop(5)
