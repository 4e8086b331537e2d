"""Names of headers are bytes: not UTF-8, with zero bytes, with null values, and each arrives as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from srm_spark.core.header_names import raw_name
from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import Flow, OffsetRange, TopicPartition
from srm_spark.core.quarantine import QuarantinedRecord, SourcePlace, decode_content, encode_content
from srm_spark.core.record_batch import Authorship
from srm_spark.core.reports import PartitionReport, read_report
from srm_spark.errors import SourceUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.batches.copy import copy_ranges
from srm_spark.kafka.compare import compare_topics
from srm_spark.kafka.fetch import Fetch, fetch_options
from srm_spark.kafka.producers import record_options
from srm_spark.kafka.records import read_range
from srm_spark.kafka.writer import WriteTask
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.authors import author_of
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_count, await_held, await_lag_zero
from tests.broker.pair_io import settings
from tests.kafka_io import Kafka
from tests.raw_records import RawRecord, read_raw, write_raw

ANY = Failure(FailureKind.OTHER, "")

NAMES = (b"\xff\xfe", b"a\0b", b"\0", b"\xc3", b"\xa9", b"plain", "ü".encode(), b"", b"\xed\xa0\x80")
ODD = [
    RawRecord(f"{name!r} {value!r}".encode(), b"v", ((name, value), (b"again", b"1"), (name, b"\xff")))
    for name in NAMES
    for value in (None, b"", b"\0x")
]
PLAIN = [RawRecord(b"k", b"plain", ())]


@pytest.mark.parametrize("in_batches", [True, False], ids=["batches", "one by one"])
@pytest.mark.parametrize(
    "found", [ODD[:1], ODD, ODD + PLAIN * 20, PLAIN * 20 + ODD[:3]], ids=["one", "odd", "first", "last"]
)
def test_every_name_is_written_as_it_was_read(
    primary: KafkaCluster, secondary: KafkaCluster, unique: str, in_batches: bool, found: Sequence[RawRecord]
) -> None:
    topic = f"names-{unique}"
    for cluster in (primary, secondary):
        Kafka(cluster).create(topic)
    write_raw(primary, topic, found)
    report = copy(primary, secondary, topic, len(found), in_batches=in_batches)
    assert (report.failure, report.hold, report.records) == (None, None, len(found))
    assert read_raw(secondary, topic) == list(found)
    (row,) = compare_topics(settings(primary), settings(secondary), {topic: topic})
    assert (row.target_records, row.difference) == (len(found), None)
    partition, offsets = TopicPartition(topic, 0), OffsetRange(0, len(found))
    for record, raw in zip(
        read_range(settings(primary), {}, partition, offsets, SourceUnavailable), found, strict=True
    ):
        assert tuple((raw_name(name), value) for name, value in record.headers) == raw.headers
        entry = QuarantinedRecord(
            SourcePlace(Flow("a", "b"), partition, None, record.offset),
            ANY,
            record.timestamp,
            False,
            0,
            0,
        )
        content = encode_content(record)
        assert decode_content(replace(entry, size=len(content)), content) == record


def test_a_record_with_more_headers_than_librdkafka_reads_is_copied_as_it_is(
    primary: KafkaCluster, secondary: KafkaCluster, unique: str
) -> None:
    topic = f"names-{unique}"
    for cluster in (primary, secondary):
        Kafka(cluster).create(topic)
    written = [ODD[0], *PLAIN, RawRecord(b"k", b"v", ((b"h", b""),) * 100_001), *PLAIN]
    write_raw(primary, topic, written)
    report = copy(primary, secondary, topic, len(written), in_batches=True)
    assert (report.hold, report.records) == (None, len(written))
    assert read_raw(secondary, topic) == written


def copy(source: KafkaCluster, target: KafkaCluster, topic: str, count: int, *, in_batches: bool) -> PartitionReport:
    fetch = Fetch(fetch_options({"bootstrap.servers": source.bootstrap_servers}), "a", 30.0, in_batches)
    options = record_options({"bootstrap.servers": target.bootstrap_servers}, timeout=30.0)
    routes = {topic: Route(topic, Limits())}
    task = WriteTask(options, routes, frozenset(), max_bytes=10**9, timeout=30.0)
    if in_batches:
        task = replace(task, authorship=Authorship(author_of(target)))
    (row,) = copy_ranges(fetch, task, {TopicPartition(topic, 0): OffsetRange(0, count)}, 0).to_pylist()
    return read_report(row)


@pytest.mark.parametrize(
    "keys",
    [{"exactly.once.support": "required"}, {"provenance.header.enabled": "true"}],
    ids=["exactly once", "provenance"],
)
def test_a_flow_copies_them_in_every_mode(pair: Pair, keys: Mapping[str, str]) -> None:
    source, target = pair.clusters.values()
    pair.source.create(pair.topic())
    write_raw(source, pair.topic(), ODD)
    driver = pair.replicate(keys)
    await_lag_zero(driver)
    await_until(lambda: pair.target.count(pair.remote()) >= len(ODD), SOON, "all copies")
    copied = [
        record._replace(headers=tuple(header for header in record.headers if header[0] != b"srm-provenance"))
        for record in read_raw(target, pair.remote())
    ]
    assert copied == ODD


def test_where_spark_decodes_names_the_record_is_held_or_put_aside_and_nothing_else(pair: Pair) -> None:
    source, target = pair.clusters.values()
    zero = RawRecord(b"k", b"v", ((b"a\0b", None),))
    for name in ("held", "parked", "fine"):
        pair.source.create(pair.topic(name))
        write_raw(source, pair.topic(name), PLAIN if name == "fine" else [zero, ODD[0], zero])
    driver = pair.replicate({"compiled.loop.enabled": "false", "policy.park.topics": pair.topic("parked")})
    (reason,) = await_held(driver, [f"{pair.topic('held')}-0"]).values()
    assert "held at offset 1: " in reason
    assert "header '\\ufffd\\ufffd'" in reason
    await_count(pair.target, pair.remote("parked"), 2)
    await_count(pair.target, pair.remote("fine"), 1)
    assert read_raw(target, pair.remote("held")) == [zero]
    assert read_raw(target, pair.remote("parked")) == [zero, zero]
