"""The judge of all copies, judged: every kind of difference is seeded and must be found with both offsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import TargetUnavailable
from srm_spark.kafka.compare import PartitionComparison, compare_topics
from srm_spark.testing import KafkaCluster
from tests.broker.pair_io import settings

Record = dict[str, Any]
Compare = Callable[[Sequence[Record], Sequence[Record]], PartitionComparison]

NOW = 1_700_000_000_000


def record(**changes: Any) -> Record:
    return {"key": b"k", "value": b"v", "headers": [("h", b"1"), ("h", b"2")], "timestamp": NOW, **changes}


def create(cluster: KafkaCluster, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()


def produce(cluster: KafkaCluster, topic: str, records: Sequence[Record], *, transaction: str = "") -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
    if transaction:
        fixed: Any = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic}
        producer = Producer(fixed)
        producer.init_transactions()
        producer.begin_transaction()
    for one in records:
        producer.produce(topic, partition=0, **one)
    assert producer.flush(30) == 0
    if transaction == "abort":
        producer.abort_transaction()
    elif transaction:
        producer.commit_transaction()


@pytest.fixture
def compare(primary: KafkaCluster, secondary: KafkaCluster, unique: str) -> Compare:
    """Write records to both sides and compare."""

    def run(ours: Sequence[Record], theirs: Sequence[Record]) -> PartitionComparison:
        topic, remote_topic = f"t-{unique}", f"primary.t-{unique}"
        for cluster, name, records in ((primary, topic, ours), (secondary, remote_topic, theirs)):
            create(cluster, name)
            produce(cluster, name, records)
        (row,) = compare_topics(settings(primary), settings(secondary), {topic: remote_topic})
        return row

    return run


def test_equal_partitions_are_equal(compare: Compare) -> None:
    kinds = [
        record(),
        record(key=None, value=None, headers=[]),
        record(key=b"", value=b""),
        record(headers=[("", b"x"), ("n", None), ("e", b"")]),
        record(timestamp=1),
    ]
    row = compare(kinds, kinds)
    assert row.difference is None
    assert (row.source_records, row.target_records) == (5, 5)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"key": b"K"}, r"key b'k' / b'K'"),
        ({"key": None}, r"key b'k' / null"),
        ({"value": b"w"}, r"value b'v' / b'w'"),
        ({"value": None}, r"value b'v' / null"),
        ({"headers": [("h", b"2"), ("h", b"1")]}, r"header 0 'h': b'1' / 'h': b'2'"),
        ({"headers": [("h", b"1")]}, r"2 headers / 1 header"),
        ({"headers": [("h", b"1"), ("g", b"2")]}, r"header 1 'h': b'2' / 'g': b'2'"),
        ({"headers": [("h", b"1"), ("h", None)]}, r"header 1 'h': b'2' / 'h': null"),
        ({"timestamp": NOW + 1}, rf"timestamp {NOW} / {NOW + 1}"),
    ],
)
def test_a_record_that_differs_is_found(compare: Compare, changes: Record, told: str) -> None:
    row = compare([record(), record(), record()], [record(), record(**changes), record()])
    assert row.difference == f"source offset 1, target offset 1: {told}"
    assert (row.source_records, row.target_records) == (3, 3)


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        (record(key=None), record(key=b""), "key null / b''"),
        (record(value=None), record(value=b""), "value null / b''"),
        (record(headers=[("h", None)]), record(headers=[("h", b"")]), "header 0 'h': null / 'h': b''"),
        (record(headers=[]), record(headers=[("", b"")]), "0 headers / 1 header"),
    ],
)
def test_null_and_empty_are_different(compare: Compare, ours: Record, theirs: Record, told: str) -> None:
    assert compare([ours], [theirs]).difference == f"source offset 0, target offset 0: {told}"


def test_two_records_in_the_wrong_order_are_found(compare: Compare) -> None:
    one, two = record(value=b"1"), record(value=b"2")
    assert compare([one, two], [two, one]).difference == "source offset 0, target offset 0: value b'1' / b'2'"


def test_a_difference_deep_in_a_long_value_is_located(compare: Compare) -> None:
    ours, theirs = b"x" * 500 + b"a", b"x" * 500 + b"b"
    told = compare([record(value=ours)], [record(value=theirs)]).difference
    assert told is not None
    assert told.endswith("(501 bytes) from byte 500")


def test_a_lost_record_is_found(compare: Compare) -> None:
    row = compare([record(), record(), record()], [record(), record()])
    assert row.difference == "source offset 2: not on the target, which ends at offset 2"
    assert (row.source_records, row.target_records) == (3, 2)


def test_a_doubled_record_is_found(compare: Compare) -> None:
    row = compare([record()], [record(), record()])
    assert row.difference == "target offset 1: not on the source, which ends at offset 1"
    assert (row.source_records, row.target_records) == (1, 2)


def test_records_behind_the_first_difference_are_still_counted(compare: Compare) -> None:
    row = compare([record(value=b"other"), *[record()] * 20], [record()] * 15)
    assert (row.source_records, row.target_records) == (21, 15)


def test_what_was_aborted_does_not_count_and_offsets_may_differ(
    primary: KafkaCluster, secondary: KafkaCluster, unique: str
) -> None:
    topic = f"tx-{unique}"
    create(primary, topic)
    create(secondary, topic)
    produce(primary, topic, [record(value=b"gone")], transaction="abort")
    produce(primary, topic, [record(value=b"kept")], transaction="commit")
    produce(primary, topic, [record(value=b"plain")])
    produce(primary, topic, [record(value=b"gone too")], transaction="abort")
    produce(secondary, topic, [record(value=b"kept"), record(value=b"pain")])
    (row,) = compare_topics(settings(primary), settings(secondary), {topic: topic})
    # 0 gone, 1 marker, 2 kept, 3 marker, 4 plain
    assert row.difference == "source offset 4, target offset 1: value b'plain' / b'pain'"
    assert (row.source_records, row.target_records) == (2, 2)


def test_missing_partitions_and_topics_are_differences(
    primary: KafkaCluster, secondary: KafkaCluster, unique: str
) -> None:
    create(primary, f"wide-{unique}", 2)
    create(secondary, f"wide-{unique}", 1)
    create(primary, f"alone-{unique}", 1)
    topics = {f"wide-{unique}": f"wide-{unique}", f"alone-{unique}": f"alone-{unique}"}
    rows = list(compare_topics(settings(primary), settings(secondary), topics))
    assert [row.difference for row in rows] == [
        None,
        "the source has 2 partitions, the target 1",
        "the source has 1 partition, the target 0",
    ]


def test_a_side_that_does_not_answer_is_named(primary: KafkaCluster, unique: str) -> None:
    create(primary, f"t-{unique}")
    nowhere = ClusterSettings("secondary", "127.0.0.1:1")
    with pytest.raises(TargetUnavailable, match=r"cluster secondary \(127\.0\.0\.1:1\)"):
        list(compare_topics(settings(primary), nowhere, {f"t-{unique}": "x"}, timeout=2))
