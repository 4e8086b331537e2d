"""The loops of `packing.py`: records of old batches, or of Arrow's columns, one behind the other into a new batch.

They go on where `state` says that the last call ended, so one new batch can take from several calls, and one call can
fill several new batches. Each loop is written once (`srm_spark/kafka/jit.py`).
"""

from __future__ import annotations

from typing import Any

from srm_spark.kafka.batches.loop_fields import (
    ASKED,
    AT,
    ATTRIBUTES,
    BAD_COUNT,
    BAD_NAME,
    BAD_OFFSET,
    BAD_TIME,
    BASE_TIME,
    BEFORE,
    CLOSE,
    CONTENT,
    COUNT,
    DELTA,
    DONE,
    EARLY,
    END,
    FIRST_TIME,
    FULL,
    HIGH,
    KEY_SIZE,
    LARGEST,
    LAST,
    LAST_TIME,
    LATE,
    LEFT,
    LOW,
    MAX_TIME,
    NEEDS_KEY,
    NEXT,
    NO_KEY,
    NO_STAMP,
    OFFSET,
    PLACE,
    RECORDS,
    REST,
    ROW,
    STAMP,
    START,
    STOP,
    STRETCHES,
    TIME,
    UPTO,
    VALUE_SIZE,
    WANTED,
)
from srm_spark.kafka.batches.record_loop import field_size, put_field, put_varint, read_record, varint_size
from srm_spark.kafka.jit import compiled, memory_at, move, shared, types


@shared
def _begin(state: Any, stretches: Any, body: Any, close: Any, offset: Any) -> Any:
    """Make room for a record of `body` bytes behind its length: the place, or -1 where there is none."""
    state[ASKED] = offset
    state[WANTED] = varint_size(body) + body
    if state[UPTO] + state[WANTED] > close:
        return -1
    number = state[STRETCHES]
    if number > 0 and stretches[number - 1, 1] == offset:
        stretches[number - 1, 1] = offset + 1
    elif number == stretches.shape[0]:
        return -1
    else:
        stretches[number, 0] = offset
        stretches[number, 1] = offset + 1
        state[STRETCHES] = number + 1
    return state[UPTO]


@shared
def _put_head(  # noqa: PLR0917 - compiled code is called by position
    out: Any, to: Any, state: Any, body: Any, attributes: Any, stamp: Any
) -> Any:
    """Everything of a record before its key: the place behind it."""
    if state[RECORDS] == 0:
        state[FIRST_TIME] = stamp
        state[MAX_TIME] = stamp
    state[MAX_TIME] = max(state[MAX_TIME], stamp)
    state[LAST_TIME] = stamp
    to = put_varint(out, to, body)
    out[to] = attributes
    to = put_varint(out, to + 1, stamp - state[FIRST_TIME])
    to = put_varint(out, to, state[RECORDS])
    state[RECORDS] += 1
    return to


@shared
def _head_size(state: Any, stamp: Any) -> Any:
    delta = 0 if state[RECORDS] == 0 else stamp - state[FIRST_TIME]
    return 1 + varint_size(delta) + varint_size(state[RECORDS])


@shared
def _refusal(limits: Any, key_size: Any, stamp: Any) -> Any:
    if limits[NEEDS_KEY] and key_size < 0:
        return NO_KEY
    if 0 <= stamp < limits[LOW]:
        return EARLY
    return LATE if stamp > limits[HIGH] else DONE


@shared
def _append(  # noqa: PLR0917 - compiled code is called by position
    memory: Any, out: Any, state: Any, stretches: Any, limits: Any, fields: Any, offset: Any, stamp: Any
) -> Any:
    body = _head_size(state, stamp) + fields[STOP] - fields[REST]
    to = _begin(state, stretches, body, limits[CLOSE], offset)
    if to < 0:
        return FULL
    to = _put_head(out, to, state, body, fields[ATTRIBUTES], stamp)
    size = fields[STOP] - fields[REST]
    move(out, to, memory, fields[REST], size)
    state[UPTO] = to + size
    state[CONTENT] += max(0, fields[KEY_SIZE]) + max(0, fields[VALUE_SIZE])
    return DONE


@shared
def _merge_row(  # noqa: PLR0917 - compiled code is called by position
    memory: Any, table: Any, row: Any, out: Any, state: Any, stretches: Any, limits: Any, fields: Any
) -> Any:
    end = table[row, END]
    while state[LEFT] > 0:
        code = read_record(memory, state[AT], end, fields)
        delta = fields[DELTA]
        offset = table[row, OFFSET] + delta
        if code != DONE:
            return code
        if delta < state[NEXT] or delta > table[row, LAST]:
            return BAD_OFFSET
        if offset >= limits[BEFORE]:
            return DONE
        if offset >= limits[START]:
            stamp = table[row, STAMP]
            if stamp == NO_STAMP:
                stamp = table[row, BASE_TIME] + fields[TIME]
            if stamp > LARGEST or stamp < -LARGEST:
                return BAD_TIME
            state[ASKED] = offset
            code = _refusal(limits, fields[KEY_SIZE], stamp)
            if code == DONE:
                code = _append(memory, out, state, stretches, limits, fields, offset, stamp)
            if code != DONE:
                return code
        state[AT] = fields[STOP]
        state[LEFT] -= 1
        state[NEXT] = delta + 1
    return DONE if state[AT] == end else BAD_COUNT


def merge_rows(  # noqa: PLR0917 - compiled code is called by position
    base: Any, table: Any, out: Any, state: Any, stretches: Any, limits: Any, fields: Any
) -> Any:
    """Append the records of source batches to a new one, as far as they go: a code of `record_loop.py`."""
    memory = memory_at(base)
    while state[ROW] < table.shape[0]:
        row = state[ROW]
        if state[AT] < 0:
            state[AT] = table[row, PLACE]
            state[LEFT] = table[row, COUNT]
            state[NEXT] = 0
        code = _merge_row(memory, table, row, out, state, stretches, limits, fields)
        if code != DONE:
            return code
        state[ROW] = row + 1
        state[AT] = -1
    return DONE


@shared
def _size_at(column: Any, row: Any) -> Any:
    """Bytes of a value; -1 for null."""
    begins = column[1]
    nulls = column[2]
    if nulls.shape[0] > 0 and nulls[row]:
        return -1
    return int(begins[row + 1]) - int(begins[row])


@shared
def _headers_size(headers: Any, row: Any) -> Any:
    """Bytes of a record's headers and their number; -1 where one has no name."""
    begins = headers[0]
    if begins.shape[0] == 0:
        return 1
    total = varint_size(int(begins[row + 1]) - int(begins[row]))
    for at in range(begins[row], begins[row + 1]):
        size = _size_at(headers[1], at)
        if size < 0:
            return -1
        total += field_size(size) + field_size(_size_at(headers[2], at))
    return total


@shared
def _put_headers(out: Any, to: Any, headers: Any, row: Any) -> Any:
    begins = headers[0]
    if begins.shape[0] == 0:
        return put_varint(out, to, 0)
    to = put_varint(out, to, int(begins[row + 1]) - int(begins[row]))
    names = memory_at(headers[1][0])
    values = memory_at(headers[2][0])
    for at in range(begins[row], begins[row + 1]):
        to = put_field(out, to, names, int(headers[1][1][at]), _size_at(headers[1], at))
        to = put_field(out, to, values, int(headers[2][1][at]), _size_at(headers[2], at))
    return to


def pack_rows(  # noqa: PLR0917 - compiled code is called by position
    keys: Any, values: Any, headers: Any, offsets: Any, times: Any, out: Any, state: Any, stretches: Any, close: Any
) -> Any:
    """Append rows of a run to a new batch, as far as they go: a code of `record_loop.py`."""
    key_bytes = memory_at(keys[0])
    value_bytes = memory_at(values[0])
    while state[ROW] < offsets.shape[0]:
        row = state[ROW]
        stamp = times[row]
        state[ASKED] = offsets[row]
        key_size = _size_at(keys, row)
        value_size = _size_at(values, row)
        headers_size = _headers_size(headers, row)
        if headers_size < 0:
            return BAD_NAME
        if stamp > LARGEST or stamp < -LARGEST:
            return BAD_TIME
        body = _head_size(state, stamp) + field_size(key_size) + field_size(value_size) + headers_size
        to = _begin(state, stretches, body, close, offsets[row])
        if to < 0:
            return FULL
        to = _put_head(out, to, state, body, 0, stamp)
        to = put_field(out, to, key_bytes, int(keys[1][row]), key_size)
        to = put_field(out, to, value_bytes, int(values[1][row]), value_size)
        state[UPTO] = _put_headers(out, to, headers, row)
        state[CONTENT] += max(0, key_size) + max(0, value_size)
        state[ROW] = row + 1
    return DONE


if types is not None:
    _BYTES, _NUMBERS, _TABLE = types.uint8[::1], types.int64[::1], types.int64[:, ::1]
    _BEGINS = types.Array(types.int32, 1, "C", readonly=True)
    _COLUMN = types.Tuple((types.int64, _BEGINS, types.boolean[::1]))
    merge_compiled = compiled(types.int64(types.int64, _TABLE, _BYTES, _NUMBERS, _TABLE, _NUMBERS, _NUMBERS))(
        merge_rows
    )
    pack_compiled = compiled(
        types.int64(
            _COLUMN,
            _COLUMN,
            types.Tuple((_BEGINS, _COLUMN, _COLUMN)),
            _NUMBERS,
            _NUMBERS,
            _BYTES,
            _NUMBERS,
            _TABLE,
            types.int64,
        )
    )(pack_rows)
