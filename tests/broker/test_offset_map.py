"""The offset map on the target: every record of both sides is found through it, after restarts and rewinds, too.

What starts leave in it: `tests/unit/test_assigning.py`.
"""

from __future__ import annotations

from tests.broker.conftest import Pair
from tests.broker.map_reader import assert_map_is_exact, read_map
from tests.broker.mirror import await_count, await_lag_zero
from tests.kafka_io import numbered, produce


def test_a_clean_partition_is_one_record_whatever_happened(pair: Pair) -> None:
    pair.source.create(pair.topic(), 2)
    for batch in range(3):  # restarts, and several batches each
        driver = pair.replicate()
        for part in range(2):
            pair.source.write(pair.topic(), numbered(20, 2, f"{batch}-{part}-"))
            await_count(pair.target, pair.remote(), 20 * (2 * batch + part + 1))
        await_lag_zero(driver)
        driver.stop()
    found = read_map(pair.target, pair.map_topic)
    for partition in (0, 1):
        assert found[pair.topic(), partition] == {0: ((0, 60), [[0, 0, 60]])}
    assert pair.target.configs(pair.map_topic)["cleanup.policy"] == "compact"


def test_markers_and_aborted_records_are_gaps(pair: Pair) -> None:
    pair.source.create(pair.topic(), 2)
    producer = pair.source.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    driver = pair.replicate({f"{pair.alias}.consumer.isolation.level": "read_committed"})
    for number, ends_well in enumerate((True, False, True, True)):
        producer.begin_transaction()
        produce(producer, pair.topic(), numbered(10, 2, f"{number}-"))
        assert producer.flush(30) == 0
        producer.commit_transaction(30) if ends_well else producer.abort_transaction(30)
        if number == 1:
            await_lag_zero(driver)
            driver.stop()
            driver = pair.replicate({f"{pair.alias}.consumer.isolation.level": "read_committed"})
    await_count(pair.target, pair.remote(), 30)
    await_lag_zero(driver)
    driver.stop()
    source, remote = pair.source.read(pair.topic(), committed=True), pair.target.read(pair.remote())
    found = read_map(pair.target, pair.map_topic)
    for partition in (0, 1):
        assert_map_is_exact(found[pair.topic(), partition], source, remote, partition)
