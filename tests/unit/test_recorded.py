"""What a flow has recorded, read back."""

from __future__ import annotations

from dataclasses import replace

from srm_spark.flow.recorded import Recorded
from srm_spark.flow.topics.internal_topics import ensure_topic, quarantine_topic
from tests.unit.memory_flow import MemoryFlow, flow_settings


def test_what_lies_in_quarantine_is_told_though_the_policy_is_another_one_by_now() -> None:
    flow = MemoryFlow(flow_settings({"refused.record.policy": "park"}))
    ensure_topic(flow.target, quarantine_topic(flow.settings))
    flow.write(b"a")
    flow.park(0)
    holds = flow_settings({"refused.record.policy": "hold"})
    assert list(Recorded(replace(flow.clusters, settings=holds)).quarantine().entries) != []


def test_a_flow_that_may_not_read_the_quarantine_needs_it_no_more() -> None:
    flow = MemoryFlow(flow_settings())
    flow.target.down = "not allowed"
    assert not Recorded(flow.clusters).quarantine().entries
