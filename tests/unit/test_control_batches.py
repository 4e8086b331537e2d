"""Control records as batches of the flow's author: where they lie, in which order, and what becomes of failures."""

from __future__ import annotations

import struct
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author
from srm_spark.errors import NotWritten
from srm_spark.kafka.batches import writer as writing
from srm_spark.kafka.batches.control import ControlBatches, Overtaken, partition_of
from tests import batch_bytes
from tests.unit.memory_brokers import TOO_LARGE, MemoryBrokers

P = TopicPartition("offsets", 1)
SECONDS = 20.0
FATES = st.lists(
    st.sampled_from(["fine"] * 6 + ["lost", "answer lost", "not leader", "appended, timed out", "moved"]), max_size=60
)


class Target(MemoryBrokers):
    """Brokers that keep the records, too."""

    where = "cluster B"

    def __init__(self, fates: list[str] | None = None) -> None:
        super().__init__(fates or [])
        self.counts = {"offsets": 3}
        self.values: dict[TopicPartition, list[bytes]] = defaultdict(list)
        self.is_large = False

    def partition_count(self, topic: str) -> int:
        return self.counts.get(topic, 0)

    def take_in(self, node: int, partition: TopicPartition, data: memoryview, fate: str) -> tuple[object, ...]:
        if self.is_large:
            return partition, TOO_LARGE, -1
        end = self.logs[partition].end
        answer = super().take_in(node, partition, data, fate)
        if self.logs[partition].end > end:
            self.values[partition] += [raw.value or b"" for _, raw in batch_bytes.read(data)]
        return answer


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaders are looked for without a pause."""
    monkeypatch.setattr(writing, "RETRY_SECONDS", 0.0)


def batches(target: Target) -> ControlBatches:
    return ControlBatches(target)  # type: ignore[arg-type] # all of it that is used


def records(*values: bytes) -> list[ControlRecord]:
    return [ControlRecord("offsets", b"k", value, partition=1) for value in values]


@pytest.mark.parametrize(
    ("key", "number"),
    # Kafka's `Utils.murmur2`, its own test vectors (`UtilsTest.testMurmur2`).
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"abc", 479470107)],
)
def test_the_key_decides_about_the_partition_as_in_kafka(key: bytes, number: int) -> None:
    (positive,) = struct.unpack(">I", struct.pack(">i", number))
    assert partition_of(ControlRecord("t", key, b""), 25) == (positive & 0x7FFFFFFF) % 25
    assert partition_of(ControlRecord("t", key, b"", partition=7), 25) == 7


@given(fates=FATES, count=st.integers(1, 6))
def test_whatever_passes_all_is_there_once_and_in_order(fates: list[str], count: int) -> None:
    writing.RETRY_SECONDS = 0.0
    target = Target(fates)
    made = batches(target)
    for number in range(count):
        made.write(Author(1, 0), records(b"%d" % number, b"%d'" % number), SECONDS)
    assert target.values[P] == [b"%d%s" % (number, mark) for number in range(count) for mark in (b"", b"'")]


def test_a_newer_author_begins_anew_and_the_older_one_writes_no_more() -> None:
    target = Target()
    old, new = batches(target), batches(target)
    old.write(Author(1, 0), records(b"old"), SECONDS)
    new.write(Author(1, 1), records(b"new"), SECONDS)
    with pytest.raises(Overtaken):
        old.write(Author(1, 0), records(b"late"), SECONDS)
    assert target.values[P] == [b"old", b"new"]


def test_an_older_generation_of_the_same_run_writes_no_more_either() -> None:
    """Nor does it disturb the numbers of the newer one, whether the partition has heard of that or not."""
    target = Target()
    made = batches(target)
    made.write(Author(1, 1), records(b"1"), SECONDS)
    with pytest.raises(Overtaken):
        made.write(Author(1, 0), [ControlRecord("offsets", b"k", b"late", partition=2)], SECONDS)
    made.write(Author(1, 1), records(b"2"), SECONDS)
    assert dict(target.values) == {P: [b"1", b"2"]}


def test_what_was_not_acknowledged_in_time_comes_in_front_of_what_is_written_next() -> None:
    target = Target(["lost"] * 3)
    made = batches(target)
    with pytest.raises(NotWritten, match=r"cluster B: offsets-1: not acknowledged in time"):
        made.write(Author(1, 0), records(b"1"), -1.0)
    made.write(Author(1, 0), records(b"2"), SECONDS)
    assert target.values[P] == [b"1", b"2"]


def test_what_is_refused_says_why_and_the_next_record_is_written() -> None:
    target = Target()
    made = batches(target)
    made.write(Author(1, 0), records(b"1"), SECONDS)
    target.is_large = True
    with pytest.raises(NotWritten, match=r"MSG_SIZE_TOO_LARGE.*raise max.message.bytes of topic offsets") as caught:
        made.write(Author(1, 0), records(b"2"), SECONDS)
    assert not caught.value.is_spent
    target.is_large = False
    made.write(Author(1, 0), records(b"3"), SECONDS)
    assert target.values[P] == [b"1", b"3"]


def test_where_records_of_before_are_gone_only_another_epoch_helps() -> None:
    """An unclean election may cost control records as it costs copies."""
    target = Target()
    made = batches(target)
    made.write(Author(1, 0), records(b"1"), SECONDS)
    target.logs[P].next_sequence = 0
    target.logs[P].recent.clear()
    for _ in range(2):
        with pytest.raises(NotWritten) as caught:
            made.write(Author(1, 0), records(b"2"), SECONDS)
        assert caught.value.is_spent
    made.write(Author(1, 1), records(b"3"), SECONDS)
    assert target.values[P] == [b"1", b"3"]


def test_a_topic_that_is_not_there_is_named_at_once() -> None:
    with pytest.raises(NotWritten, match="gone has 0 partitions"):
        batches(Target()).write(Author(1, 0), [ControlRecord("gone", b"k", b"v")], SECONDS)
