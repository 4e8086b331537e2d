"""Heartbeats topics of both sides are in a plan, and what flows of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.config.settings import HeartbeatSettings
from srm_spark.core.model import Flow
from srm_spark.flow.topics.heartbeat import heartbeats_topics
from srm_spark.flow.topics.internal_topics import ensure_topic
from tests.unit.change.examples import add, drive, flow_of, held, planned, run_plan, write_plan
from tests.unit.memory_flow import MemoryFlow

THERE = HeartbeatSettings(Flow("A", "B"), enabled=True, interval_seconds=1.0, replication_factor=1)
BACK = HeartbeatSettings(Flow("B", "A"), enabled=False, interval_seconds=1.0, replication_factor=1)
OTHER = HeartbeatSettings(Flow("C", "D"), enabled=False, interval_seconds=1.0, replication_factor=1)
BEATS = (THERE, BACK, OTHER)


def said(flow: MemoryFlow, *beats: HeartbeatSettings) -> list[str]:
    steps = planned(flow, beats=beats).steps
    return [f"{step.on}: {step} ({step.reason})" for step in steps if "heartbeats" in str(step)]


def test_both_sides_and_the_remote_topic_are_made_as_a_driver_would() -> None:
    made = "1 partition, factor 1, cleanup.policy=compact"
    assert said(flow_of(), *BEATS) == [
        f"B: heartbeats: {made} (for heartbeats of A->B)",
        f"A: heartbeats: {made} (for heartbeats of B->A)",
        f"B: A.heartbeats: {made} (heartbeats is a heartbeats topic, replicated without being listed)",
    ]
    assert said(flow_of(heartbeats_replication_enabled="false"), *BEATS) == [
        f"B: heartbeats: {made} (for heartbeats of A->B)",
        f"A: heartbeats: {made} (for heartbeats of B->A)",
    ]
    assert said(flow_of(), THERE) == [f"B: heartbeats: {made} (for heartbeats of A->B)"]
    assert said(flow_of()) == []


def test_the_largest_factor_of_the_pairs_counts() -> None:
    third = HeartbeatSettings(Flow("C", "B"), enabled=False, interval_seconds=1.0, replication_factor=3)
    assert "factor 3" in said(flow_of(), THERE, third)[0]
    assert said(flow_of(), third) == [], "it is no pair of this flow"


@pytest.mark.parametrize("keys", [{}, {"A->B_use_defaults_from": "source"}, {"config_properties_always": ".*"}])
def test_behind_it_a_plan_and_a_driver_have_nothing_left_to_do(tmp_path: Path, keys: dict[str, str]) -> None:
    flow = flow_of(**keys)
    add(flow.source, "t2")  # which tells the defaults of A
    path = write_plan(flow, tmp_path / "plan.json", beats=BEATS)
    report = run_plan(flow, path, beats=BEATS)
    assert report.refused == 0
    assert planned(flow, beats=BEATS).steps == ()
    after = held(flow)
    for cluster, pairs in ((flow.source, [BACK]), (flow.target, [THERE])):
        for topic in heartbeats_topics(pairs):
            ensure_topic(cluster, topic)
    drive(flow)
    assert held(flow) == after


def test_one_that_is_there_is_taken_as_it_is() -> None:
    flow = flow_of()
    add(flow.source, "heartbeats", cleanup_policy="compact")
    add(flow.target, "heartbeats", 3)
    assert said(flow, *BEATS) == [
        "B: A.heartbeats: 1 partition, factor 1, cleanup.policy=compact "
        "(heartbeats is a heartbeats topic, replicated without being listed)"
    ]
