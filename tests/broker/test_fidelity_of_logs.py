"""Record fidelity where the source's log is special: large records, transactions, compaction."""

from __future__ import annotations

import os

import pytest
from confluent_kafka import KafkaException

from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import assert_copied, await_count, await_lag_zero
from tests.broker.pair_io import OWN_CONFIGS
from tests.kafka_io import Record, numbered, produce, records

LARGEST = 1_048_588 - 61 - 12
"""Value beside a key of one byte: the default max.message.bytes less a batch's header and the record's own fields."""


def test_large_records_up_to_the_very_limit(pair: Pair) -> None:
    pair.source.create(pair.topic("default"))
    pair.source.create(pair.topic("raised"), configs={"max.message.bytes": "5000000"})
    sizes = (10, 999_990, 10, LARGEST, 20_000, LARGEST - 30, 5)
    found = [Record(b"k", os.urandom(1000) * (size // 1000) + b"x" * (size % 1000)) for size in sizes]
    pair.source.write(pair.topic("default"), found, message_max_bytes=9_000_000, linger_ms=0)
    pair.source.write(pair.topic("raised"), [Record(b"k", b"v" * 4_900_000), *found], message_max_bytes=9_000_000)
    with pytest.raises((AssertionError, KafkaException)):  # the limit is where this test thinks it is
        pair.source.write(pair.topic("default"), [Record(b"k", b"v" * (LARGEST + 1))], message_max_bytes=9_000_000)
    driver = pair.replicate()
    assert_copied(pair.source, pair.topic("default"), pair.target, pair.remote("default"))
    assert_copied(pair.source, pair.topic("raised"), pair.target, pair.remote("raised"))
    assert not driver.status()[0].held


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_transactions(pair: Pair, level: str) -> None:
    """Committed only, or as MirrorMaker does by default everything; lag ends at 0 behind markers in both."""
    is_committed = level == "read_committed"
    pair.source.create(pair.topic("mixed"), 2)
    pair.source.create(pair.topic("aborted"))
    pair.source.create(pair.topic("open"))
    producer = pair.source.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    for number, ends_well in enumerate((True, False, True, False)):
        producer.begin_transaction()
        produce(producer, pair.topic("mixed"), numbered(10, 2, f"{number}-"))
        if not ends_well:
            produce(producer, pair.topic("aborted"), numbered(5))
        assert producer.flush(30) == 0  # an abort would drop what is still in the queue
        producer.commit_transaction(30) if ends_well else producer.abort_transaction(30)
    driver = pair.replicate({f"{pair.alias}.consumer.isolation.level": level})
    await_count(pair.target, pair.remote("mixed"), 20 if is_committed else 40)
    await_lag_zero(driver)
    for name in ("mixed", "aborted"):
        wanted = pair.source.read(pair.topic(name), committed=is_committed)
        assert records(pair.target.read(pair.remote(name))) == records(wanted)
    assert pair.source.count(pair.topic("aborted")) == 12  # two markers behind the records
    assert pair.target.count(pair.remote("aborted")) == (0 if is_committed else 10)

    producer.begin_transaction()
    produce(producer, pair.topic("open"), [Record(b"k", b"in the transaction")])
    assert producer.flush(30) == 0
    pair.source.write(pair.topic("open"), [Record(b"k", b"outside")])
    if is_committed:
        await_until(lambda: (driver.status()[0].lag_records or 0) >= 2, 20, lambda: f"lag in {driver.status()}")
        assert pair.target.count(pair.remote("open")) == 0
    producer.commit_transaction(30)
    assert_copied(pair.source, pair.topic("open"), pair.target, pair.remote("open"))
    await_lag_zero(driver)


def test_a_compacted_source_with_gaps(pair: Pair) -> None:
    compacted = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.001",
        "max.compaction.lag.ms": "200",
    }
    pair.source.create(pair.topic(), configs=compacted)
    pair.target.create(pair.remote())  # not compacted, so that the target shows what was written
    pair.source.write(pair.topic(), [Record(f"k{i % 9}".encode(), f"{i}".encode()) for i in range(100)])

    def is_compacted() -> bool:
        pair.source.write(pair.topic(), [Record(b"last", b"rolls the segment")])
        found = [stored.offset for stored in pair.source.read(pair.topic())[0]]
        return found[-1] - found[0] + 1 > len(found)

    await_until(is_compacted, 60, "the source has gaps")
    driver = pair.replicate(OWN_CONFIGS)
    await_lag_zero(driver)
    before = records(pair.target.read(pair.remote()))[0]
    assert 10 <= len(before) < 100
    # The cleaner goes on: what the target got is what was there, in order, without anything twice.
    values = [record.value for record in before]
    assert values == list(dict.fromkeys(values)) or values.count(b"rolls the segment") > 1
    later = numbered(5, prefix="later")
    pair.source.write(pair.topic(), later)
    await_count(pair.target, pair.remote(), len(before) + 5)
    latest = {record.key: record.value for record in records(pair.target.read(pair.remote()))[0]}
    assert latest == {record.key: record.value for record in records(pair.source.read(pair.topic()))[0]}
