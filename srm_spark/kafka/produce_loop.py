"""The compiled loop of `compiled.py`: one call of librdkafka per row. Importing it needs numba, and compiles it.

The machine code is kept beside this file from one process to the next, where that can be written.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from confluent_kafka import cimpl
from numba import njit

from srm_spark.kafka.jit import compiled, types

llvm.load_library_permanently(cimpl.__file__)  # its symbols are those of the librdkafka that it is linked with
_produce = types.ExternalFunction("rd_kafka_produceva", types.uintp(types.uintp, types.uintp, types.uintp))
_code_of = types.ExternalFunction("rd_kafka_error_code", types.int32(types.uintp))
_destroy = types.ExternalFunction("rd_kafka_error_destroy", types.void(types.uintp))
_new_headers = types.ExternalFunction("rd_kafka_headers_new", types.uintp(types.uintp))
_add_header = types.ExternalFunction(
    "rd_kafka_header_add", types.int32(types.uintp, types.uintp, types.intp, types.uintp, types.intp)
)
_destroy_headers = types.ExternalFunction("rd_kafka_headers_destroy", types.void(types.uintp))

_BEGINS = types.Array(types.int32, 1, "C", readonly=True)
_COLUMN = (types.int64, _BEGINS, types.boolean[::1])
_SIGNATURE = types.UniTuple(types.int64, 2)(
    types.int64,
    types.Tuple(_COLUMN),
    types.Tuple(_COLUMN),
    types.int64[::1],
    types.Tuple((_BEGINS, types.Tuple(_COLUMN), types.Tuple(_COLUMN))),
    types.int64[:, ::1],
    types.int64,
    types.int64,
)


@njit(inline="always")
def _field(column: Any, row: Any) -> Any:
    """Address and length of a value; 0 and 0 where it is null."""
    start, begins, nulls = column
    if nulls.size > 0 and nulls[row]:
        return 0, 0
    return start + begins[row], begins[row + 1] - begins[row]


@njit(inline="always")
def _headers_of(headers: Any, row: Any) -> Any:
    """The headers of a record as librdkafka takes them; 0 where it has none."""
    begins, names, values = headers
    if begins.size == 0 or begins[row] == begins[row + 1]:
        return 0
    made = _new_headers(begins[row + 1] - begins[row])
    for at in range(begins[row], begins[row + 1]):
        name, name_length = _field(names, at)
        value, value_length = _field(values, at)
        _add_header(made, name, name_length, value, value_length)
    return made


def _loop(  # noqa: PLR0917 - compiled code is called by position
    client: Any, keys: Any, values: Any, timestamps: Any, headers: Any, arguments: Any, start: Any, end: Any
) -> Any:
    """Produce rows `start` to before `end`: the first row that was not taken, and librdkafka's code for why."""
    where = arguments.ctypes.data
    for row in range(start, end):
        arguments[3, 1], arguments[3, 2] = _field(keys, row)
        arguments[4, 1], arguments[4, 2] = _field(values, row)
        arguments[5, 1] = timestamps[row]
        made = _headers_of(headers, row)
        arguments[6, 1] = made
        error = _produce(client, where, 6 if made == 0 else 7)
        if error != 0:
            if made != 0:
                _destroy_headers(made)  # a record that is taken owns its headers
            code = _code_of(error)
            _destroy(error)
            return row, code
    return end, 0


produce_rows = compiled(_SIGNATURE)(_loop)
