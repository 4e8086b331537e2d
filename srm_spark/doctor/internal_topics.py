"""Checks of the internal topics that are there: whether one of them forgets what is true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster
from srm_spark.doctor.report import Finding, Health, ok, unknown
from srm_spark.errors import SrmError
from srm_spark.flow.clusters import connect
from srm_spark.flow.topics.internal_topics import InternalTopic, fault_of, internal_topics


def check_internal_topics(flow: FlowSettings, seconds: float) -> Iterator[Finding]:
    """One finding for each that is not as it should be; one for all where there is none."""
    clusters = connect(replace(flow, admin_timeout_seconds=seconds))
    try:
        checked = [_finding(flow, cluster, topic) for cluster, topic in internal_topics(clusters)]
    except SrmError as error:
        yield unknown(f"{flow.flow}: internal topics", f"not all checked: {error}")
        return
    findings = [finding for finding in checked if finding is not None]
    yield from findings or [ok(f"{flow.flow}: internal topics", "those that are there keep what they hold")]


def _finding(flow: FlowSettings, cluster: Cluster, topic: InternalTopic) -> Finding | None:
    partitions = cluster.topics().get(topic.spec.name)
    fault = None if partitions is None else fault_of(cluster, topic, partitions)
    if fault is None:
        return None
    health = Health.FAILED if fault.is_fatal else Health.WARNED
    check = f"{flow.flow}: topic {topic.spec.name} on {cluster.alias}"
    return Finding(check, health, fault.text, f"{fault.remedy} --bootstrap-server {cluster.bootstrap_servers}")
