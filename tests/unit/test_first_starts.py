"""Where a flow in memory begins topics that were never copied."""

from __future__ import annotations

import logging

import pytest

from srm_spark.core.model import TopicPartition
from srm_spark.core.tail import TailRecord
from tests.unit.memory_run import World

KEYS = {
    "topics.start.latest": "audit",
    "topics.start.timestamp": "metrics, quiet",
    "topics.start.time": "1970-01-01T00:00:05Z",
}


def test_each_topic_begins_where_its_pattern_says_and_goes_on_there(caplog: pytest.LogCaptureFixture) -> None:
    world = World(KEYS)
    for name in ("audit", "metrics", "quiet", "t"):
        log = world.topic(name)
        for second in (3, 4, 5, 6):
            if name != "quiet" or second < 5:
                log.append(TailRecord(0, second * 1000, b"k", f"{second}".encode()))
    with caplog.at_level(logging.INFO), world.run() as run:
        run.begin()
        starts = world.generation.assignment.starts
    told = "what lies in front of first starts is not copied: audit-0 at 4, metrics-0 at 2, quiet-0 at 2"
    assert [record.getMessage() for record in caplog.records].count(f"flow=A->B {told}") == 1
    assert {p.topic: start.next_offset for p, start in starts.items()} == {"audit": 4, "metrics": 2, "quiet": 2, "t": 0}
    for name in ("audit", "metrics", "quiet", "t"):
        world.flow.source.log(TopicPartition(name, 0)).append(TailRecord(0, 7000, b"k", b"7"))
    world.copied()
    assert world.values("A.audit") == [b"7"], "what came while the flow was down is copied"
    assert world.values("A.metrics") == [b"5", b"6", b"7"]
    assert world.values("A.quiet") == [b"7"]
    assert world.values("A.t") == [b"3", b"4", b"5", b"6", b"7"]
    assert world.losses == {}


def test_a_place_of_its_own_wins_over_the_consumer_s() -> None:
    world = World({"A->B.consumer.auto.offset.reset": "latest", "topics.start.earliest": "all"})
    for name in ("all", "t"):
        world.topic(name, b"1")
    with world.run() as run:
        run.begin()
        starts = world.generation.assignment.starts
    assert {p.topic: start.next_offset for p, start in starts.items()} == {"all": 0, "t": 1}
