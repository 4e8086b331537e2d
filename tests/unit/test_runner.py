"""What a flow's status tells the log."""

from __future__ import annotations

import logging
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from srm_spark.config import load_settings
from srm_spark.core.model import Flow
from srm_spark.flow.runner import FlowRunner
from srm_spark.flow.status import FlowState, FlowStatus

CONFIG = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"


def _runner(tmp_path: Path, before: FlowStatus | None = None) -> FlowRunner:
    path = tmp_path / "srm.properties"
    path.write_text(CONFIG)
    return FlowRunner(load_settings([path]).flows[0], MagicMock(), before=before)


def test_numbers_of_the_moment_end_with_it_and_say_since_when(tmp_path: Path) -> None:
    runner = _runner(tmp_path)
    runner._show(FlowState.RUNNING, None, records=5, lag_records=3, latency_ms=40, limit="slow")
    assert (runner.status.lag_records, runner.status.unknown_since) == (3, None)
    runner._show(FlowState.STALLED, "B does not answer", unknown_since=1000.0)
    stalled = runner.status
    assert (stalled.records, stalled.lag_records, stalled.latency_ms, stalled.limit) == (5, None, None, None)
    runner._show(FlowState.RETRYING, "it failed")
    assert runner.status.unknown_since == 1000.0
    runner._show(FlowState.RUNNING, None, records=1)
    running = runner.status
    assert (running.records, running.latency_ms, running.unknown_since) == (6, None, None)


def test_totals_go_on_when_a_flow_starts_by_other_settings(tmp_path: Path) -> None:
    before = FlowStatus(
        Flow("A", "B"), FlowState.RUNNING, records=7, lag_records=1, losses={"t-0": "5"}, lost_records=1
    )
    status = _runner(tmp_path, before).status
    assert (status.state, status.records, status.lost_records, status.losses) == (
        FlowState.STARTING,
        7,
        1,
        {"t-0": "5"},
    )
    assert status.lag_records is None


def test_what_stands_still_is_logged_once_with_its_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runner = _runner(tmp_path)
    with caplog.at_level(logging.WARNING):
        for reason in ("too large", "too large", "too old"):
            runner._show(FlowState.RUNNING, None, held={"orders-0": f"held at offset 5: {reason}"})
            runner._show(FlowState.RUNNING, None)  # nothing new about it
    assert [record.getMessage() for record in caplog.records if record.name == "srm_spark.flow.runner"] == [
        "flow=A->B orders-0 held at offset 5: too large",
        "flow=A->B orders-0 held at offset 5: too old",
    ]
