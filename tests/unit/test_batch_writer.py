"""Whole batches on their way to brokers that fail in every way that passes: each is appended once, in order.

The brokers are in memory: they check sequence numbers as a log does (`ProducerStateManager`), and lose requests,
answers and leaderships by chance.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author, Authorship, Batch, batches_in
from srm_spark.errors import ProtocolUnavailable
from srm_spark.failure import FailureKind
from srm_spark.kafka.batches import writer as writing
from srm_spark.kafka.batches.brokers import Leader
from srm_spark.kafka.batches.packer import whole
from srm_spark.kafka.batches.writer import BatchWriter
from tests.batch_bytes import NOW, Raw, batch

NOT_LEADER, TIMED_OUT, TOO_LARGE, OUT_OF_ORDER, FENCED = 6, 7, 10, 45, 47
_HEADER = struct.Struct(">qiibIhiqqqhii")
FATES = st.lists(
    st.sampled_from(["fine"] * 6 + ["lost", "answer lost", "not leader", "appended, timed out", "moved"]), max_size=60
)


@dataclass
class Log:
    """One partition as its leaders have it."""

    leader: int = 0
    epoch: int = -1
    next_sequence: int = 0
    recent: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=5))
    """First and last sequence number of the newest batches, and where they lie."""
    batches: list[int] = field(default_factory=list)
    """The first record's number of each batch, as the test gave it."""
    end: int = 0

    def append(self, header: tuple[Any, ...], count: int, mark: int) -> tuple[int, int]:
        """Error and base offset."""
        epoch, sequence = header[10], header[11]
        if epoch < self.epoch:
            return FENCED, -1
        if epoch > self.epoch:
            self.epoch, self.next_sequence = epoch, 0
            self.recent.clear()
        last = sequence + count - 1
        for first, known, offset in self.recent:
            if (first, known) == (sequence, last):
                return 0, offset
        if sequence != self.next_sequence:
            return OUT_OF_ORDER, -1
        self.recent.append((sequence, last, self.end))
        self.next_sequence, base = last + 1, self.end
        self.end += count
        self.batches.append(mark)
        return 0, base


class MemoryConnection:
    """A socket to one broker."""

    def __init__(self, brokers: MemoryBrokers, node: int) -> None:
        self._brokers, self._node = brokers, node
        self._answers: deque[memoryview | None] = deque()
        self.is_open, self.has_more, self.quiet_until = True, False, 0.0

    def produce(self, parts: Sequence[bytes | memoryview]) -> None:
        """The broker takes it in, or never gets it."""
        assert len(self._answers) < 5, "more requests than a broker knows again"
        fate = self._brokers.fate()
        if fate == "lost":
            self._answers.append(None)
            raise OSError("the connection broke off")
        if fate == "moved":
            self._brokers.move()
        answers = [self._brokers.take_in(self._node, *one, fate) for one in _batches(b"".join(map(bytes, parts)))]
        self._answers.append(None if fate == "answer lost" else _answer(answers))

    def receive(self) -> memoryview:
        """The next answer."""
        answer = self._answers.popleft()
        if answer is None:
            raise OSError("the connection broke off")
        return answer

    def close(self) -> None:
        """Gone."""
        self.is_open = False


class MemoryBrokers:
    """Two brokers, and partitions that move from one to the other."""

    def __init__(self, fates: Iterable[str] = ()) -> None:
        self.logs: dict[TopicPartition, Log] = {}
        self.refused: set[int] = set()
        """Marks of batches that are too large."""
        self._fates = deque(fates)
        self._connections: dict[int, MemoryConnection] = {}

    def fate(self) -> str:
        """What becomes of the next request."""
        return self._fates.popleft() if self._fates else "fine"

    def move(self) -> None:
        """Every partition gets the other leader."""
        for log in self.logs.values():
            log.leader = 1 - log.leader

    def leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Leader]:
        """As the metadata say."""
        return {p: Leader(self.logs.setdefault(p, Log()).leader, 0, bytes(16)) for p in partitions}

    def connection(self, node: int) -> MemoryConnection:
        """The one to this broker."""
        known = self._connections.get(node)
        if known is None or not known.is_open:
            known = self._connections[node] = MemoryConnection(self, node)
        return known

    def take_in(self, node: int, partition: TopicPartition, data: memoryview, fate: str) -> tuple[Any, ...]:
        """Partition, error and base offset."""
        log, header = self.logs[partition], _HEADER.unpack_from(data)
        (one,) = batches_in(data)
        if fate == "not leader" or log.leader != node:
            return partition, NOT_LEADER, -1
        if one.max_timestamp - NOW in self.refused:
            return partition, TOO_LARGE, -1
        error, base = log.append(header, one.records, one.max_timestamp - NOW)
        return (partition, TIMED_OUT, -1) if fate == "appended, timed out" and not error else (partition, error, base)


def _batches(request: bytes) -> Iterable[tuple[TopicPartition, memoryview]]:
    view, at = memoryview(request), 12
    (topics,) = struct.unpack_from(">i", view, 8)
    for _ in range(topics):
        (size,) = struct.unpack_from(">h", view, at)
        name, at = bytes(view[at + 2 : at + 2 + size]).decode(), at + 2 + size
        (count,) = struct.unpack_from(">i", view, at)
        at += 4
        for _ in range(count):
            number, length = struct.unpack_from(">ii", view, at)
            yield TopicPartition(name, number), view[at + 8 : at + 8 + length]
            at += 8 + length


def _answer(answers: Iterable[tuple[Any, ...]]) -> memoryview:
    found = b""
    rows = list(answers)
    for partition, error, base in rows:
        name = partition.topic.encode()
        found += struct.pack(">h", len(name)) + name + struct.pack(">i", 1)
        found += struct.pack(">ihqqq", partition.partition, error, base, -1, 0) + struct.pack(">ih", 0, -1)
    return memoryview(struct.pack(">i", len(rows)) + found + struct.pack(">i", 0))


def piece(mark: int, count: int = 3) -> Any:
    """A batch by whose timestamp it is known again."""
    data = memoryview(bytearray(batch([Raw(None, b"v", NOW + mark, ())] * count, 0, "none")))
    return whole(next(iter(batches_in(data))), data)


def written(brokers: MemoryBrokers) -> BatchWriter:
    made = BatchWriter(brokers)  # type: ignore[arg-type] # all of it that a writer uses
    made.begin(Authorship(Author(1, 0)), 30.0)
    return made


def run(writer: BatchWriter) -> dict[TopicPartition, list[tuple[int, int]]]:
    """Write until nothing is left: mark and offset of what was acknowledged, by partition."""
    done: dict[TopicPartition, list[tuple[int, int]]] = {}
    for _ in range(2000):
        if writer.is_idle:
            return done
        writer.send()
        for connection in list(writer.waiting):
            for one in writer.answered(connection):
                done.setdefault(one.source, []).append((one.piece.batch.max_timestamp - NOW, one.base_offset))
    raise AssertionError("it goes on for ever")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaders are looked for without a pause."""
    monkeypatch.setattr(writing, "RETRY_SECONDS", 0.0)


@given(fates=FATES, counts=st.lists(st.integers(1, 8), min_size=1, max_size=3))
def test_whatever_passes_every_batch_is_appended_once_and_in_order(fates: list[str], counts: list[int]) -> None:
    writing.RETRY_SECONDS = 0.0
    brokers = MemoryBrokers(fates)
    writer = written(brokers)
    partitions = [TopicPartition("t", number) for number in range(len(counts))]
    for partition, count in zip(partitions, counts, strict=True):
        writer.open(partition, partition)
        for mark in range(count):
            writer.add(partition, piece(mark))
    done = run(writer)
    for partition, count in zip(partitions, counts, strict=True):
        assert brokers.logs[partition].batches == list(range(count))
        assert done[partition] == [(mark, 3 * mark) for mark in range(count)]
        assert writer.next_sequence(partition) == 3 * count
    assert writer.bytes == 0
    assert not writer.is_broken


def test_what_the_target_refuses_ends_its_partition_and_the_others_go_on() -> None:
    brokers = MemoryBrokers()
    brokers.refused = {4}
    writer = written(brokers)
    bad, good = TopicPartition("t", 0), TopicPartition("t", 1)
    for partition, marks in ((bad, (1, 2, 4, 5, 6)), (good, (11, 12, 13))):
        writer.open(partition, partition)
        for mark in marks:
            writer.add(partition, piece(mark))
    run(writer)
    assert brokers.logs[bad].batches == [1, 2]
    assert brokers.logs[good].batches == [11, 12, 13]
    lane = writer.open(bad, bad)
    assert lane.refusal is not None
    assert lane.refusal.error == TOO_LARGE
    assert writer.next_sequence(bad) == 6, "its neighbours may go on under the next number"
    assert (writer.bytes, writer.is_broken) == (0, False)


def test_a_leader_that_is_dead_is_asked_for_anew_until_another_one_leads() -> None:
    brokers, partition = MemoryBrokers(), TopicPartition("t", 0)
    looks: list[int] = []
    alive = brokers.connection

    def connection(node: int) -> MemoryConnection:
        looks.append(node)
        if len(looks) == 3:
            brokers.move()
        if node == 0:
            raise ProtocolUnavailable("cannot connect to broker 0")
        return alive(node)

    brokers.connection = connection  # type: ignore[method-assign]
    writer = written(brokers)
    writer.open(partition, partition)
    writer.add(partition, piece(1))
    assert run(writer) == {partition: [(1, 0)]}
    assert looks == [0, 0, 0, 1]


def test_a_writer_that_was_overtaken_gives_up() -> None:
    brokers, partition = MemoryBrokers(), TopicPartition("t", 0)
    brokers.logs[partition] = Log(epoch=1)
    writer = written(brokers)
    lane = writer.open(partition, partition)
    writer.add(partition, piece(1))
    run(writer)
    assert lane.failure is not None
    assert lane.failure.kind is FailureKind.OVERTAKEN
    assert writer.is_broken


def test_a_second_attempt_of_a_task_with_other_batches_is_refused() -> None:
    brokers, partition = MemoryBrokers(), TopicPartition("t", 0)
    for marks, kind in (((1, 2), None), ((3,), FailureKind.TARGET_CHANGED)):
        writer = written(brokers)
        lane = writer.open(partition, partition)
        for mark in marks:
            writer.add(partition, piece(mark, 3 + mark))
        run(writer)
        assert (lane.failure and lane.failure.kind) == kind
    assert brokers.logs[partition].batches == [1, 2]


def test_a_pause_without_anything_to_write_is_no_silence_of_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """One partition has ended, the other one has nothing for longer than a target may be silent."""
    now = [1000.0]
    monkeypatch.setattr(writing, "monotonic", lambda: now[0])
    brokers = MemoryBrokers()
    brokers.refused = {4}
    writer = written(brokers)
    for number, mark in ((0, 4), (1, 5)):
        partition = TopicPartition("t", number)
        writer.open(partition, partition)
        writer.add(partition, piece(mark))
    run(writer)
    now[0] += 500
    partition = TopicPartition("t", 1)
    writer.add(partition, piece(6))
    writer.check_silence()
    run(writer)
    assert brokers.logs[partition].batches == [5, 6]


def test_a_target_that_is_silent_for_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(writing, "monotonic", lambda: now[0])
    brokers, partition = MemoryBrokers(["answer lost"]), TopicPartition("t", 0)
    writer = written(brokers)
    lane = writer.open(partition, partition)
    writer.add(partition, piece(1))
    writer.send()
    now[0] += 31
    writer.check_silence()
    assert lane.failure is not None
    assert lane.failure.kind is FailureKind.NOT_ACKNOWLEDGED
    assert writer.is_broken
    assert isinstance(piece(1).batch, Batch)
