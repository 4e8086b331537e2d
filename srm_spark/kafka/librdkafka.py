"""librdkafka itself, in the library that confluent-kafka brings: what its Python clients have no call for.

Also names of headers to the byte: confluent-kafka cuts them at a zero byte, and fails where they are not UTF-8, because
librdkafka's calls give no length with a name. It lies in front of it, in the words of a `rd_kafka_header_t`:

```
serialized size | value's size | name's size | value's address | name … 0 value … 0
```

What is read past the calls of both libraries is read in versions of `KNOWN_LIBRARIES` only. In others names of headers
are what confluent-kafka makes of them: what it would write differently is refused, what it cannot read is an error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from confluent_kafka import Message, Producer, cimpl, libversion

from srm_spark.core.header_names import name_of, raw_name
from srm_spark.errors import HeaderNameUnfit

if TYPE_CHECKING:
    from srm_spark.core.rows import Headers  # loads pyarrow, and every command starts with this

KNOWN_LIBRARIES = frozenset({"2.16.0"})
"""Versions of librdkafka, as confluent-kafka ships them, with which all tests have passed: what is read past its calls
(a client's address, the length of a header's name) lies where this module looks for it."""
_POINTER, _TEXT, _SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ssize_t
_WORD = ctypes.sizeof(_POINTER)
_NAME_SIZE = 2 * _WORD
"""So far in front of a header's name its size lies."""
_MESSAGE_HEADERS = object.__basicsize__ + 4 * _WORD
"""Where a `Message` of confluent-kafka has librdkafka's headers: behind topic, value, key and its own headers."""
_CALLS: Mapping[str, tuple[Any, Sequence[Any]]] = {
    "rd_kafka_headers_new": (_POINTER, (_SIZE,)),
    "rd_kafka_headers_destroy": (None, (_POINTER,)),
    "rd_kafka_header_cnt": (_SIZE, (_POINTER,)),
    "rd_kafka_header_add": (ctypes.c_int, (_POINTER, _TEXT, _SIZE, _TEXT, _SIZE)),
    "rd_kafka_header_get_all": (ctypes.c_int, (_POINTER, _SIZE, _POINTER, _POINTER, _POINTER)),
    "rd_kafka_produceva": (_POINTER, (_POINTER, _POINTER, _SIZE)),
    "rd_kafka_error_code": (ctypes.c_int, (_POINTER,)),
    "rd_kafka_error_destroy": (None, (_POINTER,)),
}
"""What each returns and takes: without it ctypes would cut pointers to 32 bits."""


_LOADED = str(libversion()[0])


def is_known() -> bool:
    """Whether the librdkafka that is loaded may be read past its calls."""
    return _LOADED in KNOWN_LIBRARIES


def why_unknown() -> str | None:
    """Why not; None where it may."""
    if is_known():
        return None
    return f"librdkafka is {_LOADED}, and srm-spark was tried with {', '.join(sorted(KNOWN_LIBRARIES))} only"


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """Its functions. Raises ImportError where it lays out headers in another way than this module knows."""
    loaded = ctypes.CDLL(cimpl.__file__)  # its symbols are those of the librdkafka that it is linked with
    for name, (returned, taken) in _CALLS.items():
        getattr(loaded, name).restype, getattr(loaded, name).argtypes = returned, taken
    odd: Headers = [("\0a\0", None), ("b", b"\0"), (name_of(b"\xff"), b"")]
    made = make_headers(odd, loaded)
    is_known = read_headers(made, loaded) == odd
    loaded.rd_kafka_headers_destroy(made)
    place = id(message := Message(headers=list(odd))) + _MESSAGE_HEADERS - _WORD
    if not is_known or _POINTER.from_address(place).value != id(message.headers()):
        raise ImportError(f"{cimpl.__file__} lays out headers in another way; pip install 'confluent-kafka<3'")
    return loaded


def make_headers(headers: Headers, calls: ctypes.CDLL) -> int:
    """Headers as librdkafka has them; they are the caller's."""
    made: int = calls.rd_kafka_headers_new(len(headers))
    for name, value in headers:
        raw = raw_name(name)
        calls.rd_kafka_header_add(made, raw, len(raw), value, len(value or b""))
    return made


def read_headers(headers: int, calls: ctypes.CDLL) -> Headers:
    """What librdkafka's headers are."""
    name, value, size = _POINTER(), _POINTER(), _SIZE()
    name_at, value_at, size_at = ctypes.byref(name), ctypes.byref(value), ctypes.byref(size)
    pairs: Headers = []
    for index in range(calls.rd_kafka_header_cnt(headers)):
        calls.rd_kafka_header_get_all(headers, index, name_at, value_at, size_at)
        assert name.value is not None
        raw = ctypes.string_at(name, _SIZE.from_address(name.value - _NAME_SIZE).value)
        pairs.append((name_of(raw), None if value.value is None else ctypes.string_at(value, size.value)))
    return pairs


def headers_of(message: Message) -> Headers:
    """Headers of a record that was just consumed, as they are on the broker.

    Where librdkafka is not known, names end at their first zero byte, and HeaderNameUnfit is raised for one that is no
    UTF-8.
    """
    if not is_known():
        return _headers_by_call(message)
    headers = _POINTER.from_address(id(message) + _MESSAGE_HEADERS).value
    return [] if headers is None else read_headers(headers, library())


def _headers_by_call(message: Message) -> Headers:
    try:
        headers: Any = message.headers()
    except (UnicodeDecodeError, SystemError) as error:  # the latter where it is the last of them
        place = f"{message.topic()}-{message.partition()} offset {message.offset()}"
        raise HeaderNameUnfit(
            f"{place}: a header's name is not UTF-8, and it cannot be read: {why_unknown()}; "
            f"pip install a confluent-kafka with librdkafka {' or '.join(sorted(KNOWN_LIBRARIES))}"
        ) from error
    return headers or []


def client_of(client: Producer) -> int | None:
    """Address of librdkafka's client behind one of confluent-kafka, of a version that `is_known`."""
    return ctypes.c_void_p.from_address(id(client) + object.__basicsize__).value
