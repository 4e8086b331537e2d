"""What lies on the target unrecorded is recognised at the next start: not lost, not doubled, mapped exactly."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.broker.conftest import Pair
from tests.broker.mirror import assert_copied, await_count, await_held, await_lag_zero
from tests.broker.progress_reader import assert_map_is_exact, read_progress
from tests.kafka_io import Record, numbered, records

HEADERS = (("h", None), ("h", b""), ("", b"x"))


def _first_run(pair: Pair, count: int = 10, partitions: int = 2, keys: Mapping[str, str] | None = None) -> None:
    pair.source.create(pair.topic(), partitions)
    pair.source.write(pair.topic(), numbered(count, partitions))
    driver = pair.replicate(keys)
    await_count(pair.target, pair.remote(), count)
    await_lag_zero(driver)
    driver.stop()


def _copy_by_hand(pair: Pair, counts: dict[int, int]) -> None:
    """What a batch does that dies before it records: the next records of each partition, as they are."""
    log, there = records(pair.source.read(pair.topic())), pair.target.ends(pair.remote())
    for partition, count in counts.items():
        start = there[partition]
        pair.target.write(pair.remote(), log[partition][start : start + count])


def test_records_of_a_batch_that_died_are_not_copied_again(pair: Pair) -> None:
    _first_run(pair)
    more = [Record(None, f"v{n}".encode(), n % 2, 1_700_000_000_000 + n, HEADERS) for n in range(20)]
    pair.source.write(pair.topic(), [*more, Record(b"k", None, 0), Record(b"", b"", 1)])
    _copy_by_hand(pair, {0: 7, 1: 11})
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 32)
    await_lag_zero(driver)
    driver.stop()
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
    source, target = pair.source.read(pair.topic()), pair.target.read(pair.remote())
    assert_map_is_exact(read_progress(pair.target, pair.progress_topic), source, target)


def test_a_lost_progress_topic_does_not_copy_everything_again(pair: Pair) -> None:
    """The offset map knows how far it went, also where neither log has all of it any more."""
    without_syncs = {"emit.offset-syncs.enabled": "false"}
    _first_run(pair, keys=without_syncs)
    written = records(pair.source.read(pair.topic()))
    pair.target.delete(pair.progress_topic)
    pair.source.delete_records(pair.topic(), 0, 2)
    pair.target.delete_records(pair.remote(), 1, 3)
    later = numbered(4, 2, "later ")
    pair.source.write(pair.topic(), later)
    driver = pair.replicate(without_syncs)
    await_count(pair.target, pair.remote(), 14)
    await_lag_zero(driver)
    driver.stop()
    copied = pair.target.read(pair.remote())
    for number, begin in ((0, 0), (1, 3)):
        found = [stored.record.value for stored in copied[number]]
        assert found == [record.value for record in [*written[number], *later[number::2]][begin:]]


def test_without_progress_and_without_syncs_the_logs_themselves_tell(pair: Pair) -> None:
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    pair.target.create(pair.remote())
    _copy_by_hand(pair, {0: 6})
    driver = pair.replicate({"emit.offset-syncs.enabled": "false"})
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    driver.stop()
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())


@pytest.mark.parametrize("has_syncs", ["true", "false"])
def test_mirror_maker_s_records_behind_its_last_flush_are_not_copied_again(pair: Pair, has_syncs: str) -> None:
    """It flushes offsets once a minute: its newest one is behind what it has written."""
    keys = {"emit.offset-syncs.enabled": has_syncs}
    _first_run(pair, partitions=1, keys=keys)
    pair.target.delete(pair.progress_topic)
    pair.target.create(pair.progress_topic, 3, {"cleanup.policy": "compact"})
    key = f'["MirrorSourceConnector",{{"cluster":"{pair.alias}","partition":0,"topic":"{pair.topic()}"}}]'
    pair.target.write(pair.progress_topic, [Record(key.encode(), b'{"offset":3}')])
    pair.source.write(pair.topic(), numbered(5, 1, "later "))
    _copy_by_hand(pair, {0: 2})
    driver = pair.replicate(keys)
    await_count(pair.target, pair.remote(), 15)
    await_lag_zero(driver)
    driver.stop()
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())


def test_a_foreign_record_holds_its_partition_and_says_so(pair: Pair) -> None:
    _first_run(pair)
    pair.target.write(pair.remote(), [Record(b"who", b"am I", 1)])
    pair.source.write(pair.topic(), numbered(4, 2, "later "))
    driver = pair.replicate()
    held = await_held(driver, [f"{pair.topic()}-1"])
    assert "held at offset 5" in held[f"{pair.topic()}-1"]
    assert "foreign writer" in held[f"{pair.topic()}-1"]
    await_count(pair.target, pair.remote(), 13)
    driver.stop()
    assert pair.target.ends(pair.remote()) == {0: 7, 1: 6}


def test_with_the_policy_to_resume_a_foreign_record_is_passed_over(pair: Pair) -> None:
    _first_run(pair)
    pair.source.write(pair.topic(), numbered(8, 2, "later "))
    _copy_by_hand(pair, {1: 2})
    pair.target.write(pair.remote(), [Record(b"who", b"am I", 1)])
    _copy_by_hand_from(pair, 1, 7, 1)
    driver = pair.replicate({"foreign.writer.policy": "resume"})
    await_lag_zero(driver)
    await_count(pair.target, pair.remote(), 19)
    driver.stop()
    log = records(pair.target.read(pair.remote()))
    log[1].remove(next(record for record in log[1] if record.key == b"who"))
    assert log == records(pair.source.read(pair.topic()))


def _copy_by_hand_from(pair: Pair, partition: int, start: int, count: int) -> None:
    log = records(pair.source.read(pair.topic()))
    pair.target.write(pair.remote(), log[partition][start : start + count])
