"""What the quarantine holds: records that could not be copied, with their source positions. Values and bytes, no I/O.

A record in quarantine is an entry (what it is and why it is there) and its content (key, value, headers) in numbered
parts, so that a record of any size fits into a topic. The keys are the source position: what is put there again after a
crash takes the place of what is there.

```
partition 0    entries    key [flow, topic, topic id, partition, offset]          value JSON
               ends       key [flow, topic, topic id, partition, offset, "end"]   value JSON
partition 1    parts      key [flow, topic, topic id, partition, offset, part]    value bytes
```

An end says what became of a record that is not in quarantine any more: verify asks for it. Older versions skip it.

Content is: key, value, int32 number of headers, and of each its name and value; each of these as bytes behind an int32
length, -1 for null.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from srm_spark.core.compact_json import compact_json
from srm_spark.core.failure_wordings import recorded
from srm_spark.core.header_names import name_of, raw_name
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.tail import TailRecord
from srm_spark.errors import CodecError
from srm_spark.failure import Failure

ENTRIES, PARTS = 0, 1
"""Partitions of the quarantine topic."""
VERSION = 1
_END = "end"
PART_BYTES = 500_000
"""Of one part. The client library refuses records above 1 MB unless it is told otherwise, and so do brokers."""


class SourcePlace(NamedTuple):
    """Where a record in quarantine lies on the source."""

    flow: Flow
    partition: TopicPartition
    topic_id: str | None
    """A topic of the same name that is made anew gives the same offsets to other records."""
    offset: int


@dataclass(frozen=True)
class QuarantinedRecord:
    """What is known of a record in quarantine without its content."""

    place: SourcePlace
    why: Failure
    timestamp: int
    """Milliseconds since the epoch; -1 where the record has none."""
    is_append_time: bool
    """The timestamp was set by the source's broker (LogAppendTime)."""
    size: int
    """Bytes of its content."""
    quarantined_at: int
    """Milliseconds since the epoch."""

    @property
    def parts(self) -> int:
        """In so many parts the content is stored."""
        return -(-self.size // PART_BYTES)


class Ended(NamedTuple):
    """What became of a record that was in quarantine."""

    place: SourcePlace
    copy: int | None
    """Target offset of what a replay wrote; None where somebody let quarantine forget the record."""


def entry_key(place: SourcePlace) -> bytes:
    """Key of an entry."""
    return _key(place)


def part_key(place: SourcePlace, part: int) -> bytes:
    """Key of one part of the content."""
    return _key(place, part)


def end_key(place: SourcePlace) -> bytes:
    """Key of what became of a record."""
    return _key(place, _END)


def decode_key(key: bytes | None) -> tuple[SourcePlace, int | None] | None:
    """Source position of an entry or a part, and the number of the part; None for anything else."""
    place, rest = _place(key) or (None, [])
    if place is None or len(rest) > 1 or any(type(part) is not int for part in rest):
        return None
    return place, rest[0] if rest else None


def _place(key: bytes | None) -> tuple[SourcePlace, list[Any]] | None:
    """The source position with which a key begins, and what stands behind it."""
    try:
        flow, topic, topic_id, number, offset, *rest = json.loads(key or b"")
        source, arrow, target = flow.partition("->")
    except (ValueError, TypeError, AttributeError):
        return None
    texts = (topic, topic if topic_id is None else topic_id)
    is_sound = arrow and all(isinstance(text, str) for text in texts) and type(number) is type(offset) is int
    if not is_sound:
        return None
    return SourcePlace(Flow(source, target), TopicPartition(topic, number), topic_id, offset), rest


def encode_entry(entry: QuarantinedRecord) -> bytes:
    """Value of an entry: compact JSON, versioned."""
    document = {
        "v": VERSION,
        "reason": entry.why.sentence,
        "kind": entry.why.kind.value,
        "timestamp": entry.timestamp,
        "timestamp_type": "LogAppendTime" if entry.is_append_time else "CreateTime",
        "size": entry.size,
        "part_size": PART_BYTES,
        "parked_at": entry.quarantined_at,
    }
    return compact_json(document)


def decode_entry(place: SourcePlace, value: bytes) -> QuarantinedRecord:
    """Read the value of an entry. Raises CodecError."""
    try:
        document = json.loads(value)
        if document["v"] != VERSION or document["part_size"] != PART_BYTES:
            raise ValueError("another version")
        return QuarantinedRecord(
            place,
            recorded(str(document["reason"]), document.get("kind")),
            int(document["timestamp"]),
            document["timestamp_type"] == "LogAppendTime",
            int(document["size"]),
            int(document["parked_at"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise CodecError(f"quarantine entry {value[:80]!r} was written by another program: {error}") from error


def encode_end(ended: Ended) -> bytes:
    """Value of an end: compact JSON, versioned."""
    return compact_json({"v": VERSION, "copy": ended.copy})


def decode_end(key: bytes | None, value: bytes | None) -> Ended | None:
    """What became of a record; None for anything else, and for what a newer version says."""
    place, rest = _place(key) or (None, [])
    if place is None or rest != [_END]:
        return None
    try:
        document = json.loads(value or b"")
        if document["v"] != VERSION:
            return None
        return Ended(place, None if document["copy"] is None else int(document["copy"]))
    except (ValueError, TypeError, KeyError):
        return None


def encode_content(record: TailRecord) -> bytes:
    """Key, value and headers of a record."""
    fields: list[bytes | None] = []
    for name, value in record.headers:
        fields += (raw_name(name), value)
    body = b"".join(_field(field) for field in (record.key, record.value))
    return body + struct.pack(">i", len(record.headers)) + b"".join(_field(field) for field in fields)


def decode_content(entry: QuarantinedRecord, content: bytes) -> TailRecord:
    """The record as it was on the source. Raises CodecError."""
    if len(content) != entry.size:
        raise CodecError(f"record in quarantine {_name(entry.place)}: {len(content)} bytes of {entry.size} are there")
    try:
        fields = _Fields(content)
        key, value = fields.next(), fields.next()
        headers = tuple((name_of(fields.next() or b""), fields.next()) for _ in range(fields.number()))
    except struct.error as error:
        raise CodecError(f"record in quarantine {_name(entry.place)}: its content cannot be read: {error}") from error
    return TailRecord(entry.place.offset, entry.timestamp, key, value, headers, entry.is_append_time)


def split_content(content: bytes) -> Iterator[bytes]:
    """The parts, in order."""
    return (content[start : start + PART_BYTES] for start in range(0, len(content), PART_BYTES))


class _Fields:
    """Takes fields off the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        (number,) = struct.unpack_from(">i", self._data, self._at)
        self._at += 4
        return int(number)

    def next(self) -> bytes | None:
        length = self.number()
        if length < 0:
            return None
        field = self._data[self._at : self._at + length]
        if len(field) < length:
            raise struct.error(f"{length} bytes are due at {self._at}")
        self._at += length
        return field


def _field(content: bytes | None) -> bytes:
    return struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content


def _key(place: SourcePlace, *part: int | str) -> bytes:
    fields: list[Any] = [str(place.flow), place.partition.topic, place.topic_id, place.partition.partition]
    return compact_json([*fields, place.offset, *part])


def _name(place: SourcePlace) -> str:
    return f"{place.partition} at offset {place.offset}"
