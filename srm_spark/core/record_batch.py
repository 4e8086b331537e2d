"""Record batches of Kafka's message format 2 as they lie in a log: their headers, and whether one may be copied whole.

The layout is that of `org.apache.kafka.common.record.DefaultRecordBatch`. Offsets and timestamps of the records inside
are relative to the header, so a batch can lie at any offset of any partition as it is, with another producer's name on
it. Nothing here looks inside a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from srm_spark.core.model import TopicPartition
from srm_spark.errors import CodecError

HEADER_BYTES = 61
CHECKED_FROM = 21
"""The checksum covers everything from here: attributes, deltas, producer, records."""
_HEADER = struct.Struct(">qiibIhiqqqhii")
_PREFIX = 12
"""Base offset and length, which the length does not count."""
_OWNER = struct.Struct(">hiqqqhii")
_CHECKSUM = struct.Struct(">I")
_OFFSET, _EPOCH = struct.Struct(">q"), struct.Struct(">i")
_FIRST = struct.Struct(">qi")
MAGIC = 2
"""Of the only format that goes whole."""
_MAGIC_AT = 16
_NO_EPOCH = -1
_CODEC_BITS, _LOG_APPEND_BIT, _TRANSACTIONAL_BIT, _CONTROL_BIT, _HORIZON_BIT = 0x07, 0x08, 0x10, 0x20, 0x40
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_LARGEST = 2**62
"""No offset or timestamp of a log is beyond it; a header that says so is broken, and arithmetic stays in 64 bits."""
_SMALLEST_RECORD = 7
"""Bytes of a record without key, value and headers."""


class OddTimes(CodecError):
    """A batch whose timestamps are beyond what is counted with here; it may be as its producer wanted it."""


class Odd(str, Enum):
    """Why a batch is not copied as it is."""

    MAGIC = "old message format"
    LOG_APPEND_TIME = "LogAppendTime"
    GAPS = "offsets are missing in it"
    EDGE = "reaches beyond the range"
    SIZE = "larger than the target topic takes"
    CODEC = "another codec is wanted"
    HORIZON = "has a delete horizon"
    CHECKSUM = "its checksum is wrong"
    REFUSED = "refused by the target as a whole"


class Batch(NamedTuple):
    """The header of one batch, and where it lies in the bytes that were fetched."""

    at: int
    size: int
    """Bytes, header and all."""
    base_offset: int
    magic: int
    checksum: int = 0
    attributes: int = 0
    last_delta: int = 0
    base_timestamp: int = -1
    max_timestamp: int = -1
    producer_id: int = -1
    records: int = 1
    """How many; fewer than offsets where compaction took some, none where it took all."""

    @property
    def end(self) -> int:
        """The offset behind its last one."""
        return self.base_offset + self.last_delta + 1

    @property
    def is_control(self) -> bool:
        """Markers of transactions: offsets without records."""
        return bool(self.attributes & _CONTROL_BIT)

    @property
    def is_transactional(self) -> bool:
        """Whether a marker decides about it."""
        return bool(self.attributes & _TRANSACTIONAL_BIT)

    @property
    def is_append_time(self) -> bool:
        """Whether its largest timestamp is the one of all of its records (LogAppendTime)."""
        return bool(self.attributes & _LOG_APPEND_BIT)

    @property
    def codec(self) -> str:
        """Name of its codec as in `compression.type`; empty for one that this program does not know."""
        number = self.attributes & _CODEC_BITS
        return _CODECS[number] if number < len(_CODECS) else ""


@dataclass(frozen=True)
class Fit:
    """What batches must be like to go whole to one target topic."""

    max_bytes: int
    codec: str = ""
    """The only codec that the target takes as it is; empty where it takes all."""

    def odd(self, batch: Batch, start: int, end: int) -> Odd | None:
        """Why this batch cannot be copied whole where offsets `start` to before `end` are wanted; None if it can."""
        checks = (
            (batch.magic != MAGIC, Odd.MAGIC),
            (batch.base_offset < start or batch.end > end, Odd.EDGE),
            (bool(batch.attributes & _HORIZON_BIT), Odd.HORIZON),
            (batch.last_delta + 1 != batch.records, Odd.GAPS),
            (bool(batch.attributes & _LOG_APPEND_BIT), Odd.LOG_APPEND_TIME),
            (batch.size > self.max_bytes, Odd.SIZE),
            (self.codec not in ("", batch.codec), Odd.CODEC),
        )
        return next((why for is_so, why in checks if is_so), None)


def batches_in(data: memoryview, at: int = 0) -> Iterator[Batch]:
    """The batches of a fetch answer from the place `at` on; the last one may be cut off, and is left out then.

    Raises CodecError where a header cannot be true, OddTimes where only its times are strange. Of message formats
    before 2 only place, size and `magic` are told.
    """
    while len(data) - at > _MAGIC_AT:
        base_offset, length = _FIRST.unpack_from(data, at)
        size, is_old = _PREFIX + length, data[at + _MAGIC_AT] < MAGIC
        if not 0 <= base_offset < _LARGEST or size <= (_MAGIC_AT if is_old else HEADER_BYTES - 1):
            raise CodecError(f"a batch says that it begins at offset {base_offset} and has {size} bytes")
        if len(data) - at < size:
            return
        yield Batch(at, size, base_offset, data[at + _MAGIC_AT]) if is_old else _batch(data, at, size)
        at += size


def _batch(data: memoryview, at: int, size: int) -> Batch:
    (base, _, _, magic, checksum, attributes, delta, base_time, max_time, producer, _, _, count) = _HEADER.unpack_from(
        data, at
    )
    most = delta + 1 if delta >= 0 else 0
    is_room = bool(attributes & _CODEC_BITS) or count * _SMALLEST_RECORD <= size - HEADER_BYTES
    is_possible = 0 <= count <= most and is_room
    if not is_possible or base + delta >= _LARGEST:
        raise CodecError(f"the batch at offset {base} says that it has {count} records on {delta} + 1 offsets")
    if max(abs(base_time), abs(max_time)) >= _LARGEST:
        raise OddTimes(f"the batch at offset {base} says that it has timestamps of {base_time} to {max_time}")
    return Batch(at, size, base, magic, checksum, attributes, delta, base_time, max_time, producer, count)


@dataclass(frozen=True)
class Author:
    """Whose batches they are when they are written: an idempotent producer, or one that writes in transactions."""

    producer_id: int
    epoch: int
    is_transactional: bool = False
    """A marker decides about its batches."""


@dataclass(frozen=True)
class Authorship:
    """The right to write one flow's records: its author, and each remote partition's next sequence number.

    Numbers begin at 0 under each epoch and have no gap, so one generation hands them on from task to task.
    """

    author: Author
    sequences: Mapping[TopicPartition, int] = field(default_factory=dict)
    """By remote partition; 0 where none is named."""


@dataclass(frozen=True)
class Fenced:
    """What came of fencing off older authors of a flow."""

    author: Author
    """Who may write now."""
    refused: Mapping[TopicPartition, int]
    """Partitions that could not be told, with the broker's error."""
    is_first: bool
    """The id was not known before: whoever wrote then wrote under another one."""


def readdress(header: memoryview, batch: Batch, author: Author, sequence: int) -> None:
    """Make a batch the author's, in place: everything but its checksum, which `seal` sets.

    It is part of the author's transaction, or of none any more. `header` begins where the batch does.
    """
    attributes = batch.attributes & ~_TRANSACTIONAL_BIT
    _OFFSET.pack_into(header, 0, 0)
    _EPOCH.pack_into(header, _PREFIX, _NO_EPOCH)
    _OWNER.pack_into(
        header,
        CHECKED_FROM,
        attributes | _TRANSACTIONAL_BIT if author.is_transactional else attributes,
        batch.last_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        author.producer_id,
        author.epoch,
        sequence,
        batch.records,
    )


def write_header(header: memoryview, batch: Batch) -> None:
    """Write a batch's header, nobody's and without its checksum; `header` begins where the batch does."""
    _HEADER.pack_into(
        header,
        0,
        0,
        batch.size - _PREFIX,
        _NO_EPOCH,
        MAGIC,
        0,
        batch.attributes,
        batch.last_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        -1,
        -1,
        -1,
        batch.records,
    )


def seal(header: memoryview, checksum: int) -> None:
    """Set the checksum of everything from `CHECKED_FROM`."""
    _CHECKSUM.pack_into(header, CHECKED_FROM - 4, checksum)


def next_sequence(sequence: int, count: int) -> int:
    """The sequence number behind `count` records; behind the largest one comes 0 (DefaultRecordBatch)."""
    return (sequence + count) % 2**31
