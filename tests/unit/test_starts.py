"""Where partitions start: what progress says, and what the offset map says where progress is lost. Fakes answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from srm_spark.config.settings import LossPolicies, StartSettings
from srm_spark.core.cluster import LogEnd
from srm_spark.core.model import Flow, Interval, LogIdentity, OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.translation import IntervalMap
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.starts import Origin, Start, find_starts
from srm_spark.flow.topics.progress import Position, ProgressTopic

HERE = TopicPartition("t", 0)


def map_of(topic_id: str | None = "id", target_end: int | None = 20) -> dict[TopicPartition, PartitionMap]:
    found = PartitionMap(topic_id)
    found.put(IntervalMap(OffsetRange(5, 30), target_end, (Interval(5, 0, 20),)))
    return {HERE: found}


def start_of(
    maps: Mapping[TopicPartition, PartitionMap],
    positions: Mapping[TopicPartition, Position] = {},
    *,
    reset: Iterable[TopicPartition] = (),
    first: int = 5,
    keys: Mapping[str, str] = {},
    policy: str = "resume",
) -> Start:
    source = SimpleNamespace(
        first_offsets=lambda partitions: dict.fromkeys(partitions, first),
        log_ends=lambda partitions: dict.fromkeys(partitions, LogEnd(40, 1)),
    )
    policies = LossPolicies({"source.truncated.policy": policy})
    settings: Any = SimpleNamespace(
        flow=Flow("A", "B"), consumer=keys, policies=policies, progress_topic="progress", starts=StartSettings()
    )
    ends = cast("Clusters", SimpleNamespace(settings=settings, source=source))
    progress = cast("ProgressTopic", SimpleNamespace(positions=positions, reset=set(reset)))
    return find_starts(ends, progress, [HERE], {"t": "id"}, maps)[HERE]


def test_lost_progress_is_the_end_of_the_map() -> None:
    for keys in ({}, {"auto.offset.reset": "latest"}):
        start = start_of(map_of(), keys=keys)
        assert start.position == Position(30, 20, LogIdentity("id"))
        assert (start.origin, start.is_recorded) == (Origin.MAP, False)


def test_progress_that_is_there_is_what_counts() -> None:
    recorded = Position(9, 4, LogIdentity("id"))
    start = start_of(map_of(), {HERE: recorded})
    assert start.position == recorded
    assert start.is_recorded


def test_a_position_that_somebody_deleted_begins_anew() -> None:
    assert start_of(map_of(), reset=[HERE]).position == Position(5)


def test_a_map_that_says_nothing_about_this_topic_is_passed_over() -> None:
    for maps in ({}, map_of("another"), map_of(target_end=None), {HERE: PartitionMap("id")}):
        start = start_of(maps)
        assert start.position == Position(5)
        assert start.origin is Origin.NOTHING


def test_what_the_source_deleted_behind_the_map_is_lost() -> None:
    start = start_of(map_of(), first=33)
    assert start.position.next_offset == 33
    assert [loss.offsets for loss in start.losses] == [OffsetRange(30, 33)]
    paused = start_of(map_of(), first=33, policy="stop")
    assert isinstance(paused.paused, PausedPartition)
    assert not paused.losses
