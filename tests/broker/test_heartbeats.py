"""Heartbeats: byte-exact and on time without any data, for every pair of clusters that has not switched them off."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping

from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Start
from tests.kafka_io import Kafka

HEARTBEATS = "heartbeats"


def test_every_pair_beats_on_time_without_data(start: Start, three: Mapping[str, KafkaCluster], unique: str) -> None:
    """Of three clusters one pair replicates, four only beat, one is silent."""
    a, b, c = three
    kafkas = {alias: Kafka(cluster) for alias, cluster in three.items()}
    keys = {
        "topics": f"none-{unique}",
        "emit.heartbeats.enabled": "true",
        "emit.heartbeats.interval.seconds": "1",
        f"{c}->{b}.emit.heartbeats.enabled": "false",
    }
    driver = start(three, [f"{a}->{b}"], keys)

    def beats(source: str, target: str) -> list[int]:
        if HEARTBEATS not in kafkas[target].topics():
            return []
        key = b"".join(struct.pack(">h", len(alias)) + alias.encode() for alias in (source, target))
        found = []
        for stored in kafkas[target].read(HEARTBEATS)[0]:
            if stored.record.key == key:
                assert stored.record.value is not None
                version, timestamp = struct.unpack(">hq", stored.record.value)
                assert version == 0
                assert timestamp == stored.record.timestamp
                assert stored.record.headers == ()
                found.append(timestamp)
        return found

    loud = [(s, t) for s in three for t in three if s != t and (s, t) != (c, b)]
    for source, target in loud:
        await_until(lambda: len(beats(source, target)) >= 5, 60, f"five heartbeats {source}->{target}")  # noqa: B023
    driver.stop()
    for source, target in loud:
        times = beats(source, target)
        pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert sorted(pauses)[len(pauses) // 2] in range(900, 1200), pauses  # the interval, not the interval and more
        assert kafkas[target].topics()[HEARTBEATS] == 1
    assert not beats(c, b)
    for kafka in kafkas.values():
        if kafka.configs(HEARTBEATS):
            assert kafka.configs(HEARTBEATS) == {"cleanup.policy": "compact"}
