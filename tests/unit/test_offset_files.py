"""Files of offsets: each layout is read and written back as it was, and every wrong entry is told at once."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.model import TopicPartition
from srm_spark.core.offset_files import KeptPosition, Layout, parse_offsets
from srm_spark.errors import OffsetFileError

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{"spark.sql.shuffle.partitions":"2"}}'
SPARK = f'v1\n{METADATA}\n{{"orders":{{"0":123,"1":7}}}}'
CONNECT = (
    '{"offsets":[{"partition":{"kafka_topic":"orders","kafka_partition":0},"offset":{"kafka_offset":123}},'
    '{"partition":{"kafka_topic":"orders","kafka_partition":1},"offset":{"kafka_offset":7}}]}\n'
)
ORDERS: tuple[KeptPosition, ...] = ((TopicPartition("orders", 0), 123), (TopicPartition("orders", 1), 7))


def moved(positions: tuple[KeptPosition, ...]) -> dict[KeptPosition, KeptPosition]:
    return {(p, offset): (TopicPartition(f"A.{p.topic}", p.partition), offset + 1000) for p, offset in positions}


def same(positions: tuple[KeptPosition, ...]) -> dict[KeptPosition, KeptPosition]:
    return {position: position for position in positions}


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        (SPARK, Layout.CHECKPOINT),
        ('{"orders":{"0":123,"1":7}}\n', Layout.JSON),
        ("orders:\n  0: 123\n  1: 7\n", Layout.YAML),
        (CONNECT, Layout.CONNECT),
    ],
)
def test_every_layout_is_read_and_written_back_as_it_was(text: str, layout: Layout) -> None:
    file = parse_offsets(text)
    assert (file.layout, file.positions, file.problems) == (layout, ORDERS, ())
    assert file.render(same(ORDERS)) == text
    elsewhere = parse_offsets(file.render(moved(ORDERS)))
    assert (elsewhere.layout, elsewhere.positions) == (layout, tuple(moved(ORDERS).values()))


topics = st.text(st.characters(categories=["L", "N"], include_characters="._-"), min_size=1, max_size=20)
trees = st.dictionaries(
    topics, st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), min_size=1), min_size=1
)


@given(trees, st.sampled_from(list(Layout)))
def test_what_was_written_says_what_was_meant(tree: dict[str, dict[int, int]], layout: Layout) -> None:
    meant = tuple((TopicPartition(t, p), offset) for t, below in tree.items() for p, offset in below.items())
    entries = [
        {"partition": {"kafka_topic": p.topic, "kafka_partition": p.partition}, "offset": {"kafka_offset": offset}}
        for p, offset in meant
    ]
    text = {
        Layout.CHECKPOINT: f"v1\n{METADATA}\n{json.dumps(tree)}",
        Layout.JSON: json.dumps(tree),
        Layout.YAML: yaml.safe_dump(tree, sort_keys=False),
        Layout.CONNECT: json.dumps({"offsets": entries}),
    }[layout]
    file = parse_offsets(text)
    assert (file.layout, file.positions, file.problems) == (layout, meant, ())
    assert parse_offsets(file.render(same(meant))) == file


def test_positions_without_a_counterpart_are_left_out() -> None:
    found = moved(ORDERS[:1])
    assert parse_offsets(SPARK).render(found) == f'v1\n{METADATA}\n{{"A.orders":{{"0":1123}}}}'
    assert parse_offsets(CONNECT).render(found).count("kafka_topic") == 1


def test_a_checkpoint_keeps_what_is_not_kafkas() -> None:
    """A query of several sources: of files, without an offset yet, of Kafka twice, the same topic at two places."""
    other, later = '{"logOffset":3}', '{"orders":{"0":99}}'
    text = f'v1\n{METADATA}\n{other}\n-\n{{"orders":{{"0":123}}}}\n{later}'
    file = parse_offsets(text)
    assert file.positions == ((TopicPartition("orders", 0), 123), (TopicPartition("orders", 0), 99))
    assert file.render(same(file.positions)) == text


def test_a_checkpoint_of_named_sources() -> None:
    text = f'v2\n{METADATA}\n0:{{"orders":{{"0":123,"1":7}}}}\n1:{{"logOffset":3}}'
    file = parse_offsets(text)
    assert file.positions == ORDERS
    assert file.render(same(ORDERS)) == text


def test_latest_and_earliest_are_no_offsets_of_a_checkpoint() -> None:
    plain = parse_offsets('{"orders":{"0":-1,"1":-2}}')
    assert [offset for _, offset in plain.positions] == [-1, -2]
    kept = parse_offsets(f'v1\n{METADATA}\n{{"orders":{{"0":-1,"1":-2,"2":5}}}}')
    assert [offset for _, offset in kept.positions] == [5]
    assert kept.problems == (
        "orders-0: -1 is no offset; allowed 0 and more",
        "orders-1: -2 is no offset; allowed 0 and more",
    )


def test_every_wrong_entry_is_told_and_the_others_are_taken() -> None:
    text = '{"a":{"0":-3,"1":1.5,"x":4,"-1":4,"2":null,"3":true,"4":9223372036854775808,"5":6},"b":7,"c":{"0":1,"0":2}}'
    file = parse_offsets(text)
    assert file.positions == ((TopicPartition("a", 5), 6),)
    told = "\n".join(file.problems)
    for part in (
        "a-0: -3",
        "a-1: 1.5",
        'a-x: "x"',
        'a--1: "-1"',
        "a-2: null",
        "a-3: true",
        "a-4: 92233",
        "topic b: got 7",
    ):
        assert part in told
    assert len(file.problems) == 9


def test_entries_of_connect_that_are_no_sinks_are_told() -> None:
    source = '{"partition":{"filename":"x"},"offset":{"position":3}}'
    reset = '{"partition":{"kafka_topic":"t","kafka_partition":0},"offset":null}'
    file = parse_offsets(f'{{"offsets":[{source},{reset},7]}}')
    assert file.positions == ()
    assert file.problems == (
        "entry 0: no kafka_topic, kafka_partition, kafka_offset; only sinks have offsets of Kafka",
        "entry 1: no kafka_offset; only sinks have offsets of Kafka",
        "entry 2: no kafka_topic, kafka_partition, kafka_offset; only sinks have offsets of Kafka",
    )


@pytest.mark.parametrize("text", ["", "v1\n{}\n", f"v1\n{METADATA}\n-", "[1]", "{}", "earliest", "a: [", "\x00", "1"])
def test_what_is_no_file_of_offsets(text: str) -> None:
    with pytest.raises(OffsetFileError):
        parse_offsets(text)


def test_the_format_narrows_what_is_tried() -> None:
    with pytest.raises(OffsetFileError, match="YAML"):
        parse_offsets("orders:\n  0: 123\n", "spark")
    with pytest.raises(OffsetFileError):
        parse_offsets(SPARK, "connect")
    assert parse_offsets("orders:\n  0: 123\n", "connect").layout is Layout.YAML
    # A topic may be called `offsets`: as a mapping it is one.
    assert parse_offsets('{"offsets":{"0":1}}').positions == ((TopicPartition("offsets", 0), 1),)


def test_names_that_yaml_would_take_for_something_else() -> None:
    file = parse_offsets("on:\n  0: 5\n'123':\n  1: 6\n")
    assert file.positions == ((TopicPartition("on", 0), 5), (TopicPartition("123", 1), 6))
    assert parse_offsets(file.render(same(file.positions))).positions == file.positions
