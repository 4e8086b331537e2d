"""The real-time lane: the same copies, map and progress as in micro-batches, whatever ends it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from srm_spark.kafka.lane_reports import LaneReport
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_count, await_held, await_lag_zero
from tests.broker.process import END_SECONDS, srm_driver
from tests.broker.progress_reader import assert_map_is_exact, read_progress
from tests.kafka_io import Record, numbered, records
from tests.lease_io import standing

HEADERS = (("h", None), ("h", b""), ("", b"x"))
PARTITIONS = 3


def _reports_topic(pair: Pair) -> str:
    return f"mm2-realtime.{pair.alias}.internal"


def _recorded(pair: Pair) -> int:
    """Source offsets that progress is recorded of."""
    if pair.progress_topic not in pair.target.topics():
        return 0
    newest = {
        (found.topic, found.partition): found.offset + 1 for found in read_progress(pair.target, pair.progress_topic)
    }
    return sum(newest.values())


def _await_recorded(pair: Pair, count: int) -> None:
    await_until(lambda: _recorded(pair) == count, SOON, lambda: f"{count} recorded, there are {_recorded(pair)}")


def _assert_exact(pair: Pair, name: str = "t") -> None:
    topic, remote = pair.topic(name), pair.remote(name)
    assert_copied(pair.source, topic, pair.target, remote)
    found = [one for one in read_progress(pair.target, pair.progress_topic) if one.topic == topic]
    assert_map_is_exact(found, pair.source.read(topic), pair.target.read(remote))


def _reported(pair: Pair) -> set[str]:
    """Topics of which the lane has written records."""
    values = [stored.record.value for stored in pair.target.read(_reports_topic(pair))[0]]
    found = [LaneReport.decode(value) for value in values if value is not None]
    return {one.report.partition.topic for one in found if one.report is not None}


@pytest.mark.slow
def test_a_killed_lane_has_lost_and_doubled_nothing(pair: Pair, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), PARTITIONS)
    with srm_driver(tmp_path, pair.clusters, [pair.flow], {**pair.keys, "mode": "realtime"}) as driver:
        await_until(lambda: _reports_topic(pair) in pair.target.topics(), SOON, "the lane to begin")
        pair.source.write(pair.topic(), [Record(None, None, 0, 1_700_000_000_000, HEADERS), Record(b"", b"", 1)])
        await_count(pair.target, pair.remote(), 2)  # none waits for another one
        pair.source.write(pair.topic(), numbered(300, PARTITIONS))
        _await_recorded(pair, 302)
        pair.source.write(pair.topic(), numbered(3000, PARTITIONS, "killed "))
        await_count(pair.target, pair.remote(), 400)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait(END_SECONDS)
    pair.replicate()  # in micro-batches, where the lane ended
    _await_recorded(pair, 3302)
    _assert_exact(pair)


@pytest.mark.slow
def test_tasks_write_nothing_more_when_their_driver_has_lost_the_lease(pair: Pair, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), PARTITIONS)
    with srm_driver(tmp_path, pair.clusters, [pair.flow], {**pair.keys, "mode": "realtime"}) as driver:
        await_until(lambda: _reports_topic(pair) in pair.target.topics(), SOON, "the lane to begin")
        pair.source.write(pair.topic(), numbered(300, PARTITIONS))
        _await_recorded(pair, 300)
        psutil.Process(driver.pid).suspend()  # Python alone: Spark and its tasks go on
        frozen = standing(pair.target, pair.flow).holder
        heir = pair.replicate()
        await_until(lambda: standing(pair.target, pair.flow).holder != frozen, SOON, "another owner")
        time.sleep(6)  # tasks ask every now and then; time itself is what is tried
        heir.stop()
        pair.source.write(pair.topic(), numbered(300, PARTITIONS, "not those of the one that is frozen "))
        time.sleep(3)
        assert pair.target.given(pair.remote()) == 300
        pair.replicate()
        _await_recorded(pair, 600)
        psutil.Process(driver.pid).resume()
    _assert_exact(pair)


@pytest.mark.slow
def test_some_topics_in_real_time_beside_others_in_micro_batches(pair: Pair, tmp_path: Path) -> None:
    names = ("quick", "slow")
    for name in names:
        pair.source.create(pair.topic(name), PARTITIONS)
    keys = {**pair.keys, "mode": "realtime", "realtime.topics": "quick.*"}
    with srm_driver(tmp_path, pair.clusters, [pair.flow], keys) as driver:
        await_until(lambda: _reports_topic(pair) in pair.target.topics(), SOON, "the lane to begin")
        for name in names:
            pair.source.write(pair.topic(name), numbered(300, PARTITIONS))
        _await_recorded(pair, 600)
        assert _reported(pair) == {pair.topic("quick")}
        for name in names:
            pair.source.write(pair.topic(name), numbered(3000, PARTITIONS, "killed "))
        await_count(pair.target, pair.remote("quick"), 400)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait(END_SECONDS)
    started = pair.replicate(keys)
    _await_recorded(pair, 6600)
    started.stop()
    for name in names:
        _assert_exact(pair, name)


def test_a_topic_created_anew_is_copied_from_its_beginning(pair: Pair) -> None:
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(3))
    driver = pair.replicate({"mode": "realtime"})
    await_until(lambda: _reports_topic(pair) in pair.target.topics(), SOON, "the lane to begin")
    await_count(pair.target, pair.remote(), 3)
    pair.source.delete(pair.topic())
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(2, prefix="new "))
    await_count(pair.target, pair.remote(), 5)
    pair.source.write(pair.topic(), numbered(4, prefix="later "))
    await_count(pair.target, pair.remote(), 9)
    await_lag_zero(driver)
    copied, anew = records(pair.target.read(pair.remote()))[0], records(pair.source.read(pair.topic()))[0]
    assert copied[3:] == anew


def test_the_status_says_how_records_went(pair: Pair) -> None:
    pair.source.create(pair.topic())
    driver = pair.replicate({"mode": "realtime"})
    await_until(lambda: _reports_topic(pair) in pair.target.topics(), SOON, "the lane to begin")
    pair.source.write(pair.topic(), [Record(b"k", b"x" * 1000)] * 500, linger_ms=200)
    await_count(pair.target, pair.remote(), 500)
    await_lag_zero(driver)
    status = driver.status()[0]
    assert _reported(pair) == {pair.topic()}
    assert (status.records, status.whole + status.merged) == (500, 500)
    assert status.whole > 0


@pytest.mark.slow
def test_markers_are_passed_a_refused_record_holds_and_a_stop_is_clean(pair: Pair) -> None:
    pair.source.create(pair.topic())
    pair.target.create(pair.remote(), configs={"max.message.bytes": "2000"})
    driver = pair.replicate({"mode": "realtime"})
    await_until(lambda: _reports_topic(pair) in pair.target.topics(), SOON, "the lane to begin")
    producer = pair.source.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(pair.topic(), b"committed")
    producer.commit_transaction(30)
    _await_recorded(pair, 2)
    pair.source.write(pair.topic(), [Record(b"k", b"x"), Record(b"k", b"x" * 5000), *numbered(3)])
    held = await_held(driver, [f"{pair.topic()}-0"])
    assert "held at offset 3" in held[f"{pair.topic()}-0"]
    assert pair.target.given(pair.remote()) == 2
    pair.target.configure(pair.remote(), max_message_bytes="10000")
    await_lag_zero(driver)
    assert driver.status()[0].reason is None
    pair.source.write(pair.topic(), numbered(600))
    await_count(pair.target, pair.remote(), 100)
    driver.stop()
    assert _recorded(pair) == pair.target.given(pair.remote()) + 1, "a clean stop leaves nothing unrecorded"
    pair.replicate()
    _await_recorded(pair, 607)
    _assert_exact(pair)


def test_without_enough_slots_the_flow_runs_in_micro_batches_and_says_why(pair: Pair) -> None:
    pair.source.create(pair.topic(), 100)
    pair.source.write(pair.topic(), numbered(10, 100))
    driver = pair.replicate({"mode": "realtime", "tasks.max": "100"})
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    assert "100 tasks need a slot each" in str(driver.status()[0].reason)
    assert _reports_topic(pair) not in pair.target.topics()
