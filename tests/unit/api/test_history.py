"""Ranges that are longer than memory: answered from history, and from memory what is newer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.api.asked import Duration
from srm_spark.config.settings import HistorySettings
from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import FlowSample, Sample
from srm_spark.core.moments import time_of
from srm_spark.past.reading import History
from tests.unit.api.boards import AB, EVERY, NOW, Filled
from tests.unit.history_tables import write

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
FIRST, END = NOW - 5 * HOUR, NOW + 25 * MINUTE
"""When the flow begins, and its last sample; memory goes back to the middle of an hour."""


@dataclass
class Kept(Filled):
    """A board whose samples are written down, too."""

    taken: list[Sample] = field(default_factory=list)

    def take(self, *samples: Sample) -> None:
        super().take(*samples)
        self.taken += samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("history")


@pytest.fixture(scope="module")
def filled(folder: Path) -> Kept:
    """A flow of some hours; memory holds the last two, and history all of them, and of C->B nothing."""
    kept = Kept(past=History(HistorySettings(str(folder))))
    kept.reports(AB, 5 * 60)
    kept.clock.pass_by((END - NOW) / 1000)
    for at in range(NOW + EVERY * 1000, END + 1, EVERY * 1000):
        kept.report(AB, at)
    write(folder, kept.taken)
    kept.live()
    kept.clock.pass_by(1)
    return kept


@pytest.fixture(scope="module")
def client(filled: Kept) -> TestClient:
    return TestClient(make_app(filled.board))


def ok(client: TestClient, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


REPORTS = (END - FIRST) // 1000 // EVERY + 1
"""Each of 180 records in 18,000 bytes."""


@pytest.mark.parametrize("hours", [3, 5, 6, 24, 24 * 30, 24 * 60])
def test_every_sample_counts_once_whatever_holds_it(client: TestClient, hours: int) -> None:
    start, end = END - hours * HOUR, END + 1000
    asked = f"from={start}&to={end}"
    parts = ok(client, f"/cluster-metrics/A/record-count?{asked}")["metrics"]
    reports = min(hours * 3600 // EVERY + 1, REPORTS)
    # What a minute tells is known as a whole, and the range begins within one.
    slack = 180 * (MINUTE // 1000 // EVERY) if hours < 6 else 0
    assert sum(part["sum"] for part in parts) == pytest.approx(180 * reports, abs=slack)
    for topic in ("orders", "payments"):
        parts = ok(client, f"/topic-metrics/A.{topic}/record-count?{asked}")["metrics"]
        assert sum(part["sum"] for part in parts) == pytest.approx(90 * reports, abs=slack)
    rates = ok(client, f"/cluster-metrics/A/byte-rate?{asked}")["metrics"]
    assert {part["avg"] for part in rates} == {600.0}
    (one,) = ok(client, f"/replications?source=A&{asked}").values()
    assert one["throughputBps"]["max"] == 600.0
    assert one["replicationLatencyMs"]["samples"] == pytest.approx(6 * reports, abs=12)
    assert ok(client, f"/remote-topics/A?{asked}")["A.orders"]["throughputBps"]["avg"] == 300.0


def test_a_range_that_is_over_comes_from_history_alone(client: TestClient) -> None:
    asked = f"from={FIRST}&to={FIRST + HOUR}"
    parts = ok(client, f"/cluster-metrics/A/record-count?{asked}&samples=6")["metrics"]
    assert len(parts) == 6
    assert sum(part["sum"] for part in parts) == pytest.approx(180 * 120, abs=360)


def test_it_is_said_since_when_figures_are_kept(client: TestClient) -> None:
    assert ok(client, "/v3/flows/A/B?hours=4")["figures_since"] is None
    assert ok(client, "/v3/flows/A/B")["figures_since"] is None
    since = time_of(FIRST // MINUTE * MINUTE)
    assert ok(client, "/v3/flows/A/B?hours=48")["figures_since"] == since
    assert ok(client, "/v3/flows/A/B/topics?hours=48")["figures_since"] == since
    assert ok(client, "/v3/flows/C/B?hours=48")["figures_since"] == time_of(END + 1000 - 2 * HOUR)


def test_history_of_a_partition_and_a_group(client: TestClient) -> None:
    path = "/v3/flows/A/B/history"
    found = ok(client, f"{path}/record-rate?topic=orders&partition=1&hours=6&samples=6")
    assert {part["avg"] for part in found["parts"]} == {2.0}
    assert found["figures_since"] == time_of(FIRST // MINUTE * MINUTE)
    found = ok(client, f"{path}/checkpoint-latency-ms?group=billing&hours=6")
    assert {part["avg"] for part in found["parts"]} == {100.0}
    assert ok(client, f"{path}/checkpoint-latency-ms?group=gone&hours=6")["parts"] == []
    whole = ok(client, f"{path}/replication-records-lag?hours=6")["parts"]
    assert {part["max"] for part in whole} == {3.0, 7.0}  # of memory the sum of partitions, of history the flow's word
    for wrong, status in (("partition=1", 400), ("topic=orders&group=billing", 400)):
        assert client.get(f"{path}/record-rate?{wrong}").status_code == status


def test_without_history_memory_answers_and_says_so() -> None:
    filled = Filled()
    filled.reports(AB)
    filled.live()
    client = TestClient(make_app(filled.board))
    assert client.get("/v3/flows/A/B/history/record-rate?topic=orders&partition=1").status_code == 404
    assert client.get("/v3/flows/A/B/history/record-rate?topic=orders&hours=30").json()["parts"]
    assert ok(client, "/v3/flows/A/B?hours=30")["figures_since"] == time_of(NOW - 2 * HOUR)


@pytest.mark.parametrize("duration", list(Duration))
def test_every_range_of_the_page(client: TestClient, duration: Duration) -> None:
    for path in ("/", "/flows/A/B"):
        page = client.get(f"{path}?range={duration.value}")
        assert page.status_code == 200
        is_longer = duration.until(END).start < FIRST
        of_others = path == "/" and duration.until(0).start < -2 * HOUR  # of which there is no history
        assert ("Figures are kept since" in page.text) == (is_longer or of_others)
        assert "600 B/s" in page.text


def test_a_lag_that_was_not_known_is_no_part(tmp_path: Path) -> None:
    kept = Kept(past=History(HistorySettings(str(tmp_path))))
    write(tmp_path, [FlowSample(AB, "host/1/A", FIRST - DAY, 30.0, 30.0, FlowState.RUNNING, lag_records=None)])
    client = TestClient(make_app(kept.board))
    asked = f"from={FIRST - DAY - HOUR}&to={FIRST - DAY + HOUR}"
    assert ok(client, f"/v3/flows/A/B/history/replication-records-lag?{asked}")["parts"] == []
