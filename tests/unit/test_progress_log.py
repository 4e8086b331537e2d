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


def test_the_first_counts_come_after_5_seconds_the_others_after_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("srm_spark.cli.progress_log.time.monotonic", lambda: clock[0])
    progress, quick = ProgressLog(60), ProgressLog(2)
    due = []
    for clock[0] in (101.9, 102.0, 104.9, 105.0, 164.9, 165.0):
        due.append((clock[0], progress.is_due(), quick.is_due()))
        if progress.is_due():
            progress.log([])
    assert [at for at, is_due, _ in due if is_due] == [105.0, 165.0]
    assert [is_due for _, _, is_due in due] == [False, True, True, True, True, True]


def test_the_whole_run_is_summed_up_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    ProgressLog(0).log_totals([FlowStatus(FLOW, FlowState.STOPPED, records=1200, bytes=34_000)])
    assert caplog.messages == ["flow=A->B total records=1200 bytes=34000 seconds=0"]


def test_a_flow_that_started_anew_has_no_negative_rate(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    progress = ProgressLog(1e-9)
    for records in (100, 10):
        progress.log([FlowStatus(FLOW, FlowState.RUNNING, records=records)])
    first, second = [record.getMessage() for record in caplog.records]
    assert "records=100" in first
    assert "records=10 rate=0/s" in second
