"""The write task on a real broker, without Spark: both ways to write, batches of our own and librdkafka's producers one
record at a time, write the same records and report the same.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest

from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import Interval, PausedPartition
from srm_spark.core.record_batch import Authorship
from srm_spark.core.reports import PartitionReport, read_report
from srm_spark.core.rows import Headers
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.producers import record_options
from srm_spark.kafka.writer import WriteTask
from srm_spark.testing import KafkaCluster
from tests.broker.authors import author_of
from tests.kafka_io import Kafka, Record, records
from tests.unit.arrow_rows import ArrowRow, arrow_batch

NO_KEY = Failure(FailureKind.NO_KEY, "the record has no key and the target topic is compacted")

WAYS = pytest.mark.parametrize("in_batches", [True, False], ids=["batches", "one by one"])
FIELDS = (None, b"", b"x", b"some bytes", bytes(range(256)), b"y" * 5000)
HEADERS: tuple[Headers | None, ...] = (None, [("h", b"1")], [("h", None), ("", b""), ("h", b"z" * 300), ("ü", b"\0")])
TIMESTAMPS = (-1, -7, 1, 1_700_000_000_123)


def random_rows(seed: int, count: int, *, headers: bool) -> list[ArrowRow]:
    """Rows of two partitions in turn, in stretches, with offsets that are missing here and there."""
    chance = random.Random(seed)
    offsets = [0, 0]
    rows: list[ArrowRow] = []
    while len(rows) < count:
        partition = chance.randrange(2)
        for _ in range(chance.choice((1, 2, 15, 16, 17, 300))):
            offsets[partition] += chance.choice((1, 1, 1, 1, 3))
            found = chance.choice(HEADERS) if headers else None
            key, value = chance.choice(FIELDS), chance.choice(FIELDS)
            rows.append(("t", partition, offsets[partition], chance.choice(TIMESTAMPS), key, value, found))
    return rows


def expected(rows: list[ArrowRow], partition: int) -> list[Record]:
    """What must lie in the remote partition; without a timestamp for rows that have none."""
    return [
        Record(key, value, number, None if stamp == -1 else stamp, tuple(headers or ()))
        for _, number, _, stamp, key, value, headers in rows
        if number == partition
    ]


def write(task: WriteTask, rows: list[ArrowRow], piece: int) -> dict[int, PartitionReport]:
    """The reports of a task over rows that arrive in Arrow batches of `piece`."""
    batches = [arrow_batch(rows[at : at + piece]) for at in range(0, len(rows), piece)]
    (found,) = task(iter(batches))
    return {report.partition.partition: report for report in map(read_report, found.to_pylist())}


def task_of(
    cluster: KafkaCluster, topic: str, *, in_batches: bool, limits: Limits | None = None, queue: int = 0
) -> WriteTask:
    options = record_options({"bootstrap.servers": cluster.bootstrap_servers}, timeout=30.0)
    if queue:
        options["queue.buffering.max.messages"] = queue
    route = Route(topic, limits or Limits())
    task = WriteTask(options, {"t": route}, frozenset(), max_bytes=10**9, timeout=30.0)
    return replace(task, authorship=Authorship(author_of(cluster))) if in_batches else task


@WAYS
@pytest.mark.parametrize("queue", [0, 50], ids=["", "a queue that is always full"])
@pytest.mark.parametrize("headers", [False, True], ids=["", "headers"])
def test_every_record_is_written_as_it_is(
    secondary: KafkaCluster, unique: str, in_batches: bool, queue: int, headers: bool
) -> None:
    kafka, topic = Kafka(secondary), f"written-{unique}"
    kafka.create(topic, partitions=2)
    rows = random_rows(seed=queue + headers, count=6000, headers=headers)
    reports = write(task_of(secondary, topic, in_batches=in_batches, queue=queue), rows, piece=1000)
    copies = records(kafka.read(topic))
    for partition in (0, 1):
        wanted = expected(rows, partition)
        found = [
            copy._replace(timestamp=None) if original.timestamp is None else copy
            for copy, original in zip(copies[partition], wanted, strict=True)
        ]
        assert found == wanted
        offsets = [offset for _, number, offset, *_ in rows if number == partition]
        report = reports[partition]
        assert report.failure is None
        assert report.records == len(wanted)
        mapped = [(i.upstream + k, i.downstream + k) for i in report.intervals for k in range(i.count)]
        assert mapped == list(zip(offsets, range(len(offsets)), strict=True))


def test_what_the_client_refuses_fails_the_partition_and_nothing_behind_it_is_written(
    secondary: KafkaCluster, unique: str
) -> None:
    kafka, topic = Kafka(secondary), f"refused-{unique}"
    kafka.create(topic)
    task = task_of(secondary, topic, in_batches=False)
    task = replace(task, options={**task.options, "message.max.bytes": 2000})
    rows: list[ArrowRow] = [("t", 0, at, 1, None, b"z" * (5000 if at == 40 else 10), None) for at in range(100)]
    report = write(task, rows, piece=100)[0]
    assert report.failure is not None
    assert "MSG_SIZE_TOO_LARGE" in report.failure.sentence
    assert report.reached(0, 100) == 0
    assert kafka.count(topic) == 40


@WAYS
def test_what_the_target_would_refuse_is_held_with_everything_behind_it(
    secondary: KafkaCluster, unique: str, in_batches: bool
) -> None:
    kafka, topic = Kafka(secondary), f"held-{unique}"
    kafka.create(topic)
    rows: list[ArrowRow] = [("t", 0, 7 + at, 1, None if at == 60 else b"k", b"v", None) for at in range(100)]
    task = task_of(secondary, topic, in_batches=in_batches, limits=Limits(needs_key=True))
    report = write(task, rows, piece=40)[0]
    assert report.hold == PausedPartition(67, NO_KEY)
    assert report.intervals == [Interval(7, 0, 60)]
    assert kafka.count(topic) == 60


@WAYS
def test_create_time_zero_is_kept_in_batches_and_the_time_of_the_copy_where_librdkafka_writes(
    secondary: KafkaCluster, unique: str, in_batches: bool
) -> None:
    kafka, topic = Kafka(secondary), f"zero-{unique}"
    kafka.create(topic)
    rows: list[ArrowRow] = [("t", 0, at, 0 if at < 3 else 1, b"k", b"v", None) for at in range(4)]
    report = write(task_of(secondary, topic, in_batches=in_batches), rows, piece=4)[0]
    times = [record.timestamp or 0 for record in records(kafka.read(topic))[0]]
    assert (times[3], report.zero_timestamps) == (1, 0 if in_batches else 3)
    if in_batches:
        assert times[:3] == [0, 0, 0]
    else:
        assert all(abs(time.time() * 1000 - found) < 120_000 for found in times[:3])


LARGE, RANDOM = b"z" * 50_000, random.Random(1).randbytes(50_000)
SIZED = [b"a", LARGE, b"b", LARGE, RANDOM, b"behind"]


@WAYS
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_record_that_fits_compressed_is_written_and_one_that_does_not_is_held_alone(
    secondary: KafkaCluster, unique: str, codec: str, in_batches: bool
) -> None:
    kafka, topic = Kafka(secondary), f"sized-{unique}"
    kafka.create(topic, 2, {"max.message.bytes": "20000", "compression.type": codec})
    rows: list[ArrowRow] = [("t", 0, at, 1, b"k", value, None) for at, value in enumerate(SIZED)]
    rows += [("t", 1, at, 1, b"k", b"other", None) for at in range(30)]
    reports = write(
        task_of(secondary, topic, in_batches=in_batches, limits=Limits(20_000, codec=codec)), rows, piece=100
    )
    hold = reports[0].hold
    assert hold is not None
    assert hold.offset == 4
    assert "max.message.bytes is 20000" in hold.why.sentence
    assert (reports[0].failure, reports[0].intervals) == (None, [Interval(0, 0, 4)])
    assert (reports[1].failure, reports[1].intervals) == (None, [Interval(0, 0, 30)])
    copied = records(kafka.read(topic))
    assert [record.value for record in copied[0]] == SIZED[:4]
    assert len(copied[1]) == 30


@WAYS
def test_without_a_codec_a_record_that_is_too_large_is_not_even_tried(
    secondary: KafkaCluster, unique: str, in_batches: bool
) -> None:
    kafka, topic = Kafka(secondary), f"sized-{unique}"
    kafka.create(topic, 1, {"max.message.bytes": "20000"})
    rows: list[ArrowRow] = [("t", 0, at, 1, b"k", value, None) for at, value in enumerate(SIZED)]
    report = write(task_of(secondary, topic, in_batches=in_batches, limits=Limits(20_000)), rows, piece=100)[0]
    assert report.hold is not None
    assert report.hold.offset == 1
