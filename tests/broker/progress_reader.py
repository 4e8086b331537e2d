"""Reads the progress topic as Kafka Connect would, and its header as plain JSON; nothing of the product."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.kafka_io import Kafka, Log, Record


@dataclass(frozen=True)
class Progress:
    """One record of the progress topic."""

    topic: str
    partition: int
    offset: int
    """Last replicated; -1 for a partition that was started only."""
    header: dict[str, Any]
    at: int
    """Partition of the progress topic."""
    record: Record


def read_progress(cluster: Kafka, topic: str) -> list[Progress]:
    """Every record, in the order of each partition of the progress topic."""
    found = []
    for at, log in cluster.read(topic).items():
        for stored in log:
            key = json.loads(stored.record.key or b"null")
            if "topic" not in key[1]:
                continue  # how the last run ended
            value = json.loads(stored.record.value or b"null")
            headers = dict(stored.record.headers)
            header = json.loads(headers["srm.progress"] or b"null")
            found.append(Progress(key[1]["topic"], key[1]["partition"], value["offset"], header, at, stored.record))
    return found


def assert_map_is_exact(found: list[Progress], source: Log, remote: Log) -> None:
    """Together the headers cover the source without a hole, and map each record to the place where it really lies."""
    for partition, log in source.items():
        mine = [progress.header for progress in found if progress.partition == partition]
        expected_start = mine[0]["source"][0]
        mapped: dict[int, int] = {}
        for header in mine:
            start, end = header["source"]
            assert start == expected_start, mine
            expected_start = end
            for upstream, downstream, count in header["intervals"]:
                assert start <= upstream
                assert upstream + count <= end
                mapped.update((upstream + i, downstream + i) for i in range(count))
        there = {stored.offset: stored.record for stored in remote[partition]}
        here = {stored.offset: stored.record for stored in log}
        assert list(mapped) == list(here)
        assert list(mapped.values()) == list(there)
        assert all(here[up] == there[down] for up, down in mapped.items())
