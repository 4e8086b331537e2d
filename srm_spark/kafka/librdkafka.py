"""librdkafka itself, in the library that confluent-kafka brings: what its Python clients have no call for."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from confluent_kafka import Consumer, Producer, cimpl

ERROR_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
"""Takes the client, a code, a text and nothing in particular."""
_POINTER, _TEXT = ctypes.c_void_p, ctypes.c_char_p
_CALLS: Mapping[str, tuple[Any, Sequence[Any]]] = {
    "rd_kafka_topic_new": (_POINTER, (_POINTER, _TEXT, _POINTER)),
    "rd_kafka_topic_destroy": (None, (_POINTER,)),
    "rd_kafka_topic_name": (_TEXT, (_POINTER,)),
    "rd_kafka_conf": (_POINTER, (_POINTER,)),
    "rd_kafka_conf_set_error_cb": (None, (_POINTER, ERROR_CALLBACK)),
    "rd_kafka_queue_get_consumer": (_POINTER, (_POINTER,)),
    "rd_kafka_queue_destroy": (None, (_POINTER,)),
}
"""What each returns and takes: without it ctypes would cut pointers to 32 bits."""


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """Its functions."""
    found = ctypes.CDLL(cimpl.__file__)  # its symbols are those of the librdkafka that it is linked with
    for name, (returned, taken) in _CALLS.items():
        getattr(found, name).restype, getattr(found, name).argtypes = returned, taken
    return found


def client_of(client: Producer | Consumer) -> int | None:
    """Address of librdkafka's client behind one of confluent-kafka, of a version that `compiled.why_not` approves."""
    return ctypes.c_void_p.from_address(id(client) + object.__basicsize__).value
