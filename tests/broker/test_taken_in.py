"""Transactions whose partitions are taken in with their first batches (KIP-890), on a real coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import crc32c
import pytest

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import CHECKED_FROM, Author, readdress, seal
from srm_spark.errors import LeaseLost
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.coordinator import Coordinator
from srm_spark.kafka.batches.wire import produce_answer, produce_parts
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.kafka_io import Kafka
from tests.unit.memory_brokers import BUSY, FENCED, piece

SOON = 30.0


class Writing:
    """Under one transactional id, to one partition."""

    def __init__(self, brokers: Brokers, topic: str) -> None:
        self.brokers, self.place = brokers, TopicPartition(topic, 0)
        self.coordinator = Coordinator(brokers, f"tx-{topic}", SOON)

    def init(self) -> Author:
        return replace(self.coordinator.init(), is_transactional=True)

    def send(self, author: Author, sequence: int, mark: int) -> int:
        """The broker's error, once the transaction before has its markers."""
        leaders, _ = self.brokers.look([self.place])
        connection = self.brokers.connection(leaders[self.place].node)
        packed = piece(mark)
        readdress(packed.data, packed.batch, author, sequence)
        seal(packed.data, crc32c.crc32c(packed.data[CHECKED_FROM:]))
        found: list[int] = []

        def is_decided() -> bool:
            parts = produce_parts(15_000, {self.place: packed.data}, self.coordinator.name)
            connection.produce(parts, takes_in=True)
            ((answer,),) = [produce_answer(connection.receive())[1]]
            found.append(answer.error)
            return answer.error != BUSY

        await_until(is_decided, SOON, "the markers of the transaction before")
        return found[-1]


@pytest.fixture
def writing(secondary: KafkaCluster, unique: str) -> Iterator[Writing]:
    Kafka(secondary).create(f"t-{unique}")
    with closing(Brokers({"bootstrap.servers": secondary.bootstrap_servers}, "b")) as brokers:
        assert brokers.takes_in, "a new cluster has transaction.version 2"
        yield Writing(brokers, f"t-{unique}")


def count(secondary: KafkaCluster, writing: Writing) -> int:
    (log,) = Kafka(secondary).read(writing.place.topic, committed=True).values()
    return len(log)


def test_what_comes_behind_the_end_of_its_transaction_is_refused(secondary: KafkaCluster, writing: Writing) -> None:
    first = writing.init()
    assert writing.send(first, 0, 1) == 0
    second = writing.coordinator.end_by_epoch(first, committed=True)
    assert second == replace(first, epoch=first.epoch + 1)
    assert writing.coordinator.end_by_epoch(first, committed=True) == second, "as where the answer was lost"
    assert writing.send(first, 3, 2) == FENCED
    assert writing.send(second, 0, 3) == 0
    third = writing.coordinator.end_by_epoch(second, committed=False)
    # The answer comes before the markers; to ask once more waits for them.
    assert writing.coordinator.end_by_epoch(second, committed=False) == third
    assert writing.send(second, 3, 4) == FENCED
    assert writing.coordinator.end_by_epoch(third, committed=False).epoch == third.epoch + 1, "nothing was taken in"
    assert count(secondary, writing) == 3


def test_who_was_overtaken_writes_and_ends_nothing(secondary: KafkaCluster, writing: Writing) -> None:
    old = writing.init()
    assert writing.send(old, 0, 1) == 0
    new = writing.init()
    assert writing.send(old, 3, 2) == FENCED
    assert writing.send(new, 0, 3) == 0
    for committed in (True, False):
        with pytest.raises(LeaseLost):
            writing.coordinator.end_by_epoch(old, committed=committed)
    writing.coordinator.end_by_epoch(new, committed=True)
    assert count(secondary, writing) == 3
