"""Brokers in memory: they check sequence numbers as a log does (`ProducerStateManager`), and lose requests, answers and
leaderships where they are told to.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

import crc32c

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import CHECKED_FROM, Author, batches_in
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.batches.brokers import Leader
from srm_spark.kafka.batches.packer import whole
from tests.batch_bytes import NOW, Raw, batch

UNKNOWN, NOT_LEADER, TIMED_OUT, TOO_LARGE, OUT_OF_ORDER, FENCED = -1, 6, 7, 10, 45, 47
_HEADER = struct.Struct(">qiibIhiqqqhii")


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
    stored: list[bytes] = field(default_factory=list)
    """The same batches, as they came."""
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
        self.is_open, self.quiet_until = True, 0.0

    @property
    def has_more(self) -> bool:
        """Whether an answer is there."""
        return bool(self._answers)

    def produce(self, parts: Sequence[bytes | memoryview], *, takes_in: bool) -> None:
        """The broker takes it in, or never gets it."""
        assert takes_in == self._brokers.takes_in
        assert len(self._answers) < 5, "more requests than a broker knows again"
        fate = self._brokers.fate()
        if fate == "lost":
            self._answers.append(None)
            raise OSError("the connection broke off")
        if fate == "moved":
            self._brokers.move()
        answers = [self._brokers.take_in(self._node, *one, fate) for one in _batches(b"".join(map(bytes, parts)))]
        self._answers.append(None if fate == "answer lost" else produce_answer_bytes(answers))

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
        """Marks of batches that are not taken, for the error `refusal`."""
        self.refusal = TOO_LARGE
        self.damaged: set[int] = set()
        """Marks of batches that a broker cannot decompress, which it does before it looks at their numbers."""
        self.deleted: set[TopicPartition] = set()
        """Partitions that nobody knows."""
        self.takes_in = False
        """Whether batches take their partitions into their transactions."""
        self._fates = deque(fates)
        self._connections: dict[int, MemoryConnection] = {}

    def fate(self) -> str:
        """What becomes of the next request."""
        return self._fates.popleft() if self._fates else "fine"

    def move(self) -> None:
        """Every partition gets the other leader."""
        for log in self.logs.values():
            log.leader = 1 - log.leader

    def look(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, Leader], dict[TopicPartition, int]]:
        """As the metadata say."""
        wanted = list(partitions)
        there = [p for p in wanted if p not in self.deleted]
        leaders = {p: Leader(self.logs.setdefault(p, Log()).leader, 0, bytes(16)) for p in there}
        return leaders, {p: 3 for p in wanted if p in self.deleted}

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
            return partition, self.refusal, -1
        if one.max_timestamp - NOW in self.damaged:
            return partition, UNKNOWN, -1
        end = log.end
        error, base = log.append(header, one.records, one.max_timestamp - NOW)
        if log.end > end:
            log.stored.append(bytes(data))
        return (partition, TIMED_OUT, -1) if fate == "appended, timed out" and not error else (partition, error, base)


def _batches(request: bytes) -> Iterable[tuple[TopicPartition, memoryview]]:
    view = memoryview(request)
    size, at = _length(view, 0)  # of the transactional id
    topics, at = _length(view, at + size + 6)
    for _ in range(topics):
        size, at = _length(view, at)
        name = bytes(view[at : at + size]).decode()
        count, at = _length(view, at + size)
        for _ in range(count):
            (number,) = struct.unpack_from(">i", view, at)
            length, at = _length(view, at + 4)
            yield TopicPartition(name, number), view[at : at + length]
            at += length + 1
        at += 1
    assert len(view) == at + 1


def _length(view: memoryview, at: int) -> tuple[int, int]:
    """Of something compact, and where that begins."""
    number = shift = 0
    while True:
        number |= (view[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if view[at - 1] < 0x80:
            return max(0, number - 1), at


def produce_answer_bytes(answers: Iterable[tuple[Any, ...]]) -> memoryview:
    """What brokers say of partitions, each with an error and a base offset."""
    found = b""
    rows = list(answers)
    for partition, error, base in rows:
        name = partition.topic.encode()
        found += bytes([len(name) + 1]) + name + b"\x02"
        found += struct.pack(">ihqqq", partition.partition, error, base, -1, 0) + b"\x01\0\0\0"
    return memoryview(b"\0" + bytes([len(rows) + 1]) + found + struct.pack(">i", 0) + b"\0")


def piece(mark: int, count: int = 3) -> Any:
    """A batch by whose timestamp it is known again."""
    data = memoryview(bytearray(batch([Raw(None, b"v", NOW + mark, ())] * count, 0, "none")))
    return whole(next(iter(batches_in(data))), data)


NOT_COORDINATOR, BUSY, UNKNOWN_TOPIC, DENIED, INVALID_STATE, NOBODYS, NOT_TRIED = 16, 51, 3, 29, 48, 49, 55


@dataclass
class Transacted:
    """A batch of a transaction, as readers of committed records see it once it is decided."""

    partition: TopicPartition
    batch: bytes


class TransactionBrokers(MemoryBrokers):
    """The same with one transaction coordinator, whose fates are those of requests to it, by kind of request.

    A fate is `fine`, `lost` (it never gets the request), `answer lost`, or a code that it answers with.
    """

    all_take_in: ClassVar[bool] = False
    """Of brokers that a test makes."""

    def __init__(self, fates: Iterable[str] = (), asked: Iterable[tuple[str, str | int]] = ()) -> None:
        super().__init__(fates)
        self.where = "cluster B (memory)"
        self.takes_in = self.all_take_in
        self.author = Author(4, -1)
        self.added: set[TopicPartition] = set()
        self.is_open = False
        self.committed: list[Transacted] = []
        self.aborted: list[Transacted] = []
        self.codes: dict[TopicPartition, int] = {}
        """What partitions are refused with when they are to be taken in."""
        self.requests: list[str] = []
        """Everything that was asked of the coordinator, and the batches that came, in order."""
        self.partitions = 5
        """Of every topic, as far as anybody asks."""
        self._asked = deque(asked)
        self._pending: list[Transacted] = []
        self._last_epoch = self._ended_epoch = -1
        """Whose answer may have been lost: asked again under it, the coordinator answers the same."""

    def take_in(self, node: int, partition: TopicPartition, data: memoryview, fate: str) -> tuple[Any, ...]:
        """Partition, error and base offset; a batch of a transaction needs its partition to be in it."""
        (one,) = batches_in(data)
        self.requests.append(f"batch {partition}")
        assert one.is_transactional
        assert one.checksum == crc32c.crc32c(data[CHECKED_FROM:])
        owner = Author(*struct.unpack_from(">qh", data, 43))
        assert owner.producer_id == self.author.producer_id
        if owner.epoch < self.author.epoch:
            return partition, FENCED, -1
        if partition not in self.added:
            code = self.codes.get(partition, 0) if self.takes_in else INVALID_STATE
            if code:
                return partition, code, -1
            self.added.add(partition)
            self.is_open = True
        before = self.logs[partition].end
        answer = super().take_in(node, partition, data, fate)
        if self.logs[partition].end > before:
            self._pending.append(Transacted(partition, bytes(data)))
        return answer

    def will_answer(self, kind: str, fate: str | int) -> None:
        """What becomes of the next request of its kind that nothing is planned for."""
        self._asked.append((kind, fate))

    def ask(self, request: Any, node: int | None = None) -> Any:
        """The answer to a request of the coordinator's."""
        kind = type(request).__name__.removesuffix("Request")
        self.requests.append(kind)
        fate: str | int = "fine"
        if self._asked and self._asked[0][0] == kind:
            fate = self._asked.popleft()[1]
        if fate == "lost":
            raise ProtocolUnavailable(f"{self.where}: cannot ask the cluster")
        answer = getattr(self, f"_{kind}")(request, fate if isinstance(fate, int) else 0)
        if fate == "answer lost":
            raise ProtocolUnavailable(f"{self.where}: cannot ask the cluster")
        return answer

    def partition_count(self, topic: str) -> int:
        """As the metadata say."""
        del topic
        return self.partitions

    def close(self) -> None:
        """Nothing is open."""

    def _FindCoordinator(self, _: Any, error: int) -> Any:
        return SimpleNamespace(error_code=error, node_id=1)

    def _InitProducerId(self, request: Any, error: int) -> Any:
        """As TransactionCoordinator.prepareInitProducerIdTransit: what is open is aborted whatever the epoch says."""
        expected, is_named = Author(request.producer_id, request.producer_epoch), request.producer_id >= 0
        if not error and is_named and expected.producer_id != self.author.producer_id:
            error = FENCED
        elif not error and self.is_open:
            self._end(self.aborted)
            self._last_epoch, error = -1, BUSY
            self.author = Author(self.author.producer_id, self.author.epoch + 1)
        elif not error and is_named and expected.epoch not in {self.author.epoch, self._last_epoch}:
            error = FENCED
        elif not error and not (is_named and expected.epoch == self._last_epoch):
            self._last_epoch = self.author.epoch if is_named else -1
            self.author = Author(self.author.producer_id, self.author.epoch + 1)
        return SimpleNamespace(error_code=error, producer_id=self.author.producer_id, producer_epoch=self.author.epoch)

    def _AddPartitionsToTxn(self, request: Any, error: int) -> Any:
        asked = [
            TopicPartition(topic.name, number) for topic in request.v3_and_below_topics for number in topic.partitions
        ]
        error = error or self._fenced(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        codes = {p: error or self.codes.get(p, 0) for p in asked}
        if any(codes.values()):
            codes = {p: code or NOT_TRIED for p, code in codes.items()}
        else:
            self.added.update(asked)
            self.is_open = True
        return SimpleNamespace(
            results_by_topic_v3_and_below=[
                SimpleNamespace(
                    name=p.topic,
                    results_by_partition=[SimpleNamespace(partition_index=p.partition, partition_error_code=code)],
                )
                for p, code in codes.items()
            ]
        )

    def _EndTxn(self, request: Any, error: int) -> Any:
        is_repeated = self.takes_in and not self.is_open and request.producer_epoch == self._ended_epoch
        error = error or (0 if is_repeated else self._fenced(request.producer_id, request.producer_epoch))
        if not error and not is_repeated:
            self._end(self.committed if request.committed else self.aborted)
            if self.takes_in:
                self._ended_epoch = self.author.epoch
                self.author = Author(self.author.producer_id, self.author.epoch + 1)
        return SimpleNamespace(error_code=error, producer_id=self.author.producer_id, producer_epoch=self.author.epoch)

    def _fenced(self, producer_id: int, epoch: int) -> int:
        if producer_id != self.author.producer_id:
            return NOBODYS
        return 0 if epoch == self.author.epoch else FENCED

    def _end(self, to: list[Transacted]) -> None:
        to += self._pending
        self._pending = []
        self.added.clear()
        self.is_open = False
