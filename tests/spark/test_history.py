"""The tables of history, written by a real Spark and read by another maker's reader."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from srm_spark.config.settings import HistorySettings
from srm_spark.core.driver_status import FlowState
from srm_spark.core.history import Cells, Gathered, Grain, Kind, MetricsRecord, Series, add_to
from srm_spark.core.history_rows import Position, cells_in, day_of, positions_in
from srm_spark.core.metrics import FlowSample, GroupSample, Histogram, PartitionSample, Sample, encode
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.series import Metric, Span
from srm_spark.past.batch import HistoryBatch
from srm_spark.past.reading import History
from srm_spark.spark.session import configure, own_session
from srm_spark.spark.source import SourceRow, given
from srm_spark.state.history_table import HISTORY_SETTINGS, HistoryTable

pytestmark = pytest.mark.slow

AB = Flow("A", "B")
TOPIC = "srm-metrics-A.internal"
READ = TopicPartition(TOPIC, 0)
IDS = {TOPIC: "topic-1"}
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOON = 1_764_072_000_000


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    own = own_session(spark)
    configure(own, HISTORY_SETTINGS)
    return own


@pytest.fixture
def table(session: SparkSession, tmp_path: Path) -> HistoryTable:
    made = HistoryTable(session, str(tmp_path / "B"))
    made.make()
    return made


def report(at: int, scale: int = 1) -> list[Sample]:
    made: list[Sample] = [FlowSample(AB, "h/1/1", at, 30.0, 30.0, FlowState.RUNNING, lag_records=7 * scale)]
    for topic, number, lag in (("orders", 0, 4), ("it's `odd`", 1, None)):
        latency, partition = Histogram.of([5.0 * scale, 10.0]), TopicPartition(topic, number)
        made.append(PartitionSample(AB, at, 30.0, partition, f"A.{topic}", 30 * scale, 3000, latency, lag))
    return [*made, GroupSample(AB, at, 30.0, "billing", ("orders",), Histogram.of([100.0 * scale]))]


def records(*reports: list[Sample]) -> list[MetricsRecord]:
    """In a metrics topic from its beginning."""
    samples = [one for each in reports for one in each]
    return [MetricsRecord(TOPIC, 0, number, one.at, *encode(one)) for number, one in enumerate(samples)]


def frame(session: SparkSession, of: Sequence[MetricsRecord]) -> DataFrame:
    rows: list[SourceRow] = [
        (one.topic, one.partition, one.offset, (one.timestamp or 0) * 1000, one.key, one.value, []) for one in of
    ]
    return given(session, rows).repartition(1)


def told_by(of: Sequence[MetricsRecord]) -> Cells:
    made = Gathered()
    made.add(of, NOON + 40 * DAY)
    return made.cells


def kept_in(path: Path) -> tuple[Cells, dict[TopicPartition, Position]]:
    """As somebody else reads it; each cell has one row."""
    rows = DeltaTable(path).to_pyarrow_table()
    found = list(cells_in(rows))
    cells = dict(found)
    assert len(cells) == len(found)
    return cells, positions_in(rows)


def batch(table: HistoryTable) -> HistoryBatch:
    """Of a job that starts now."""
    table.make()
    return HistoryBatch(table, table.positions(), IDS)


def test_batches_add_up_and_what_is_late_is_added_to_its_time(
    session: SparkSession, table: HistoryTable, tmp_path: Path
) -> None:
    all_of = records(report(NOON), report(NOON + 30_000, 2), report(NOON + HOUR), report(NOON - 2 * DAY, 5))
    one = batch(table)
    for cut, end in ((0, 6), (6, 13), (13, 16)):
        one(frame(session, all_of[cut:end]), 0)
    cells, positions = kept_in(tmp_path / "B")
    assert cells == told_by(all_of)
    assert positions == {READ: Position(16, "topic-1")}
    line = History(HistorySettings(str(tmp_path))).line(
        Metric.RECORD_COUNT, Span(NOON - 3 * DAY, NOON + DAY), Grain.DAY, AB, [Series(Kind.FLOW, "A->B")]
    )
    assert line is not None
    assert line.total.tolist() == [[300.0, 240.0]]


def test_a_job_that_is_killed_goes_on_where_its_last_commit_stands(
    session: SparkSession, table: HistoryTable, tmp_path: Path
) -> None:
    all_of = records(report(NOON), report(NOON + MINUTE), report(NOON + 2 * MINUTE))
    batch(table)(frame(session, all_of[:5]), 0)
    killed_before = batch(table)  # of which nothing was written
    assert killed_before is not None
    (position,) = table.positions().values()
    assert position.next_offset == 5
    batch(table)(frame(session, all_of[position.next_offset :]), 0)
    assert kept_in(tmp_path / "B")[0] == told_by(all_of)


def test_what_somebody_else_has_counted_is_not_counted_again(
    session: SparkSession, table: HistoryTable, tmp_path: Path
) -> None:
    all_of = records(report(NOON), report(NOON + MINUTE), report(NOON + 2 * MINUTE))
    first, second, third = batch(table), batch(table), batch(table)
    first(frame(session, all_of[:4]), 0)
    with pytest.raises(Exception, match="another writer"):
        second(frame(session, all_of[:8]), 0)
    assert kept_in(tmp_path / "B")[0] == told_by(all_of[:4])
    first(frame(session, all_of[4:]), 1)
    with pytest.raises(Exception, match="another writer"):
        third(frame(session, all_of[:1]), 0)
    assert kept_in(tmp_path / "B") == (told_by(all_of), {READ: Position(12, "topic-1")})


def test_a_table_that_is_deleted_is_made_anew_of_what_is_still_there(
    session: SparkSession, table: HistoryTable, tmp_path: Path
) -> None:
    all_of = records(report(NOON), report(NOON + MINUTE))
    running = batch(table)
    running(frame(session, all_of[:4]), 0)
    shutil.rmtree(tmp_path / "B")
    with pytest.raises(Exception, match=r"."):
        running(frame(session, all_of[4:]), 1)
    again = batch(table)
    assert table.positions() == {}
    again(frame(session, all_of), 0)
    assert kept_in(tmp_path / "B")[0] == told_by(all_of)


def test_a_table_that_is_deleted_amid_a_batch_is_made_anew(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "B" / "_delta_log" / "_staged_commits").mkdir(parents=True)  # all that the batch's commit leaves
    table = HistoryTable(session, str(tmp_path / "B"))
    table.make()
    assert table.positions() == {}


def test_a_table_that_somebody_made_anew_meanwhile_gets_no_end_without_its_beginning(
    session: SparkSession, table: HistoryTable, tmp_path: Path
) -> None:
    all_of = records(report(NOON), report(NOON + MINUTE))
    running = batch(table)
    running(frame(session, all_of[:4]), 0)
    shutil.rmtree(tmp_path / "B")
    table.make()
    with pytest.raises(Exception, match="another writer"):
        running(frame(session, all_of[4:]), 1)
    assert kept_in(tmp_path / "B") == ({}, {})


def test_garbage_is_passed_by(session: SparkSession, table: HistoryTable, tmp_path: Path) -> None:
    garbage = [MetricsRecord(TOPIC, 0, number, NOON, b"garbage", None) for number in range(3)]
    batch(table)(frame(session, garbage), 0)
    assert kept_in(tmp_path / "B") == ({}, {READ: Position(3, "topic-1")})


def test_old_days_go_and_small_files_are_put_together(
    session: SparkSession, table: HistoryTable, tmp_path: Path
) -> None:
    reports = [report(NOON - 40 * DAY), *(report(NOON + number * MINUTE) for number in range(4))]
    all_of, one = records(*reports), batch(table)
    for number in range(5):
        one(frame(session, all_of[4 * number : 4 * number + 4]), number)
    minutes = [("grain", "=", "minute"), ("kind", "=", "topic"), ("day", "=", str(day_of(NOON)))]
    assert len(DeltaTable(tmp_path / "B").file_uris(file_pruning_predicate=minutes)) == 4
    table.forget(day_of(NOON) - timedelta(days=30))
    table.tidy(day_of(NOON) - timedelta(days=2))
    assert len(DeltaTable(tmp_path / "B").file_uris(file_pruning_predicate=minutes)) == 1
    cells, positions = kept_in(tmp_path / "B")
    expected: Cells = {}
    add_to(expected, told_by(all_of[4:]).items())
    assert cells == expected
    assert positions[READ].next_offset == 20


def test_opening_does_not_grow_with_the_number_of_commits(
    session: SparkSession, table: HistoryTable, tmp_path: Path
) -> None:
    all_of, one = records(*(report(NOON + number * MINUTE) for number in range(3))), batch(table)
    for number in range(3):
        one(frame(session, all_of[4 * number : 4 * number + 4]), number)
        for change in range(5):  # commits, too, and far faster than batches
            session.sql(f"ALTER TABLE delta.`{tmp_path / 'B'}` SET TBLPROPERTIES ('changed' = '{number}-{change}')")
    protocol = DeltaTable(tmp_path / "B").protocol()
    assert (protocol.min_reader_version, protocol.reader_features) == (1, None)
    log = tmp_path / "B" / "_delta_log"
    newest = json.loads((log / "_last_checkpoint").read_text())["version"]
    assert len(list(log.glob("*.json"))) - newest < 10
    for commit in log.glob("0*.json"):
        if int(commit.stem) <= newest:
            commit.unlink()  # as Spark does with those that are a day old
    assert kept_in(tmp_path / "B")[0] == told_by(all_of)


def test_rows_of_other_hours_are_not_written_again(session: SparkSession, table: HistoryTable, tmp_path: Path) -> None:
    one, all_of = batch(table), records(*(report(NOON + number * HOUR) for number in range(3)))
    for number in range(3):
        one(frame(session, all_of[4 * number : 4 * number + 4]), number)
    name = f"delta.`{tmp_path / 'B'}`"
    newest = session.sql(f"DESCRIBE HISTORY {name} LIMIT 1").collect()[0].operationMetrics
    assert int(newest["numTargetFilesRemoved"]) == 5  # of the day, one per kind, and of the position
