"""The driver's log tells how each flow goes on."""

from __future__ import annotations

import math

import pytest

from srm_spark.cli.progress_log import ProgressLog, describe
from srm_spark.core.acts import Scope
from srm_spark.core.model import Flow
from srm_spark.core.standstills import Standstill
from srm_spark.flow.status import FlowState, FlowStatus

FLOW = Flow("A", "B")


def test_what_is_not_known_has_no_number() -> None:
    assert describe(FlowStatus(FLOW), 0.0) == (
        "flow=A->B state=starting records=0 rate=unknown lag=unknown latency_ms=unknown"
    )


def test_what_was_known_of_a_flow_that_stalled_is_unknown_since_then() -> None:
    status = FlowStatus(FLOW, FlowState.STALLED, "B does not answer", records=120, unknown_since=3661.0)
    assert describe(status, 7.0) == (
        "flow=A->B state=stalled records=120 rate=unknown lag=unknown latency_ms=unknown since=01:01:01Z"
    )


def test_what_is_lost_is_counted_in_records() -> None:
    status = FlowStatus(FLOW, FlowState.RUNNING, losses={"t-0": "5 to 9, 11 to 20"}, lost_records=15)
    assert describe(status, 0.0).endswith(" lost=15")


def test_what_stands_still_is_counted() -> None:
    status = FlowStatus(
        FLOW,
        FlowState.RUNNING,
        records=120,
        lag_records=3,
        latency_ms=40,
        standing=(Standstill(Scope("t", 0), "too large"),),
    )
    assert describe(status, 2.0) == "flow=A->B state=running records=120 rate=2/s lag=3 latency_ms=40 held=1"


def test_a_limit_is_told_while_it_slows_a_flow_down() -> None:
    limit = "limited to 1 MB/s by B.bandwidth.limit.bytes"
    assert describe(FlowStatus(FLOW, FlowState.RUNNING, limit=limit), 2.0).endswith(f" {limit}")


def looks(monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture, seconds: float, runs_at: float) -> list[int]:
    """The seconds after the start at which something is logged, of a flow that runs from `runs_at` on."""
    clock = [1000.0]
    monkeypatch.setattr("srm_spark.cli.progress_log.time.monotonic", lambda: clock[0])
    said.set_level("INFO")
    progress = ProgressLog(seconds)
    logged = []
    for second in range(200):
        clock[0] = 1000.0 + second
        said.clear()
        progress.look([FlowStatus(FLOW, FlowState.RUNNING if second >= runs_at else FlowState.STARTING)])
        logged += [second] * len(said.messages)
    return logged


@pytest.mark.parametrize(
    ("seconds", "runs_at", "logged"),
    [
        (60, 10, [15, 75, 135, 195]),  # the first counts 5 s after the flow runs
        (60, 100, [60, 105, 165]),
        (60, math.inf, [60, 120, 180]),
        (90, 0, [5, 95, 185]),
        (0, 10, []),
    ],
)
def test_counts_come_soon_after_a_flow_runs_and_then_at_intervals(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    seconds: float,
    runs_at: float,
    logged: list[int],
) -> None:
    assert looks(monkeypatch, caplog, seconds, runs_at) == logged


def test_the_whole_run_is_summed_up_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    ProgressLog(0).log_totals([FlowStatus(FLOW, FlowState.STOPPED, records=1200, bytes=34_000)])
    assert caplog.messages == ["flow=A->B total records=1200 bytes=34000 seconds=0 copied: one by one 100 %"]


def test_a_flow_that_started_anew_has_no_negative_rate(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    progress = ProgressLog(1e-9)
    for records in (100, 10):
        progress.log([FlowStatus(FLOW, FlowState.RUNNING, records=records)])
    first, second = [record.getMessage() for record in caplog.records]
    assert "records=100" in first
    assert "records=10 rate=0/s" in second
