"""Logs that no producer could have written, put into the segment files of a broker that is stopped for it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from srm_spark.testing import LocalKafka

_SEGMENT = "00000000000000000000.log"
_FIRST = struct.Struct(">qi")


def plant(broker: LocalKafka, logs: Mapping[str, bytes], partition: int = 0) -> None:
    """Stop a broker, let the partitions of these topics hold these bytes alone, and start it.

    It ends cleanly, so that nothing is looked at and cut off when it starts; and nobody checks what is fetched.
    """
    broker.stop()
    for topic, log in logs.items():
        path = broker.directory / "data" / f"{topic}-{partition}" / _SEGMENT
        assert path.exists(), f"{path} is not where the log of {topic} lies"
        path.write_bytes(log)
    broker.start()


def old_message(offset: int, timestamp: int, key: bytes, value: bytes) -> bytes:
    """A message of format 1, as clients wrote before Kafka 0.11."""
    body = struct.pack(">bbq", 1, 0, timestamp)
    body += struct.pack(">i", len(key)) + key + struct.pack(">i", len(value)) + value
    return _FIRST.pack(offset, len(body) + 4) + struct.pack(">I", zlib.crc32(body)) + body
