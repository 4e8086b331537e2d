"""Rows of a batch: cut into runs, slices of runs, headers."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.model import TopicPartition
from srm_spark.core.rows import Headers, runs_of
from tests.unit.arrow_rows import ArrowRow, arrow_batch, run_of


def row(topic: str, partition: int, offset: int) -> ArrowRow:
    return topic, partition, offset, 5, b"k", b"v", None


def test_an_empty_batch_has_no_runs() -> None:
    assert not list(runs_of(arrow_batch([])))


def test_a_run_ends_where_the_partition_or_the_topic_changes() -> None:
    """Two topics with the same partition number next to each other are two runs."""
    rows = [row("a", 0, 1), row("a", 0, 2), row("b", 0, 9), row("b", 1, 3), row("b", 1, 7), row("a", 1, 4)]
    found = [(run.partition, run.offsets.tolist()) for run in runs_of(arrow_batch(rows))]
    assert found == [
        (TopicPartition("a", 0), [1, 2]),
        (TopicPartition("b", 0), [9]),
        (TopicPartition("b", 1), [3, 7]),
        (TopicPartition("a", 1), [4]),
    ]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=30))
def test_runs_together_are_the_batch(places: list[tuple[str, int]]) -> None:
    rows = [row(topic, partition, offset) for offset, (topic, partition) in enumerate(places)]
    runs = list(runs_of(arrow_batch(rows)))
    found = [(*run.partition, offset) for run in runs for offset in run.offsets.tolist()]
    assert found == [(topic, partition, offset) for topic, partition, offset, *_ in rows]
    assert all(one.partition != two.partition for one, two in itertools.pairwise(runs))


@pytest.mark.parametrize(("size", "count"), [(0, 1), (1, 1), (3, 1), (4, 2), (5, 2), (11, 3), (12, 4), (99, 4)])
def test_a_part_takes_as_many_rows_as_reach_its_size(size: int, count: int) -> None:
    run = run_of([1, 2, 3, 4], keys=[b"k"] * 4, values=[b"vv", b"v", b"12345", b""])
    assert run.upto(size).offsets.tolist() == [1, 2, 3, 4][:count]


def test_milliseconds_are_rounded_down_before_the_epoch_too() -> None:
    assert run_of([1, 2], timestamps=[-5, 1_700_000_000_123]).timestamps.tolist() == [-5, 1_700_000_000_123]


def test_records_keep_null_apart_from_empty_and_send_no_timestamp_as_none() -> None:
    fields = {"keys": [None, b"", b"k"], "values": [b"", None, b"v"]}
    run = run_of([0, 1, 2], timestamps=[-1, -7, 3], headers=[None, None, [("h", None)]], **fields)
    # Without a timestamp the producer takes its own (0); other negative ones are timestamps.
    assert [record[:2] for record in run.records()] == [(None, b""), (b"", None), (b"k", b"v")]
    assert [record[2] for record in run.records()] == [0, -7, 3]
    assert [record[3] for record in run.records()] == [None, None, [("h", None)]]


def test_negative_timestamps_survive_where_no_record_lacks_one() -> None:
    assert [record[2] for record in run_of([0, 1], timestamps=[-7, 3]).records()] == [-7, 3]


def test_a_negative_timestamp_beside_a_record_without_one() -> None:
    """-1 means none, -7 is a time: one must not change the other."""
    assert [record[2] for record in run_of([0, 1], timestamps=[-7, -1]).records()] == [-7, 0]


def test_slices_and_sizes() -> None:
    headers = [None, [("h", b"a"), ("ü", None)], None]
    run = run_of([3, 4, 9], keys=[b"kk", None, b""], values=[b"v", b"vvv", None], headers=headers)
    assert run.bytes == 6
    assert run.sizes().tolist() == [3, 3 + (10 + 2) + (10 + 2), 0]
    assert run.slice(1, 3).sizes().tolist() == [27, 0]
    part = run.slice(1, 3)
    assert (part.offsets.tolist(), part.count, part.bytes) == ([4, 9], 2, 3)
    assert [record[1] for record in part.records()] == [b"vvv", None]
    assert run.head(1).offsets.tolist() == [3]
    assert run.head(0).count == 0


@given(st.lists(st.none() | st.lists(st.tuples(st.text(), st.none() | st.binary()), min_size=1), min_size=1), st.data())
def test_headers_keep_order_duplicates_null_and_empty(rows: list[Headers | None], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(rows)))
    run = run_of(range(len(rows)), headers=rows)
    assert run.header_lists() == rows
    assert run.slice(start, len(rows)).header_lists() == rows[start:]
