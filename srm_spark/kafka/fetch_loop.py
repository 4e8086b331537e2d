"""The compiled loops of `fetched.py`: they take records from librdkafka's queue and lay them out as Arrow does.

Importing it needs numba. Addresses are plain numbers; a record is a `rd_kafka_message_t`, eight words of which count.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError

import srm_spark.kafka.produce_loop  # noqa: F401 - it makes librdkafka's symbols known
from srm_spark.kafka.jit import compiled, types
from srm_spark.kafka.librdkafka import NAME_SIZE

_take_batch = types.ExternalFunction(
    "rd_kafka_consume_batch_queue", types.intp(types.uintp, types.int32, types.uintp, types.uintp)
)
_timestamp = types.ExternalFunction("rd_kafka_message_timestamp", types.int64(types.uintp, types.uintp))
_headers = types.ExternalFunction("rd_kafka_message_headers", types.int32(types.uintp, types.uintp))
_header_count = types.ExternalFunction("rd_kafka_header_cnt", types.uintp(types.uintp))
_header_at = types.ExternalFunction(
    "rd_kafka_header_get_all",
    types.int32(types.uintp, types.uintp, types.uintp, types.uintp, types.uintp),
)
_destroy = types.ExternalFunction("rd_kafka_message_destroy", types.void(types.uintp))
_copy = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))

_NO_HEADERS = int(KafkaError._NOENT)
_WORDS = types.int64[:, ::1]
_NUMBERS = types.int64[::1]
_BORDERS = types.int32[::1]
_BYTES = types.uint8[::1]


def _take(  # noqa: PLR0917 - compiled code is called by position
    queue: Any, wait_ms: Any, records: Any, words: Any, timestamps: Any, header_counts: Any
) -> Any:
    """Wait for a record, and take with it what else is there: how many.

    Fills the records' addresses, their words, timestamps (ms, -1 for none) and numbers of headers.
    """
    scratch = words[words.shape[0] - 1].ctypes.data  # never a record's, see `Fetched`
    where = records.ctypes.data
    count = _take_batch(queue, wait_ms, where, 1)
    if count < 1:
        return 0
    more = _take_batch(queue, 0, where + 8, records.size - 1)
    count += max(more, 0)
    for row in range(count):
        record = records[row]
        _copy(words[row].ctypes.data, record, 64)
        header_counts[row] = 0
        if words[row, 0] & 0xFFFFFFFF:
            continue  # an event, not a record
        timestamps[row] = _timestamp(record, scratch)
        code = _headers(record, scratch)
        if code == 0:
            header_counts[row] = _header_count(words[words.shape[0] - 1, 0])
        elif code != _NO_HEADERS:
            header_counts[row] = 1  # see `_measure_headers`
    return count


def _copy_field(words: Any, column: Any, begins: Any, start: Any, out: Any) -> None:
    """The bytes of one field of each record from `start` on, one behind the other; `begins` says where."""
    where = out.ctypes.data
    for row in range(begins.size - 1):
        _copy(where + begins[row], words[start + row, column], begins[row + 1] - begins[row])


def _measure_headers(records: Any, fields: Any) -> None:
    """Address and length of each header's name and value, in order; a value's address of 0 is null.

    Headers that librdkafka cannot read are one without a name.
    """
    scratch = fields[fields.shape[0] - 1].ctypes.data
    last = fields.shape[0] - 1
    at = 0
    for record in records:
        code = _headers(record, scratch)
        if code != 0:
            at += code != _NO_HEADERS
            continue
        headers = fields[last, 0]
        for number in range(_header_count(headers)):
            _header_at(headers, number, scratch + 8, scratch + 16, scratch + 24)
            fields[at, 0] = fields[last, 1]
            _copy(fields[at].ctypes.data + 8, fields[last, 1] - NAME_SIZE, 8)
            fields[at, 2] = fields[last, 2]
            fields[at, 3] = fields[last, 3]
            at += 1


def _give_back(records: Any) -> None:
    """Free records."""
    for record in records:
        _destroy(record)


take = compiled(types.int64(types.int64, types.int64, _NUMBERS, _WORDS, _NUMBERS, _NUMBERS))(_take)
copy_field = compiled(types.void(_WORDS, types.int64, _BORDERS, types.int64, _BYTES))(_copy_field)
measure_headers = compiled(types.void(_NUMBERS, _WORDS))(_measure_headers)
give_back = compiled(types.void(_NUMBERS))(_give_back)
