"""Produces records whose header names confluent-kafka's own call would cut or refuse, see `librdkafka.py`.

The same call of librdkafka on the same client, so order, settings and transactions are the same, too. A callback goes
with the record as confluent-kafka hands it on: the producer and the callback (`Producer_msgstate` in its Producer.c),
in memory of the C library's, which it frees behind the call.

All that holds of known versions of librdkafka; in others such records are refused.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Producer

from srm_spark.core.header_names import is_plain
from srm_spark.core.rows import Headers
from srm_spark.kafka.failures import UnfitName
from srm_spark.kafka.librdkafka import client_of, is_known, library, make_headers, why_unknown

Produce = Callable[..., None]
"""As `Producer.produce`: topic, value, key, partition, callback, None, timestamp, headers."""

_TOPIC, _PARTITION, _VALUE, _KEY, _OPAQUE, _FLAGS, _TIMESTAMP, _HEADERS = 1, 3, 4, 5, 6, 7, 8, 10
"""`rd_kafka_vtype_t`."""
_COPY = 2
"""`RD_KAFKA_MSG_F_COPY`."""
_ARGUMENT_WORDS = 9
"""`rd_kafka_vu_t` has 72 bytes: the type, and a union of 64."""
_C = ctypes.CDLL(None)
_C.calloc.restype, _C.calloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t, ctypes.c_size_t)
_C.free.restype, _C.free.argtypes = None, (ctypes.c_void_p,)


def produce_call(producer: Producer, headers: Iterable[Headers | None]) -> Produce:
    """What produces records with these headers as they are, or raises KafkaException for those that it cannot."""
    names = {name for several in headers for name, _ in several or ()}
    if all(map(is_plain, names)):
        return producer.produce
    return Exact(producer).produce if is_known() else Plain(producer).produce


class Plain:
    """One producer by confluent-kafka's own call, which cuts names at a zero byte and dies of what is no UTF-8."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    def produce(  # noqa: PLR0917 - as confluent-kafka's
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        callback: Callable[..., None] | None,
        opaque: None,
        timestamp: int,
        headers: Headers | None,
    ) -> None:
        """Raises KafkaException where a name would be another one, BufferError where the queue is full."""
        for name, _ in headers or ():
            if not is_plain(name):
                raise KafkaException(UnfitName(f"the header name {name!a} would be changed: {why_unknown()}"))
        given: Any = headers
        self._producer.produce(topic, value, key, partition, callback, opaque, timestamp, given)


class Exact:
    """One producer, called past confluent-kafka."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._client = client_of(producer)
        self._library = library()

    def produce(  # noqa: PLR0917 - as confluent-kafka's
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        callback: Callable[..., None] | None,
        _: None,
        timestamp: int,
        headers: Headers | None,
    ) -> None:
        """Raises BufferError where the queue is full, KafkaException where the record is refused."""
        name = topic.encode()  # lives as long as its address is in use
        made, state = make_headers(headers or [], self._library), self._state(callback)
        fields = (
            (_TOPIC, _address(name)),
            (_PARTITION, partition),
            (_FLAGS, _COPY),
            (_KEY, _address(key), len(key or b"")),
            (_VALUE, _address(value), len(value or b"")),
            (_TIMESTAMP, timestamp),
            (_HEADERS, made),
            (_OPAQUE, state or 0),
        )
        arguments = np.zeros((len(fields), _ARGUMENT_WORDS), np.int64)
        for argument, words in zip(arguments, fields, strict=True):
            argument[: len(words)] = words
        error = self._library.rd_kafka_produceva(self._client, arguments.ctypes.data, len(fields))
        if error is not None:
            self._library.rd_kafka_headers_destroy(made)  # a record that is taken owns its headers
            self._give_back(state, callback)
            self._raise(error)

    def _state(self, callback: Callable[..., None] | None) -> int | None:
        if callback is None:
            return None
        state: int = _C.calloc(2, ctypes.sizeof(ctypes.c_void_p))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
        (ctypes.c_void_p * 2).from_address(state)[:] = [id(self._producer), id(callback)]
        return state

    @staticmethod
    def _give_back(state: int | None, callback: Callable[..., None] | None) -> None:
        if state is not None:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(callback))
            _C.free(state)

    def _raise(self, error: Any) -> None:
        code = self._library.rd_kafka_error_code(error)
        self._library.rd_kafka_error_destroy(error)
        if code == KafkaError._QUEUE_FULL:
            raise BufferError("Local: Queue full")
        raise KafkaException(KafkaError(code))


def _address(content: bytes | None) -> int:
    """Where the bytes lie; not 0 for empty ones, that would be null."""
    return ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value or 0
