"""What lies on the target unrecorded is recognised at the next start: not lost, not doubled, mapped exactly.

One of each kind; all others, in any order: `tests/unit/test_assigning.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

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
