"""Flows in memory, what plans say of them, and what their clusters hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from srm_spark.change.apply import Ready, apply_plan, check
from srm_spark.change.document import load_plan, plans_document, save_plan
from srm_spark.change.look import make_plan
from srm_spark.change.planning import ChangePlan
from srm_spark.change.report import RunReport, load_report, report_path
from srm_spark.config.settings import HeartbeatSettings
from srm_spark.core.acls import Acl
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.topics.internal_topics import (
    control_topic,
    ensure_topic,
    leases_topic,
    meta_topic,
    metrics_topic,
    status_topic,
)
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.remote_acls import RemoteAcls
from srm_spark.flow.topics.topic_configs import TopicConfigs
from tests.memory_cluster import MemoryCluster, MemoryLog, MemoryTopic
from tests.unit.memory_flow import MemoryFlow, flow_settings

DAY, WEEK = "86400000", "604800000"
READS = Acl("t", "LITERAL", "User:ann", "*", "READ", "ALLOW")
COPY = READS._replace(name="A.t")
KEYS = {"A->B.topics": "t.*"}


def flow_of(**keys: str) -> MemoryFlow:
    """A flow whose source has a topic with a config and an ACL; nothing is on the target yet."""
    flow = MemoryFlow(flow_settings({**KEYS, **{name.replace("_", "."): value for name, value in keys.items()}}))
    flow.source.held["t"].configs["retention.ms"] = DAY
    flow.source.entries, flow.target.entries = {READS}, set()
    return flow


def add(cluster: MemoryCluster, topic: str, partitions: int = 1, **configs: str) -> None:
    """A topic that somebody has made."""
    values = {key.replace("_", "."): value for key, value in configs.items()}
    cluster.held[topic] = MemoryTopic([MemoryLog() for _ in range(partitions)], values)


def planned(flow: MemoryFlow, *, prune: bool = False, beats: Sequence[HeartbeatSettings] = ()) -> ChangePlan:
    """What is left to do."""
    return make_plan(flow.clusters, prune=prune, rights=lambda _: (), heartbeats=beats)


def write_plan(flow: MemoryFlow, path: Path, *, prune: bool = False, beats: Sequence[HeartbeatSettings] = ()) -> Path:
    """As `srm-control plan --out` does."""
    save_plan(path, plans_document([planned(flow, prune=prune, beats=beats)], prune=prune))
    return path


def run_plan(
    flow: MemoryFlow,
    path: Path,
    tell: Callable[[str], None] = lambda _: None,
    beats: Sequence[HeartbeatSettings] = (),
) -> RunReport:
    """As `srm-control apply` does."""
    plan = load_plan(path)
    fresh = planned(flow, prune=plan.prune, beats=beats)
    report = check(plan, load_report(report_path(path), plan.id), {"A->B": fresh})
    return apply_plan([Ready(flow.clusters, fresh)], report, report_path(path), tell)


def drive(flow: MemoryFlow) -> None:
    """What a driver does at the start of the flow, and what it keeps alike."""
    for make in (leases_topic, control_topic, status_topic, metrics_topic, meta_topic):
        ensure_topic(flow.target, make(flow.settings))
    assigned = flow.start()
    remotes = {topic: route.remote_topic for topic, route in assigned.assignment.routes.items()}
    maps = OffsetMaps(flow.target, flow.settings.map_topic, "test", TargetUnavailable)
    for _ in range(2):  # what is taken back is forgotten at the next look
        if flow.settings.topics.configs_seconds is not None:
            TopicConfigs(flow.clusters, maps, lambda: remotes).look()
        if flow.settings.acls.seconds is not None:
            RemoteAcls(flow.clusters, maps, lambda: remotes).look()


def held(flow: MemoryFlow) -> Mapping[str, Any]:
    """Topics, partitions, configs and ACLs of both sides, and what is recorded as made here."""
    maps = OffsetMaps(flow.target, flow.settings.map_topic, "test", TargetUnavailable)
    if flow.settings.map_topic in flow.target.held:
        maps.refresh()
    return {
        **{
            side.alias: {name: (len(topic.partitions), topic.configs.copy()) for name, topic in side.held.items()}
            for side in (flow.source, flow.target)
        },
        "ACLs": None if flow.target.entries is None else flow.target.entries.copy(),
        "ours": {remote: dict(values) for remote, values in maps.made.configs.items() if values},
        "made": {*maps.made.acls},
        "staged": {*maps.made.staged},
        "topics": {remote: one.source for remote, one in maps.made.topics.items()},
    }
