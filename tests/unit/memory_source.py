"""A cluster in memory that answers fetch requests to the byte (FetchRequest and FetchResponse 12 and 13)."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import MAGIC
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.batches.brokers import Leader

NO_ID = bytes(16)
"""Of topics of a cluster that gives them none: nothing can be asked for by it."""
UNKNOWN_TOPIC, NOT_LEADER, OUT_OF_RANGE, UNKNOWN_ID = 3, 6, 1, 100
SESSION_NOT_FOUND, INVALID_EPOCH = 70, 71


@dataclass
class MemoryLog:
    """One partition."""

    batches: list[bytes | bytearray] = field(default_factory=list)
    first: int = 0
    end: int = 0
    """The high watermark."""
    stable: int | None = None
    """The last stable offset, where that is another one."""
    aborted: Sequence[tuple[int, int]] = ()
    topic_id: bytes = uuid.UUID(int=7).bytes
    error: int = 0
    """Of every fetch."""
    missing: int = 0
    """Of every look for its leader."""
    preferred: int = -1
    """A replica to ask instead; the leader itself gives nothing then."""
    local: int | None = 0
    """What is before lies in remote storage; None where the broker does not say."""
    stuck: int | None = None
    """Where the replica's log ends, where it has fallen behind."""
    late: int = 0
    """So many reads from there take too long: the answer has no records, and no error."""

    def read(self, offset: int, most: int) -> bytes:
        """The batches from the one on that holds an offset, one at least."""
        if self.late and (self.local is None or offset < self.local):
            self.late -= 1
            return b""
        found = bytearray()
        for data in self.batches:
            if _end(data) > offset and (not found or len(found) + len(data) <= most):
                found += data
        return bytes(found)


class MemorySource:
    """All partitions are led by broker 1; broker 2 is a replica."""

    where = "cluster a"

    def __init__(self, logs: Mapping[TopicPartition, MemoryLog], fetch_version: int = 13) -> None:
        self.logs, self.fetch_version = dict(logs), fetch_version
        self.is_away = False
        self.leads: dict[TopicPartition, int] = {}
        """Where another broker than 1 leads."""
        self.dead: dict[int, int] = {}
        """How often each broker that cannot be reached was tried."""
        self.looks = self.losses = self.local_looks = 0
        self.knows_tiers = True
        self.connections: dict[int, MemoryConnection] = {}
        self.sessions: dict[int, MemorySession] = {}
        """By broker."""
        self.has_room = True
        """For another session."""
        self.named: list[list[int]] = []
        """Partitions that each request names, and as -1 - partition those that it says are not wanted any more."""

    def look(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, Leader], dict[TopicPartition, int]]:
        """As `Brokers.look`."""
        self.looks += 1
        if self.is_away:
            raise ProtocolUnavailable("cluster a: cannot ask the cluster")
        wanted = list(partitions)
        led = {p: Leader(self.leads.get(p, 1), 0, log.topic_id) for p in wanted if not (log := self.logs[p]).missing}
        return led, {p: self.logs[p].missing for p in wanted if p not in led}

    def log_range(self, partition: TopicPartition, node: int) -> tuple[int, int] | None:
        """As `Brokers.log_range`."""
        assert node == 1, "a replica may lag behind"
        return self.logs[partition].first, self.logs[partition].end

    def local_start(self, partition: TopicPartition, node: int, *, is_leader: bool) -> int | None:
        """As `Brokers.local_start`."""
        assert is_leader is (node == 1)
        self.local_looks += 1
        return self.logs[partition].local

    def connection(self, node: int) -> MemoryConnection:
        """One for each broker, until it is closed."""
        if node in self.dead:
            self.dead[node] += 1
            raise ProtocolUnavailable(f"cluster a: cannot connect to broker {node}")
        if node not in self.connections or not self.connections[node].is_open:
            self.connections[node] = MemoryConnection(self, node)
        return self.connections[node]

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryConnection:
    """A socket to one broker; `losses` of them break off before they answer."""

    has_more, quiet_until = True, 0.0

    def __init__(self, source: MemorySource, node: int) -> None:
        self._source, self._node = source, node
        self._body, self._is_by_id = b"", True
        self.is_open = True
        self.can_fetch, self.fetches_by_id = source.fetch_version > 0, source.fetch_version >= 13

    def fetch(self, body: bytes, *, is_by_id: bool) -> None:
        """Take a request; one at a time."""
        assert not self._body, "one is under way"
        assert self.fetches_by_id or not is_by_id
        self._body, self._is_by_id = body, is_by_id

    @property
    def knows_tiers(self) -> bool:
        """As `Connection.knows_tiers`."""
        return self._source.knows_tiers

    def close(self) -> None:
        """It is gone."""
        self.is_open = False

    def receive(self) -> memoryview:
        """The answer."""
        if self._source.losses:
            self._source.losses -= 1
            raise OSError("the broker closed the connection")
        body, self._body = self._body, b""
        asked = _Asked(body, by_id=self._is_by_id)
        self._source.named.append([*(number for _, number in asked.wanted), *(-1 - number for _, number in asked.gone)])
        error, session = self._session(asked)
        told = dict[bytes, list[bytes]]()
        for (topic, number), (offset, most) in ({} if error else session.wanted).items():
            found = self._partition(topic, number, offset, most, committed=asked.committed)
            if session.has_news(topic, number, found):
                told.setdefault(topic, []).append(found)
        parts = [b"\0" + struct.pack(">ihi", 0, error, session.number) + _varint(len(told) + 1)]
        for topic, several in told.items():
            parts += (topic if self._is_by_id else _varint(len(topic) + 1) + topic, _varint(len(several) + 1))
            parts += (*several, b"\0")
        return memoryview(bytearray(b"".join(parts) + b"\0"))

    def _session(self, asked: _Asked) -> tuple[int, MemorySession]:
        """As FetchManager.newContext: an error, or the session that a request belongs to, with what it wants."""
        known = self._source.sessions.get(self._node)
        if asked.epoch in {-1, 0}:
            self._source.sessions.pop(self._node, None)
            number = 0 if asked.epoch or not self._source.has_room else (1 if known is None else known.number + 1)
            made = MemorySession(number, dict(asked.wanted))
            if number:
                self._source.sessions[self._node] = made
            return 0, made
        if known is None or known.number != asked.session:
            return SESSION_NOT_FOUND, MemorySession(0, {})
        if known.epoch + 1 != asked.epoch:
            return INVALID_EPOCH, MemorySession(0, {})
        known.epoch = asked.epoch
        known.wanted |= asked.wanted
        for one in asked.gone:
            del known.wanted[one]
        return 0, known

    def _partition(self, topic: bytes, number: int, offset: int, most: int, *, committed: bool) -> bytes:
        log = next((log for p, log in self._source.logs.items() if self._is(p, log, topic, number)), None)
        if log is None:
            return _answer(number, UNKNOWN_ID if self._is_by_id else UNKNOWN_TOPIC)
        if log.error:
            return _answer(number, log.error)
        if not log.first <= offset <= log.end:
            return _answer(number, OUT_OF_RANGE)
        stable = log.end if log.stable is None else log.stable
        if self._node == 1 and log.preferred >= 0:
            return _answer(number, 0, log.end, stable, preferred=log.preferred)
        if self._node != 1 and log.stuck is not None:
            return _answer(number, 0, log.stuck, log.stuck, (), log.read(offset, 1) if offset < log.stuck else b"")
        return _answer(number, 0, log.end, stable, log.aborted if committed else (), log.read(offset, most))

    def _is(self, partition: TopicPartition, log: MemoryLog, topic: bytes, number: int) -> bool:
        name = log.topic_id if self._is_by_id else partition.topic.encode()
        return name != NO_ID and (name, partition.partition) == (topic, number)


def _end(data: bytes | bytearray) -> int:
    """The offset behind a batch, of a message format 2 or before."""
    base, last = int.from_bytes(data[:8], "big"), int.from_bytes(data[23:27], "big")
    return base + 1 + (last if data[16] == MAGIC else 0)


@dataclass
class MemorySession:
    """What a broker knows of who fetches from it; number 0 for one that ends with its answer."""

    number: int
    wanted: dict[tuple[bytes, int], tuple[int, int]]
    """Topic and partition → offset and most bytes."""
    epoch: int = 0
    _told: dict[tuple[bytes, int], bytes] = field(default_factory=dict)

    def has_news(self, topic: bytes, number: int, found: bytes) -> bool:
        """Whether an answer has to name a partition: all of them at first, then those with records or other ends."""
        before, self._told[topic, number] = self._told.get((topic, number)), found
        error, is_empty = struct.unpack_from(">h", found, 4)[0], found.endswith(b"\1\0")
        return not self.number or before != found or error != 0 or not is_empty


class _Asked:
    """A request, read field by field."""

    def __init__(self, body: bytes, *, by_id: bool) -> None:
        self._body, self._at, self._by_id = body, 25, by_id
        self.committed = bool(body[16])
        self.session, self.epoch = struct.unpack_from(">ii", body, 17)
        self.wanted: dict[tuple[bytes, int], tuple[int, int]] = {}
        for _ in range(self._number() - 1):
            topic = self._topic()
            for _ in range(self._number() - 1):
                number, _, offset, _, _, most, _ = self._fields(">iiqiqib")
                self.wanted[topic, number] = offset, most
            self._at += 1
        self.gone: list[tuple[bytes, int]] = []
        for _ in range(self._number() - 1):
            topic = self._topic()
            self.gone += [(topic, self._fields(">i")[0]) for _ in range(self._number() - 1)]
            self._at += 1

    def _topic(self) -> bytes:
        size = 16 if self._by_id else self._number() - 1
        self._at += size
        return self._body[self._at - size : self._at]

    def _fields(self, layout: str) -> tuple[int, ...]:
        self._at += struct.calcsize(layout)
        return struct.unpack_from(layout, self._body, self._at - struct.calcsize(layout))

    def _number(self) -> int:
        number = shift = 0
        while True:
            byte = self._body[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number


def _answer(  # noqa: PLR0917 - the fields in their order
    number: int,
    error: int,
    end: int = -1,
    stable: int = -1,
    aborted: Sequence[tuple[int, int]] = (),
    records: bytes = b"",
    preferred: int = -1,
) -> bytes:
    parts = struct.pack(">ihqqq", number, error, end, stable, 0) + _varint(len(aborted) + 1)
    parts += b"".join(struct.pack(">qq", *one) + b"\0" for one in aborted)
    return parts + struct.pack(">i", preferred) + _varint(len(records) + 1) + records + b"\0"


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*parts, number))
