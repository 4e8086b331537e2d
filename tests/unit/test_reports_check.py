"""What the doctor makes of the newest reports of a flow: their age by both clocks, newer versions, garbage."""

from __future__ import annotations

import json

import pytest

from srm_spark.core.cluster import ControlRecord, TopicSpec
from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import FlowSample, encode, metrics_topic
from srm_spark.core.model import Flow
from srm_spark.doctor import Finding, Health
from srm_spark.doctor.reports import check_flow_reports
from srm_spark.errors import TargetUnavailable
from tests.memory_cluster import MemoryCluster
from tests.unit.memory_flow import flow_settings

FLOW, NOW, HOUR = Flow("A", "B"), 1_764_000_000_000, 3_600_000
TOPIC = metrics_topic(FLOW)


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster("B", TargetUnavailable)
    made.create([TopicSpec(TOPIC, 1, 1, {})])
    return made


def write(cluster: MemoryCluster, key: bytes, value: bytes) -> None:
    cluster.writer("test", TargetUnavailable).write([ControlRecord(TOPIC, key, value, partition=0)])


def report(at: int) -> tuple[bytes, bytes]:
    return encode(FlowSample(FLOW, "host/1/1", at, 30.0, 30.0, FlowState.RUNNING))


def found(cluster: MemoryCluster) -> dict[str, Finding]:
    return {one.check: one for one in check_flow_reports(flow_settings(), cluster, NOW)}


@pytest.mark.parametrize(
    ("at", "health", "words"),
    [
        (NOW - 20_000, Health.OK, "20 s old"),
        (NOW + 20_000, Health.OK, "0 s old"),
        (NOW - HOUR, Health.WARNED, "silent, or its clock is behind"),
        (NOW + HOUR, Health.WARNED, "3,600 s from now: the clock of its driver is ahead"),
    ],
)
def test_the_newest_report_is_of_now(cluster: MemoryCluster, at: int, health: Health, words: str) -> None:
    write(cluster, *report(min(at, NOW) - 2 * HOUR))
    write(cluster, *report(at))
    finding = found(cluster)["A->B: newest report"]
    assert (finding.health, words in finding.found) == (health, True), finding
    assert bool(finding.remedy) is (health is not Health.OK)


def test_newer_versions_and_garbage_are_counted_and_the_rest_is_read(cluster: MemoryCluster) -> None:
    key, value = report(NOW)
    write(cluster, key, value)
    write(cluster, key, json.dumps({**json.loads(value), "v": 2}).encode())
    write(cluster, b"garbage", b"x")
    checks = found(cluster)
    assert checks["A->B: version of reports"].health is Health.WARNED
    assert "1 record of the newest" in checks["A->B: version of reports"].found
    assert checks[f"A->B: records in {TOPIC}"].health is Health.WARNED
    assert checks["A->B: newest report"].health is Health.OK


def test_what_was_never_reported_is_unknown(cluster: MemoryCluster) -> None:
    assert found(cluster)["A->B: newest report"].health is Health.UNKNOWN
    empty = MemoryCluster("B", TargetUnavailable)
    assert [one.health for one in found(empty).values()] == [Health.UNKNOWN]
