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
        committed, wanted = _wanted(body, by_id=self._is_by_id)
        parts = [b"\0" + struct.pack(">ihi", 0, 0, 0) + _varint(len(wanted) + 1)]
        for topic, partitions in wanted.items():
            parts += (topic if self._is_by_id else _varint(len(topic) + 1) + topic, _varint(len(partitions) + 1))
            parts += (self._partition(topic, *one, committed=committed) for one in partitions)
            parts.append(b"\0")
        return memoryview(bytearray(b"".join(parts) + b"\0"))

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


def _wanted(body: bytes, *, by_id: bool) -> tuple[bool, dict[bytes, list[tuple[int, int, int]]]]:
    """Whether committed, and topic → partition, offset and most bytes."""
    committed, at = bool(body[16]), 25
    wanted: dict[bytes, list[tuple[int, int, int]]] = {}
    for _ in range(body[at] - 1):
        size = 16 if by_id else body[at + 1] - 1
        at += 1 if by_id else 2
        topic, at = body[at : at + size], at + size
        wanted[topic] = []
        for number in range(body[at] - 1):
            fields = struct.unpack_from(">iiqiqib", body, at + 1 + 33 * number)
            wanted[topic].append((fields[0], fields[2], fields[5]))
        at += 1 + 33 * len(wanted[topic])
    return committed, wanted


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
