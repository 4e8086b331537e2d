"""Random logs of Kafka's own producers: both ways copy what a plain consumer reads, and whole batches byte for byte."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import crc32c
import pytest

from srm_spark.core.record_batch import CHECKED_FROM, HEADER_BYTES, Batch, batches_in
from srm_spark.core.reports import PartitionReport
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.lane_scene import LaneScene, running
from tests.broker.mirror import SOON
from tests.broker.topic_pair import TopicPair
from tests.kafka_io import Kafka, Record, records
from tests.raw_records import read_batches

WRITER = Path(__file__).parents[1] / "java" / "RandomLogs.java"
PARTITIONS, TURNS = 2, 15
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "300",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "200",
}
Clusters = tuple[KafkaCluster, KafkaCluster]
Judge = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def clusters(primary: KafkaCluster, secondary: KafkaCluster) -> Clusters:
    """Source and target."""
    return primary, secondary


@pytest.fixture(scope="module")
def seed() -> int:
    """Printed where a test fails; `SRM_SEED` has it again."""
    return int(os.environ.get("SRM_SEED") or random.randrange(10**6))


@pytest.fixture(scope="module")
def logs(primary: KafkaCluster, seed: int, java_judge: Judge) -> dict[str, str]:
    """Name of a log → the topic that it is in."""
    kafka = Kafka(primary)
    topics = {name: f"{name}-{seed}-{os.getpid()}" for name in ("plain", "other", "compacted")}
    for name, topic in topics.items():
        kafka.create(topic, PARTITIONS, {**ANY_TIME, **(COMPACTED if name == "compacted" else {})})
    wanted = [(topic, PARTITIONS, seed + at, TURNS) for at, topic in enumerate(topics.values())]
    java_judge(WRITER, primary.bootstrap_servers, *(str(one) for each in wanted for one in each))
    _await_gaps(kafka, topics["compacted"])
    return topics


def _await_gaps(kafka: Kafka, topic: str) -> None:
    """Wait for compaction, and let it end there: what is copied must not change meanwhile."""

    def has_gaps() -> bool:
        kafka.write(topic, [Record(b"rolls the segment", b"", number) for number in range(PARTITIONS)])
        log = kafka.read(topic).values()
        return all(len(found) < 0.8 * (found[-1].offset - found[0].offset) for found in log)

    await_until(has_gaps, 60, f"{topic} has gaps")
    kafka.configure(topic, cleanup_policy="delete")
    before = -1
    while (now := sum(map(len, kafka.read(topic).values()))) != before:
        before = now


def copy_all(pair: TopicPair, chance: random.Random, isolation: str, *, is_whole: bool) -> list[PartitionReport]:
    """Copy everything in random ranges: all reports."""
    ends = pair.source.ends(pair.topic)
    at, found = dict.fromkeys(ends, 0), []
    while any(at[number] < end for number, end in ends.items()):
        sizes = {n: chance.choice((1, 7, 1 + end // 20, 1 + end // 3, 1 + end // 2)) for n, end in ends.items()}
        ranges = {n: (at[n], min(end, at[n] + sizes[n])) for n, end in ends.items()}
        most = chance.choice((5_000, 300_000, 10**9))
        reports = pair.copy(ranges, isolation, most, is_whole=is_whole)
        for number, report in reports.items():
            assert (report.failure, report.hold) == (None, None)
            at[number] = report.reached(*ranges[number])
            found.append(report)
        if not any(report.is_cut for report in reports.values()):  # a range without records has only markers
            at |= {number: end for number, (_, end) in ranges.items() if number not in reports}
    return found


def same_bytes(pair: TopicPair | LaneScene, clusters: Clusters, reports: Sequence[PartitionReport]) -> int:
    """Records in batches whose bytes are the same on both sides; checks every batch of the target."""
    same = 0
    for number in range(PARTITIONS):
        source, target = (
            _log(cluster, name, number, kafka.ends(name)[number])
            for cluster, name, kafka in zip(
                clusters, (pair.topic, pair.remote), (pair.source, pair.target), strict=True
            )
        )
        upstream = {
            interval.downstream + at: interval.upstream + at
            for report in reports
            if report.partition.partition == number
            for interval in report.intervals
            for at in range(interval.count)
        }
        there = {one.base_offset: (one, data) for one, data in source}
        for copy, data in target:
            assert crc32c.crc32c(data[CHECKED_FROM:]) == copy.checksum
            if copy.is_control:
                continue  # of the one that took over
            assert not copy.is_transactional
            one, origin = there.get(upstream[copy.base_offset], (None, b""))
            if one is not None and data[HEADER_BYTES:] == origin[HEADER_BYTES:]:
                assert copy.records == one.records
                assert copy[7:9] == one[7:9], "base and largest timestamp"
                assert copy.codec == one.codec
                same += copy.records
    return same


def _log(cluster: KafkaCluster, topic: str, partition: int, end: int) -> list[tuple[Batch, bytes]]:
    data = read_batches(cluster, topic, partition, end)
    return [(one, data[one.at : one.at + one.size]) for one in batches_in(memoryview(data))]


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("name", ["plain", "other", "compacted"])
def test_both_ways_copy_what_a_consumer_reads(
    clusters: Clusters, logs: dict[str, str], seed: int, name: str, isolation: str
) -> None:
    print(f"SRM_SEED={seed}")
    chance = random.Random(seed)
    topic = logs[name]
    expected = records(Kafka(clusters[0]).read(topic, committed=isolation == "read_committed"))
    assert min(map(len, expected.values())) > 100
    for way in ("whole", "records"):
        remote = f"{topic}-{isolation}-{way}"
        Kafka(clusters[1]).create(remote, PARTITIONS, ANY_TIME)
        pair = TopicPair(*clusters, topic, PARTITIONS, remote=remote)
        reports = copy_all(pair, chance, isolation, is_whole=way == "whole")
        found = pair.target.read(remote, committed=True)
        assert records(found) == expected
        for log in found.values():
            assert [stored.offset for stored in log] == list(range(len(log)))
        whole, merged = (sum(getattr(report, each) for report in reports) for each in ("whole", "merged"))
        if way == "whole":
            assert whole + merged == sum(map(len, expected.values()))
            assert same_bytes(pair, clusters, reports) >= whole
            assert name == "compacted" or whole > 0
        else:
            assert whole == 0


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("name", ["plain", "other", "compacted"])
def test_the_real_time_lane_copies_what_a_consumer_reads(
    clusters: Clusters, logs: dict[str, str], seed: int, name: str, isolation: str
) -> None:
    print(f"SRM_SEED={seed}")
    topic = logs[name]
    expected = records(Kafka(clusters[0]).read(topic, committed=isolation == "read_committed"))
    count = sum(map(len, expected.values()))
    scene = LaneScene(*clusters, topic, PARTITIONS, configs=ANY_TIME, isolation=isolation)
    task = scene.task(scene.fence())
    with running(task) as raised:
        await_until(lambda: scene.target.given(scene.remote) == count, SOON, f"{count} copies")
    reports = [one.report for one in scene.told(task) if one.report is not None]
    assert not raised
    assert all((report.failure, report.hold) == (None, None) for report in reports)
    assert records(scene.target.read(scene.remote, committed=True)) == expected
    whole, merged = (sum(getattr(report, each) for report in reports) for each in ("whole", "merged"))
    assert whole + merged == count
    assert same_bytes(scene, clusters, reports) >= whole
    assert name == "compacted" or whole > 0
