"""How a notebook shows the status."""

from __future__ import annotations

import re

from srm_spark.core.acts import Scope
from srm_spark.core.model import Flow
from srm_spark.core.standstills import Standstill
from srm_spark.flow.status import FlowState, FlowStatus, Statuses


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_flows_are_rows_and_unknown_is_no_number() -> None:
    running = FlowStatus(Flow("A", "B"), FlowState.RUNNING, topics=2, partitions=5, records=12_000, lag_records=0)
    waiting = FlowStatus(Flow("B", "A"), FlowState.WAITING, "another driver owns it")
    titles, first, second = cells(Statuses([running, waiting])._repr_html_())
    assert titles == [
        "flow",
        "state",
        "topics",
        "partitions",
        "records",
        "lag",
        "latency, ms",
        "held",
        "parked",
        "lost",
        "reason",
    ]
    assert first == ["A-&gt;B", "running", "2", "5", "12,000", "0", "unknown", "0", "0", "0", ""]
    assert second[5] == "unknown"
    stalled = FlowStatus(Flow("A", "B"), FlowState.STALLED, unknown_since=3661.0)
    assert cells(stalled._repr_html_())[1][5] == "unknown since 01:01:01Z"
    assert second[-1] == "another driver owns it"
    assert cells(running._repr_html_()) == [titles, first]


def test_what_clusters_say_is_no_html() -> None:
    held = FlowStatus(
        Flow("A", "B"), FlowState.RUNNING, standing=(Standstill(Scope("t", 0), "<script>alert(1)</script>"),)
    )
    assert "<script>" not in held._repr_html_()
    assert "t-0: &lt;script&gt;" in held._repr_html_()


def test_how_records_travelled_adds_up_and_a_little_is_not_nothing() -> None:
    assert FlowStatus(Flow("A", "B")).ways == ""
    assert FlowStatus(Flow("A", "B"), records=100, whole=97, merged=3).ways == "whole 97 %, merged 3 %"
    assert FlowStatus(Flow("A", "B"), records=1000, whole=999).ways == "whole > 99 %, one by one < 1 %"
