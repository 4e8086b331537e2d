"""Fetch and Produce requests, to the byte: the two that carry records, so that no record is copied to be encoded.

Layouts: FetchRequest and FetchResponse version 13 (topics by their ids, KIP-516), or 12 (by their names) for brokers
before Kafka 3.1; ProduceRequest and ProduceResponse version 9, which is laid out like 12 (KIP-890), of Kafka's protocol
guide (https://kafka.apache.org/protocol).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from srm_spark.core.model import TopicPartition
from srm_spark.errors import CodecError

FETCH, FETCH_BY_ID, FETCH_BY_NAME = 1, 13, 12
PRODUCE, PRODUCE_VERSION, PRODUCE_TAKING_IN = 0, 9, 12
"""The last takes its partitions into its transaction by itself."""
_ALL_ACKS = -1
_PARTITION = struct.Struct(">iiqiqib")
_FETCHED = struct.Struct(">ihqqq")
_PRODUCED = struct.Struct(">ihqqq")
_LONGEST_VARINT = 5
Bytes = bytes | memoryview
TopicKey = bytes | str
"""A topic as fetch requests and their answers name it: its id, or its name."""


@dataclass(frozen=True)
class Wanted:
    """One partition of a fetch request."""

    partition: int
    leader_epoch: int
    """As the metadata say, so that a leader of before refuses; -1 where it is not known."""
    offset: int
    max_bytes: int


@dataclass(frozen=True)
class SessionNote:
    """How a fetch request belongs to a session (KIP-227): by default to none."""

    number: int = 0
    epoch: int = -1
    gone: Mapping[TopicKey, Sequence[int]] = field(default_factory=dict)
    """Partitions that are not wanted any more."""


SESSIONLESS = SessionNote()


@dataclass(frozen=True)
class FetchedPartition:
    """What a fetch answer says of one partition."""

    topic: TopicKey
    partition: int
    error: int
    high_watermark: int
    stable: int
    """The last stable offset: everything before it is decided, and below the high watermark."""
    aborted: Sequence[tuple[int, int]]
    """Producer id and first offset of aborted transactions, under read_committed."""
    preferred_replica: int
    """The broker to ask instead (KIP-392); -1 where there is none."""
    records: memoryview

    def readable_end(self, committed: bool) -> int:
        """Before which everything can be read, with or without transactions that are open."""
        return self.stable if committed else self.high_watermark


@dataclass(frozen=True)
class FetchAnswer:
    """What a broker says to a fetch request."""

    throttled_ms: int
    error: int
    session: int
    """Its number; 0 where there is none."""
    partitions: Sequence[FetchedPartition]


@dataclass(frozen=True)
class Produced:
    """What a produce answer says of one partition."""

    partition: TopicPartition
    error: int
    base_offset: int
    message: str


def header(key: int, version: int, correlation: int, client_id: bytes, *, is_flexible: bool) -> bytes:
    """What every request begins with (request header 1, or 2 where it is flexible)."""
    fixed = struct.pack(">hhih", key, version, correlation, len(client_id)) + client_id
    return fixed + b"\0" if is_flexible else fixed


def fetch_body(
    wanted: Mapping[TopicKey, Sequence[Wanted]],
    wait_ms: int,
    max_bytes: int,
    rack: str,
    *,
    committed: bool,
    session: SessionNote = SESSIONLESS,
) -> bytes:
    """A fetch request for topics that are all named by their ids or all by their names."""
    first = struct.pack(">iiiibii", -1, wait_ms, 1, max_bytes, committed, session.number, session.epoch)
    parts = [first, _varint(len(wanted) + 1)]
    for topic, partitions in wanted.items():
        parts += (_topic(topic), _varint(len(partitions) + 1))
        parts += (_PARTITION.pack(p.partition, p.leader_epoch, p.offset, -1, -1, p.max_bytes, 0) for p in partitions)
        parts.append(b"\0")
    parts.append(_varint(len(session.gone) + 1))
    for topic, numbers in session.gone.items():
        parts += (_topic(topic), _varint(len(numbers) + 1), struct.pack(f">{len(numbers)}i", *numbers), b"\0")
    parts += (_text(rack), b"\0")
    return b"".join(parts)


def fetch_answer(data: memoryview, *, is_by_id: bool) -> FetchAnswer:
    """Read an answer; `is_by_id` as in the request. Raises CodecError for what is no fetch answer."""
    read = _Reader(data)
    read.tags()
    throttled, error, session = read.unpack(struct.Struct(">ihi"))
    answers = []
    for _ in range(read.length()):
        topic = bytes(read.take(16)) if is_by_id else read.text()
        for _ in range(read.length()):
            partition, code, high_watermark, stable, _ = read.unpack(_FETCHED)
            aborted = []
            for _ in range(read.length()):
                producer, first = read.unpack(struct.Struct(">qq"))
                aborted.append((producer, first))
                read.tags()
            (preferred,) = read.unpack(struct.Struct(">i"))
            records = read.take(read.length())
            read.tags()
            answers.append(
                FetchedPartition(topic, partition, code, high_watermark, stable, aborted, preferred, records)
            )
        read.tags()
    return FetchAnswer(throttled, error, session, answers)


def produce_parts(
    timeout_ms: int, batches: Mapping[TopicPartition, Bytes], transactional_id: str | None = None
) -> list[Bytes]:
    """A produce request of one batch per partition: its pieces, which are to be sent one behind the other.

    Batches of a transaction come with the id under which it was begun.
    """
    topics: dict[str, list[TopicPartition]] = {}
    for partition in batches:
        topics.setdefault(partition.topic, []).append(partition)
    parts: list[Bytes] = []
    small = b"\0" if transactional_id is None else _text(transactional_id)
    small += struct.pack(">hi", _ALL_ACKS, timeout_ms) + _varint(len(topics) + 1)
    for topic, partitions in topics.items():
        small += _text(topic) + _varint(len(partitions) + 1)
        for partition in partitions:
            batch = batches[partition]
            parts += (small + struct.pack(">i", partition.partition) + _varint(len(batch) + 1), batch)
            small = b"\0"
        small += b"\0"
    return [*parts, small + b"\0"]


def produce_answer(data: memoryview) -> tuple[int, list[Produced]]:
    """Throttle time in ms, and the partitions. Raises CodecError for what is no produce answer."""
    read = _Reader(data)
    read.tags()
    answers = []
    for _ in range(read.length()):
        topic = read.text()
        for _ in range(read.length()):
            number, error, base, _, _ = read.unpack(_PRODUCED)
            reasons = []
            for _ in range(read.length()):
                read.unpack(struct.Struct(">i"))
                reasons.append(read.text())
                read.tags()
            message = read.text() or "; ".join(filter(None, reasons))
            read.tags()
            answers.append(Produced(TopicPartition(topic, number), error, base, message))
        read.tags()
    (throttled,) = read.unpack(struct.Struct(">i"))
    return throttled, answers


def _topic(topic: TopicKey) -> bytes:
    return _text(topic) if isinstance(topic, str) else topic


def _text(text: str) -> bytes:
    """A compact string."""
    data = text.encode()
    return _varint(len(data) + 1) + data


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


class _Reader:
    """Reads an answer from its beginning; raises CodecError where it ends too early."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        """The next fields."""
        return layout.unpack(self.take(layout.size))

    def take(self, count: int) -> memoryview:
        """The next bytes, not copied."""
        if not 0 <= count <= len(self._data) - self._at:
            raise CodecError(f"an answer ends after {len(self._data)} bytes, within {count} bytes at {self._at}")
        self._at += count
        return self._data[self._at - count : self._at]

    def varint(self) -> int:
        """An unsigned varint."""
        number = 0
        for place in range(_LONGEST_VARINT):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return number
        raise CodecError(f"an answer has a number of more than {_LONGEST_VARINT} bytes at {self._at}")

    def length(self) -> int:
        """Of something compact: 0 where it is null."""
        return max(0, self.varint() - 1)

    def text(self) -> str:
        """A compact string; empty where it is null."""
        return bytes(self.take(self.length())).decode("utf-8", "replace")

    def tags(self) -> None:
        """Pass tagged fields."""
        for _ in range(self.varint()):
            self.varint()
            self.take(self.varint())
