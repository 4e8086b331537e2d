"""The Delta table of the offset map, written and read by a real Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from srm_spark import load_settings, read_offset_map
from srm_spark.core.model import Flow
from srm_spark.errors import StateFailed
from srm_spark.spark.session import configure, own_session
from srm_spark.state import SETTINGS, OffsetMapTable, TableRow, own_folder

pytestmark = pytest.mark.slow

CONFIG = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ntopics = t\n"
CLEAN = TableRow("orders", 0, "id", 0, 60, 0, 60)
RECORDS, GAP = TableRow("orders", 1, "id", 0, 5, 0, 5), TableRow("orders", 1, "id", 5, 6, 5, 0)
UNKNOWN_TARGET = TableRow("it's `odd`", 0, None, 7, 9, None, 0)


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    own = own_session(spark)
    configure(own, SETTINGS)
    return own


@pytest.fixture
def table(session: SparkSession, tmp_path: Path) -> OffsetMapTable:
    return OffsetMapTable(session, Flow("A", "B"), str(tmp_path / "it`s" / "offset-map" / "A" / "B"))


def rows_of(spark: SparkSession, table: OffsetMapTable) -> list[TableRow]:
    """As somebody else would read it: in another session, flow and all."""
    rows = [row.asDict() for row in spark.read.format("delta").load(table.path).collect()]
    assert {row.pop("flow") for row in rows} <= {"A->B"}
    return sorted((TableRow(**row) for row in rows), key=lambda row: (row.topic, row.partition, row.source_start))


def versions(table: OffsetMapTable) -> list[Path]:
    return sorted((Path(table.path) / "_delta_log").glob("*.json"))


def test_it_is_written_and_changed_row_by_row(spark: SparkSession, table: OffsetMapTable) -> None:
    assert not table.is_there()
    table.replace([CLEAN, RECORDS, GAP, UNKNOWN_TARGET])
    assert table.is_there()
    assert rows_of(spark, table) == [UNKNOWN_TARGET, CLEAN, RECORDS, GAP]
    grown, new = CLEAN._replace(source_end=70, records=70), TableRow("orders", 2, "id", 0, 0, 0, 0)
    never_there = TableRow("orders", 9, "id", 0)
    table.merge([grown, new], [TableRow("orders", 1, None, 5), never_there])
    assert rows_of(spark, table) == [UNKNOWN_TARGET, grown, RECORDS, new]
    table.tidy()
    assert rows_of(spark, table) == [UNKNOWN_TARGET, grown, RECORDS, new]
    table.replace([])
    assert rows_of(spark, table) == []


def test_a_merge_is_one_version_for_each_of_added_and_removed_rows(table: OffsetMapTable) -> None:
    table.replace([CLEAN])
    table.merge([GAP, RECORDS], [])
    assert len(versions(table)) == 2
    table.merge([], [])
    assert len(versions(table)) == 2


def test_many_rows_are_written_in_pieces(spark: SparkSession, session: SparkSession, tmp_path: Path) -> None:
    table = OffsetMapTable(session, Flow("A", "B"), str(tmp_path / "map"), rows_per_write=2)
    rows = [CLEAN._replace(partition=number) for number in range(5)]
    table.replace(rows)
    assert rows_of(spark, table) == rows
    changed = [row._replace(source_end=61, records=61) for row in rows]
    table.merge(changed[:3], rows[3:])
    assert rows_of(spark, table) == changed[:3]


def test_sql_finds_it_by_its_path(spark: SparkSession, session: SparkSession, tmp_path: Path) -> None:
    table = OffsetMapTable(session, Flow("A", "B"), str(tmp_path / "map"))
    table.replace([RECORDS, GAP])
    where = "WHERE topic = 'orders' AND partition = 1 AND source_start <= {0} AND {0} < source_end"
    position = "target_start + IF(records > 0, {0} - source_start, 0)"
    query = f"SELECT {position} AS position FROM delta.`{table.path}` {where}"
    assert [spark.sql(query.format(offset)).collect()[0].position for offset in (0, 3, 5)] == [0, 3, 5]
    assert spark.sql(query.format(6)).collect() == []  # unknown is no row


def test_a_lost_folder_is_made_anew_by_the_same_session(spark: SparkSession, table: OffsetMapTable) -> None:
    table.replace([CLEAN])
    table.merge([RECORDS], [])
    shutil.rmtree(table.path)
    assert not table.is_there()
    table.replace([GAP])
    assert rows_of(spark, table) == [GAP]
    table.merge([CLEAN], [])
    assert rows_of(spark, table) == [CLEAN, GAP]


def test_lost_data_files_are_mended_by_writing_the_whole_table(spark: SparkSession, table: OffsetMapTable) -> None:
    table.replace([CLEAN, GAP])
    for file in Path(table.path).glob("*.parquet"):
        file.unlink()
    with pytest.raises(Exception, match="parquet"):
        table.merge([CLEAN._replace(source_end=61, records=61)], [])
    table.replace([CLEAN])
    assert rows_of(spark, table) == [CLEAN]


def test_a_damaged_log_is_an_error_and_not_an_empty_table(session: SparkSession, table: OffsetMapTable) -> None:
    table.replace([CLEAN])
    for version in versions(table):
        version.write_text("this is no JSON\n")
    other = own_session(session)  # what Delta remembers is shared by all sessions of the application
    again = OffsetMapTable(other, Flow("A", "B"), table.path)
    with pytest.raises(Exception, match=r"."):
        again.replace([CLEAN])


def test_a_table_of_another_schema_is_replaced(spark: SparkSession, table: OffsetMapTable) -> None:
    spark.createDataFrame([(1,)], "other int").write.format("delta").save(table.path)
    table.replace([CLEAN])
    assert rows_of(spark, table) == [CLEAN]


def test_old_versions_are_kept_for_a_day(spark: SparkSession, table: OffsetMapTable) -> None:
    table.replace([CLEAN])
    lines = [json.loads(line) for line in versions(table)[0].read_text().splitlines()]
    (properties,) = [line["metaData"]["configuration"] for line in lines if "metaData" in line]
    assert properties == {
        "delta.logRetentionDuration": "interval 1 day",
        "delta.deletedFileRetentionDuration": "interval 1 day",
    }


def test_the_public_function_reads_it_by_configuration_and_flow(
    spark: SparkSession, session: SparkSession, tmp_path: Path
) -> None:
    config = tmp_path / "srm.properties"
    config.write_text(f"{CONFIG}state.path = {tmp_path}/state\n")
    with pytest.raises(StateFailed, match=r"flow A->B: .* cannot be read: .*a running flow writes it every 60 s"):
        read_offset_map(spark, config, "A->B")
    settings = load_settings(config)
    OffsetMapTable(session, Flow("A", "B"), settings.flows[0].map_table).replace([CLEAN])
    for said in (config, str(config), settings):
        (row,) = read_offset_map(spark, said, "A->B").collect()
        assert tuple(row) == ("A->B", *CLEAN)
    with pytest.raises(StateFailed, match=r"flow B->A is not enabled; enabled are: A->B"):
        read_offset_map(spark, config, "B->A")
    config.write_text(f"{CONFIG}state.path =\n")
    with pytest.raises(StateFailed, match=r"flow A->B has no table of its offset map: state\.path is empty"):
        read_offset_map(spark, config, "A->B")


def test_a_folder_is_ours_alone(tmp_path: Path) -> None:
    own_folder(str(tmp_path / "new"))
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
    (tmp_path / "link").symlink_to(tmp_path / "new")
    with pytest.raises(StateFailed, match=r"belongs to somebody else; set state\.path"):
        own_folder(str(tmp_path / "link"))
