"""Hands the rows of a run to librdkafka by a compiled loop over Arrow's buffers: no Python object per field, no Python
call per record. It needs numba (`pip install srm-spark[compiled]`); without it every record is a call of its own.

The loop calls `rd_kafka_produceva` of the library that confluent-kafka brings, on the client of one of its producers:
settings, security, acknowledgements, errors and transactions stay confluent-kafka's own. Records are produced without
an opaque pointer, which confluent-kafka takes for a record that nobody wants to hear of.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from importlib import import_module

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import KafkaError, Producer

from srm_spark.core.rows import Run, header_columns, list_begins
from srm_spark.kafka.librdkafka import client_of, library, why_unknown

_LOOP = "srm_spark.kafka.produce_loop"
"""Imported when it is needed, for it needs numba."""
_TOPIC, _PARTITION, _VALUE, _KEY, _FLAGS, _TIMESTAMP, _HEADERS = 2, 3, 4, 5, 7, 8, 10
"""`rd_kafka_vtype_t`; the topic by its handle."""
_COPY = 2
"""`RD_KAFKA_MSG_F_COPY`: Arrow's buffers are gone before the record is sent."""
_ARGUMENT_WORDS = 9
"""`rd_kafka_vu_t` has 72 bytes: the type, and a union of 64."""

_EMPTY = ctypes.create_string_buffer(1)
"""Where an empty field lies: an address of 0 would make it null."""


@lru_cache(maxsize=1)
def why_not() -> str | None:
    """Why the compiled loop can't be used here; None where it can."""
    if (reason := why_unknown()) is not None:
        return reason
    try:
        library()
        import_module(_LOOP)
    except ImportError as error:
        return f"{error}; pip install '.[compiled]' in the checkout"
    return None


def is_used(wanted: bool) -> bool:
    """Whether records go past the JVM: where it is `wanted` (`compiled.loop.enabled`) and possible here."""
    return wanted and why_not() is None


class RowsInLoop:
    """The rows of one run, with the headers that they came with, on their way into one producer. A context manager."""

    def __init__(self, producer: Producer, remote_topic: str, run: Run) -> None:
        self._client = client_of(producer)
        self._library = library()
        self._topic = self._library.rd_kafka_topic_new(self._client, remote_topic.encode(), None)
        timestamps = np.where(run.timestamps == -1, 0, run.timestamps)
        self._columns = _column(run.keys), _column(run.values), timestamps, _headers(run)
        self._arguments = np.zeros((7, _ARGUMENT_WORDS), np.int64)
        self._arguments[:, 0] = (_TOPIC, _PARTITION, _FLAGS, _KEY, _VALUE, _TIMESTAMP, _HEADERS)
        self._arguments[:3, 1] = (self._topic, run.partition.partition, _COPY)

    def __enter__(self) -> RowsInLoop:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.rd_kafka_topic_destroy(self._topic)

    def produce(self, start: int, end: int) -> tuple[int, KafkaError | None]:
        """Produce the rows from `start` to before `end`: the first one that was not taken, and why not."""
        loop = import_module(_LOOP).produce_rows
        keys, values, timestamps, headers = self._columns
        index, code = loop(self._client, keys, values, timestamps, headers, self._arguments, start, end)
        return index, KafkaError(code) if code else None


_Column = tuple[int, npt.NDArray[np.int32], npt.NDArray[np.bool_]]


def _headers(run: Run) -> tuple[npt.NDArray[np.int32], _Column, _Column]:
    """Where each record's headers begin among all of them (empty where there are none), their names and values."""
    if not run.has_headers:
        nothing = _column(pa.nulls(0, pa.binary()))
        return _frozen(np.zeros(0, np.int32)), nothing, nothing
    names, values = header_columns(run.headers)
    return _frozen(list_begins(run.headers)), _column(names), _column(values)


def _column(array: pa.Array) -> _Column:
    """Address of the bytes, where each value begins in them, and which are null (empty where none is)."""
    _, borders, content = array.buffers()
    address = content.address if content is not None and content.size else 0
    begins = np.frombuffer(borders, np.int32, len(array) + 1, 4 * array.offset) if len(array) else np.zeros(1, np.int32)
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else np.zeros(0, np.bool_)
    return address or ctypes.addressof(_EMPTY), _frozen(begins), nulls


def _frozen(begins: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Read-only, as most of Arrow's buffers are: the compiled code knows no other kind."""
    begins.flags.writeable = False
    return begins
