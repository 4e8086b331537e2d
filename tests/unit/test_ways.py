"""The three ways of a position to the other side; the maps are made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from srm_spark.core.checkpoints import TranslationStatus
from srm_spark.core.filters import NameFilter
from srm_spark.core.listed_filter import Filters, ListedFilter
from srm_spark.core.lists import Lists
from srm_spark.core.model import Flow, Interval, LogIdentity, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from srm_spark.core.translation import IntervalMap
from srm_spark.errors import SourceUnavailable
from srm_spark.flow.groups.ways import ReverseMap, Ways
from srm_spark.flow.topics.offset_map import OffsetMaps

FLOW = Flow("A", "B")
ORDERS, BACK = TopicPartition("orders", 0), TopicPartition("B.orders", 0)


def map_of(first: int, at: int, count: int) -> PartitionMap:
    found = PartitionMap("id")
    source, interval = OffsetRange(first, first + count), Interval(first, at, count)
    found.put(IntervalMap.of(ProgressDetail(source, at + count, (interval,), logs=LogIdentity("id"))))
    return found


class Maps(SimpleNamespace):
    """As `OffsetMaps`, read already."""

    def refresh(self) -> None:
        if self.is_away:
            raise SourceUnavailable("cluster A is away")


def ways(
    *, identity: bool = False, reverse: bool = True, is_away: bool = False, reverse_list: ListedFilter | None = None
) -> tuple[Ways, Maps, Maps]:
    policy = IdentityReplicationPolicy(".", ".", source_alias="A") if identity else DefaultReplicationPolicy(".", ".")
    checkpoints = SimpleNamespace(reverse_enabled=reverse)
    settings = SimpleNamespace(
        flow=FLOW, checkpoints=checkpoints, provenance_enabled=identity, admin_timeout_seconds=1.0, consumer={}
    )
    source = SimpleNamespace(topic_ids=lambda topics: dict.fromkeys(topics, "id"))
    every = ListedFilter(NameFilter((".*",)), steps_back=True)
    filters = Filters(ListedFilter(NameFilter(("orders",))), every, every if reverse_list is None else reverse_list)
    clusters: Any = SimpleNamespace(
        settings=settings, source=source, policy=policy, topics=filters.topics, filters=filters
    )
    forward, back = Maps(maps={}, is_away=is_away), Maps(maps={}, is_away=is_away)
    reverse_map = ReverseMap(clusters, cast("OffsetMaps", back))
    return Ways(clusters, cast("OffsetMaps", forward), reverse_map), forward, back


def test_a_topic_that_flows_is_translated_by_the_flow_s_map() -> None:
    found, forward, _ = ways()
    forward.maps[ORDERS] = map_of(0, 100, 50)
    way = found.of("orders")
    remote = way.remote(ORDERS)
    assert remote == TopicPartition("A.orders", 0)
    assert (way.needs_forward, way.needs_reverse) == (True, False)
    assert way.translate(ORDERS, remote, 7, 150).downstream == 107
    assert way.translate(ORDERS, remote, 7, None).status is TranslationStatus.UNMAPPED
    assert way.remote(TopicPartition("unchosen", 0)) is None
    assert found.is_forward("orders")


def test_a_topic_of_the_target_goes_back_by_the_reverse_map() -> None:
    found, _, back = ways()
    way = found.of("B.orders")
    remote = way.remote(BACK)
    assert remote == TopicPartition("orders", 0)
    back.maps[remote] = map_of(100, 0, 50)
    assert way.translate(BACK, remote, 7, 150).downstream == 107
    assert (way.needs_forward, way.needs_reverse) == (False, True)
    assert way.remote(TopicPartition("B.unchosen", 0)) is None


@pytest.mark.parametrize(
    ("lists", "goes_back"),
    [
        (Lists(), True),
        (Lists(("orders",)), True),
        (Lists((r"B\..*",)), True),
        (Lists(("other",)), False),
        (Lists((), ("orders",)), False),
        (Lists(("orders",), (r"B\.orders",)), False),
    ],
)
def test_the_list_of_reverse_topics_says_which_go_back(lists: Lists, goes_back: bool) -> None:
    found, _, _ = ways(reverse_list=ListedFilter(NameFilter((".*",)), lists, steps_back=True))
    assert (found.of("B.orders").remote(BACK) is not None) is goes_back


def test_it_is_an_ordinary_topic_where_nobody_goes_back() -> None:
    found, _, _ = ways(reverse=False)
    assert found.is_forward("B.orders")


def test_a_topic_of_one_name_on_both_sides_needs_both_maps() -> None:
    found, forward, back = ways(identity=True)
    way = found.of("orders")
    assert way.remote(ORDERS) == ORDERS
    assert (way.needs_forward, way.needs_reverse) == (True, True)
    forward.maps[ORDERS] = map_of(0, 100, 50)
    unread = way.translate(ORDERS, ORDERS, 7, 150)
    assert unread.status is TranslationStatus.UNMAPPED, "what there is unread on the target nobody knows yet"
    assert found.reverse.refresh() is None
    assert way.translate(ORDERS, ORDERS, 7, 150).downstream == 107
    back.maps[ORDERS] = map_of(104, 60, 2)  # two of these came from the target: nothing of ours is unread before 104
    assert way.translate(ORDERS, ORDERS, 7, 170).downstream is not None


@pytest.mark.parametrize("is_away", [True, False])
def test_groups_that_go_forward_do_not_need_the_reverse_map(is_away: bool) -> None:
    found, _, _ = ways(is_away=is_away)
    reason = found.reverse.refresh()
    assert reason == ("groups on remote topics are not translated back: cluster A is away" if is_away else None)
    assert found.reverse.has_been_read is not is_away
