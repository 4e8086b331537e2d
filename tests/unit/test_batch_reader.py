"""What a reader of whole batches does when a connection breaks off, with a broker that knows no ids of topics, and
where a replica is to be asked.
"""

from __future__ import annotations

import base64
import struct
import uuid
from collections.abc import Iterable
from typing import Any, cast

import pytest

from srm_spark.core.limits import Limits
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.record_batch import Fit
from srm_spark.kafka.batches.brokers import Brokers, Connection, Leader
from srm_spark.kafka.batches.reader import BatchReader
from srm_spark.kafka.batches.sorting import Form
from tests.awaiting import await_until
from tests.batch_bytes import Raw, batch, sealed
from tests.unit.memory_source import MemoryLog, MemorySource

HERE = TopicPartition("t", 0)
TOPIC_ID = uuid.UUID(int=7).bytes


class BrokenOff:
    """A connection whose broker dies before it answers."""

    can_fetch = fetches_by_id = True
    quiet_until = 0.0

    def __init__(self) -> None:
        self.asked = 0

    def fetch(self, _: bytes, *, is_by_id: bool) -> None:
        assert is_by_id is self.fetches_by_id
        self.asked += 1

    def receive(self) -> memoryview:
        raise OSError("the broker closed the connection")

    def close(self) -> None:
        """It is closed already."""


class OneBroker:
    """It leads; each look gives a connection of its own."""

    where = "cluster a"

    def __init__(self) -> None:
        self.made: list[BrokenOff] = []
        self.looks = 0

    def look(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, Leader], dict[TopicPartition, int]]:
        self.looks += 1
        return dict.fromkeys(partitions, Leader(1, 0, TOPIC_ID)), {}

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


class ByName:
    """A connection to a broker before Kafka 3.1, which answers with one batch of three records."""

    can_fetch, fetches_by_id = True, False
    quiet_until = 0.0

    def fetch(self, _: bytes, *, is_by_id: bool) -> None:
        assert not is_by_id

    def receive(self) -> memoryview:
        records = bytes(sealed(batch([Raw(None, b"v") for _ in range(3)])))
        place = struct.pack(">ihqqq", HERE.partition, 0, 3, 3, 0) + b"\1" + struct.pack(">i", -1)
        place += bytes([len(records) + 1]) + records + b"\0"
        answer = struct.pack(">ihi", 0, 0, 0) + b"\2" + bytes([len(HERE.topic) + 1]) + HERE.topic.encode()
        return memoryview(b"\0" + answer + b"\2" + place + b"\0\0")


@pytest.mark.parametrize("is_replaced", [False, True])
def test_records_that_come_by_name_are_those_of_the_topic_that_was_meant(*, is_replaced: bool) -> None:
    """Those of a new topic of the same name are left to the other way, which tells what has happened."""
    ids = [TOPIC_ID]

    class Cluster(OneBroker):
        def look(
            self, partitions: Iterable[TopicPartition]
        ) -> tuple[dict[TopicPartition, Leader], dict[TopicPartition, int]]:
            return dict.fromkeys(partitions, Leader(1, 0, ids[-1])), {}

        def connection(self, _: int) -> Connection:
            return cast("Connection", ByName())

    form = Form(Fit(2**20), Limits())
    reader = BatchReader(
        cast("Brokers", Cluster()),
        {HERE: OffsetRange(0, 3)},
        {HERE: form},
        {HERE.topic: base64.urlsafe_b64encode(TOPIC_ID).decode().rstrip("=")},
        committed=False,
        rack="",
        seconds=60.0,
    )
    reader.ask(1000)
    if is_replaced:
        ids.append(uuid.UUID(int=8).bytes)
    (connection,) = list(reader.waiting)
    reader.take(connection)
    (reading,) = reader.readings.values()
    assert sum(piece.batch.records for piece in reading.pieces) == (0 if is_replaced else 3)
    assert reading.stop == (OffsetRange(0, 3) if is_replaced else None)
    assert reader.is_over


def test_the_empty_answer_of_a_leader_that_names_a_replica_is_no_end() -> None:
    """It says where the log ends, too (KIP-392): whoever took that for the end would lose the range."""
    data = sealed(batch([Raw(b"k", b"v" * 200_000)]))
    brokers: Any = MemorySource({HERE: MemoryLog([data], end=1, preferred=2)})
    form = Form(Fit(2**20), Limits())
    reader = BatchReader(brokers, {HERE: OffsetRange(0, 1)}, {HERE: form}, {}, committed=False, rack="r", seconds=60.0)
    while not reader.is_over:
        reader.ask(10**7)
        for connection in list(reader.waiting):
            reader.take(connection)
    assert [piece.batch.size for piece in reader.readings[HERE].pieces] == [len(data)]
