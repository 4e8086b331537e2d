"""What a reader of whole batches does when a connection breaks off."""

from __future__ import annotations

import uuid
from typing import Any, cast

import pytest

from srm_spark.core.limits import Limits
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.record_batch import Fit
from srm_spark.kafka.batches.brokers import Brokers, Connection, Leader
from srm_spark.kafka.batches.reader import BatchReader, Form
from tests.awaiting import await_until

HERE = TopicPartition("t", 0)
TOPIC_ID = uuid.UUID(int=7).bytes


class BrokenOff:
    """A connection whose broker dies before it answers."""

    can_fetch = True
    quiet_until = 0.0

    def __init__(self) -> None:
        self.asked = 0

    def fetch(self, _: bytes) -> None:
        self.asked += 1

    def receive(self) -> memoryview:
        raise OSError("the broker closed the connection")


class OneBroker:
    """It leads; each look gives a connection of its own."""

    where = "cluster a"

    def __init__(self) -> None:
        self.made: list[BrokenOff] = []
        self.looks = 0

    def leaders(self, partitions: list[TopicPartition]) -> dict[TopicPartition, Leader]:
        self.looks += 1
        return dict.fromkeys(partitions, Leader(1, 0, TOPIC_ID))

    def connection(self, _: int) -> Connection:
        self.made.append(BrokenOff())
        return cast("Connection", self.made[-1])


def test_what_a_broken_connection_owes_is_asked_of_the_next_one() -> None:
    """Else nothing would come until the pass gives up, a minute later."""
    brokers: Any = OneBroker()
    form = Form(Fit(2**20), Limits())
    reader = BatchReader(
        cast("Brokers", brokers), {HERE: OffsetRange(0, 9)}, {HERE: form}, {}, committed=False, rack="", seconds=60.0
    )
    reader.ask(1000)
    (connection,) = list(reader.waiting)
    with pytest.raises(OSError, match="closed"):
        reader.take(connection)
    reader.lost(connection)
    assert not list(reader.waiting)

    def is_asked_again() -> bool:
        reader.ask(1000)
        return bool(list(reader.waiting))

    await_until(is_asked_again, 10, "another request")
    assert [one.asked for one in brokers.made] == [1, 1]
    assert brokers.looks == 2, "it may be led by another one by now"
