"""The loop of `skimming.py`: headers of batches that lie one behind the other, as rows of a table.

It stops in front of whatever is not plain, and says nothing of why: who looks at that batch by itself finds out.
"""

from __future__ import annotations

from typing import Any

from srm_spark.kafka.batches.loop_fields import (
    BASE_TIME,
    BEGIN,
    CHECKSUM,
    COUNT,
    END,
    LARGEST,
    LAST,
    NO_STAMP,
    OFFSET,
    PLACE,
    STAMP,
)
from srm_spark.kafka.jit import compiled, memory_at, shared, types

_HEADER, _PREFIX = 61, 12
_LENGTH_AT, _MAGIC_AT, _CHECKSUM_AT, _ATTRIBUTES_AT, _DELTA_AT, _FIRST_TIME_AT, _MAX_TIME_AT, _COUNT_AT = (
    8,
    16,
    17,
    21,
    23,
    27,
    35,
    57,
)
_MAGIC = 2
_CODEC, _APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
_SMALLEST_RECORD = 7
_HALF = 2**31
_WHOLE = 2**32
_MOST = 2**28
"""A number whose upper half is beyond it is no offset and no time of a log: who looks at that batch by itself says so.
Numbers stay far below 64 bits so."""


@shared
def _word(memory: Any, at: Any) -> Any:
    """Four bytes as a number without a sign."""
    # With this mask compiled code counts in 64 bits with a sign; without it, in none that take one, and then in floats.
    return (
        (memory[at] & 0xFF) << 24 | (memory[at + 1] & 0xFF) << 16 | (memory[at + 2] & 0xFF) << 8 | memory[at + 3] & 0xFF
    )


@shared
def _long(memory: Any, at: Any) -> Any:
    """Eight bytes as a number with a sign; `LARGEST` for any that is beyond it."""
    high = _word(memory, at)
    if high >= _HALF:
        high -= _WHOLE
    if high > _MOST or high < -_MOST:
        return LARGEST
    return high * _WHOLE + _word(memory, at + 4)


def skim_rows(  # noqa: PLR0917 - compiled code is called by position
    base: Any, size: Any, before: Any, most_bytes: Any, takes_transactions: Any, table: Any
) -> Any:
    """Rows of batches up to the first that is not plain, or begins at offset `before` or behind it: their number.

    Nobody has compared their checksums yet.
    """
    memory = memory_at(base)
    count = 0
    at = 0
    next_offset = 0
    while count < table.shape[0] and size - at >= _HEADER:
        end = at + _PREFIX + _word(memory, at + _LENGTH_AT)
        attributes = memory[at + _ATTRIBUTES_AT + 1] & 0xFF
        offset = _long(memory, at)
        delta = _word(memory, at + _DELTA_AT)
        records = _word(memory, at + _COUNT_AT)
        first_time = _long(memory, at + _FIRST_TIME_AT)
        max_time = _long(memory, at + _MAX_TIME_AT)
        content = end - at - _HEADER
        if end > size or content < 0 or end - at >= most_bytes or memory[at + _MAGIC_AT] != _MAGIC:
            break
        if attributes & _CODEC or (attributes & (_TRANSACTIONAL | _CONTROL) and not takes_transactions):
            break
        if offset < next_offset or offset >= before or offset + delta >= LARGEST or delta >= _HALF:
            break
        if records > delta + 1 or records * _SMALLEST_RECORD > content:
            break
        if first_time >= LARGEST or max_time >= LARGEST:
            break
        is_empty = records == 0 or attributes & _CONTROL
        table[count, PLACE] = end if is_empty else at + _HEADER
        table[count, END] = end
        table[count, OFFSET] = offset
        table[count, BASE_TIME] = first_time
        table[count, STAMP] = max_time if attributes & _APPEND_TIME else NO_STAMP
        table[count, COUNT] = 0 if is_empty else records
        table[count, LAST] = delta
        table[count, BEGIN] = at
        table[count, CHECKSUM] = _word(memory, at + _CHECKSUM_AT)
        count += 1
        at = end
        next_offset = offset + delta + 1
    return count


if types is not None:
    skim_compiled = compiled(
        types.int64(types.int64, types.int64, types.int64, types.int64, types.boolean, types.int64[:, ::1])
    )(skim_rows)
