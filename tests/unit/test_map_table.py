"""When the table of the offset map is written, and what of it; Delta itself is tested with Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

from srm_spark.config.settings import (
    BatchSettings,
    ClusterSettings,
    FlowSettings,
    StateSettings,
    SyncSettings,
    TopicSettings,
)
from srm_spark.core.model import Flow, Interval, KeptLoss, Loss, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.translation import IntervalMap
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.topics.map_table import MapTable
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.spark import SparkSession
from srm_spark.state import LossTable, OffsetMapTable, TableRow, first_line

FLOW = Flow("A", "B")
ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 3)


class FakeMaps:
    """The map topic, as it was read."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.maps: dict[TopicPartition, PartitionMap] = {}
        self.losses: dict[bytes, KeptLoss] = {}

    def refresh(self) -> None:
        """There is nothing to read."""

    def grow(self, partition: TopicPartition, records: int) -> None:
        """So many more records were replicated."""
        found = self.maps.setdefault(partition, PartitionMap("id"))
        at = found.source.end if found.source is not None else 0
        found.take(IntervalMap(OffsetRange(at, at + records), at + records, (Interval(at, at, records),)), "id")


class FakeTable:
    """Remembers what was written to it."""

    path = "/data"

    def __init__(self) -> None:
        self.there = False
        self.calls: list[tuple[str, list[TableRow], list[TableRow]]] = []

    def is_there(self) -> bool:
        """Whether there is a table."""
        return self.there

    def replace(self, rows: Iterable[TableRow]) -> None:
        """The whole of it."""
        self.calls.append(("replace", list(rows), []))
        self.there = True

    def merge(self, put: Iterable[TableRow], gone: Iterable[TableRow]) -> None:
        """Some rows."""
        self.calls.append(("merge", list(put), list(gone)))


def settings(state: StateSettings) -> FlowSettings:
    topics = TopicSettings((".*",), (), (), "", ".", ".", 1, "target", 5.0, True, False)
    return FlowSettings(
        flow=FLOW,
        source=ClusterSettings("A", "h:1"),
        target=ClusterSettings("B", "h:2"),
        topics=topics,
        syncs=SyncSettings(True, False, 100, 1),
        batch=BatchSettings(1, 1, 1, 1, True, 0, 0, None),
        state=state,
    )


def table_of(maps: FakeMaps, state: StateSettings, session: Any = None) -> MapTable:
    return MapTable(settings(state), cast("SparkSession", session), cast("OffsetMaps", maps))


def written_by(writer: MapTable, table: FakeTable) -> list[tuple[str, list[TableRow], list[TableRow]]]:
    """What one round writes."""
    table.calls.clear()
    writer.write_map(cast("OffsetMapTable", table))
    return list(table.calls)


def row(partition: TopicPartition, records: int) -> TableRow:
    return TableRow(*partition, "id", 0, records, 0, records)


def test_the_first_write_is_the_whole_map_and_later_ones_what_changed() -> None:
    maps, table = FakeMaps(), FakeTable()
    writer = table_of(maps, StateSettings("/data"))
    maps.grow(ORDERS, 5)
    maps.grow(PAYMENTS, 2)
    assert written_by(writer, table) == [("replace", [row(ORDERS, 5), row(PAYMENTS, 2)], [])]
    assert written_by(writer, table) == []
    maps.grow(ORDERS, 1)
    assert written_by(writer, table) == [("merge", [row(ORDERS, 6)], [])]
    maps.maps[PAYMENTS].drop(0)
    assert written_by(writer, table) == [("merge", [], [TableRow(*PAYMENTS, None, 0)])]


def test_losses_are_written_once_and_again_with_each_new_one() -> None:
    maps, written = FakeMaps(), list[list[KeptLoss]]()
    writer, table = table_of(maps, StateSettings("/data")), SimpleNamespace(replace=written.append)
    first, second = (KeptLoss(ORDERS, Loss(OffsetRange(at, at + 2)), "id", at) for at in (1, 5))
    for losses in ({}, {}, {b"1": first}, {b"1": first, b"2": second}):
        maps.losses = losses
        writer.write_losses(cast("LossTable", table))
    maps.losses = {}
    writer.tell_to_stop()
    writer.write_losses(cast("LossTable", table))
    assert written == [[], [first], [first, second]]


def test_a_table_that_is_gone_is_written_anew_though_nothing_changed() -> None:
    maps, table = FakeMaps(), FakeTable()
    writer = table_of(maps, StateSettings("/data"))
    maps.grow(ORDERS, 5)
    written_by(writer, table)
    table.there = False
    assert written_by(writer, table) == [("replace", [row(ORDERS, 5)], [])]


def test_a_flow_that_ends_does_not_empty_its_table() -> None:
    maps, table = FakeMaps(), FakeTable()
    writer = table_of(maps, StateSettings("/data"))
    maps.grow(ORDERS, 5)
    written_by(writer, table)
    writer.tell_to_stop()
    maps.maps.clear()  # as closing does
    assert written_by(writer, table) == []


def test_a_folder_that_nobody_chose_is_of_no_use_to_executors_elsewhere() -> None:
    session = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://host:7077"))
    for state, starts in ((StateSettings("/tmp/x", is_default=True), False), (StateSettings("s3a://b"), True)):
        writer, tasks = table_of(FakeMaps(), state, session), Periodic()
        writer.start(tasks)
        assert (not writer.join(0)) is starts, "what has begun has not ended yet"
        writer.tell_to_stop()
        assert writer.join(10)


def test_without_a_path_nothing_starts() -> None:
    writer = table_of(FakeMaps(), StateSettings(""))
    writer.start(Periodic())
    assert writer.join(0), "nothing has begun"


def test_an_error_of_java_is_told_by_its_own_words() -> None:
    assert first_line(RuntimeError("the reason\n\tat stack")) == "the reason"
    java = "An error occurred while calling o334.save.\n: java.io.IOException: not a folder\n\tat stack"
    assert first_line(RuntimeError(java)) == "java.io.IOException: not a folder"
    assert first_line(RuntimeError()) == "RuntimeError()"
