"""Reads the quarantine topic with a plain consumer, struct and json; nothing of the product."""

from __future__ import annotations

import json
import struct
from typing import Any

from tests.kafka_io import Kafka, Record

Position = tuple[str, int, int]
"""Source topic, partition, offset."""


def read_quarantine(cluster: Kafka, topic: str) -> dict[Position, tuple[Record, dict[str, Any]]]:
    """What is in quarantine: the record as it was, and what the entry says of it."""
    log = cluster.read(topic, committed=True)
    entries = {stored.record.key: stored.record.value for stored in log[0]}
    parts = {tuple(json.loads(stored.record.key or b"")): stored.record.value for stored in log[1]}
    found = {}
    for key, value in entries.items():
        place, entry = json.loads(key or b""), json.loads(value or b"{}")
        if not entry or place[-1] == "end":  # what became of one that was there
            continue
        content = b""
        while len(content) < entry["size"]:
            part = (*place, len(content) // entry["part_size"])
            content += parts[part] or b""
        _, name, _, partition, offset = place
        found[name, partition, offset] = (_record(content, partition, entry["timestamp"]), entry)
    return found


def _record(content: bytes, partition: int, timestamp: int) -> Record:
    at = 0

    def number() -> int:
        nonlocal at
        at += 4
        return int(struct.unpack(">i", content[at - 4 : at])[0])

    def text() -> bytes | None:
        nonlocal at
        length = number()
        at += max(0, length)
        return None if length < 0 else content[at - length : at]

    key, value = text(), text()
    headers = tuple(((text() or b"").decode(), text()) for _ in range(number()))
    assert at == len(content)
    return Record(key, value, partition, timestamp, headers)
