"""The SHA-256 of a stretch of a log: of its records in the order of their offsets, so that anybody can make it again.

A record is written as below, all numbers big-endian; what is null has the length -1 and no bytes:

```
offset int64 · timestamp int64 · key int32 + bytes · value int32 + bytes · headers int32, each: name int32 + UTF-8,
value int32 + bytes
```
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from srm_spark.core.tail import TailRecord

_PLACE = struct.Struct(">qq")
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)


@dataclass(frozen=True)
class LogRoot:
    """What came out for one stretch."""

    records: int
    sha256: str
    """In hexadecimal digits; of no record, that of nothing."""


class LogDigest:
    """Takes one record after the other."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._records = 0

    def take(self, record: TailRecord) -> None:
        """Everything that is copied, lengths told apart: no two different stretches have the same bytes."""
        parts = [
            _PLACE.pack(record.offset, record.timestamp),
            *_counted(record.key),
            *_counted(record.value),
            _LENGTH.pack(len(record.headers)),
        ]
        for name, value in record.headers:
            parts += (*_counted(name.encode("utf-8", "surrogateescape")), *_counted(value))
        self._hash.update(b"".join(parts))
        self._records += 1

    def root(self) -> LogRoot:
        """Of all that was taken."""
        return LogRoot(self._records, self._hash.hexdigest())


def _counted(content: bytes | None) -> tuple[bytes, ...]:
    return (_NULL,) if content is None else (_LENGTH.pack(len(content)), content)
