"""The compiled loop of `compiled.py`: one call of librdkafka per row. Importing it needs numba, and compiles it.

The machine code is kept beside this file from one process to the next, where that can be written.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from confluent_kafka import cimpl
from numba import njit
from numba import types as numba_types

types: Any = numba_types  # partly annotated, and wrongly
llvm.load_library_permanently(cimpl.__file__)  # its symbols are those of the librdkafka that it is linked with
_produce = types.ExternalFunction("rd_kafka_produceva", types.uintp(types.uintp, types.uintp, types.uintp))
_code_of = types.ExternalFunction("rd_kafka_error_code", types.int32(types.uintp))
_destroy = types.ExternalFunction("rd_kafka_error_destroy", types.void(types.uintp))

_BEGINS = types.Array(types.int32, 1, "C", readonly=True)
_COLUMN = (types.int64, _BEGINS, types.boolean[::1])
_SIGNATURE = types.UniTuple(types.int64, 2)(
    types.int64, *_COLUMN, *_COLUMN, types.int64[::1], types.int64[:, ::1], types.int64, types.int64
)


def _loop(  # noqa: PLR0917 - compiled code is called by position
    client: Any,
    keys: Any,
    key_begins: Any,
    no_key: Any,
    values: Any,
    value_begins: Any,
    no_value: Any,
    timestamps: Any,
    arguments: Any,
    start: Any,
    end: Any,
) -> Any:
    """Produce rows `start` to before `end`: the first row that was not taken, and librdkafka's code for why."""
    has_no_key, has_no_value, where = no_key.size > 0, no_value.size > 0, arguments.ctypes.data
    for row in range(start, end):
        if has_no_key and no_key[row]:
            arguments[3, 1], arguments[3, 2] = 0, 0
        else:
            arguments[3, 1] = keys + key_begins[row]
            arguments[3, 2] = key_begins[row + 1] - key_begins[row]
        if has_no_value and no_value[row]:
            arguments[4, 1], arguments[4, 2] = 0, 0
        else:
            arguments[4, 1] = values + value_begins[row]
            arguments[4, 2] = value_begins[row + 1] - value_begins[row]
        arguments[5, 1] = timestamps[row]
        error = _produce(client, where, 6)
        if error != 0:
            code = _code_of(error)
            _destroy(error)
            return row, code
    return end, 0


def _compile() -> Any:
    try:
        return njit(_SIGNATURE, nogil=True, cache=True)(_loop)
    except RuntimeError:  # there is no folder to keep it in
        return njit(_SIGNATURE, nogil=True)(_loop)


produce_rows = _compile()
