"""Ranges of a source, read without Spark: by our own requests, and by librdkafka where those cannot be made."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest
from confluent_kafka import TopicCollection

from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import Interval, OffsetRange, TopicPartition
from srm_spark.core.reports import PartitionReport, read_report
from srm_spark.errors import SourceChanged, SourceUnavailable
from srm_spark.kafka.batches import brokers
from srm_spark.kafka.batches.copy import FetchTask, copy_ranges
from srm_spark.kafka.fetch import Fetch, fetch_options
from srm_spark.kafka.producers import record_options
from srm_spark.kafka.ranges import Follower, RangeReader
from srm_spark.kafka.rows_task import RowsTask
from srm_spark.kafka.writer import WriteTask
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.mirror import SOON
from tests.kafka_io import Kafka, Record, numbered, produce, records
from tests.unit.arrow_rows import arrow_batch

WAYS = pytest.mark.parametrize("own", [True, False], ids=["own", "librdkafka"])
FIELDS = (None, b"", b"x", b"some bytes", bytes(range(256)), b"y" * 5000)
HEADERS: tuple[tuple[tuple[str, bytes | None], ...], ...] = (
    (),
    (("h", b"1"),),
    (("h", None), ("", b""), ("h", b"z" * 300), ("ü", b"\0")),
)
NANOSECONDS = 1_700_000_000_123_456_789
TIMESTAMPS = (1, 1_700_000_000_123, NANOSECONDS)


def fetch_of(cluster: KafkaCluster, *, own: bool, timeout: float = 30.0, isolation: str = "") -> Fetch:
    options = {"bootstrap.servers": cluster.bootstrap_servers}
    if isolation:
        options["isolation.level"] = isolation
    return Fetch(fetch_options(options), "a", timeout, in_loop=own)


def random_records(seed: int, count: int, *, headers: bool) -> list[Record]:
    chance = random.Random(seed)
    return [
        Record(
            chance.choice(FIELDS),
            chance.choice(FIELDS),
            chance.randrange(3),
            chance.choice(TIMESTAMPS),
            chance.choice(HEADERS) if headers else (),
        )
        for _ in range(count)
    ]


def read(fetch: Fetch, topic: str, ranges: Mapping[int, tuple[int, int]]) -> dict[int, list[tuple[int, Record]]]:
    """Partition → offsets and records, as the rows of the runs have them."""
    found: dict[int, list[tuple[int, Record]]] = {number: [] for number in ranges}
    reader = RangeReader(fetch, {TopicPartition(topic, n): OffsetRange(*offsets) for n, offsets in ranges.items()})
    for run in reader:
        number = run.partition.partition
        assert len(run.header_lists()) == run.count
        rows = zip(run.offsets.tolist(), run.records(), strict=True)
        for offset, (key, value, timestamp, headers) in rows:
            pairs = tuple((name, content if content is None else bytes(content)) for name, content in headers or ())
            found[number].append((offset, Record(key, value, number, timestamp, pairs)))
    assert not reader.open
    return found


@WAYS
@pytest.mark.parametrize("headers", [False, True], ids=["", "headers"])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_every_record_of_a_range_is_read_as_it_is(
    primary: KafkaCluster, unique: str, own: bool, headers: bool, codec: str
) -> None:
    kafka, topic = Kafka(primary), f"t{unique}"
    kafka.create(topic, 3, {"message.timestamp.after.max.ms": str(2**63 - 1)})
    written = random_records(7, 3000, headers=headers)
    kafka.write(topic, written, compression_type=codec)
    log = kafka.read(topic)
    expected = {number: [(stored.offset, stored.record) for stored in log[number]] for number in range(3)}
    ends = {number: len(found) for number, found in expected.items()}
    fetch = fetch_of(primary, own=own)
    assert read(fetch, topic, {number: (0, end) for number, end in ends.items()}) == expected
    part = {number: (5 + number, end - 3) for number, end in ends.items()}
    assert read(fetch, topic, part) == {number: expected[number][start:end] for number, (start, end) in part.items()}
    assert read(fetch, topic, {1: (4, 4), 2: (0, 1)}) == {1: [], 2: expected[2][:1]}


@WAYS
def test_ranges_behind_each_other_miss_and_double_nothing(primary: KafkaCluster, unique: str, own: bool) -> None:
    """Read by one consumer, which has fetched more each time than the range had."""
    kafka, topic = Kafka(primary), f"t{unique}"
    kafka.create(topic, 3)
    kafka.write(topic, numbered(9000, 3))
    fetch, chance = fetch_of(primary, own=own), random.Random(3)
    found: dict[int, list[int]] = {number: [] for number in range(3)}
    while any(len(offsets) < 3000 for offsets in found.values()):
        chosen = chance.sample(range(3), chance.choice((1, 2, 3)))
        ranges = {n: (len(found[n]), min(3000, len(found[n]) + chance.choice((1, 2, 40, 150)))) for n in chosen}
        for number, several in read(fetch, topic, ranges).items():
            found[number] += [offset for offset, _ in several]
    assert found == {number: list(range(3000)) for number in range(3)}


@WAYS
def test_a_range_ends_where_no_record_is_any_more(primary: KafkaCluster, unique: str, own: bool) -> None:
    """Aborted records and markers stand at its end, and a part of its start was deleted."""
    kafka, topic = Kafka(primary), f"t{unique}"
    kafka.create(topic)
    kafka.write(topic, numbered(10))
    producer = kafka.producer(transactional_id=unique)
    producer.init_transactions(30)
    producer.begin_transaction()
    produce(producer, topic, numbered(5, prefix="gone"))
    assert producer.flush(30) == 0
    producer.abort_transaction(30)
    kafka.delete_records(topic, 0, 4)
    await_until(lambda: kafka.ends(topic)[0] == 16, SOON, "the marker, which comes behind the answer")
    end = 16
    fetch = fetch_of(primary, own=own, isolation="read_committed")
    found = read(fetch, topic, {0: (0, end)})
    assert [offset for offset, _ in found[0]] == list(range(4, 10))
    assert read(fetch, topic, {0: (10, end)}) == {0: []}
    assert [offset for offset, _ in read(fetch_of(primary, own=own), topic, {0: (8, end)})[0]] == [*range(8, 15)]


@WAYS
def test_what_is_deleted_while_it_is_read_is_a_gap(primary: KafkaCluster, unique: str, own: bool) -> None:
    kafka, topic = Kafka(primary), f"t{unique}"
    kafka.create(topic)
    kafka.write(topic, [Record(None, bytes(1000)) for _ in range(20_000)])
    fetch = fetch_of(primary, own=own)
    small = replace(
        fetch, options={**fetch.options, "queued.max.messages.kbytes": 100, "fetch.message.max.bytes": 9999}
    )
    partition = TopicPartition(topic, 0)
    reader = RangeReader(small, {partition: OffsetRange(0, 19_000)})
    runs = iter(reader)
    offsets = next(runs).offsets.tolist()
    assert reader.open == {partition}
    kafka.delete_records(topic, 0, 15_000)
    for run in runs:
        offsets += run.offsets.tolist()
    assert offsets == sorted(set(offsets))
    assert offsets[-4000:] == list(range(15_000, 19_000))
    assert len(offsets) < 19_000, "it was too fast to be caught"
    assert not reader.open


@WAYS
def test_a_range_that_the_source_does_not_hold_is_an_error_and_no_gap(
    primary: KafkaCluster, unique: str, own: bool
) -> None:
    kafka, topic = Kafka(primary), f"t{unique}"
    kafka.create(topic)
    kafka.write(topic, numbered(10))
    with pytest.raises(SourceUnavailable, match=rf"a: {topic}-0 gave nothing for 1 s at offset 10 of 20; .*0 to 10"):
        read(fetch_of(primary, own=own, timeout=1.0), topic, {0: (0, 20)})
    with pytest.raises(SourceUnavailable, match=rf"missing{unique}-0 gave nothing .*topic does not exist"):
        read(fetch_of(primary, own=own), f"missing{unique}", {0: (0, 20)})


@WAYS
def test_a_task_writes_its_share_and_says_what_it_left(
    primary: KafkaCluster, secondary: KafkaCluster, unique: str, own: bool
) -> None:
    source, target, topic = Kafka(primary), Kafka(secondary), f"t{unique}"
    source.create(topic, 3)
    target.create(topic, 3)
    source.write(topic, numbered(30_000, 3))
    ranges = {TopicPartition(topic, number): OffsetRange(0, 10_000) for number in range(3)}
    options = record_options({"bootstrap.servers": secondary.bootstrap_servers}, timeout=30.0)
    routes = {topic: Route(topic, Limits())}

    def run(max_bytes: int, share: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, PartitionReport]:
        write = WriteTask(options, routes, frozenset(), max_bytes, timeout=30.0)
        task = FetchTask(fetch_of(primary, own=own), write, [{}, share])
        (found,) = task(iter(()), 1)
        return {report.partition: report for report in map(read_report, found.to_pylist())}

    first = run(1, ranges)
    assert all(report.is_cut for report in first.values())
    reached = {p: first[p].reached(0, 10_000) if p in first else 0 for p in ranges}
    left = {p: OffsetRange(start, 10_000) for p, start in reached.items() if start < 10_000}
    assert left
    second = run(10**9, left)
    assert second.keys() == left.keys()
    assert all(report.is_complete and not report.is_cut for report in second.values())
    partition, (start, _) = next(iter(left.items()))
    assert second[partition].intervals == [Interval(start, start, 10_000 - start)]
    assert records(target.read(topic)) == records(source.read(topic))


@WAYS
def test_a_topic_that_is_created_anew_under_a_reader_gives_nothing_for_the_old_one(
    primary: KafkaCluster, secondary: KafkaCluster, unique: str, own: bool
) -> None:
    """Between the look at its id and the first record; its new records lie at the same offsets."""
    kafka, copy, topic = Kafka(primary), Kafka(secondary), f"t{unique}"
    kafka.create(topic)
    copy.create(topic)
    kafka.write(topic, numbered(20))
    expected = replace(fetch_of(primary, own=own), topic_ids={topic: topic_id(kafka, topic)})
    assert len(read(expected, topic, {0: (0, 10)})[0]) == 10
    kafka.delete(topic)
    kafka.create(topic)
    kafka.write(topic, numbered(40, prefix="new "))
    options = record_options({"bootstrap.servers": secondary.bootstrap_servers}, timeout=30.0)
    task = WriteTask(options, {topic: Route(topic, Limits())}, frozenset(), max_bytes=10**9, timeout=30.0)
    with pytest.raises(SourceChanged, match="created anew"):
        copy_ranges(expected, task, {TopicPartition(topic, 0): OffsetRange(10, 20)}, 0)
    assert copy.count(topic) == 0
    rows = [arrow_batch([(topic, 0, offset, 1000, b"k", b"new", None) for offset in range(10, 20)])]
    with pytest.raises(SourceChanged, match="created anew"):
        list(RowsTask(expected, task)(iter(rows)))
    assert copy.count(topic) == 0
    anew = replace(expected, topic_ids={topic: topic_id(kafka, topic)})
    assert len(read(anew, topic, {0: (0, 40)})[0]) == 40
    (report,) = map(read_report, next(iter(RowsTask(anew, task)(iter(rows)))).to_pylist())
    assert report.records == copy.count(topic) == 10


def test_a_broker_that_knows_topics_by_their_names_only_is_read_and_asked_for_their_ids(
    primary: KafkaCluster, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those before Kafka 3.1 are."""
    monkeypatch.setattr(brokers.Connection, "fetches_by_id", False)
    kafka, topic = Kafka(primary), f"t{unique}"
    kafka.create(topic, 3)
    kafka.write(topic, numbered(3000, 3))
    fetch = replace(fetch_of(primary, own=True), topic_ids={topic: topic_id(kafka, topic)})
    found = read(fetch, topic, dict.fromkeys(range(3), (5, 1000)))
    assert all([offset for offset, _ in several] == list(range(5, 1000)) for several in found.values())
    kafka.delete(topic)
    kafka.create(topic, 3)
    kafka.write(topic, numbered(3000, 3, prefix="new "))
    with pytest.raises(SourceChanged, match="created anew"):
        read(fetch, topic, {0: (0, 1000)})


def topic_id(kafka: Kafka, topic: str) -> str:
    return str(kafka.admin.describe_topics(TopicCollection([topic]))[topic].result(30).topic_id)


def test_who_reads_for_ever_names_to_a_broker_what_has_moved_on(
    primary: KafkaCluster, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the broker gives everything, from 40 partitions, of which a request names as many as have got records."""
    kafka, topic, partitions = Kafka(primary), f"t{unique}", 40
    kafka.create(topic, partitions)
    bodies: list[bytes] = []
    send = brokers.Connection.fetch

    def seen(self: brokers.Connection, body: bytes, *, is_by_id: bool) -> None:
        bodies.append(body)
        send(self, body, is_by_id=is_by_id)

    monkeypatch.setattr(brokers.Connection, "fetch", seen)
    starts = {TopicPartition(topic, number): 0 for number in range(partitions)}
    found: dict[int, list[int]] = {}
    with closing(Follower(fetch_of(primary, own=True), starts)) as follower:

        def is_read(wanted: int) -> bool:
            for run in follower.take(0.1):
                found.setdefault(run.partition.partition, []).extend(run.offsets.tolist())
            return sum(map(len, found.values())) == wanted

        kafka.write(topic, numbered(400, partitions))
        await_until(partial(is_read, 400), SOON, "400 records")
        first = len(bodies)
        for round_ in range(5):
            kafka.write(topic, [Record(None, b"v", round_), Record(None, b"v", 39)])
            await_until(partial(is_read, 402 + 2 * round_), SOON, "two more")
    assert found == {n: list(range(10 + (n < 5) + 5 * (n == 39))) for n in range(partitions)}
    sessions, epochs = zip(*(struct.unpack_from(">ii", body, 17) for body in bodies), strict=True)
    assert list(epochs) == list(range(len(bodies)))
    assert len(set(sessions[1:])) == 1
    assert sessions[1]
    assert len(bodies[0]) > 33 * partitions
    assert max(map(len, bodies[first + 1 :])) < 33 * 5, "behind the one that says how far all of them were read"
