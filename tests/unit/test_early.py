"""Flows that begin before Spark is there: who copies, what is waited for, and what takes over."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import cast
from unittest.mock import MagicMock

import pytest

from srm_spark.errors import SetupError
from srm_spark.flow.early import can_copy_early
from srm_spark.flow.status import FlowState
from srm_spark.spark import SparkSession
from srm_spark.spark import opening as opening_module
from srm_spark.spark.opening import Spark, start_spark
from srm_spark.spark.starting import FORKED
from tests.awaiting import await_until
from tests.unit.memory_flow import flow_settings
from tests.unit.memory_run import World, there


def test_records_are_copied_before_spark_is_there_and_its_query_goes_on_behind_them() -> None:
    world = World(spark=Future())
    world.flow.write(b"a")
    with world.run() as run:
        run.begin()
        assert world.generation.is_early
        world.generation.copy()
        run.tick()
        assert (world.shown[-1][0], world.total("records")) == (FlowState.RUNNING, 1)
        run.tick()
        assert len(world.generations) == 1, "there is nothing to change to"
        world.flow.write(b"b")
        there(world.spark)
        run.tick()
        assert [one.is_early for one in world.generations] == [True, False]
        assert world.generations[0].is_ended
        world.generation.copy()
        run.tick()
        assert len(world.generations) == 2
    assert world.values() == [b"a", b"b"]


def test_where_spark_is_there_nothing_begins_early() -> None:
    world = World()
    with world.run() as run:
        run.begin()
        assert not world.generation.is_early


def test_who_takes_over_copies_before_spark_has_planned_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.flow.write(b"a")
    world.flow.lease.owner = "another driver"
    monkeypatch.setattr(world.flow.lease, "await_free", lambda *_: setattr(world.flow.lease, "owner", None))
    with world.run() as run:
        run.begin()
        assert world.generation.is_early
        world.generation.copy()
        run.tick()
        assert [one.is_early for one in world.generations] == [True, False]
    assert world.values() == [b"a"]


def test_a_flow_that_needs_spark_says_that_it_waits_for_it_until_it_is_told_to_stop() -> None:
    world = World({"A->B.exactly.once.support": "required"}, spark=Future())
    assert not can_copy_early(world.flow.settings)
    with world.run() as run:
        begun = threading.Thread(target=run.begin)
        begun.start()
        await_until(lambda: (FlowState.STARTING, "Spark starts") in [s[:2] for s in world.shown], 10.0, "it says so")
        world.stop.set()
        begun.join(10.0)
        assert not begun.is_alive()
    assert world.generations == []


@pytest.mark.parametrize(
    "keys", [{"mode": "realtime"}, {"compiled.loop.enabled": "false"}, {"driver.pass.max.bytes": "0"}]
)
def test_other_ways_need_spark_from_the_beginning(keys: dict[str, str]) -> None:
    assert not can_copy_early(flow_settings(keys))
    assert can_copy_early(flow_settings())


def test_spark_that_does_not_start_ends_what_began_without_it() -> None:
    world = World(spark=Future())
    with pytest.raises(SetupError, match="no Java"):
        world.attempt(lambda: world.spark.set_exception(SetupError("no Java")))
    assert [one.is_ended for one in world.generations] == [True]


def test_a_session_comes_later_and_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[SparkSession] = []
    monkeypatch.setattr(opening_module, "listen_for_batches", heard.append)
    session, may_start, opened = MagicMock(), threading.Event(), threading.Event()

    def open_it() -> SparkSession:
        FORKED.set()
        opened.set()
        assert may_start.wait(10.0)
        return cast("SparkSession", session)

    spark = start_spark(open_it)
    own = spark.own()
    assert opened.is_set()
    assert (spark.is_up, own.is_up) == (False, False)
    may_start.set()
    assert own.wait(threading.Event())
    assert spark.session() is session
    assert own.session() is own.session() is session.newSession()
    session.newSession.assert_called()
    assert heard == [session]
    own.release()


def test_what_is_missing_is_told_at_once_and_what_becomes_of_the_jvm_to_whoever_asks() -> None:
    def missing() -> SparkSession:
        raise SetupError("no Java found")

    with pytest.raises(SetupError, match="no Java found"):
        start_spark(missing)

    def open_it() -> SparkSession:
        FORKED.set()
        assert may_fail.wait(10.0)
        raise OSError("no space left")

    may_fail = threading.Event()
    spark = start_spark(open_it)
    may_fail.set()
    for one in (spark, spark.own()):
        with pytest.raises(SetupError, match="Spark does not start: no space left"):
            one.session()
    assert isinstance(Spark.given(MagicMock()).own().session(), MagicMock)
