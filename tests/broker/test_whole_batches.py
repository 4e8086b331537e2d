"""Batches copied as they are, between real brokers, against an independent reader; and the bytes of the logs."""

from __future__ import annotations

import random
import time

import pytest

from srm_spark.core.limits import Limits
from srm_spark.core.model import Interval
from srm_spark.failure import FailureKind
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.topic_pair import TopicPair
from tests.kafka_io import Record, numbered, produce, records

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def pair(primary: KafkaCluster, secondary: KafkaCluster, unique: str) -> TopicPair:
    return TopicPair(primary, secondary, f"t{unique}")


@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_every_codec_go_whole(pair: TopicPair, codec: str) -> None:
    headers = (("h", b"1"), ("", None))
    chance = random.Random(1)
    written = [Record(f"k{n}".encode(), chance.randbytes(900), 0, 1_700_000_000_000 + n, headers) for n in range(5000)]
    pair.source.write(pair.topic, written, compression_type=codec, linger_ms=500, batch_size=1_000_000)
    report = pair.copy({0: (0, 5000)})[0]
    assert (report.intervals, report.records) == ([Interval(0, 0, 5000)], 5000)
    assert report.whole + report.merged == 5000
    assert report.whole > 4500, "on a busy machine the producer makes a small batch or two"
    assert report.is_complete
    assert records(pair.target.read(pair.topic)) == {0: written}
    assert report.latency_ms is not None


def test_ranges_cut_anywhere_miss_and_double_nothing(
    primary: KafkaCluster, secondary: KafkaCluster, unique: str
) -> None:
    """A batch within which a range ends is cut there, and comes in two parts."""
    pair = TopicPair(primary, secondary, f"t{unique}", 3)
    written = numbered(9000, 3)
    pair.source.write(pair.topic, written, linger_ms=1, batch_num_messages=200)
    chance = random.Random(3)
    at = dict.fromkeys(range(3), 0)
    copied = 0
    while any(offset < 3000 for offset in at.values()):
        ranges = {n: (start, min(3000, start + chance.choice((1, 50, 450, 1500)))) for n, start in at.items()}
        for number, report in pair.copy(ranges).items():
            start, end = ranges[number]
            assert start < report.reached(start, end) <= end or start == end
            at[number] = report.reached(start, end)
            copied += report.whole + report.merged
    assert copied == 9000
    assert records(pair.target.read(pair.topic)) == records(pair.source.read(pair.topic))


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_transactions_go_whole_and_lose_their_mark(pair: TopicPair, isolation: str) -> None:
    """Markers are gaps; what was aborted is there or not as a consumer of that isolation level sees it."""
    producer = pair.source.producer(transactional_id=pair.topic)
    producer.init_transactions(30)
    for turn in range(6):
        producer.begin_transaction()
        produce(producer, pair.topic, numbered(100, prefix=f"turn {turn} "))
        if turn % 3 == 1:
            assert producer.flush(30) == 0
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    pair.source.write(pair.topic, numbered(10, prefix="last "))
    end = pair.source.ends(pair.topic)[0]
    report = pair.copy({0: (0, end)}, isolation)[0]
    expected = pair.source.read(pair.topic, committed=isolation == "read_committed")
    assert (report.records, report.whole + report.merged) == (len(expected[0]), len(expected[0]))
    assert (report.next_offset, report.is_complete) == (end, True)
    assert records(pair.target.read(pair.topic, committed=True)) == records(expected)
    lying = {
        stored.offset: interval
        for interval in report.intervals
        for stored in expected[0]
        if interval.upstream <= stored.offset < interval.upstream_end
    }
    there = pair.target.read(pair.topic)[0]
    for (offset, interval), stored in zip(sorted(lying.items()), there, strict=True):
        assert interval.downstream + offset - interval.upstream == stored.offset


def test_a_range_that_ends_in_aborted_records_and_markers_is_done(pair: TopicPair) -> None:
    pair.source.write(pair.topic, numbered(10))
    producer = pair.source.producer(transactional_id=pair.topic)
    producer.init_transactions(30)
    producer.begin_transaction()
    produce(producer, pair.topic, numbered(5, prefix="gone"))
    assert producer.flush(30) == 0
    producer.abort_transaction(30)
    end = pair.source.ends(pair.topic)[0]
    report = pair.copy({0: (0, end)}, "read_committed")[0]
    assert (report.records, report.next_offset, report.is_complete) == (10, end, True)
    assert pair.target.count(pair.topic) == 10


def test_a_compacted_log_is_copied_around_its_gaps(pair: TopicPair) -> None:
    pair.source.configure(
        pair.topic,
        cleanup_policy="compact",
        segment_ms="300",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="200",
    )
    same = [Record(f"k{n % 7}".encode(), f"v{n}".encode()) for n in range(400)]

    def is_compacted() -> bool:
        pair.source.write(pair.topic, [Record(b"again", b"")])
        return len(pair.source.read(pair.topic)[0]) < 700

    pair.source.write(pair.topic, [*same, *numbered(400, prefix="own ")], batch_num_messages=200, linger_ms=100)
    await_until(is_compacted, 60, "the log has gaps")
    end = pair.source.ends(pair.topic)[0]
    reports = pair.copy({0: (0, end)})
    assert reports[0].is_complete
    there = records(pair.target.read(pair.topic))[0]
    assert len(there) == reports[0].records
    assert set(there) >= set(records(pair.source.read(pair.topic))[0][:-1])  # it may be compacted once more meanwhile


def test_a_batch_that_is_too_large_for_the_target_is_packed_anew(pair: TopicPair) -> None:
    pair.source.write(pair.topic, numbered(100), linger_ms=50)
    pair.source.write(pair.topic, [Record(None, bytes(1000)) for _ in range(200)], linger_ms=50)
    pair.source.write(pair.topic, numbered(100, prefix="last "), linger_ms=50)
    pair.target.configure(pair.topic, max_message_bytes="20000")
    pair.limits = Limits(max_bytes=20_000)
    report = pair.copy({0: (0, 400)})[0]
    assert (report.intervals, report.merged) == ([Interval(0, 0, 400)], 400)
    assert records(pair.target.read(pair.topic)) == records(pair.source.read(pair.topic))


def test_a_limit_that_was_lowered_meanwhile_refuses_a_batch_and_not_its_neighbours(pair: TopicPair) -> None:
    """The target says so; the batch is packed anew behind those in front of it."""
    for part in range(3):
        size = 1000 if part == 1 else 10
        pair.source.write(pair.topic, [Record(None, bytes(size), 0) for _ in range(200)], linger_ms=50)
    pair.target.configure(pair.topic, max_message_bytes="20000")
    report = pair.copy({0: (0, 600)})[0]
    assert report.failure is not None or report.intervals == [Interval(0, 0, 600)]
    reached = report.reached(0, 600)
    there = records(pair.target.read(pair.topic))[0]
    assert there == records(pair.source.read(pair.topic))[0][: len(there)]
    assert len(there) == reached >= 200


def test_a_refused_record_within_a_batch_is_found_and_those_before_it_are_copied(pair: TopicPair) -> None:
    now = int(time.time() * 1000)
    old = now - 86_400_000
    batch = [Record(None, f"v{n}".encode(), 0, old if n == 10 else now) for n in range(20)]
    pair.source.write(pair.topic, numbered(50), linger_ms=50)
    pair.source.write(pair.topic, batch, linger_ms=50)
    pair.source.write(pair.topic, numbered(50), linger_ms=50)
    pair.target.configure(pair.topic, message_timestamp_before_max_ms="3600000")
    pair.limits = Limits(before_ms=3_600_000)
    report = pair.copy({0: (0, 120)})[0]
    assert report.hold is not None
    assert report.hold.offset == report.reached(0, 120) == 60
    assert report.failure is None
    assert report.intervals == [Interval(0, 0, 60)]
    assert records(pair.target.read(pair.topic))[0] == records(pair.source.read(pair.topic))[0][:60]


def test_many_small_batches_are_merged(pair: TopicPair) -> None:
    """A request for each would cost more than their records do."""
    pair.source.write(pair.topic, numbered(300), batch_num_messages=1)
    report = pair.copy({0: (0, 300)})[0]
    assert (report.intervals, report.merged) == ([Interval(0, 0, 300)], 300)
    assert records(pair.target.read(pair.topic)) == records(pair.source.read(pair.topic))


def test_log_append_time_comes_as_each_records_own(pair: TopicPair) -> None:
    pair.source.configure(pair.topic, message_timestamp_type="LogAppendTime")
    pair.source.write(pair.topic, numbered(100), linger_ms=50)
    report = pair.copy({0: (0, 100)})[0]
    assert (report.records, report.merged) == (100, 100)
    assert records(pair.target.read(pair.topic)) == records(pair.source.read(pair.topic))


def test_another_codec_of_the_target_is_kept_to(pair: TopicPair) -> None:
    pair.source.write(pair.topic, numbered(100), linger_ms=50, compression_type="lz4")
    pair.source.write(pair.topic, numbered(100), linger_ms=50, compression_type="zstd")
    pair.limits = Limits(codec="zstd")
    report = pair.copy({0: (0, 200)})[0]
    assert (report.records, report.merged) == (200, 200)
    assert records(pair.target.read(pair.topic)) == records(pair.source.read(pair.topic))


def test_what_others_wrote_in_between_is_noticed(pair: TopicPair) -> None:
    pair.source.write(pair.topic, numbered(100), linger_ms=50)
    pair.target.write(pair.topic, numbered(1, prefix="foreign "))
    report = pair.copy({0: (0, 100)})[0]
    assert report.failure is not None
    assert report.failure.kind is FailureKind.TARGET_CHANGED
