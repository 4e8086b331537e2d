"""A few records as record batches of Kafka's message format 2, by hand: the compiled loops, which pack many, cost a
process 120 MB and half a second when they are loaded.

The layout is that of `org.apache.kafka.common.record.DefaultRecord`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from srm_spark.core.record_batch import HEADER_BYTES, MAGIC, Batch, write_header

Entry = tuple[bytes, bytes | None, Mapping[str, bytes]]
"""Key, value and headers."""


def small_batches(entries: Iterable[Entry], timestamp: int, target_bytes: int) -> Iterator[tuple[Batch, bytearray]]:
    """Batches that nobody has written yet, uncompressed, each of at most `target_bytes` or of one record.

    `timestamp` is that of all of them, in milliseconds.
    """
    records: list[bytes] = []
    size = HEADER_BYTES
    for entry in entries:
        record = _record(entry, len(records))
        if records and size + len(record) > target_bytes:
            yield _batch(records, timestamp)
            records, size, record = [], HEADER_BYTES, _record(entry, 0)
        records.append(record)
        size += len(record)
    if records:
        yield _batch(records, timestamp)


def _batch(records: list[bytes], timestamp: int) -> tuple[Batch, bytearray]:
    content, count = b"".join(records), len(records)
    batch = Batch(
        at=0,
        size=HEADER_BYTES + len(content),
        base_offset=0,
        magic=MAGIC,
        last_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        records=count,
    )
    data = bytearray(HEADER_BYTES) + content
    write_header(memoryview(data), batch)
    return batch, data


def _record(entry: Entry, delta: int) -> bytes:
    key, value, headers = entry
    fields = [_field(key), _field(value), _varint(len(headers))]
    for name, content in headers.items():
        fields += (_field(name.encode()), _field(content))
    body = b"\0\0" + _varint(delta) + b"".join(fields)  # attributes, and the time behind the batch's
    return _varint(len(body)) + body


def _field(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Zigzag, seven bits a byte."""
    left, out = 2 * number if number >= 0 else -2 * number - 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)
