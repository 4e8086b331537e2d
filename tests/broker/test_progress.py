"""Progress: what `mm2-offsets.A.internal` says, to the byte, and that every start goes on from there."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from confluent_kafka import KafkaException

from srm_spark.core.codec import partition_for_key
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_count, await_lag_zero
from tests.broker.progress_reader import assert_map_is_exact, read_progress
from tests.kafka_io import Record, numbered, produce, records


def test_records_are_what_kafka_connect_reads(pair: Pair) -> None:
    """Key bytes in Connect's field order, values without spaces, the partition that Java's producer picks."""
    pair.source.create(pair.topic(), 4)
    pair.source.write(pair.topic(), numbered(40, 4))
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 40)
    await_lag_zero(driver)
    driver.stop()
    assert pair.target.configs(pair.progress_topic)["cleanup.policy"] == "compact"
    assert pair.target.topics()[pair.progress_topic] == 3
    newest = {}
    for progress in read_progress(pair.target, pair.progress_topic):
        topic, number = pair.topic(), progress.partition
        key = f'["MirrorSourceConnector",{{"cluster":"{pair.alias}","partition":{number},"topic":"{topic}"}}]'
        assert progress.record.key == key.encode()
        assert progress.record.value == f'{{"offset":{progress.offset}}}'.encode()
        assert progress.at == partition_for_key(key.encode(), 3)
        newest[number] = progress.offset
    assert newest == dict.fromkeys(range(4), 9)


def test_intervals_are_exact_across_markers_restarts_and_foreign_records(pair: Pair) -> None:
    pair.source.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(7, 2))
    pair.source.delete_records(pair.topic(), 0, 2)
    producer = pair.source.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    for number in range(3):
        producer.begin_transaction()
        produce(producer, pair.topic(), numbered(4, 2, f"tx{number}-"))
        producer.commit_transaction(30)
    pair.target.create(pair.remote(), 2)
    pair.target.write(pair.remote(), [Record(b"x", b"was here before", 1)])
    driver = pair.replicate()
    await_lag_zero(driver)
    driver.stop()
    pair.source.write(pair.topic(), numbered(6, 2, "second run "))
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 24)
    await_lag_zero(driver)
    driver.stop()
    remote = pair.target.read(pair.remote())
    del remote[1][0]
    found = read_progress(pair.target, pair.progress_topic)
    assert_map_is_exact(found, pair.source.read(pair.topic()), remote)
    ends = pair.source.ends(pair.topic())
    assert {p: max(f.offset for f in found if f.partition == p) + 1 for p in ends} == ends  # markers included


def test_a_clean_stop_and_start_loses_and_doubles_nothing(pair: Pair) -> None:
    """Stopped three times in the middle of a stream of records."""
    pair.source.create(pair.topic(), 3)
    producer = pair.source.producer()
    for turn in range(3):
        produce(producer, pair.topic(), numbered(2000, 3, f"{turn}-"))
        driver = pair.replicate({"batch.max.records": "500"})
        await_until(lambda: driver.status()[0].records > 0, 40, lambda: f"records in {driver.status()}")  # noqa: B023
        produce(producer, pair.topic(), numbered(500, 3, f"{turn}+"))
        assert driver.stop()
    assert producer.flush(30) == 0
    assert pair.target.given(pair.remote()) > 0
    pair.replicate()
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())


def test_latest_takes_what_comes_after_the_first_start(pair: Pair) -> None:
    """Also what comes while the driver is stopped before it ever copied anything."""
    latest = {f"{pair.alias}.consumer.auto.offset.reset": "latest"}
    pair.source.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(10, 2, "old"))
    driver = pair.replicate(latest)
    await_lag_zero(driver)
    driver.stop()
    new = numbered(10, 2, "new")
    pair.source.write(pair.topic(), new)
    pair.replicate(latest)
    await_count(pair.target, pair.remote(), 10)
    found = records(pair.target.read(pair.remote()))
    assert [record.value for record in found[0] + found[1]] == [r.value for r in new[::2] + new[1::2]]


def test_connects_own_offsets_are_taken_over(pair: Pair) -> None:
    """A record without our header, as MirrorMaker 2 leaves it: replication goes on behind it."""
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    pair.target.create(pair.progress_topic, 3, {"cleanup.policy": "compact"})
    partition = {"cluster": pair.alias, "partition": 0, "topic": pair.topic()}
    key = json.dumps(["MirrorSourceConnector", partition], separators=(",", ":")).encode()
    at = partition_for_key(key, 3)
    pair.target.write(pair.progress_topic, [Record(key, b'{"offset":6}', at)])
    pair.replicate()
    await_count(pair.target, pair.remote(), 3)
    assert [r.value for r in records(pair.target.read(pair.remote()))[0]] == [b"v7", b"v8", b"v9"]


@pytest.mark.slow
def test_a_progress_topic_that_is_created_anew_under_a_running_flow_is_followed_and_filled_again(pair: Pair) -> None:
    pair.source.create(pair.topic(), 3)
    pair.source.write(pair.topic(), numbered(30, 3))
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 30)
    await_lag_zero(driver)
    pair.target.delete(pair.progress_topic)
    with suppress(KafkaException):  # the flow may be faster
        pair.target.create(pair.progress_topic, 3, {"cleanup.policy": "compact"})
    pair.source.write(pair.topic(), [Record(b"k", b"later", 0)])
    await_count(pair.target, pair.remote(), 31)
    wanted = {0: 10, 1: 9, 2: 9}

    def positions() -> dict[int, int]:
        return {found.partition: found.offset for found in read_progress(pair.target, pair.progress_topic)}

    await_until(lambda: positions() == wanted, SOON, lambda: f"{wanted}, there are {positions()}")
    await_lag_zero(driver)
    driver.stop()
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
