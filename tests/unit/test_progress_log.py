"""The driver's log tells how each flow goes on."""

from __future__ import annotations

import pytest

from srm_spark.cli.progress_log import ProgressLog, describe
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.model import Flow

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
    status = FlowStatus(FLOW, FlowState.RUNNING, records=120, lag_records=3, latency_ms=40, held={"t-0": "too large"})
    assert describe(status, 2.0) == "flow=A->B state=running records=120 rate=2/s lag=3 latency_ms=40 held=1"


def test_a_limit_is_told_while_it_slows_a_flow_down() -> None:
    limit = "limited to 1 MB/s by B.bandwidth.limit.bytes"
    assert describe(FlowStatus(FLOW, FlowState.RUNNING, limit=limit), 2.0).endswith(f" {limit}")


def test_it_is_due_after_its_time_and_never_with_0() -> None:
    assert ProgressLog(1e-9).is_due()
    assert not ProgressLog(60).is_due()
    assert not ProgressLog(0).is_due()


def test_a_flow_that_started_anew_has_no_negative_rate(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    progress = ProgressLog(1e-9)
    for records in (100, 10):
        progress.log([FlowStatus(FLOW, FlowState.RUNNING, records=records)])
    first, second = [record.getMessage() for record in caplog.records]
    assert "records=100" in first
    assert "records=10 rate=0/s" in second
