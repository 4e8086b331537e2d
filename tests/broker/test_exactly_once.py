"""The exactly-once mode: what consumers of committed records see, and who may write."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka import KafkaException

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import UNKNOWN, Interval, OffsetRange, RefusedPolicy, TopicPartition
from srm_spark.core.reports import PartitionReport, read_report
from srm_spark.driver import Driver
from srm_spark.errors import LeaseLost, ProgressFailed
from srm_spark.flow.status import FlowState
from srm_spark.kafka.batches.copy import copy_ranges
from srm_spark.kafka.clients import LastError
from srm_spark.kafka.fencing import FencingToken, TokenNote, fence, newest_token, open_producer
from srm_spark.kafka.fetch import Fetch, fetch_options
from srm_spark.kafka.producers import record_options
from srm_spark.kafka.recording import Recording
from srm_spark.kafka.transactions import SettledWriter
from srm_spark.kafka.writer import WriteTask
from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.dying import BATCH_COMMITTER, DyingCommitter
from tests.broker.map_reader import Part, assert_map_is_exact, read_map
from tests.broker.mirror import SOON, await_held, await_lag_zero
from tests.broker.pair_io import await_committed
from tests.kafka_io import Kafka, Record, numbered, records
from tests.lease_io import leave_note


def replicate(pair: Pair) -> Driver:
    return pair.replicate({f"{pair.flow}.exactly.once.support": "required"})


def test_records_are_committed_with_their_progress(pair: Pair) -> None:
    pair.source.create(pair.topic(), 3)
    written = numbered(60, 3)
    for batch in range(3):  # restarts, and several batches each
        driver = replicate(pair)
        for part in range(2):
            at = 10 * (2 * batch + part)
            pair.source.write(pair.topic(), written[at : at + 10])
            await_committed(pair, at + 10)
        await_lag_zero(driver)
        driver.stop()
    source, remote = pair.source.read(pair.topic()), pair.target.read(pair.remote(), committed=True)
    assert records(remote) == records(source)
    assert pair.target.count(pair.remote()) > 60, "every batch is a transaction, so there are markers"
    found = read_map(pair.target, pair.map_topic)
    for partition in range(3):
        assert_map_is_exact(found[pair.topic(), partition], source, remote, partition)


def test_whole_batches_and_records_that_are_changed_are_one_transaction(pair: Pair) -> None:
    """Whole, then a record whose timestamp is moved, then whole again: one marker, and progress that says all of it."""
    pair.source.create(pair.topic())
    pair.target.create(pair.remote(), configs={"message.timestamp.before.max.ms": "3600000"})
    progress = pair.topic("progress")
    pair.target.create(progress, 3)
    now_ms, day_ms = int(time.time() * 1000), 86_400_000
    for number, age in enumerate((0, day_ms, 0)):
        pair.source.write(pair.topic(), [Record(None, b"v%d" % number * 20_000, 0, now_ms - age)] * 5)
    partition, options = TopicPartition(pair.topic(), 0), {"bootstrap.servers": pair.target.bootstrap_servers}
    fencing = FencingToken(f"g{pair.unique}", pair.topic("leases"), TokenNote("token", 1), options, 30.0)
    pair.target.create(fencing.topic)
    leave_note(pair.target, fencing.topic, fencing.group, fencing.note.encode())
    fetch = Fetch(fetch_options({"bootstrap.servers": pair.source.bootstrap_servers}), "a", 30.0)
    reports: list[PartitionReport] = []
    for ends in ((0, 10), (10, 15)):
        ranges = {partition: OffsetRange(*ends)}
        written = {0: str(reports[-1].writer)} if reports else {}
        recording = Recording(
            fencing, "C", "a", progress, ranges, {partition: None}, {partition: UNKNOWN}, writers=written
        )
        route = Route(pair.remote(), Limits(before_ms=3_600_000), RefusedPolicy.FIX)
        task = WriteTask(
            record_options(options, 30.0), {pair.topic(): route}, frozenset(), 10**9, 30.0, recording=recording
        )
        (row,) = copy_ranges(fetch, task, ranges, 0).to_pylist()
        reports.append(read_report(row))
    first, second = reports
    assert [(one.failure, one.hold, one.slot) for one in reports] == [(None, None, 0)] * 2
    assert (first.records, first.whole + first.merged) == (10, 5)
    assert (second.records, second.whole + second.merged) == (5, 5)
    assert second.intervals == [Interval(10, 11, 5)], "behind the marker of the first one"
    (log,) = pair.target.read(pair.remote(), committed=True).values()
    assert [stored.record.value for stored in log] == [b"v%d" % (at // 5) * 20_000 for at in range(15)]
    assert pair.target.count(pair.remote()) == 17
    told = [one.record for part in pair.target.read(progress, committed=True).values() for one in part]
    assert [record.value for record in told] == [b'{"offset":9}', b'{"offset":14}']


def test_aborted_records_of_the_source_are_not_copied(pair: Pair) -> None:
    pair.source.create(pair.topic())
    producer = pair.source.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    for is_kept in (True, False, True):
        producer.begin_transaction()
        producer.produce(pair.topic(), b"kept" if is_kept else b"aborted")
        producer.commit_transaction(30) if is_kept else producer.abort_transaction(30)
    replicate(pair)
    await_committed(pair, 2)
    (log,) = pair.target.read(pair.remote()).values()
    assert [stored.record.value for stored in log] == [b"kept", b"kept"]


def test_a_refused_record_holds_its_partition_and_no_other(pair: Pair) -> None:
    pair.source.create(pair.topic(), 2)
    pair.target.create(pair.remote(), 2, {"max.message.bytes": "2000"})
    pair.source.write(pair.topic(), [*numbered(4, 2), Record(b"big", b"x" * 5000, 1), *numbered(4, 2, "late")])
    driver = replicate(pair)
    await_committed(pair, 6)
    remote = pair.target.read(pair.remote(), committed=True)
    assert [stored.record.value for stored in remote[0]] == [b"v0", b"v2", b"late0", b"late2"]
    assert [stored.record.value for stored in remote[1]] == [b"v1", b"v3"]
    await_until(lambda: driver.status()[0].held, SOON, "the partition is held")


def test_a_writer_of_an_older_term_gives_up(pair: Pair) -> None:
    """Whether it initialises its id before the newer generation, or after it."""
    topic = pair.topic("progress")
    pair.target.create(topic)
    options = {"bootstrap.servers": pair.target.bootstrap_servers}
    older, newer = (
        FencingToken(f"g{pair.unique}", pair.topic("leases"), TokenNote(name, 2), options, 30.0)
        for name in ("older", "newer")
    )
    pair.target.create(older.topic)

    def begin(fencing: FencingToken) -> None:
        leave_note(pair.target, fencing.topic, fencing.group, fencing.note.encode())
        fence(fencing, 2)

    assert newest_token(older) is None
    begin(older)
    before = open_producer(older, 0, {}, LastError())
    before.begin_transaction()
    before.produce(topic, b"of the older one")
    begin(newer)
    with pytest.raises(KafkaException, match=r"(?i)fenced|newer"):
        before.commit_transaction(30)
    with pytest.raises(LeaseLost, match="newer generation"):
        open_producer(older, 1, {}, LastError())
    good = open_producer(newer, 1, {}, LastError())
    good.begin_transaction()
    good.produce(topic, b"of the newer one")
    good.commit_transaction(30)
    (log,) = pair.target.read(topic, committed=True).values()
    assert [stored.record.value for stored in log] == [b"of the newer one"]


def test_a_settled_writer_goes_on_where_its_id_was_taken_over_between_two_calls(pair: Pair) -> None:
    topic = pair.topic("progress")
    pair.target.create(topic)
    options = {"bootstrap.servers": pair.target.bootstrap_servers}
    fencing = FencingToken(f"g{pair.unique}", pair.topic("leases"), TokenNote("term", 1), options, 30.0)
    pair.target.create(fencing.topic)
    leave_note(pair.target, fencing.topic, fencing.group, fencing.note.encode())
    writer = SettledWriter(fencing, "test", ProgressFailed)
    for value in (b"first", b"second"):
        fence(fencing, 1)
        writer.write([ControlRecord(topic, b"k", value)])
    (log,) = pair.target.read(topic, committed=True).values()
    assert [stored.record.value for stored in log] == [b"first", b"second"]


def _parts(pair: Pair) -> list[Part]:
    return [part for parts in read_map(pair.target, pair.map_topic).values() for part in parts.values()]


def test_the_map_gets_what_a_batch_committed_before_it_died(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.source.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(10, 2))

    with monkeypatch.context() as patch:
        patch.setattr(BATCH_COMMITTER, DyingCommitter)
        driver = replicate(pair)
        await_until(lambda: driver.status()[0].state is FlowState.RETRYING, SOON, "the batch has died")
        driver.stop()
    await_committed(pair, 10)
    assert all(not intervals for _, intervals in _parts(pair))
    driver = replicate(pair)
    pair.source.write(pair.topic(), numbered(10, 2, "more"))
    await_committed(pair, 20)
    await_lag_zero(driver)
    source, remote = pair.source.read(pair.topic()), pair.target.read(pair.remote(), committed=True)
    assert records(remote) == records(source)
    found = read_map(pair.target, pair.map_topic)
    for partition in range(2):
        assert_map_is_exact(found[pair.topic(), partition], source, remote, partition)


@pytest.mark.slow
def test_a_target_too_slow_for_one_large_transaction_gets_smaller_ones(
    pair: Pair, local_kafka: Callable[..., LocalKafka]
) -> None:
    """3 MB at 100,000 B/s, where an acknowledgement has to come in 6 s.

    A broker lets pass what its windows of 11 s hold and makes wait 10 s for each 1 MB that is too much, at once.
    """
    slow = local_kafka("slow")
    change = ("--entity-type", "clients", "--entity-default", "--add-config", "producer_byte_rate=100000")
    slow.tool("kafka.admin.ConfigCommand", "--alter", *change)
    pair.source.create(pair.topic(), 2)
    written = [Record(None, os.urandom(1000), number % 2) for number in range(3000)]
    pair.source.write(pair.topic(), written)
    to_slow = replace(pair, target=Kafka(slow), clusters={pair.alias: pair.clusters[pair.alias], "slow": slow})
    of_flow = {f"{to_slow.flow}.exactly.once.support": "required", f"{to_slow.flow}.flow.retry.delay.ms": "3000"}
    driver = to_slow.replicate({**of_flow, "slow.producer.delivery.timeout.ms": "6000"})
    await_until(lambda: driver.status()[0].state is FlowState.RETRYING, 240, "the first transaction is too large")
    await_committed(to_slow, len(written), seconds=240)
    assert records(to_slow.target.read(to_slow.remote(), committed=True)) == records(pair.source.read(pair.topic()))


@pytest.mark.slow
def test_a_transaction_that_nobody_ends_holds_its_partition_and_no_other(pair: Pair) -> None:
    """As one whose marker is lost in an unclean election; here it is somebody else's."""
    pair.source.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(10, 2))
    driver = replicate(pair)
    await_committed(pair, 10)
    await_lag_zero(driver)
    driver.stop()
    other = pair.target.producer(transactional_id=f"other-{pair.unique}")
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(pair.remote(), b"open", partition=0)
    other.flush(30)
    pair.source.write(pair.topic(), numbered(10, 2, "more"))
    driver = replicate(pair)
    held = await_held(driver, [f"{pair.topic()}-0"])[f"{pair.topic()}-0"]
    assert f"{pair.remote()}-0 on {pair.target_alias} has a transaction open since offset " in held
    assert "kafka-transactions.sh" in held
    await_until(lambda: len(pair.target.read(pair.remote(), committed=True)[1]) == 10, SOON, "the other one goes on")
    other.abort_transaction(30)
    driver.stop()
    replicate(pair)
    await_committed(pair, 20)
