"""History as it is read, from tables that are written without Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from srm_spark.config.settings import HistorySettings
from srm_spark.core.driver_status import FlowState
from srm_spark.core.history import Grain, Kind, Series
from srm_spark.core.metrics import FlowSample, GroupSample, Histogram, PartitionSample, Sample
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.series import Line, Metric, Span
from srm_spark.past.reading import History
from tests.unit.history_tables import write

AB, CB = Flow("A", "B"), Flow("C", "B")
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOON = 1_764_072_000_000
FLOW = [Series(Kind.FLOW, "A->B")]


def topics(*names: str) -> list[Series]:
    return [Series(Kind.TOPIC, "A->B", name) for name in names]


def _word(flow: Flow, at: int, scale: int) -> FlowSample:
    lag = {"lag_records": 7 * scale, "lag_seconds": 1.5 * scale}
    return FlowSample(flow, "h/1/1", at, 30.0, 30.0, FlowState.RUNNING, **lag)  # type: ignore[arg-type]


def report(at: int, scale: int = 1, flow: Flow = AB) -> list[Sample]:
    """A flow with `orders` of two partitions and `payments` of one, whose lag is not known."""
    made: list[Sample] = [_word(flow, at, scale)]
    for topic, number, lag in (("orders", 0, 4), ("orders", 1, 2), ("payments", 0, None)):
        latency = Histogram.of([5.0 * scale, 10.0 * scale])
        partition = TopicPartition(topic, number)
        made.append(PartitionSample(flow, at, 30.0, partition, f"A.{topic}", 30 * scale, 3000 * scale, latency, lag))
    return [*made, GroupSample(flow, at, 30.0, "billing", ("orders",), Histogram.of([100.0 * scale]))]


class Clock:
    """Seconds that pass when somebody says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a folder with #ä"


@pytest.fixture
def history(folder: Path, clock: Clock) -> History:
    return History(HistorySettings(str(folder)), clock)


def known(line: Line | None) -> list[list[float | None]]:
    """Mean per bucket of each series; None where it is not known."""
    assert line is not None
    rows = zip(line.total.tolist(), line.count.tolist(), strict=True)
    return [[total / count if count else None for total, count in zip(*row, strict=True)] for row in rows]


def test_lines_of_a_flow_and_its_topics(folder: Path, history: History) -> None:
    later = NOON + 3 * MINUTE
    other = report(NOON, 9, CB)
    write(folder, [*report(NOON), *report(NOON + 30_000), *report(later, 2), *other])
    span, minute = Span(NOON - HOUR, NOON + HOUR), Grain.MINUTE
    line = history.line(Metric.BYTE_RATE, span, minute, AB, FLOW)
    assert line is not None
    assert (line.starts.tolist(), line.newest.tolist()) == ([NOON, later], [NOON + 30_000, later])
    assert line.bucket_ms == MINUTE
    assert known(line) == [[300.0, 600.0]]
    assert known(history.line(Metric.RECORD_COUNT, span, minute, AB, FLOW)) == [[180, 180]]
    assert known(history.line(Metric.RECORDS_LAG, span, minute, AB, FLOW)) == [[7, 14]]
    assert known(history.line(Metric.SECONDS_LAG, span, minute, AB, FLOW)) == [[1.5, 3.0]]
    latencies = history.line(Metric.REPLICATION_LATENCY, span, minute, AB, FLOW)
    assert latencies is not None
    assert (latencies.count.tolist(), latencies.least.tolist(), latencies.most.tolist()) == (
        [[12, 6]],
        [[5, 10]],
        [[10, 20]],
    )
    both = topics("payments", "orders", "none")
    assert known(history.line(Metric.RECORD_RATE, span, minute, AB, both)) == [[1, 2], [2, 4], [None, None]]
    assert known(history.line(Metric.RECORDS_LAG, span, minute, AB, both)) == [[None, None], [6, 6], [None, None]]
    assert known(history.line(Metric.CHECKPOINT_LATENCY, span, minute, AB, both))[1] == [100, 200]


def test_a_partition_and_a_group(folder: Path, history: History) -> None:
    write(folder, report(NOON))
    span = Span(NOON, NOON + 1)
    one = [Series(Kind.PARTITION, "A->B", "orders", 1)]
    assert known(history.line(Metric.RECORD_RATE, span, Grain.DAY, AB, one)) == [[1.0]]
    group = [Series(Kind.GROUP, "A->B", group="billing")]
    assert known(history.line(Metric.CHECKPOINT_LATENCY, span, Grain.DAY, AB, group)) == [[100.0]]
    assert known(history.line(Metric.BYTE_COUNT, span, Grain.DAY, AB, group)) == [[None]]
    nobody = [Series(Kind.GROUP, "A->B", group="x")]
    assert known(history.line(Metric.CHECKPOINT_LATENCY, span, Grain.DAY, AB, nobody)) == [[]]


@pytest.mark.parametrize("grain", list(Grain))
def test_a_span_has_the_buckets_that_it_touches(folder: Path, history: History, grain: Grain) -> None:
    day = NOON // DAY * DAY
    write(folder, [one for number in range(4) for one in report(day + number * grain.ms)])
    span = Span(day + grain.ms + grain.ms // 2, day + 2 * grain.ms + 1)
    line = history.line(Metric.BYTE_RATE, span, grain, AB, FLOW)
    assert line is not None
    assert line.starts.tolist() == [day + grain.ms, day + 2 * grain.ms]


def test_no_table_is_no_history_until_it_is_there(folder: Path, history: History, clock: Clock) -> None:
    span = Span(NOON, NOON + HOUR)

    def rates() -> list[list[float | None]] | None:
        line = history.line(Metric.BYTE_RATE, span, Grain.MINUTE, AB, FLOW)
        return None if line is None else known(line)

    assert rates() is None
    assert history.since(AB) is None
    write(folder, report(NOON))
    assert rates() == [[300.0]]
    assert history.since(AB) == NOON
    assert history.since(CB) is None
    opened = history._targets["B"].table  # noqa: SLF001 - that it is not opened again is not to be seen otherwise
    write(folder, report(NOON + MINUTE))
    clock.now += 130
    assert rates() == [[300.0, 300.0]]
    assert history._targets["B"].table is opened  # noqa: SLF001
    shutil.rmtree(folder / "B")
    assert rates() == [[300.0, 300.0]]  # for two minutes
    clock.now += 130
    assert rates() is None
    write(folder, report(NOON, 2))
    assert rates() == [[600.0]]


def test_what_cannot_be_read_is_told_once(folder: Path, history: History, caplog: pytest.LogCaptureFixture) -> None:
    write(folder, report(NOON))
    for file in (folder / "B").rglob("*.parquet"):
        file.write_bytes(b"garbage")
    for _ in range(2):
        assert history.line(Metric.BYTE_RATE, Span(NOON, NOON + 1), Grain.MINUTE, AB, FLOW) is None
    assert len(caplog.records) == 1
    assert "cannot be read" in caplog.text
