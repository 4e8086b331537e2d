"""Samples lie in their topic with right sums, what is copied where stays known, and nothing of it reaches the flow."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import MagicMock

import pytest

from srm_spark.core.driver_status import DriverId, FlowState
from srm_spark.core.metrics import (
    META_TOPIC,
    FlowSample,
    GroupSample,
    PartitionSample,
    Sample,
    TopicMeta,
    decode,
    decode_meta,
    decode_meta_key,
    encode_meta,
)
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.tail import TailRecord
from srm_spark.core.tallies import Tally
from srm_spark.flow.meter import Look, Meter
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.runner import FlowRunner
from srm_spark.flow.sample_publishing import SamplePublisher
from srm_spark.flow.status import FlowStatus
from srm_spark.spark.opening import Spark
from tests.awaiting import await_until
from tests.unit.memory_flow import HERE
from tests.unit.memory_run import QUICK, World

FLOW = Flow("A", "B")
ME = DriverId("here", 1, 1)
TOPIC = "srm-metrics-A.internal"
RUNNING = FlowStatus(FLOW, FlowState.RUNNING)


def samples(world: World) -> list[Sample]:
    held = world.flow.target.held
    records = world.flow.target.log(TopicPartition(TOPIC, 0)).records if TOPIC in held else {}
    return [one for record in list(records.values()) if (one := decode(record.key, record.value)) is not None]


def meta(world: World, flow: Flow = FLOW) -> dict[str, TopicMeta | None]:
    """Source topic → what is said of it last."""
    said: dict[str, TopicMeta | None] = {}
    for record in world.flow.target.log(TopicPartition(META_TOPIC, 0)).records.values():
        about = decode_meta_key(record.key)
        if about is not None and about[0] == flow:
            said[about[1]] = decode_meta(record.key, record.value)
    return said


def publisher(world: World, meter: Meter, status: Callable[[], FlowStatus] = lambda: RUNNING) -> SamplePublisher:
    return SamplePublisher(world.flow.settings, ME, status, meter, world.flow.reach)


def looked(**topics: int) -> Meter:
    meter = Meter()
    meter.looked(Look(topics, {topic: f"A.{topic}" for topic in topics}, {}, {}))
    return meter


def test_a_flow_tells_what_it_copies_and_by_its_last_sample_that_it_ends() -> None:
    world = World({"metrics.period": "1", "emit.checkpoints.enabled": "true"}, QUICK)
    world.flow.write(b"a", b"b", b"c")
    tasks = Periodic()
    tasks.start()
    runner = FlowRunner(world.flow.settings, Spark.given(MagicMock()), tasks, means=world.means, driver=ME)
    runner.start()

    def copied() -> int:
        return sum(one.records for one in samples(world) if isinstance(one, PartitionSample))

    try:
        await_until(lambda: bool(world.generations), 20, "it runs")
        world.generation.copy()
        await_until(lambda: copied() == 3, 20, lambda: f"three records: {samples(world)}")
        world.flow.write(b"d")
        world.generation.copy()
        await_until(lambda: copied() == 4, 20, lambda: f"four records: {samples(world)}")
        newest = [one for one in samples(world) if isinstance(one, PartitionSample)][-1]
        assert (newest.partition, newest.remote, newest.state) == (HERE, "A.t", "running")
    finally:
        runner.stop()
        assert runner.join(20)
        tasks.stop(5)
    flows = [one for one in samples(world) if isinstance(one, FlowSample)]
    assert [one.is_last for one in flows].count(True) == 1
    assert (flows[-1].state, flows[-1].is_last, flows[-1].driver) == (FlowState.STOPPED, True, str(ME))
    assert {one.every for one in flows} == {1.0}
    assert copied() == 4, "each record is told once"
    assert meta(world) == {"t": TopicMeta(FLOW, "t", "A.t", 1, "t")}
    assert not [one for one in samples(world) if isinstance(one, GroupSample)]


def test_their_topic_deletes_by_age_and_that_of_the_topics_is_compacted() -> None:
    world = World({"metrics.topic.replication.factor": "1"})
    publisher(world, looked(t=1)).write()
    held = world.flow.target.held
    assert (len(held[TOPIC].partitions), held[TOPIC].configs["cleanup.policy"]) == (1, "delete")
    assert held[TOPIC].configs["retention.ms"] == str(3 * 3_600_000)
    assert (len(held[META_TOPIC].partitions), held[META_TOPIC].configs["cleanup.policy"]) == (1, "compact")


def test_a_topic_that_flows_no_longer_leaves_and_what_others_said_stays() -> None:
    world, meter = World(), looked(t=1, u=2)
    one = publisher(world, meter)
    one.write()
    log = world.flow.target.log(TopicPartition(META_TOPIC, 0))
    other = TopicMeta(Flow("C", "B"), "t", "C.t", 1, "t")
    log.append(TailRecord(0, 1, *encode_meta(other)))
    log.append(TailRecord(0, 1, b"somebody's", b"record"))
    count = len(log.records)
    one.write()
    assert len(log.records) == count, "what is said already is not said again"
    meter.looked(Look({"u": 3}, {"u": "A.u"}, {}, {}))
    one.write()
    assert meta(world) == {"t": None, "u": TopicMeta(FLOW, "u", "A.u", 3, "u")}
    assert meta(world, other.flow) == {"t": other}
    log.append(TailRecord(0, 1, *encode_meta(TopicMeta(FLOW, "gone", "A.gone", 1, "gone"))))
    one.write()
    assert meta(world)["gone"] is None, "another driver said it, before this one"


def test_nobody_says_which_topics_flow_while_that_is_not_known() -> None:
    world, meter = World(), looked(t=1)
    status = RUNNING
    one = publisher(world, meter, lambda: status)
    one.write()
    meter.gone()
    one.write()
    status = replace(RUNNING, state=FlowState.STALLED)
    meter.looked(Look({"u": 1}, {}, {}, {}))
    one.write()
    assert meta(world) == {"t": TopicMeta(FLOW, "t", "A.t", 1, "t")}


def test_a_topic_that_was_deleted_is_made_and_filled_again() -> None:
    world = World()
    one = publisher(world, looked(t=1))
    one.write()
    world.flow.target.delete(META_TOPIC)
    world.flow.target.delete(TOPIC)
    for _ in range(3):
        one.write()
    assert meta(world) == {"t": TopicMeta(FLOW, "t", "A.t", 1, "t")}
    assert samples(world)


def test_a_target_that_refuses_is_told_once_and_what_it_missed_is_told_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    world, meter = World(), Meter(clock=lambda: now)
    one = publisher(world, meter)
    one.write()
    with caplog.at_level(logging.INFO):
        for seconds, why in ((1.0, "one"), (3.0, "another")):
            world.flow.target.down, now = why, seconds
            meter.copied({HERE: Tally(5, 50, {3: 5}, 40.0, 8.0, 8.0)})
            one.write()
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "metrics are not written, the flow runs on" in caplog.text
    world.flow.target.down, now = None, 4.0
    meter.copied({HERE: Tally(1, 10)})
    one.write()
    (late,) = [said for said in samples(world) if isinstance(said, PartitionSample)]
    assert (late.records, late.bytes, late.latency.count, late.seconds) == (11, 110, 10, 4.0)
    assert len([said for said in samples(world) if isinstance(said, FlowSample)]) == 2


def test_one_that_could_not_write_says_no_last_word() -> None:
    world = World()
    one = publisher(world, looked(t=1))
    one.write()
    world.flow.target.down = "away"
    one.write()
    asked: list[str] = []
    world.flow.target.happens = asked.append
    one.end()
    assert not asked


def test_one_that_never_wrote_says_no_last_word() -> None:
    world = World()
    publisher(world, looked(t=1)).end()
    assert TOPIC not in world.flow.target.held


def test_switched_off_nothing_is_written() -> None:
    world = World({"metrics.period": "-1"})
    tasks = MagicMock()
    publisher(world, Meter()).start(tasks)
    assert not tasks.every.called


def test_a_topic_that_a_running_flow_takes_no_longer_leaves() -> None:
    world = World({"metrics.period": "1"}, QUICK)
    world.topic("u", b"u")
    tasks = Periodic()
    tasks.start()
    runner = FlowRunner(world.flow.settings, Spark.given(MagicMock()), tasks, means=world.means, driver=ME)
    runner.start()
    both = {topic: TopicMeta(FLOW, topic, f"A.{topic}", 1, topic) for topic in ("t", "u")}
    try:
        await_until(lambda: META_TOPIC in world.flow.target.held and meta(world) == both, 20, "both are said to flow")
        del world.flow.source.held["u"]
        await_until(lambda: meta(world) == {**both, "u": None}, 20, lambda: f"u has left: {meta(world)}")
        newest = [one for one in samples(world) if isinstance(one, FlowSample)][-1]
        assert newest.partitions == 1
    finally:
        runner.stop()
        assert runner.join(20)
        tasks.stop(5)
