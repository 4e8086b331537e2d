"""Checks of what a service reads: the topics in which drivers report, and whether their newest reports can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster
from srm_spark.core.flow_series import SKEW_MS
from srm_spark.core.metrics import META_TOPIC, Sample, decode, metrics_topic, newer
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.wording import count, one_line
from srm_spark.doctor.clusters import CLUSTER_SECONDS, cluster_finding, is_reached, reach_of
from srm_spark.doctor.permissions import check_topics
from srm_spark.doctor.report import Finding, ok, unknown, warned
from srm_spark.errors import SrmError
from srm_spark.flow.clusters import target_of
from srm_spark.kafka.access import Access

_NEWEST = 300
"""Records at the end of each partition that are looked at."""
_MISSED = 3
"""After so many periods without a report a driver counts as silent."""


def check_reports(
    flows: Sequence[FlowSettings], now: Callable[[], int], seconds: float = CLUSTER_SECONDS
) -> list[Finding]:
    """Each target of these flows: reached, readable, and what was reported there last; `now` in ms since the epoch."""
    by_target: dict[str, list[FlowSettings]] = {}
    for one in flows:
        by_target.setdefault(one.flow.target, []).append(one.within(seconds))
    if not by_target:
        return []
    with ThreadPoolExecutor(len(by_target)) as pool:
        found = pool.map(lambda into: list(_check_target(into, now, seconds)), by_target.values())
        return [finding for of_target in found for finding in of_target]


def _check_target(flows: Sequence[FlowSettings], now: Callable[[], int], seconds: float) -> Iterator[Finding]:
    cluster = flows[0].target
    reach = reach_of(cluster, seconds)
    yield cluster_finding(cluster, reach)
    if not is_reached(reach):
        return
    try:
        access = Access(cluster, flows[0].target_admin, seconds)
        wanted = {META_TOPIC, *(metrics_topic(one.flow) for one in flows)}
        there = wanted & access.topic_partitions().keys()
        yield check_topics(f"read reports on {cluster.alias}", there, frozenset({"READ"}), access, cluster)
        asked = target_of(flows[0], "doctor")
        for one in flows:
            yield from check_flow_reports(one, asked, now())
    except SrmError as error:
        yield unknown(f"reports on {cluster.alias}", f"not all checked: {one_line(error)}")


@dataclass
class _Seen:
    newest: Sample | None = None
    newer: int = 0
    garbage: int = 0

    def take(self, key: bytes | None, value: bytes | None) -> None:
        sample = decode(key, value)
        if sample is not None:
            self.newest = sample if self.newest is None or sample.at > self.newest.at else self.newest
        elif value is not None and newer(key, value):
            self.newer += 1
        elif value is not None:
            self.garbage += 1


def check_flow_reports(flow: FlowSettings, cluster: Cluster, now: int) -> Iterator[Finding]:
    """The newest reports of a flow: of versions that are known, and by a clock as this machine has it."""
    topic, name = metrics_topic(flow.flow), str(flow.flow)
    partitions = cluster.topics().get(topic)
    if partitions is None:
        yield unknown(
            f"{name}: reports", f"{topic} is not there, or hidden: no driver has reported yet", "start its driver"
        )
        return
    places = [TopicPartition(topic, number) for number in range(partitions)]
    starts, ends = cluster.first_offsets(places, waits=False), cluster.end_offsets(places, waits=False)
    seen = _seen(cluster, starts, ends)
    if seen.newer:
        found = f"{count(seen.newer, 'record')} of the newest are of a newer version, and are not counted"
        yield warned(f"{name}: version of reports", found, "update srm-spark on this machine")
    if seen.garbage:
        found = f"{count(seen.garbage, 'record')} of the newest in {topic} are no reports, and are left out"
        yield warned(f"{name}: records in {topic}", found, "find out who else writes there")
    yield _timely(name, seen.newest, now)


def _seen(cluster: Cluster, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> _Seen:
    seen = _Seen()
    for place, end in ends.items():
        start = max(starts.get(place, 0), end - _NEWEST)
        if start < end:
            for record in cluster.records(place, OffsetRange(start, end)):
                seen.take(record.key, record.value)
    return seen


def _timely(name: str, newest: Sample | None, now: int) -> Finding:
    check = f"{name}: newest report"
    if newest is None:
        return unknown(check, "there is none that can be read", "start its driver, or look at its log")
    age = (now - newest.at) / 1000
    if newest.at - now > SKEW_MS:
        found = f"it is of {-age:,.0f} s from now: the clock of its driver is ahead, or that of this machine behind"
        return warned(check, found, "set both clocks by NTP; figures are shown at the time at which they come")
    if age > _MISSED * newest.seconds:
        found = f"it is {age:,.0f} s old: its driver is silent, or its clock is behind that of this machine"
        return warned(check, found, "srm-control status says which driver ran last; set both clocks by NTP")
    return ok(check, f"{max(0.0, age):,.0f} s old, by both clocks")
