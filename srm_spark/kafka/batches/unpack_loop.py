"""The loops of `unpacking.py`: they measure the records of batches, then lay them out as Arrow does."""

from __future__ import annotations

from typing import Any

from srm_spark.kafka.batches.loop_fields import (
    BAD_COUNT,
    BAD_OFFSET,
    BAD_TIME,
    BASE_TIME,
    BATCH,
    BEFORE,
    BEHIND,
    CONTENT_BYTES,
    COUNT,
    DELTA,
    DONE,
    END,
    HEADER_COUNT,
    HEADERS,
    HEADERS_AT,
    KEY,
    KEY_BYTES,
    KEY_SIZE,
    LARGEST,
    LAST,
    NAME_BYTES,
    NO_STAMP,
    OFFSET,
    PLACE,
    ROWS,
    STAMP,
    START,
    STOP,
    TIME,
    VALUE,
    VALUE_BYTES,
    VALUE_SIZE,
)
from srm_spark.kafka.batches.record_loop import field, read_record
from srm_spark.kafka.jit import compiled, memory_at, move, shared, types


@shared
def _stamp(table: Any, batch: Any, fields: Any) -> Any:
    return table[batch, BASE_TIME] + fields[TIME] if table[batch, STAMP] == NO_STAMP else table[batch, STAMP]


@shared
def _measure_headers(memory: Any, totals: Any, fields: Any) -> Any:
    at = fields[HEADERS_AT]
    for _ in range(fields[HEADERS]):
        _, size, at = field(memory, at, fields[STOP])
        totals[NAME_BYTES] += size
        _, size, at = field(memory, at, fields[STOP])
        totals[CONTENT_BYTES] += max(0, size)
    totals[HEADER_COUNT] += fields[HEADERS]


@shared
def _measure_batch(memory: Any, table: Any, limits: Any, totals: Any, fields: Any) -> Any:
    batch = totals[BATCH]
    at = table[batch, PLACE]
    for _ in range(table[batch, COUNT]):
        code = read_record(memory, at, table[batch, END], fields)
        if code != DONE:
            return code
        delta = fields[DELTA]
        if delta < totals[BEHIND] or delta > table[batch, LAST]:
            return BAD_OFFSET
        stamp = _stamp(table, batch, fields)
        if stamp > LARGEST or stamp < -LARGEST:
            return BAD_TIME
        if limits[START] <= table[batch, OFFSET] + delta < limits[BEFORE]:
            totals[ROWS] += 1
            totals[KEY_BYTES] += max(0, fields[KEY_SIZE])
            totals[VALUE_BYTES] += max(0, fields[VALUE_SIZE])
            _measure_headers(memory, totals, fields)
        totals[BEHIND] = delta + 1
        at = fields[STOP]
    return DONE if at == table[batch, END] else BAD_COUNT


def measure_rows(base: Any, table: Any, limits: Any, totals: Any, fields: Any) -> Any:
    """Add up what the wanted records of batches take: a code of `record_loop.py`, and which batch it is about."""
    memory = memory_at(base)
    for batch in range(table.shape[0]):
        totals[BATCH] = batch
        totals[BEHIND] = 0
        code = _measure_batch(memory, table, limits, totals, fields)
        if code != DONE:
            return code
    return DONE


@shared
def _lay(memory: Any, column: Any, row: Any, at: Any, size: Any) -> None:
    begins = column[0]
    there = column[1]
    to = int(begins[row])
    begins[row + 1] = to + max(0, size)
    there[row] = size >= 0
    if size > 0:
        move(column[2], to, memory, at, size)


@shared
def _lay_headers(memory: Any, first: Any, names: Any, contents: Any, fields: Any) -> Any:
    at = fields[HEADERS_AT]
    for number in range(first, first + fields[HEADERS]):
        place, size, at = field(memory, at, fields[STOP])
        _lay(memory, names, number, place, size)
        place, size, at = field(memory, at, fields[STOP])
        _lay(memory, contents, number, place, size)
    return first + fields[HEADERS]


def fill_rows(  # noqa: PLR0917 - compiled code is called by position
    base: Any,
    table: Any,
    limits: Any,
    fields: Any,
    offsets: Any,
    times: Any,
    keys: Any,
    values: Any,
    lists: Any,
    names: Any,
    contents: Any,
) -> Any:
    """Lay out what was measured."""
    memory = memory_at(base)
    row = 0
    headers = 0
    for batch in range(table.shape[0]):
        at = table[batch, PLACE]
        for _ in range(table[batch, COUNT]):
            code = read_record(memory, at, table[batch, END], fields)
            if code != DONE:
                return code
            offset = table[batch, OFFSET] + fields[DELTA]
            if limits[START] <= offset < limits[BEFORE]:
                offsets[row] = offset
                times[row] = _stamp(table, batch, fields)
                _lay(memory, keys, row, fields[KEY], fields[KEY_SIZE])
                _lay(memory, values, row, fields[VALUE], fields[VALUE_SIZE])
                headers = _lay_headers(memory, headers, names, contents, fields)
                row += 1
                lists[row] = headers
            at = fields[STOP]
    return DONE


if types is not None:
    _NUMBERS, _TABLE, _BORDERS, _BYTES = types.int64[::1], types.int64[:, ::1], types.int32[::1], types.uint8[::1]
    _COLUMN = types.Tuple((_BORDERS, _BYTES, _BYTES))
    measure_compiled = compiled(types.int64(types.int64, _TABLE, _NUMBERS, _NUMBERS, _NUMBERS))(measure_rows)
    fill_compiled = compiled(
        types.int64(
            types.int64,
            _TABLE,
            _NUMBERS,
            _NUMBERS,
            _NUMBERS,
            _NUMBERS,
            _COLUMN,
            _COLUMN,
            _BORDERS,
            _COLUMN,
            _COLUMN,
        )
    )(fill_rows)
