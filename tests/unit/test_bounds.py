"""Options of a client of whole batches, as far as they count: what is asked for, and what is sent at a time."""

from __future__ import annotations

from typing import Any

import pytest

from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import OffsetRange, RefusedPolicy, TopicPartition
from srm_spark.core.record_batch import Author, Authorship, Fit
from srm_spark.kafka.batches import writer as writing
from srm_spark.kafka.batches.bounds import FetchBounds, WriteBounds
from srm_spark.kafka.batches.brokers import Leader
from srm_spark.kafka.batches.reader import BatchReader
from srm_spark.kafka.batches.sorting import Form, form_of
from srm_spark.kafka.batches.wire import TopicKey, Wanted, fetch_body
from srm_spark.kafka.batches.writer import BatchWriter
from tests.unit.memory_brokers import MemoryBrokers, MemoryConnection, piece

HERE = TopicPartition("t", 0)
SIZE = piece(0).batch.size
TOPIC_ID = bytes(range(16))


class Asked:
    """A broker that leads, and whose requests are kept."""

    where = "cluster A"
    can_fetch, fetches_by_id, quiet_until = True, True, 0.0

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def look(self, partitions: list[TopicPartition]) -> tuple[dict[TopicPartition, Leader], dict[TopicPartition, int]]:
        return dict.fromkeys(partitions, Leader(1, 3, TOPIC_ID)), {}

    def connection(self, _: int) -> Any:
        return self

    def fetch(self, body: bytes, *, is_by_id: bool) -> None:
        assert is_by_id
        self.bodies.append(body)


@pytest.mark.parametrize(("most", "asked"), [(10_000, 5_000), (300, 300)])
def test_a_fetch_asks_for_as_much_as_the_consumer_may_and_the_task_has_left(most: int, asked: int) -> None:
    broker: Any = Asked()
    form = Form(Fit(2**20), Limits())
    bounds = FetchBounds(answer_bytes=5_000, partition_bytes=700)
    reader = BatchReader(
        broker,
        {HERE: OffsetRange(2, 9)},
        {HERE: form},
        {},
        committed=False,
        rack="r",
        seconds=9.0,
        bounds=bounds,
    )
    reader.ask(most)
    wanted: dict[TopicKey, list[Wanted]] = {TOPIC_ID: [Wanted(0, 3, 2, 700)]}
    assert broker.bodies == [fetch_body(wanted, 50, asked, "r", committed=False)]


def test_what_is_packed_anew_has_the_size_of_the_producers_batches() -> None:
    route = Route("A.t", Limits(), RefusedPolicy.HOLD)
    assert form_of(route, {"batch.size": 16_384}).batch_bytes == 16_384
    assert form_of(route, {}).batch_bytes == 1_000_000


class Requests(MemoryBrokers):
    """How many batches came in each request; nobody answers while they are `silent`."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.connections: set[int] = set()

    def fate(self) -> str:
        self.sizes.append(0)
        return "fine"

    def take_in(self, node: int, partition: TopicPartition, data: memoryview, fate: str) -> tuple[Any, ...]:
        self.sizes[-1] += 1
        return super().take_in(node, partition, data, fate)

    def connection(self, node: int) -> MemoryConnection:
        made = super().connection(node)
        self.connections.add(id(made))
        return made


def writer(brokers: Requests, bounds: WriteBounds, batches: int, partitions: int = 1) -> BatchWriter:
    made = BatchWriter(brokers, bounds)  # type: ignore[arg-type] # all of it that a writer uses
    made.begin(Authorship(Author(1, 0)), 30.0)
    for number in range(partitions):
        partition = TopicPartition("t", number)
        made.open(partition, partition)
        for mark in range(batches):
            made.add(partition, piece(mark))
    return made


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaders are looked for without a pause."""
    monkeypatch.setattr(writing, "RETRY_SECONDS", 0.0)


@pytest.mark.parametrize(("size", "sizes"), [(10**6, [4]), (2 * SIZE, [2, 2]), (1, [1, 1, 1, 1])])
def test_a_request_is_no_larger_than_the_producers_unless_one_batch_is(size: int, sizes: list[int]) -> None:
    brokers = Requests()
    writer(brokers, WriteBounds(request_bytes=size), 1, partitions=4).send()
    assert brokers.sizes == sizes


@pytest.mark.parametrize(("requests", "flying"), [(5, 5), (2, 2), (1, 1)])
def test_no_more_requests_are_on_their_way_than_the_producer_may_have(requests: int, flying: int) -> None:
    brokers = Requests()
    made = writer(brokers, WriteBounds(requests=requests), 9)
    made.step(0.0)  # the first one tells that the broker knows the numbers
    made.step(0.0)
    before = len(brokers.sizes)
    made.send()
    (connection,) = made.waiting
    unanswered = 0
    while connection.has_more:
        made.answered(connection)
        unanswered += 1
    assert unanswered == flying, before


def test_a_writer_is_full_where_the_producers_memory_would_be() -> None:
    made = writer(Requests(), WriteBounds(waiting_bytes=2 * SIZE), 1)
    assert not made.is_full
    made.add(HERE, piece(1))
    assert made.is_full
    made.step(0.0)
    assert not made.is_full


def test_a_request_without_an_answer_is_sent_again_on_another_connection() -> None:
    brokers = Requests()
    made = writer(brokers, WriteBounds(answer_seconds=-1.0), 1)
    made.send()
    made.check_silence()
    made.send()
    assert len(brokers.sizes) == 2
    assert len(brokers.connections) == 2
    assert brokers.logs[HERE].batches == [0], "taken once"
