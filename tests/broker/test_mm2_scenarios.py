"""MirrorMaker 2's own integration scenarios about groups (`MirrorConnectorsIntegrationBaseTest`), with exact positions.

| scenario | where |
|---|---|
| 1 replication both ways, failover position, monotonic checkpoints, later topics | here; back again: test_failover.py |
| 2 empty partition | here, and test_groups.py: 0 to 0, and only then |
| 3 one way with group offset sync, offset.lag.max 10 and 0 | here |
| 4 without offset syncs | test_offset_syncs.py |
| 5 offset syncs on the target | here, and test_offset_syncs.py |
| 6 no checkpoints while no record is mirrored | test_groups.py: a partition without records |
| 7 restart | here |
| 8 a group behind replication, advancing and rewinding | test_groups.py: checkpoints are monotonic and follow |
| 12 replication from the latest offset | test_offset_map.py: a flow that starts at the end; groups: test_groups.py |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Pair, Start
from tests.broker.mirror import SOON, assert_copied, await_count, await_lag_zero
from tests.broker.mirror_maker import formatted
from tests.group_io import Checkpoint, commit, committed, read_checkpoints
from tests.kafka_io import Kafka, Record, numbered

PARTITIONS, RECORDS = 10, 10
"""Of each topic, and of each partition."""
FAST = {
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
}
Histories = Mapping[tuple[str, str, int], list[Checkpoint]]


def fill(kafka: Kafka, topic: str, *, empty: int | None = None, prefix: str = "v") -> None:
    """Ten more records into each partition, except into one that stays empty."""
    records = numbered(PARTITIONS * RECORDS, PARTITIONS, prefix)
    kafka.write(topic, [record for record in records if record.partition != empty])


def consume_all(kafka: Kafka, group: str, topic: str) -> None:
    """The group has read every record."""
    commit(kafka, group, {(topic, partition): end for partition, end in kafka.ends(topic).items()})


def checkpoints(kafka: Kafka, alias: str) -> Histories:
    name = f"{alias}.checkpoints.internal"
    return read_checkpoints(kafka, name) if name in kafka.topics() else {}


def failover_is_exact(there: Kafka, here: str, group: str, topic: str) -> bool:
    """Whether every partition is translated, to exactly behind what was consumed."""
    found = checkpoints(there, here)
    last = [found.get((group, f"{here}.{topic}", partition), [None])[-1] for partition in range(PARTITIONS)]
    return last == [Checkpoint(RECORDS, RECORDS, "")] * PARTITIONS


def assert_monotonic(histories: Histories) -> None:
    for history in histories.values():
        assert [found.downstream for found in history] == sorted(found.downstream for found in history)


def test_1_replication_both_ways(start: Start, primary: KafkaCluster, secondary: KafkaCluster, unique: str) -> None:
    a, b = f"a{unique}", f"b{unique}"
    clusters = {a: primary, b: secondary}
    kafkas = {alias: Kafka(cluster) for alias, cluster in clusters.items()}
    topic, later, group = f"test-topic-1-{unique}", f"test-topic-2-{unique}", f"consumer-group-{unique}"
    for alias, kafka in kafkas.items():
        kafka.create(topic, PARTITIONS)
        fill(kafka, topic, prefix=alias)
        consume_all(kafka, group, topic)
    driver = start(clusters, [f"{a}->{b}", f"{b}->{a}"], {**FAST, "topics": f".*-{unique}", "groups": group})
    for here, there in ((a, b), (b, a)):
        assert_copied(kafkas[here], topic, kafkas[there], f"{here}.{topic}")
        await_until(partial(failover_is_exact, kafkas[there], here, group, topic), SOON, f"checkpoints on {there}")
    for kafka in kafkas.values():
        kafka.create(later, PARTITIONS)
        fill(kafka, later)
    for here, there in ((a, b), (b, a)):
        assert_copied(kafkas[here], later, kafkas[there], f"{here}.{later}")
        assert_monotonic(checkpoints(kafkas[there], here))
    driver.stop()
    printed = formatted(clusters[b], f"{a}.checkpoints.internal", "Checkpoint")
    said = f"topicPartition={a}.{topic}-3, upstreamOffset={RECORDS}, downstreamOffset={RECORDS}, metadata="
    assert f"Checkpoint{{consumerGroupId={group}, {said}}}" in printed


@pytest.mark.parametrize(("lag_max", "location"), [("10", "source"), ("0", "target")])
def test_2_3_5_7_groups_are_synced_whole_with_an_empty_partition_and_after_a_restart(
    pair: Pair, lag_max: str, location: str
) -> None:
    group, empty = f"consumer-group-{pair.unique}", 9
    keys = {
        **FAST,
        "groups": group,
        "sync.group.offsets.enabled": "true",
        "offset.lag.max": lag_max,
        "offset-syncs.topic.location": location,
    }

    def assert_synced(name: str) -> None:
        """No record is delivered again, none is skipped."""
        consume_all(pair.source, group, pair.topic(name))
        count = pair.source.count(pair.topic(name))
        await_count(pair.target, pair.remote(name), count)
        ends = {(pair.remote(name), p): (end, "") for p, end in pair.source.ends(pair.topic(name)).items()}
        await_until(lambda: committed(pair.target, group, pair.remote(name)) == ends, SOON, lambda: f"{ends}")
        assert pair.target.ends(pair.remote(name)) == {p: end for (_, p), (end, _) in ends.items()}

    pair.source.create(pair.topic(), PARTITIONS)
    fill(pair.source, pair.topic(), empty=empty)
    driver = pair.replicate(keys)
    assert_synced("t")
    assert committed(pair.target, group, pair.remote())[pair.remote(), empty] == (0, "")
    pair.source.create(pair.topic("later"), PARTITIONS)
    fill(pair.source, pair.topic("later"))
    assert_synced("later")
    await_lag_zero(driver)
    driver.stop()
    fill(pair.source, pair.topic(), empty=empty, prefix="second ")
    pair.replicate(keys)
    assert_synced("t")
    pair.source.write(pair.topic(), [Record(None, b"no longer empty", empty)])
    assert_synced("t")
    assert_monotonic(checkpoints(pair.target, pair.alias))
    on_source = f"mm2-offset-syncs.{pair.target_alias}.internal" in pair.source.topics()
    on_target = f"mm2-offset-syncs.{pair.alias}.internal" in pair.target.topics()
    assert (on_source, on_target) == (location == "source", location == "target")
