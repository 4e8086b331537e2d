"""One record of message format 2, as loops read and write it (`org.apache.kafka.common.record.DefaultRecord`).

Every byte that is read lies between two places that the caller vouches for; a length beyond the second one is an error
code. Numbers stay far below 64 bits, so that compiled and interpreted loops count alike.
"""

from __future__ import annotations

from typing import Any

from srm_spark.kafka.batches.loop_fields import (
    ATTRIBUTES,
    BAD_HEADERS,
    BAD_LENGTH,
    BAD_NUMBER,
    DELTA,
    DONE,
    HEADERS,
    HEADERS_AT,
    KEY,
    KEY_SIZE,
    LONG,
    REST,
    SHORT,
    SMALLEST_BODY,
    STOP,
    TIME,
    VALUE,
    VALUE_SIZE,
)
from srm_spark.kafka.jit import move, shared


@shared
def varint(memory: Any, at: Any, end: Any, longest: Any) -> Any:
    """A signed number, and the place behind it; -1 where it does not end before `end` or is too long."""
    number = 0
    shift = 0
    end = min(end, at + longest)
    while at < end:
        byte = int(memory[at])
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    return 0, -1


@shared
def put_varint(out: Any, at: Any, number: Any) -> Any:
    """Write a signed number: the place behind it."""
    rest = (number << 1) ^ (number >> 63)
    while rest > 0x7F:
        out[at] = (rest & 0x7F) | 0x80
        at += 1
        rest >>= 7
    out[at] = rest
    return at + 1


@shared
def varint_size(number: Any) -> Any:
    """Bytes of a signed number."""
    rest = (number << 1) ^ (number >> 63)
    size = 1
    while rest > 0x7F:
        size += 1
        rest >>= 7
    return size


@shared
def field(memory: Any, at: Any, end: Any) -> Any:
    """Place and size of something behind its length, and the place behind it; the size is -1 for null.

    The last place is -1 where it does not lie before `end`.
    """
    size, at = varint(memory, at, end, SHORT)
    if at < 0 or size > end - at:
        return at, size, -1
    if size < 0:
        return at, -1, at
    return at, size, at + size


@shared
def read_record(memory: Any, at: Any, end: Any, fields: Any) -> Any:  # noqa: PLR0911 - no exceptions in compiled code
    """Take one record apart, which lies before `end`: 0, or what is wrong with it."""
    size, at = varint(memory, at, end, SHORT)
    if at < 0:
        return BAD_NUMBER
    if size < SMALLEST_BODY or size > end - at:
        return BAD_LENGTH
    stop = at + size
    fields[STOP] = stop
    fields[ATTRIBUTES] = int(memory[at])
    fields[TIME], at = varint(memory, at + 1, stop, LONG)
    if at < 0:
        return BAD_NUMBER
    fields[DELTA], at = varint(memory, at, stop, SHORT)
    if at < 0:
        return BAD_NUMBER
    fields[REST] = at
    fields[KEY], fields[KEY_SIZE], at = field(memory, at, stop)
    if at < 0:
        return BAD_LENGTH
    fields[VALUE], fields[VALUE_SIZE], at = field(memory, at, stop)
    if at < 0:
        return BAD_LENGTH
    count, at = varint(memory, at, stop, SHORT)
    if at < 0 or count < 0 or count > stop - at:
        return BAD_HEADERS
    fields[HEADERS] = count
    fields[HEADERS_AT] = at
    for _ in range(count):
        _, size, at = field(memory, at, stop)
        if at < 0 or size < 0:
            return BAD_HEADERS
        _, size, at = field(memory, at, stop)
        if at < 0:
            return BAD_HEADERS
    return DONE if at == stop else BAD_LENGTH


@shared
def field_size(size: Any) -> Any:
    """Bytes of something with its length; `size` is below 0 for null."""
    return 1 if size < 0 else varint_size(size) + size


@shared
def put_field(out: Any, to: Any, memory: Any, at: Any, size: Any) -> Any:
    """Write something behind its length: the place behind it."""
    if size < 0:
        return put_varint(out, to, -1)
    to = put_varint(out, to, size)
    move(out, to, memory, at, size)
    return to + size
