"""A fence without transactions on real brokers: who is refused, what readers see, and what a marker costs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author, Authorship, batches_in
from srm_spark.errors import LeaseLost
from srm_spark.failure import FailureKind
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.fence import BrokerFence
from srm_spark.kafka.batches.packer import whole
from srm_spark.kafka.batches.writer import BatchWriter
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.kafka_io import Kafka


class Hand:
    """Writes batches of some records as one author, and says where they lie."""

    def __init__(self, brokers: Brokers, topic: str, author: Author) -> None:
        self._writer = BatchWriter(brokers)
        self._writer.begin(Authorship(author), 20.0)
        self._topic = topic

    def write(self, text: str, partition: int = 0, count: int = 5) -> int | FailureKind:
        """Target offset of the first one, or what kind of failure it was."""
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1_000_000)
        for number in range(count):
            builder.append(number, 1_700_000_000_000, None, f"{text} {number}".encode(), [])
        data = memoryview(bytearray(builder.build()))
        remote = TopicPartition(self._topic, partition)
        lane = self._writer.open(remote, remote)
        self._writer.add(remote, whole(next(batches_in(data)), data))
        while lane.failure is None:
            for done in self._writer.step(1.0):
                return done.base_offset
        return lane.failure.kind


@pytest.fixture
def brokers(secondary: KafkaCluster) -> Iterator[Brokers]:
    brokers = Brokers({"bootstrap.servers": secondary.bootstrap_servers, "client.id": "fence"}, "b")
    yield brokers
    brokers.close()


def test_an_older_writer_is_refused_in_every_partition(secondary: KafkaCluster, brokers: Brokers, unique: str) -> None:
    """Whether it has written there before or not; and readers of committed records see all that was taken."""
    topic = f"t{unique}"
    kafka = Kafka(secondary)
    kafka.create(topic, 2)
    old = Hand(brokers, topic, BrokerFence(brokers, f"srm-a->b-{unique}", 20.0).begin())
    assert [old.write("old"), old.write("old")] == [0, 5]
    fenced = BrokerFence(brokers, f"srm-a->b-{unique}", 20.0).fence(
        [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    )
    assert (fenced.refused, fenced.is_first) == ({}, False)
    assert kafka.ends(topic) == {0: 11, 1: 1}
    new = Hand(brokers, topic, fenced.author)
    assert new.write("new") == 11
    assert [old.write("late"), old.write("late", partition=1)] == [FailureKind.OVERTAKEN] * 2
    assert [new.write("new"), new.write("new", partition=1)] == [16, 1]
    values = [stored.record.value for stored in kafka.read(topic, committed=True)[0]]
    assert values == [f"{who} {n}".encode() for who in ("old", "old", "new", "new") for n in range(5)]


def test_a_clean_start_needs_no_marker(secondary: KafkaCluster, brokers: Brokers, unique: str) -> None:
    topic = f"t{unique}"
    Kafka(secondary).create(topic)
    fence = BrokerFence(brokers, f"srm-a->b-{unique}", 20.0)
    assert [Hand(brokers, topic, fence.begin()).write("again") for _ in range(3)] == [0, 5, 10]


def test_a_task_that_runs_twice_writes_once(secondary: KafkaCluster, brokers: Brokers, unique: str) -> None:
    """The same batch gets the same offsets; another one under its numbers is refused."""
    topic = f"t{unique}"
    Kafka(secondary).create(topic)
    author = BrokerFence(brokers, f"srm-a->b-{unique}", 20.0).begin()
    assert Hand(brokers, topic, author).write("once") == 0
    assert Hand(brokers, topic, author).write("once") == 0
    assert Hand(brokers, topic, author).write("other", count=3) is FailureKind.TARGET_CHANGED
    assert Kafka(secondary).count(topic) == 5


def test_who_fences_later_wins(secondary: KafkaCluster, brokers: Brokers, unique: str) -> None:
    topic = f"t{unique}"
    Kafka(secondary).create(topic)
    mine, other = (BrokerFence(brokers, f"srm-a->b-{unique}", 20.0) for _ in range(2))
    author = mine.begin()
    other.begin()
    with pytest.raises(LeaseLost):
        mine.keep_alive(author, [TopicPartition(topic, 0)])


def test_a_partition_that_is_not_there_is_named_and_the_others_are_fenced(
    secondary: KafkaCluster, brokers: Brokers, unique: str
) -> None:
    topic = f"t{unique}"
    Kafka(secondary).create(topic)
    there, gone = TopicPartition(topic, 0), TopicPartition(f"{topic}-gone", 0)
    fence = BrokerFence(brokers, f"srm-a->b-{unique}", 20.0)
    fenced = fence.fence([there, gone])
    assert (set(fenced.refused), fenced.is_first) == ({gone}, True)
    await_until(lambda: Kafka(secondary).ends(topic)[0] == 1, 10, "the marker")


@pytest.mark.slow
def test_an_id_whose_epochs_are_used_up_is_replaced_once_it_is_fenced(
    secondary: KafkaCluster, brokers: Brokers, unique: str
) -> None:
    """The coordinator gives another producer id then, of whose markers the old one's writers would know nothing."""
    topic = f"t{unique}"
    Kafka(secondary).create(topic)
    fence = BrokerFence(brokers, f"srm-a->b-{unique}", 60.0)
    first = fence.begin()
    while fence.begin().epoch < 32_698:
        pass
    old = Hand(brokers, topic, fence.begin())
    assert old.write("old") == 0
    author = fence.fence([TopicPartition(topic, 0)]).author
    assert author.producer_id != first.producer_id
    assert old.write("late") is FailureKind.OVERTAKEN
    assert Hand(brokers, topic, author).write("new") == 6
