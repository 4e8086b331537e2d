"""The write task where nothing reaches a producer, and the options that the promises rest on."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import PausedPartition, RefusedPolicy, TopicPartition
from srm_spark.core.reports import PartitionReport, read_report
from srm_spark.core.rows import ArrowRows
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka import producer_pool
from srm_spark.kafka.producers import delivery_timeout, record_options
from srm_spark.kafka.writer import WriteTask, freeze_garbage
from tests.unit.arrow_rows import ArrowRow, arrow_batch

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def write(rows: list[list[ArrowRow]], *, held: frozenset[TopicPartition] = frozenset()) -> list[PartitionReport]:
    """What a task reports on batches of rows; its target takes nothing without a key."""
    route = Route("A.t", Limits(needs_key=True))
    task = WriteTask({}, {"t": route}, held, max_bytes=100, timeout=1.0)
    (reports,) = task(iter([arrow_batch(batch) for batch in rows]))
    return [read_report(row) for row in reports.to_pylist()]


def keyless(partition: int, offset: int) -> ArrowRow:
    return "t", partition, offset, 5, None, b"v", None


@pytest.fixture(autouse=True)
def no_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*_: Any) -> None:
        raise AssertionError("there is nothing to produce")

    monkeypatch.setattr(producer_pool, "record_producer", unwanted)


def test_no_rows_no_reports() -> None:
    assert write([[]]) == []


def test_rows_of_held_partitions_are_passed_over() -> None:
    assert write([[keyless(0, 3), keyless(0, 4)]], held=frozenset({T0})) == []


def test_a_refused_first_row_holds_its_partition_there_for_the_whole_task() -> None:
    reports = write([[keyless(0, 3), keyless(0, 4), keyless(1, 8)], [keyless(0, 5)]])
    assert {report.partition: report.hold for report in reports} == {
        T0: PausedPartition(3, Failure(FailureKind.NO_KEY, "the record has no key and the target topic is compacted")),
        T1: PausedPartition(8, Failure(FailureKind.NO_KEY, "the record has no key and the target topic is compacted")),
    }
    assert [report.next_offset for report in reports] == [3, 8]
    assert all(report.is_complete and not report.intervals and report.failure is None for report in reports)


def test_a_record_to_be_parked_says_so() -> None:
    route = Route("A.t", Limits(needs_key=True), RefusedPolicy.PARK)
    (batch,) = WriteTask({}, {"t": route}, frozenset(), 100, 1.0)(iter([arrow_batch([keyless(0, 3), keyless(0, 4)])]))
    (report,) = (read_report(row) for row in batch.to_pylist())
    assert (report.hold, report.to_quarantine) == (
        PausedPartition(3, Failure(FailureKind.NO_KEY, "the record has no key and the target topic is compacted")),
        True,
    )


def test_a_task_that_ends_early_says_of_which_partition_more_may_follow() -> None:
    route = Route("A.t", Limits(needs_key=True))
    rows = ArrowRows(iter([arrow_batch([keyless(0, 3)]), arrow_batch([keyless(1, 4)])]))
    (row,) = map(read_report, WriteTask({}, {"t": route}, frozenset(), 0, 1.0).write_all(rows, 0).to_pylist())
    assert (row.partition.partition, row.is_complete, row.is_cut) == (0, False, True)


def test_rows_that_are_not_written_do_not_end_a_task() -> None:
    """What is passed over takes nothing of the bytes that a task may write."""
    rows = ArrowRows(iter([arrow_batch([keyless(0, at) for at in range(3, 9)]), arrow_batch([keyless(1, 4)])]))
    task = WriteTask({}, {"t": Route("A.t", Limits(needs_key=True))}, frozenset({T0}), 2, 1.0)
    (row,) = map(read_report, task.write_all(rows, 0).to_pylist())
    assert (row.partition.partition, row.is_complete, row.is_cut) == (1, True, False)


class _Damaged(ArrowRows):
    """Rows behind which a batch of partition 1 is damaged."""

    def __init__(self, *rows: ArrowRow) -> None:
        super().__init__(iter([arrow_batch(rows)]))
        self.holds = {T1: HOLD, T0: HOLD}


HOLD = PausedPartition(4, Failure(FailureKind.BROKEN_BATCH, "damaged"))


@pytest.mark.parametrize("max_bytes", [0, 100])
def test_a_partition_waits_where_its_reader_says_so_unless_it_waits_before(max_bytes: int) -> None:
    route = Route("A.t", Limits(needs_key=True))
    task = WriteTask({}, {"t": route}, frozenset(), max_bytes, 1.0)
    found = {one.partition: one for one in map(read_report, task.write_all(_Damaged(keyless(0, 3)), 0).to_pylist())}
    assert found[T1].hold == HOLD
    assert found[T1].reached(2, 9) == 4
    before = found[T0].hold
    assert before is not None
    assert (before.offset, before.why.kind) == (3, FailureKind.NO_KEY)
    held = WriteTask({}, {"t": route}, frozenset({T1}), max_bytes, 1.0)
    assert [one["report"] for one in held.write_all(_Damaged(), 0).to_pylist() if '"t", 1' in one["report"]] == []


def test_a_task_does_not_show_its_options() -> None:
    task = WriteTask({"sasl.password": "secret"}, {}, frozenset(), 1, 1.0)
    assert "secret" not in repr(task)


def test_what_the_promises_rest_on_cannot_be_set() -> None:
    wanted: dict[str, str | int | float | bool] = {
        "acks": "1",
        "enable.idempotence": False,
        "enable.gapless.guarantee": False,
        "allow.auto.create.topics": True,
        "delivery.timeout.ms": "1",
        "linger.ms": 77,
        "compression.type": "zstd",
    }
    found = record_options(wanted, timeout=2.0)
    assert found["acks"] == "all"
    assert found["enable.idempotence"] is found["enable.gapless.guarantee"] is True
    assert found["allow.auto.create.topics"] is False
    assert found["message.timeout.ms"] == 3000
    assert "delivery.timeout.ms" not in found
    assert (found["linger.ms"], found["compression.type"]) == (77, "zstd")


@pytest.mark.parametrize(("given", "seconds"), [(None, 120.0), ("5000", 5.0), (str(2**31 - 1), 600.0)])
def test_the_timeout_of_a_write_is_bounded(given: str | None, seconds: float) -> None:
    assert delivery_timeout({} if given is None else {"delivery.timeout.ms": given}) == seconds


def test_what_a_process_holds_after_its_first_task_is_not_searched_for_cycles_again() -> None:
    freeze_garbage.cache_clear()
    gc.unfreeze()
    write([[]])
    frozen = gc.get_freeze_count()
    write([[]])
    assert gc.get_freeze_count() <= frozen
    assert frozen > 10 * len(gc.get_objects())
