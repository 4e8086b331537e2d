"""Record batches of message format 2, written and read field by field in Python, by none of the product's loops."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import crc32c

from srm_spark.core.header_names import raw_name
from srm_spark.core.record_batch import CHECKED_FROM, Batch, batches_in
from srm_spark.core.rows import Run
from srm_spark.kafka.batches.codecs import CODECS, compress, decompress

_HEADER = struct.Struct(">qiibIhiqqqhii")
NOW = 1_700_000_000_000
Headers = tuple[tuple[bytes, bytes | None], ...]


class Raw(NamedTuple):
    """What must be the same on both sides."""

    key: bytes | None
    value: bytes | None
    timestamp: int = NOW
    headers: Headers = ()


def varint(number: int) -> bytes:
    rest, parts = 2 * number if number >= 0 else -2 * number - 1, bytearray()
    while rest > 0x7F:
        parts.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*parts, rest))


def _field(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def record(raw: Raw, delta: int, base_timestamp: int) -> bytes:
    body = b"\0" + varint(raw.timestamp - base_timestamp) + varint(delta) + _field(raw.key) + _field(raw.value)
    body += varint(len(raw.headers)) + b"".join(_field(name) + _field(value) for name, value in raw.headers)
    return varint(len(body)) + body


def batch(
    raws: Sequence[Raw],
    base_offset: int = 0,
    codec: str = "none",
    *,
    deltas: Sequence[int] | None = None,
    last_delta: int | None = None,
    append_time: int | None = None,
    records: bytes | None = None,
) -> bytearray:
    """A batch as it lies in a log; `records` stands for its records, compressed or not, where they are to be wrong."""
    deltas = range(len(raws)) if deltas is None else deltas
    base_timestamp = raws[0].timestamp if raws else -1
    content = b"".join(record(raw, delta, base_timestamp) for raw, delta in zip(raws, deltas, strict=True))
    packed = compress(codec, content) if records is None else records
    largest = append_time if append_time is not None else max((raw.timestamp for raw in raws), default=-1)
    attributes = CODECS.index(codec) | (0x08 if append_time is not None else 0)
    last = last_delta if last_delta is not None else max(deltas, default=0)
    numbers = (0, attributes, last, base_timestamp, largest, -1, -1, -1, len(raws))
    return bytearray(_HEADER.pack(base_offset, 49 + len(packed), -1, 2, *numbers) + packed)


def sealed(batch: bytearray) -> bytearray:
    """A batch with the checksum that belongs to it."""
    struct.pack_into(">I", batch, CHECKED_FROM - 4, crc32c.crc32c(bytes(batch[CHECKED_FROM:])))
    return batch


def parts(*batches: bytearray) -> list[tuple[Batch, memoryview]]:
    """Batches as a fetch gives them."""
    data = memoryview(b"".join(batches)).toreadonly()
    return [(one, data[one.at : one.at + one.size]) for one in batches_in(data)]


def read(data: bytes | memoryview) -> list[tuple[int, Raw]]:
    """Offsets and records of batches."""
    found = []
    for one in batches_in(memoryview(data)):
        content = bytes(decompress(one.codec, memoryview(data)[one.at + 61 : one.at + one.size], 10**9))
        numbers = _Numbers(content)
        for _ in range(one.records):
            found.append(numbers.record(one))
        assert numbers.at == len(content)
    return found


class _Numbers:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def next(self) -> int:
        number = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number >> 1 if number % 2 == 0 else -(number + 1) // 2

    def field(self) -> bytes | None:
        size = self.next()
        if size < 0:
            return None
        self.at += size
        return self.content[self.at - size : self.at]

    def record(self, one: Batch) -> tuple[int, Raw]:
        size = self.next()
        end = self.at + size
        self.at += 1
        timestamp, delta = one.base_timestamp + self.next(), self.next()
        key, value = self.field(), self.field()
        headers = tuple(self._headers())
        assert self.at == end
        stamp = one.max_timestamp if one.is_append_time else timestamp
        return one.base_offset + delta, Raw(key, value, stamp, headers)

    def _headers(self) -> Iterator[tuple[bytes, bytes | None]]:
        for _ in range(self.next()):
            name = self.field()
            assert name is not None
            yield name, self.field()


def raws_of(run: Run) -> list[tuple[int, Raw]]:
    """The records of a run with their offsets."""
    lists = run.header_lists() if run.has_headers else [None] * run.count
    headers = [tuple((raw_name(name), value) for name, value in each or ()) for each in lists]
    rows = zip(run.keys.to_pylist(), run.values.to_pylist(), run.timestamps.tolist(), headers, strict=True)
    return list(zip(run.offsets.tolist(), itertools.starmap(Raw, rows), strict=True))
