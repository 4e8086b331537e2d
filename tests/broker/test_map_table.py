"""The table of the offset map beside a running flow, and what the map forgets."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from srm_spark import Driver, read_offset_map
from srm_spark.core.offset_map import INTERVALS_PER_PART
from srm_spark.errors import StateFailed
from srm_spark.spark.session import configure, own_session
from srm_spark.state import SETTINGS
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.map_reader import Part, read_map
from tests.broker.mirror import SOON, await_count, await_lag_zero
from tests.kafka_io import Log, Record, numbered, produce

Pairs = list[tuple[int, int]]
TABLE_SOON = 2 * SOON
"""The first write of a session to Delta alone takes 5 s on a machine that does nothing else."""


@pytest.fixture
def reader(spark: SparkSession) -> SparkSession:
    """A session in which reading a table does not take 50 tasks."""
    own = own_session(spark)
    configure(own, SETTINGS)
    return own


def state(tmp_path: Path) -> dict[str, str]:
    return {"state.path": str(tmp_path / "state"), "state.interval.seconds": "1"}


def rows_of(reader: SparkSession, driver: Driver, pair: Pair) -> dict[tuple[str, int], list[Any]]:
    """The table, by partition; nothing where there is none."""
    found: dict[tuple[str, int], list[Any]] = {}
    try:
        rows = read_offset_map(reader, driver.settings, pair.flow).orderBy("source_start").collect()
    except StateFailed:
        return found
    for row in rows:
        assert row.flow == pair.flow
        found.setdefault((row.topic, row.partition), []).append(row)
    return found


def pairs_of(rows: Iterable[Any]) -> Pairs:
    """Source and target offset of each record, by the table."""
    return [(row.source_start + n, row.target_start + n) for row in rows for n in range(row.records)]


def pairs_in(parts: dict[int, Part]) -> Pairs:
    """The same by the map topic."""
    intervals = [each for start in sorted(parts) for each in parts[start][1]]
    return [(up + n, down + n) for up, down, count in intervals for n in range(count)]


def pairs_by_value(source: Log, remote: Log, partition: int) -> Pairs:
    """The same by the records themselves, whose values are all different."""
    there = {stored.record.value: stored.offset for stored in source[partition]}
    return [(there[stored.record.value], stored.offset) for stored in remote[partition] if stored.record.value in there]


def await_table(reader: SparkSession, driver: Driver, pair: Pair) -> dict[tuple[str, int], list[Any]]:
    """Wait until the table says what the map topic says."""

    def is_equal() -> bool:
        rows, parts = rows_of(reader, driver, pair), read_map(pair.target, pair.map_topic)
        return rows.keys() == parts.keys() and all(pairs_of(rows[p]) == pairs_in(parts[p]) for p in parts)

    await_until(is_equal, TABLE_SOON, lambda: f"the map in {rows_of(reader, driver, pair)}")
    return rows_of(reader, driver, pair)


def write_transactions(pair: Pair, count: int, prefix: str = "") -> None:
    """One record each, with a marker behind it."""
    producer = pair.source.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    for number in range(count):
        producer.begin_transaction()
        produce(producer, pair.topic(), [Record(b"k", f"{prefix}{number}".encode())])
        producer.commit_transaction(30)


def test_the_table_says_what_the_topic_says_and_comes_back(pair: Pair, reader: SparkSession, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), 3)
    pair.source.write(pair.topic(), numbered(20, 2))
    write_transactions(pair, 3)
    driver = pair.replicate(state(tmp_path))
    await_count(pair.target, pair.remote(), 23)
    await_lag_zero(driver)
    found = await_table(reader, driver, pair)
    source, remote = pair.source.read(pair.topic()), pair.target.read(pair.remote())
    for partition in (0, 1, 2):
        assert pairs_of(found[pair.topic(), partition]) == pairs_by_value(source, remote, partition)
    (clean,), (never,) = found[pair.topic(), 1], found[pair.topic(), 2]
    assert (clean.source_start, clean.source_end, clean.target_start, clean.records) == (0, 10, 0, 10)
    assert (never.source_start, never.source_end, never.target_start, never.records) == (0, 0, 0, 0)
    gaps = [(row.source_start, row.source_end, row.target_start) for row in found[pair.topic(), 0] if not row.records]
    assert gaps == [(11, 12, 11), (13, 14, 12), (15, 16, 13)]
    pair.source.write(pair.topic(), numbered(20, 2, "more"))  # changes some rows
    await_count(pair.target, pair.remote(), 43)
    await_table(reader, driver, pair)
    shutil.rmtree(tmp_path / "state")
    assert rows_of(reader, driver, pair) == {}
    await_table(reader, driver, pair)  # though nothing was replicated since


def test_records_flow_on_while_the_table_cannot_be_written(
    pair: Pair, reader: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("in the way")
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(5))
    caplog.set_level(logging.INFO, "srm_spark.flow.topics.map_table")
    driver = pair.replicate(state(tmp_path))
    await_until(lambda: "is not up to date" in caplog.text, TABLE_SOON, "a warning")
    pair.source.write(pair.topic(), numbered(5, prefix="more"))
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    (tmp_path / "state").unlink()
    await_table(reader, driver, pair)
    await_until(lambda: "is up to date again" in caplog.text, SOON, "an all-clear")
    said = [record for record in caplog.records if record.name == "srm_spark.flow.topics.map_table"]
    warnings = [record.getMessage() for record in said if record.levelno == logging.WARNING]
    assert len(warnings) == 1, warnings
    assert "Exception: " in warnings[0]
    assert f"if this stays, delete {tmp_path}/state/offset-map/{pair.alias}/{pair.target_alias}" in warnings[0]


@pytest.mark.slow
def test_parts_of_the_map_that_are_gone_on_both_sides_are_dropped(
    pair: Pair, reader: SparkSession, tmp_path: Path
) -> None:
    first_end = 2 * INTERVALS_PER_PART - 1  # the marker behind a part's last record belongs to the next part
    pair.source.create(pair.topic())
    write_transactions(pair, INTERVALS_PER_PART + 5)
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), INTERVALS_PER_PART + 5)
    await_lag_zero(driver)
    driver.stop()
    partition = (pair.topic(), 0)
    assert list(read_map(pair.target, pair.map_topic)[partition]) == [0, first_end]

    pair.source.delete_records(pair.topic(), 0, first_end)
    pair.target.delete_records(pair.remote(), 0, INTERVALS_PER_PART - 1)  # one record of the part is still there
    driver = pair.replicate(state(tmp_path))
    pair.source.write(pair.topic(), [Record(b"k", b"a look at the topics comes after this one")])
    await_count(pair.target, pair.remote(), INTERVALS_PER_PART + 6)
    await_lag_zero(driver)
    rows = await_table(reader, driver, pair)
    assert rows[partition][0].source_start == 0
    driver.stop()

    pair.target.delete_records(pair.remote(), 0, INTERVALS_PER_PART)
    driver = pair.replicate(state(tmp_path))
    await_until(
        lambda: list(read_map(pair.target, pair.map_topic)[partition]) == [first_end], SOON, "the first part to go"
    )
    pair.source.write(pair.topic(), [Record(b"k", b"the flow goes on")])
    await_count(pair.target, pair.remote(), INTERVALS_PER_PART + 7)
    await_lag_zero(driver)
    await_until(
        lambda: rows_of(reader, driver, pair)[partition][0].source_start == first_end,
        TABLE_SOON,
        "rows of the table to go",
    )
    rows = await_table(reader, driver, pair)
    source, remote = pair.source.read(pair.topic()), pair.target.read(pair.remote())
    assert len(source[0]) == 7
    assert pairs_of(rows[partition]) == pairs_by_value(source, remote, 0)
