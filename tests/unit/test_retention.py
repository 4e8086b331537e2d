"""The offset map forgets what is gone on both sides, between clusters in memory."""

from __future__ import annotations

import pytest

from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import TopicPartition
from srm_spark.core.offset_map import INTERVALS_PER_PART
from srm_spark.errors import LeaseLost
from srm_spark.flow.topics.retention import MapRetention
from tests.memory_cluster import MemoryLog, MemoryTopic
from tests.unit.memory_flow import HERE, MemoryFlow, flow_settings

ROUTES = {"t": Route("A.t", Limits())}


def long_flow(parts: int = 3) -> MemoryFlow:
    """Every second source offset is a marker, so the map has so many parts."""
    flow = MemoryFlow(flow_settings())
    for number in range(parts * INTERVALS_PER_PART):
        flow.write(b"%d" % number)
        flow.log.mark()
    flow.run()
    flow.recorded.refresh()
    return flow


def parts(flow: MemoryFlow) -> int:
    """As somebody finds it who reads it anew."""
    maps = flow.recorded.maps
    maps.close()
    maps.refresh()
    return maps.maps[HERE].part_count


def test_only_what_is_gone_on_both_sides_goes_and_never_the_newest_part() -> None:
    flow = long_flow()
    assert parts(flow) == 3
    look = MapRetention(flow.clusters, flow.recorded.maps).look
    flow.log.delete_before(2 * INTERVALS_PER_PART)
    look(ROUTES, 0.0)
    assert parts(flow) == 3, "the target has its copies"
    flow.remote.delete_before(INTERVALS_PER_PART)
    look(ROUTES, 599.0)
    assert parts(flow) == 3, "not so soon"
    look(ROUTES, 600.0)
    assert parts(flow) == 2
    flow.log.delete_before(flow.log.end)
    flow.remote.delete_before(flow.remote.end)
    look(ROUTES, 1200.0)
    assert parts(flow) == 1
    flow.write(b"later")
    flow.run()
    flow.recorded.refresh()
    assert flow.recorded.maps.maps[HERE].copy_of(flow.log.end - 1) == flow.remote.end - 1


def test_partitions_are_asked_for_in_slices() -> None:
    flow = long_flow(2)
    flow.source.grow({"t": 2})
    flow.target.grow({"A.t": 2})
    flow.recorded.maps.maps[TopicPartition("t", 1)] = flow.recorded.maps.maps[HERE].copy()
    look = MapRetention(flow.clusters, flow.recorded.maps, slice_size=1)
    for log in (flow.log, flow.remote):
        log.delete_before(log.end)
    asked: list[str] = []
    flow.source.happens = asked.append
    left = []
    for now in (0.0, 1.0, 2.0):
        look.look(ROUTES, now)
        left.append(len(asked))
    assert left == [1, 2, 2], "one partition at a time, and then nothing before the next round"


def test_topics_that_do_not_flow_now_are_left_alone() -> None:
    flow = long_flow(2)
    for log in (flow.log, flow.remote):
        log.delete_before(log.end)
    MapRetention(flow.clusters, flow.recorded.maps).look({}, 0.0)
    assert parts(flow) == 2


def test_a_topic_that_is_gone_is_left_alone() -> None:
    flow = long_flow(2)
    flow.source.delete("t")
    flow.target.held["A.t"] = MemoryTopic([MemoryLog()], {})
    MapRetention(flow.clusters, flow.recorded.maps).look(ROUTES, 0.0)
    assert parts(flow) == 2


def test_who_has_lost_the_lease_drops_nothing() -> None:
    flow = long_flow(2)
    for log in (flow.log, flow.remote):
        log.delete_before(log.end)
    flow.lease.owner = "another"
    with pytest.raises(LeaseLost):
        MapRetention(flow.clusters, flow.recorded.maps).look(ROUTES, 0.0)
    assert parts(flow) == 2
