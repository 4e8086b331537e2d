"""A driver's status over time."""

from __future__ import annotations

import itertools
import math
import sys
import time
from dataclasses import replace

import pytest

from srm_spark.core.model import Flow
from srm_spark.errors import SetupError
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.history import COLUMNS, History
from tests.awaiting import await_until


class FakeDriver:
    """Two flows; the first gets 100 records from sample to sample."""

    def __init__(self) -> None:
        self._looks = itertools.count()

    def status(self) -> tuple[FlowStatus, ...]:
        running = FlowStatus(Flow("A", "B"), FlowState.RUNNING, lag_records=7, latency_ms=120)
        waiting = FlowStatus(Flow("B", "A"), FlowState.WAITING, "another driver owns the flow")
        return replace(running, records=100 * next(self._looks)), waiting


def test_rates_are_per_flow_and_unknown_stays_unknown() -> None:
    history = History(FakeDriver())
    history.sample()
    time.sleep(0.05)
    history.sample()
    frame = history.frame()
    assert tuple(frame.columns) == COLUMNS
    first, second = (frame[frame["flow"] == flow] for flow in ("A->B", "B->A"))
    seconds = first["time"].diff().dt.total_seconds().iloc[1]
    assert first["records"].tolist() == [0, 100]
    assert math.isnan(first["rate"].iloc[0])
    assert first["rate"].iloc[1] == 100 / seconds
    assert second["rate"].iloc[1] == 0
    assert second["lag"].isna().all()
    assert second["latency"].isna().all()


def test_the_table_shows_each_flow_once() -> None:
    history = History(FakeDriver())
    history.sample()
    history.sample()
    table = history.table()
    assert table.index.tolist() == ["A->B", "B->A"]
    assert table.loc["A->B", ["state", "records", "lag"]].tolist() == ["running", 100, 7.0]
    assert table.loc["B->A", "reason"] == "another driver owns the flow"


def test_without_samples_there_is_an_empty_frame() -> None:
    history = History(FakeDriver())
    assert tuple(history.frame().columns) == COLUMNS
    assert history.table().empty


def test_it_looks_by_itself_while_it_is_open() -> None:
    with History(FakeDriver(), seconds=0.01) as history:
        await_until(lambda: len(history.frame()) >= 6, 10, "three looks at two flows")
    count = len(history.frame())
    time.sleep(0.05)
    assert len(history.frame()) == count


def test_without_pandas_it_samples_and_says_what_a_frame_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(FakeDriver())
    history.sample()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SetupError, match="pip install 'pandas"):
        history.frame()
