"""The real-time lane: the same copies, map and progress as in micro-batches, whatever ends it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_count, await_held, await_lag_zero
from tests.broker.process import END_SECONDS, srm_driver
from tests.broker.progress_reader import assert_map_is_exact, read_progress
from tests.kafka_io import Record, numbered

HEADERS = (("h", None), ("h", b""), ("", b"x"))
PARTITIONS = 3


def _reports_topic(pair: Pair) -> str:
    return f"mm2-realtime.{pair.alias}.internal"


def _recorded(pair: Pair) -> int:
    """Source offsets that progress is recorded of."""
    if pair.progress_topic not in pair.target.topics():
        return 0
    newest = {found.partition: found.offset + 1 for found in read_progress(pair.target, pair.progress_topic)}
    return sum(newest.values())


def _await_recorded(pair: Pair, count: int) -> None:
    await_until(lambda: _recorded(pair) == count, SOON, lambda: f"{count} recorded, there are {_recorded(pair)}")


def _assert_exact(pair: Pair) -> None:
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
    source, target = pair.source.read(pair.topic()), pair.target.read(pair.remote())
    assert_map_is_exact(read_progress(pair.target, pair.progress_topic), source, target)


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
    assert pair.target.count(pair.remote()) == 2
    pair.target.configure(pair.remote(), max_message_bytes="10000")
    await_lag_zero(driver)
    assert driver.status()[0].reason is None
    pair.source.write(pair.topic(), numbered(600))
    await_count(pair.target, pair.remote(), 100)
    driver.stop()
    assert _recorded(pair) == pair.target.count(pair.remote()) + 1, "a clean stop leaves nothing unrecorded"
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
