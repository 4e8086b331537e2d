"""Quarantine: a record that cannot be copied is put aside whole, its neighbours are copied, and it can come later.

What becomes of a replay, whatever dies or has changed: `tests/unit/test_replay.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.driver import Driver
from srm_spark.failure import Failure
from srm_spark.flow.refused.quarantining import Quarantining
from srm_spark.flow.status import FlowState
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.map_reader import assert_map_is_exact, read_map
from tests.broker.mirror import SOON, await_lag_zero, write_config
from tests.broker.pair_io import ANY_TIME, BY_SPARK, EXACTLY_ONCE, HOUR, NANOSECONDS, OWN_CONFIGS, await_committed
from tests.broker.quarantine_reader import read_quarantine
from tests.kafka_io import Record, numbered, records

PARK = {"refused.record.policy": "park", **OWN_CONFIGS}
HEADERS = (("h", None), ("h", b""), ("ü", b"x"))


def _store(pair: Pair) -> str:
    return f"mm2-quarantine.{pair.alias}.internal"


def _command(pair: Pair, folder: Path, *arguments: str, keys: Mapping[str, str] | None = None) -> Result:
    path = write_config(folder / "c.properties", pair.clusters, [pair.flow], {**pair.keys, **PARK, **(keys or {})})
    return CliRunner().invoke(main, ["quarantine", *arguments, "--config", str(path), "--flow", pair.flow])


def _assert_copied_without(pair: Pair, name: str, aside: set[tuple[int, int]]) -> None:
    """Every record of the source is on the target in order, but for these (partition, offset); so says the map."""
    source = pair.source.read(pair.topic(name))
    kept = {n: [stored for stored in log if (n, stored.offset) not in aside] for n, log in source.items()}
    await_committed(pair, sum(map(len, kept.values())), name)
    remote = pair.target.read(pair.remote(name), committed=True)
    assert records(remote) == records(kept)
    found = read_map(pair.target, pair.map_topic)
    for partition in source:
        assert_map_is_exact(found[pair.topic(name), partition], kept, remote, partition)


def _await_quarantined(driver: Driver, topics: set[str]) -> None:
    await_until(lambda: set(driver.status()[0].parked) == topics, SOON, lambda: f"{topics} in {driver.status()}")


def _die_after_quarantining(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver whose batch dies when a record is in quarantine and progress has not passed it."""
    put = Quarantining.put

    def dies(self: Quarantining, partition: TopicPartition, offsets: OffsetRange, reason: Failure | None = None) -> int:
        put(self, partition, offsets, reason)
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Quarantining, "put", dies)
        driver = pair.replicate(PARK)
        await_until(lambda: driver.status()[0].state is FlowState.RETRYING, SOON, "the batch has died")
        driver.stop()


@pytest.mark.parametrize("mode", [{}, EXACTLY_ONCE], ids=["default", "exactly-once"])
def test_a_refused_record_is_put_aside_whole_and_its_neighbours_are_copied(pair: Pair, mode: Mapping[str, str]) -> None:
    now = int(time.time() * 1000)
    refused = {
        "large": Record(b"k", b"x" * 1_200_000, 0, now, HEADERS),
        "late": Record(b"k", None, 0, now + 2 * HOUR),
        "old": Record(None, b"v", 0, now - 48 * HOUR),
        "keyless": Record(None, b"v", 0, now),
    }
    limits = {
        "large": {"max.message.bytes": "2000"},
        "late": {"message.timestamp.after.max.ms": str(HOUR)},
        "old": {"message.timestamp.before.max.ms": str(24 * HOUR)},
        "keyless": {"cleanup.policy": "compact"},
    }
    fine = [Record(f"{i}".encode(), f"{i}".encode()) for i in range(4)]
    for name, record in refused.items():
        pair.source.create(pair.topic(name), 2, {**ANY_TIME, "max.message.bytes": "2000000"})
        pair.target.create(pair.remote(name), 2, limits[name])
        beside = fine[0]._replace(partition=1)
        # At the start, two in a row, and at the end.
        found = [record, *fine[:2], record, record, *fine[2:], record, beside]
        pair.source.write(pair.topic(name), found, message_max_bytes=2_000_000)
    mode = {f"{pair.target_alias}.{key}": value for key, value in mode.items()}
    driver = pair.replicate({**PARK, **mode})
    _await_quarantined(driver, {pair.topic(name) for name in refused})
    await_lag_zero(driver)
    parked = driver.status()[0].parked
    for name in refused:
        _assert_copied_without(pair, name, {(0, 0), (0, 3), (0, 4), (0, 7)})
    assert parked[pair.topic("keyless")] == "4 in quarantine: the record has no key and the target topic is compacted"
    assert "max.message.bytes is 2000" in parked[pair.topic("large")]
    assert driver.status()[0].held == {}
    there = read_quarantine(pair.target, _store(pair))
    assert len(there) == 16
    for name, record in refused.items():
        for offset in (0, 3, 4, 7):
            found_record, entry = there[pair.topic(name), 0, offset]
            assert found_record == record
            assert entry["timestamp_type"] == "CreateTime"
    driver.stop()

    driver = pair.replicate({**PARK, **mode})  # what is in quarantine is not looked at again
    pair.source.write(pair.topic("late"), numbered(4, 2, "more"))
    await_lag_zero(driver)
    _await_quarantined(driver, {pair.topic(name) for name in refused})
    _assert_copied_without(pair, "late", {(0, 0), (0, 3), (0, 4), (0, 7)})


@pytest.mark.slow
def test_what_spark_cannot_read_is_put_aside(pair: Pair) -> None:
    pair.source.create(pair.topic(), 2, ANY_TIME)
    unreadable = Record(b"k", b"!", 0, NANOSECONDS, HEADERS)
    fine = numbered(4)
    pair.source.write(pair.topic(), [*fine[:2], unreadable, unreadable, fine[2], unreadable, fine[3]])
    pair.source.write(pair.topic(), [Record(b"k", b"beside", 1)])
    driver = pair.replicate({**PARK, **BY_SPARK})
    _await_quarantined(driver, {pair.topic()})
    await_lag_zero(driver)
    reason = driver.status()[0].parked[pair.topic()]
    assert reason.startswith(f"3 in quarantine: the timestamp {NANOSECONDS} is beyond what Spark's Kafka source reads")
    pair.source.write(pair.topic(), [unreadable, *fine])  # while it runs, behind one that was passed
    await_until(lambda: len(read_quarantine(pair.target, _store(pair))) == 4, SOON, "the fourth one is there")
    await_lag_zero(driver)
    _assert_copied_without(pair, "t", {(0, 2), (0, 3), (0, 5), (0, 7)})
    there = read_quarantine(pair.target, _store(pair))
    assert [record for record, _ in there.values()] == [unreadable] * 4


def test_a_batch_that_dies_behind_the_quarantine_puts_aside_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.source.create(pair.topic(), 1)
    pair.target.create(pair.remote(), 1, {"max.message.bytes": "2000"})
    written = [*numbered(3), Record(b"big", b"x" * 5000), *numbered(3, 1, "behind")]
    pair.source.write(pair.topic(), written)
    _die_after_quarantining(pair, monkeypatch)
    assert len(read_quarantine(pair.target, _store(pair))) == 1
    assert pair.target.given(pair.remote()) == 3, "nothing behind it before progress has passed it"
    driver = pair.replicate(PARK)
    await_lag_zero(driver)
    _assert_copied_without(pair, "t", {(0, 3)})
    assert list(read_quarantine(pair.target, _store(pair))) == [(pair.topic(), 0, 3)]
    assert driver.status()[0].parked[pair.topic()].startswith("1 in quarantine: the record takes ")


@pytest.mark.slow
@pytest.mark.parametrize("mode", [{}, EXACTLY_ONCE], ids=["default", "exactly-once"])
def test_a_replay_brings_each_record_once(pair: Pair, tmp_path: Path, mode: Mapping[str, str]) -> None:
    mode = {f"{pair.target_alias}.{key}": value for key, value in mode.items()}
    large = Record(b"big", b"x" * 1_200_000, 0, 1_700_000_000_000, HEADERS)
    pair.source.create(pair.topic(), 1, {"max.message.bytes": "2000000"})
    pair.target.create(pair.remote(), 1, {"max.message.bytes": "2000"})
    pair.source.write(pair.topic(), [*numbered(3), large, *numbered(3, 1, "behind")], message_max_bytes=2_000_000)
    assert "nothing is in quarantine" in _command(pair, tmp_path, "list").output
    driver = pair.replicate({**PARK, **mode})
    _await_quarantined(driver, {pair.topic()})
    await_lag_zero(driver)
    listed = _command(pair, tmp_path, "list", "--format", "json").output
    assert '"offset": 3' in listed
    assert '"timestamp": 1700000000000' in listed
    running = _command(pair, tmp_path, "replay", keys=mode)
    assert (running.exit_code, "a driver runs it" in running.output) == (1, True), running.output
    driver.stop()

    refused = _command(pair, tmp_path, "replay", keys=mode)
    assert (refused.exit_code, "the target still refuses it" in refused.output) == (3, True), refused.output
    pair.target.configure(pair.remote(), max_message_bytes="2000000")
    end = pair.target.ends(pair.remote())
    assert "would be written" in _command(pair, tmp_path, "replay", "--dry-run", keys=mode).output
    assert pair.target.ends(pair.remote()) == end
    done = _command(pair, tmp_path, "replay", keys=mode)
    assert (done.exit_code, f"is at offset {end[0]} of {pair.remote()}-0" in done.output) == (0, True), done.output
    assert read_quarantine(pair.target, _store(pair)) == {}
    end = pair.target.ends(pair.remote())
    assert _command(pair, tmp_path, "replay", keys=mode).output == ""
    assert pair.target.ends(pair.remote()) == end

    pair.source.write(pair.topic(), numbered(3, 1, "later"))
    driver = pair.replicate({**PARK, **mode})  # the copy is not taken for somebody else's
    await_lag_zero(driver)
    await_committed(pair, 10)
    (log,) = records(pair.target.read(pair.remote(), committed=True)).values()
    (source,) = records(pair.source.read(pair.topic())).values()
    assert log == [*source[:3], *source[4:7], large, *source[7:]]
    ((_, parts),) = read_map(pair.target, pair.map_topic).items()
    mapped = {up + n for _, intervals in parts.values() for up, _, count in intervals for n in range(count)}
    assert mapped == set(range(10)) - {3}, "the gap stays"
    assert driver.status()[0].held == driver.status()[0].parked == {}
    verified = CliRunner().invoke(main, ["verify", "--config", str(tmp_path / "c.properties")])
    assert verified.exit_code == 0, verified.output
    assert "1 explained: the record was in quarantine, and its copy was written behind the others" in verified.output


def test_dropped_records_are_forgotten(pair: Pair, tmp_path: Path) -> None:
    for name in ("one", "two"):
        pair.source.create(pair.topic(name))
        pair.target.create(pair.remote(name), 1, {"cleanup.policy": "compact"})
        pair.source.write(pair.topic(name), [Record(None, b"v"), Record(b"k", b"v")])
    driver = pair.replicate(PARK)
    _await_quarantined(driver, {pair.topic("one"), pair.topic("two")})
    asked = _command(pair, tmp_path, "drop", "--dry-run", "--topic", pair.topic("one"))
    assert (asked.exit_code, f"{pair.topic('one')}-0 offset 0: " in asked.output) == (0, True), asked.output
    done = _command(pair, tmp_path, "drop", "--yes", "--topic", pair.topic("one"))
    assert (done.exit_code, "forgotten: 1 record\n" in done.output) == (0, True), done.output
    _await_quarantined(driver, {pair.topic("two")})
    assert list(read_quarantine(pair.target, _store(pair))) == [(pair.topic("two"), 0, 0)]
