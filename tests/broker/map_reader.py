"""The offset map as anybody would read it, and what it says."""

from __future__ import annotations

import json

from tests.kafka_io import Kafka, Log

Part = tuple[tuple[int, int], list[list[int]]]


def read_map(cluster: Kafka, topic: str) -> dict[tuple[str, int], dict[int, Part]]:
    """The map topic as anybody would read it: the newest value of each key; partition → start → range, intervals."""
    found: dict[tuple[str, int], dict[int, Part]] = {}
    for stored in cluster.read(topic)[0]:
        key = json.loads(stored.record.key or b"")
        if len(key) != 3:
            continue  # losses lie there, too
        name, number, start = key
        parts = found.setdefault((name, number), {})
        parts.pop(start, None)
        if stored.record.value is not None:
            value = json.loads(stored.record.value)
            assert value["source"][0] == start
            parts[start] = ((value["source"][0], value["source"][1]), value["intervals"])
    return found


def mapped_pairs(cluster: Kafka, topic: str, of: str | None = None) -> dict[int, dict[int, int]]:
    """What the map of one topic says, the only one or `of`: partition → source offset → target offset."""
    found: dict[int, dict[int, int]] = {}
    for (name, partition), parts in read_map(cluster, topic).items():
        if of not in (None, name):
            continue
        pairs = found.setdefault(partition, {})
        for _, intervals in parts.values():
            pairs.update((up + n, down + n) for up, down, count in intervals for n in range(count))
    return found


def assert_map_is_exact(found: dict[int, Part], source: Log, remote: Log, partition: int) -> None:
    """The parts follow each other without a hole from offset 0, and pair the records of both logs one by one."""
    parts = [found[start] for start in sorted(found)]
    ranges = [part[0] for part in parts]
    assert ranges[0][0] == 0
    assert [r[1] for r in ranges[:-1]] == [r[0] for r in ranges[1:]]
    pairs = [(up + n, down + n) for _, intervals in parts for up, down, count in intervals for n in range(count)]
    assert pairs == [
        (there.offset, here.offset) for there, here in zip(source[partition], remote[partition], strict=True)
    ]
