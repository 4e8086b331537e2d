"""Logs in memory whose records tell their offsets."""

from __future__ import annotations

import uuid
from typing import Any

from srm_spark.core.model import TopicPartition
from tests.batch_bytes import NOW, Raw, batch, sealed
from tests.unit.memory_source import MemoryLog

P, Q = TopicPartition("t", 0), TopicPartition("u", 1)
OTHER_ID = uuid.UUID(int=9).bytes
DENIED = 29


def raws(start: int, count: int) -> list[Raw]:
    return [Raw(b"k%d" % at, b"v%d" % at, NOW + at) for at in range(start, start + count)]


def good(start: int, count: int, codec: str = "none", **more: Any) -> bytearray:
    return sealed(batch(raws(start, count), start, codec, **more))


def log_of(*batches: bytearray | bytes, end: int = 30, **more: Any) -> MemoryLog:
    return MemoryLog(list(batches), end=end, **more)


def three(**more: Any) -> MemoryLog:
    return log_of(good(0, 10), good(10, 10, "zstd"), good(20, 10), **more)
