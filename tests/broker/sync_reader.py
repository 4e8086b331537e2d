"""Offset syncs, read by code of their own: topic, partition, source offset, target offset of each."""

from __future__ import annotations

import struct

from tests.kafka_io import Kafka

Sync = tuple[str, int, int, int]
"""Topic, partition, source offset, target offset."""


def read_syncs(cluster: Kafka, topic: str) -> list[Sync]:
    """Every sync, in order; the layout of MirrorMaker 2's `OffsetSync`, spelled out again."""
    log = cluster.read(topic)
    assert list(log) == [0]
    return [_decoded(stored.record.key or b"", stored.record.value or b"") for stored in log[0]]


def _decoded(key: bytes, value: bytes) -> Sync:
    length = int.from_bytes(key[:2], "big")
    assert len(key) == 2 + length + 4
    assert len(value) == 16
    upstream, downstream = struct.unpack(">qq", value)
    return key[2 : 2 + length].decode(), int.from_bytes(key[-4:], "big"), upstream, downstream
