"""A topic that is followed is the one that was read, or is read anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from srm_spark.core.cluster import ControlRecord, TopicSpec
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.topics.followed import FollowedTopic
from tests.memory_cluster import MemoryCluster


def made(cluster: MemoryCluster, *values: bytes) -> None:
    cluster.held.pop("t", None)
    assert not any(cluster.create([TopicSpec("t", 1, 1, {})]).values())
    records = [ControlRecord("t", value, value, partition=0) for value in values]
    cluster.writer("test", TargetUnavailable).write(records)


def test_a_topic_made_anew_with_as_many_records_is_another_one() -> None:
    cluster, forgotten = MemoryCluster("B", TargetUnavailable), list[str]()
    seconds: Iterator[float] = iter([0.0, 5.0, 20.0, 20.0, 20.0, 20.0, 20.0])
    topic = FollowedTopic(
        cluster,
        "t",
        "test",
        TargetUnavailable,
        1.0,
        forget=lambda: forgotten.append("all"),
        clock=lambda: next(seconds),
    )
    made(cluster, b"a", b"b")
    assert [record.value for record in topic.new_records()] == [b"a", b"b"]
    made(cluster, b"c", b"d")
    with pytest.raises(TargetUnavailable, match="not the one that was read any more"):
        list(topic.new_records())
    assert forgotten == ["all"]
    assert [record.value for record in topic.new_records()] == [b"c", b"d"]
