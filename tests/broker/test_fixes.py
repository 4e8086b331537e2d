"""Timestamps that the target refuses are fixed, where the topic's policy says so, and nothing else is."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from srm_spark.flow.status import FlowState
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.dying import BATCH_COMMITTER, DyingCommitter
from tests.broker.map_reader import assert_map_is_exact, mapped_pairs, read_map
from tests.broker.mirror import SOON, await_held, await_lag_zero
from tests.broker.pair_io import ANY_TIME, BY_SPARK, EXACTLY_ONCE, HOUR, NANOSECONDS, OWN_CONFIGS, await_committed
from tests.kafka_io import Record, numbered

pytestmark = pytest.mark.slow

FIX = {"refused.record.policy": "fix", **OWN_CONFIGS}
LIMITS = {"message.timestamp.after.max.ms": str(HOUR), "message.timestamp.before.max.ms": str(24 * HOUR)}


def _prepare(pair: Pair) -> list[Record]:
    """Records of which some have timestamps that the target does not take, or Spark cannot even read."""
    now = int(time.time() * 1000)
    pair.source.create(pair.topic(), 2, ANY_TIME)
    pair.target.create(pair.remote(), 2, LIMITS)
    late, old = Record(b"k", b"late", 0, now + 2 * HOUR, (("h", None),)), Record(b"k", None, 0, now - 48 * HOUR)
    unreadable = Record(None, b"far", 0, NANOSECONDS, (("h", b"1"),))
    fine = [record._replace(timestamp=now) for record in numbered(3)]
    written = [fine[0], late, fine[1], old, unreadable, unreadable, fine[2], unreadable, late]
    pair.source.write(pair.topic(), written)
    return written


def _assert_fixed(pair: Pair, written: list[Record]) -> None:
    """As written, but for timestamps outside of the limits; those are inside, and the last header has the old one."""
    now = int(time.time() * 1000)
    log = pair.target.read(pair.remote(), committed=True)
    found = [stored.record for stored in log[0]]
    assert [record[:2] for record in found] == [record[:2] for record in written]
    for record, before in zip(found, written, strict=True):
        assert record.timestamp is not None
        assert before.timestamp is not None
        assert now - 24 * HOUR < record.timestamp < now + HOUR
        is_fine = now - 20 * HOUR < before.timestamp < now + HOUR
        header = () if is_fine else (("srm-original-timestamp", str(before.timestamp).encode()),)
        assert record.headers == before.headers + header
        assert (record.timestamp == before.timestamp) is is_fine
    # The map follows a commit of records.
    place = pair.map_topic, pair.topic()
    await_until(
        lambda: len(mapped_pairs(pair.target, *place).get(0, ())) == len(written),
        SOON,
        lambda: f"the map of all: {mapped_pairs(pair.target, *place)}",
    )
    parts = read_map(pair.target, pair.map_topic)[pair.topic(), 0]
    assert_map_is_exact(parts, pair.source.read(pair.topic()), log, 0)


@pytest.mark.parametrize(
    "keys",
    [{}, BY_SPARK, EXACTLY_ONCE, {**EXACTLY_ONCE, **BY_SPARK}, {"mode": "realtime"}],
    ids=["default", "read by Spark", "exactly-once", "exactly-once, read by Spark", "realtime"],
)
def test_timestamps_are_moved_inside_the_limits(pair: Pair, keys: Mapping[str, str]) -> None:
    written = _prepare(pair)
    driver = pair.replicate({**FIX, **keys})
    await_lag_zero(driver)
    await_committed(pair, len(written))
    _assert_fixed(pair, written)
    assert driver.status()[0].held == {}


def test_what_has_no_fix_holds_its_partition(pair: Pair) -> None:
    pair.source.create(pair.topic(), 1, ANY_TIME)
    pair.target.create(pair.remote(), 1, {**LIMITS, "cleanup.policy": "compact"})
    pair.source.write(pair.topic(), [Record(b"k", b"0"), Record(None, b"v", 0, NANOSECONDS)])
    driver = pair.replicate({"policy.fix.topics": pair.topic(), **OWN_CONFIGS})
    (reason,) = await_held(driver, [f"{pair.topic()}-0"]).values()
    assert reason == "held at offset 1: the record has no key and the target topic is compacted"
    assert pair.target.given(pair.remote()) == 1


def test_fixed_records_of_a_batch_that_died_are_not_copied_again(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next start compares copies with what they were before they were fixed."""
    written = _prepare(pair)
    for _ in range(2):  # behind records of a stream, and behind those that Spark cannot read
        _die_before_recording(pair, monkeypatch)
    assert len(pair.target.read(pair.remote())[0]) >= 6
    driver = pair.replicate({**FIX, **BY_SPARK})
    await_lag_zero(driver)
    _assert_fixed(pair, written)


def _die_before_recording(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(BATCH_COMMITTER, DyingCommitter)
        driver = pair.replicate({**FIX, **BY_SPARK})
        await_until(lambda: driver.status()[0].state is FlowState.RETRYING, SOON, "the batch has died")
        driver.stop()
