"""How far history is behind: as `/v3/history` and `/metrics` tell it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.config.settings import HistorySettings
from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import FlowSample
from srm_spark.core.moments import time_of
from srm_spark.past.reading import History
from tests.unit.api.boards import AB, BA, CB, NOW, Clock, Filled, three_flows
from tests.unit.history_tables import write

MINUTE = 60_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def filled(tmp_path: Path, clock: Clock) -> Filled:
    """Two flows that are read until now, and one of which nothing was."""
    past = History(HistorySettings(str(tmp_path)), lambda: clock.monotonic)
    filled = Filled(clock, past=past)
    for flow in (AB, BA):
        filled.reports(flow, 5)
    filled.live()
    return filled


@pytest.fixture
def client(filled: Filled) -> Iterator[TestClient]:
    with TestClient(make_app(filled.board)) as client:
        yield client


def sample(at: int, flow: object = AB, state: FlowState = FlowState.RUNNING) -> FlowSample:
    return FlowSample(flow, "h/1/1", at, 30.0, 30.0, state)  # type: ignore[arg-type]


def told(client: TestClient) -> dict[str, dict[str, Any]]:
    answer = client.get("/v3/history")
    assert answer.status_code == 200, answer.text
    return {one["flow"]: one for one in answer.json()["flows"]}


def shown(client: TestClient) -> dict[str, str]:
    lines = client.get("/metrics").text.splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if line.startswith("srm_service_history"))


def test_it_is_counted_from_the_newest_sample_in_history_to_the_newest_that_was_read(
    tmp_path: Path, client: TestClient
) -> None:
    write(tmp_path, [sample(NOW - 25 * 60 * MINUTE), sample(NOW - 4 * MINUTE), sample(NOW - 3 * MINUTE)])
    assert told(client)["A->B"] == {
        "flow": "A->B",
        "newest_in_history": time_of(NOW - 3 * MINUTE),
        "newest_read": time_of(NOW),
        "behind_seconds": 180.0,
        "unknown_since": None,
        "kind": None,
        "why": None,
    }
    assert shown(client) == {
        'srm_service_history_known{flow="A->B"}': "1",
        'srm_service_history_known{flow="B->A"}': "0",
        'srm_service_history_known{flow="C->B"}': "0",
        'srm_service_history_behind_seconds{flow="A->B"}': "180.0",
    }


def test_what_is_not_known_is_null_with_its_kind(tmp_path: Path, client: TestClient, filled: Filled) -> None:
    write(tmp_path, [sample(NOW), sample(NOW, CB)])
    rows = told(client)
    assert {flow: (one["behind_seconds"], one["kind"]) for flow, one in rows.items()} == {
        "A->B": (0.0, None),
        "B->A": (None, "no-history"),
        "C->B": (None, "no-sample"),
    }
    assert rows["B->A"]["unknown_since"] is None, "it never was known"
    filled.board.lost("B", "away")
    assert (told(client)["A->B"]["behind_seconds"], told(client)["A->B"]["kind"]) == (None, "target-not-read")


def test_it_is_said_since_when_it_is_not_known(tmp_path: Path, client: TestClient, filled: Filled) -> None:
    write(tmp_path, [sample(NOW)])
    assert told(client)["A->B"]["behind_seconds"] == 0.0
    (tmp_path / "B").rename(tmp_path / "gone")
    filled.clock.pass_by(60)
    filled.live()
    gone = told(client)["A->B"]
    assert (gone["behind_seconds"], gone["kind"], gone["unknown_since"]) == (None, "no-history", time_of(NOW))
    (tmp_path / "gone").rename(tmp_path / "B")
    filled.clock.pass_by(60)
    assert told(client)["A->B"]["behind_seconds"] == 0.0


def test_what_history_does_not_count_leaves_nobody_behind(tmp_path: Path, client: TestClient, filled: Filled) -> None:
    write(tmp_path, [sample(NOW)])
    filled.clock.pass_by(300)
    filled.live()
    filled.take(sample(NOW + 5 * MINUTE, state=FlowState.WAITING))
    assert told(client)["A->B"]["behind_seconds"] == 0.0
    filled.take(sample(NOW + 5 * MINUTE + 1000))
    assert told(client)["A->B"]["behind_seconds"] == 301.0


def test_a_clock_that_is_wrong_counts_as_history_counts_it(tmp_path: Path, client: TestClient, filled: Filled) -> None:
    wrong = [sample(NOW - 60 * MINUTE, BA), sample(NOW - 58 * MINUTE, BA)]
    board = filled.board
    board.clear(BA)
    for one in wrong:
        board.take(one, one.at)
    filled.live()
    write(tmp_path, wrong[:1], "A")
    assert told(client)["B->A"]["behind_seconds"] == 120.0


def test_history_that_is_ahead_is_not_behind(tmp_path: Path, client: TestClient) -> None:
    write(tmp_path, [sample(NOW + MINUTE)])
    assert told(client)["A->B"]["behind_seconds"] == 0.0


def test_a_service_without_history_says_so() -> None:
    with TestClient(make_app(three_flows().board)) as client:
        assert client.get("/v3/history").status_code == 404
        assert shown(client) == {}
