"""Passes of a batch between clusters in memory: what is recorded when, whatever is refused, fails or goes away."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from srm_spark.core.intervals import Growing
from srm_spark.core.model import Flow, Interval, LossCause, OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.reports import PartitionReport
from srm_spark.core.tail import TailRecord
from srm_spark.errors import LeaseLost, ProgressFailed, QueryFailed, SourceChanged, TargetChanged
from srm_spark.failure import Effect, Failure, FailureKind
from srm_spark.flow.batch.replicate import Means, Replication
from srm_spark.flow.recorded import Recorded
from srm_spark.kafka.fencing import FencingToken, TokenNote
from srm_spark.kafka.writer import WriteTask
from tests.memory_cluster import MemoryLog, MemoryTopic
from tests.unit.memory_flow import HERE, MemoryFlow, flow_settings

OTHER = TopicPartition("t", 1)
Ranges = Mapping[TopicPartition, OffsetRange]
TOO_LARGE = Failure(FailureKind.TOO_LARGE, "too large")


class Batch:
    """A generation of two partitions, and the tasks that write its passes."""

    def __init__(self, keys: Mapping[str, str] | None = None, flow: str = "") -> None:
        settings = flow_settings({"batch.max.bytes": "20480", **(keys or {})})
        self.flow = MemoryFlow(settings)
        self.flow.source.held["t"] = MemoryTopic([MemoryLog(), MemoryLog()], {})
        self.passes: list[Ranges] = []
        self.refuse: Callable[[TopicPartition, TailRecord], Failure | None] = lambda *_: None
        self.fails: dict[TopicPartition, Failure] = {}
        self.happens: Callable[[int], object] = lambda _: None
        """Amid each pass, with its number."""
        self.most_records = 10**9
        """After so many the task ends early."""
        self.process: str | None = None
        """Whoever commits in transactions, in the slot 0."""

    def fill(self, *counts: int, size: int = 100) -> None:
        for partition, count in zip((HERE, OTHER), counts, strict=False):
            log = self.flow.source.log(partition)
            for _ in range(count):
                log.append(TailRecord(0, 1_000, b"", b"%d" % log.end + bytes(size - len(b"%d" % log.end))))

    def begin(self, **more: Any) -> Replication:
        """The batch function of the next generation."""
        assignment = replace(self.flow.start().assignment, **more)
        means = Means(replace(self.flow.clusters, require_lease=lambda: None), self._write)
        return Replication(self.flow.settings, assignment, means=means)

    def copy(self, replication: Replication | None = None) -> Replication:
        """Everything that is there, as one batch."""
        replication = replication or self.begin()
        ends = self.flow.source.end_offsets([HERE, OTHER])
        session: Any = None
        going = [p for p in ends if p not in replication.holds and replication.positions[p] < ends[p]]
        replication.copy(session, {p: OffsetRange(replication.positions[p], ends[p]) for p in going})
        return replication

    def recorded(self) -> dict[TopicPartition, int]:
        """How far progress is, for who reads it now."""
        recorded = Recorded(self.flow.clusters)
        recorded.refresh()
        for partition, known in recorded.maps.maps.items():
            assert known.source is not None
            progress = recorded.progress.positions.get(partition)
            assert progress is None or known.source.end >= progress.next_offset, "progress knows more than the map"
        return {p: position.next_offset for p, position in recorded.progress.positions.items()}

    def copied(self, partition: TopicPartition = HERE) -> int:
        return self.flow.target.log(TopicPartition("A.t", partition.partition)).end

    def _write(self, task: WriteTask, ranges: Ranges) -> list[PartitionReport]:
        self.passes.append(ranges)
        assert not task.held & ranges.keys()
        self.happens(len(self.passes))
        reports: list[PartitionReport] = []
        left = self.most_records
        for partition, offsets in ranges.items():
            if left <= 0:
                for one in reports:
                    one.is_cut = True
                break
            name = task.routes[partition.topic].remote_topic
            remote = self.flow.target.log(TopicPartition(name, partition.partition))
            report = PartitionReport(partition, target_end=task.target_ends[partition], slack=task.slack[partition])
            for record in self.flow.source.log(partition).read(offsets, committed=False):
                if left <= 0:
                    report.is_complete = False
                    report.is_cut = True
                    break
                why = self.refuse(partition, record)
                if why is not None:
                    report.hold = PausedPartition(record.offset, why)
                    break
                report.intervals = Growing([*report.intervals, Interval(record.offset, remote.append(record), 1)])
                report.next_offset = record.offset + 1
                report.records += 1
                report.bytes += len(record.value or b"")
                left -= 1
            report.failure = self.fails.get(partition)
            if self.process is not None and report.failure is None:
                report.slot, report.writer = 0, self.process
            reports.append(report)
        return reports


def test_a_batch_is_written_in_passes_and_each_is_recorded_before_the_next() -> None:
    batch = Batch()
    batch.fill(1000, 1000)
    seen: list[dict[TopicPartition, int]] = []
    batch.happens = lambda _: seen.append(batch.recorded())
    replication = batch.copy()
    assert replication.positions == batch.recorded() == {HERE: 1000, OTHER: 1000}
    assert len(batch.passes) > 4, "some KB at a time"
    assert [one.get(HERE, 0) for one in seen] == sorted({one.get(HERE, 0) for one in seen})


def test_a_crash_leaves_one_pass_at_most_that_is_not_recorded() -> None:
    batch = Batch()
    batch.fill(1000, 1000)
    progress = batch.flow.settings.progress_topic

    def happens(number: int) -> None:
        if number == 3:
            batch.flow.target.forbidden[progress] = "killed"

    batch.happens = happens
    with pytest.raises(ProgressFailed, match="killed"):
        batch.copy()
    batch.flow.target.forbidden.clear()
    recorded = batch.recorded()
    newest = batch.passes[-1]
    assert {p: offsets.start for p, offsets in newest.items()} == {p: recorded[p] for p in newest}
    assert {p: batch.copied(p) for p in newest} == {p: offsets.end for p, offsets in newest.items()}
    batch.happens = lambda _: None
    batch.copy()
    for partition in (HERE, OTHER):
        source = batch.flow.source.log(partition).records.values()
        target = batch.flow.target.log(TopicPartition("A.t", partition.partition)).records.values()
        assert [one.value for one in source] == [one.value for one in target]


def test_a_refused_record_stops_its_partition_and_no_other() -> None:
    batch = Batch()
    batch.fill(10, 10)
    batch.refuse = lambda p, record: TOO_LARGE if (p, record.offset) == (HERE, 4) else None
    replication = batch.copy()
    assert replication.positions == {HERE: 4, OTHER: 10}
    assert replication.holds == {HERE: PausedPartition(4, TOO_LARGE)}
    assert batch.recorded() == {HERE: 4, OTHER: 10}
    batch.fill(5, 5)
    batch.copy(replication)
    assert HERE not in batch.passes[-1]
    assert replication.positions == {HERE: 4, OTHER: 15}


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind.effect is Effect.PAUSES])
def test_a_failure_that_would_come_again_holds_behind_what_is_there(kind: FailureKind) -> None:
    batch = Batch()
    batch.fill(10, 10)
    batch.fails[HERE] = Failure(kind, "refused")
    replication = batch.copy()
    assert replication.holds[HERE] == PausedPartition(10, Failure(kind, "refused"))
    assert replication.positions == {HERE: 10, OTHER: 10}


def test_what_was_written_before_a_failure_is_recorded_and_the_one_that_starts_anew_is_named() -> None:
    batch = Batch()
    batch.fill(3, 3)
    batch.fails = {
        HERE: Failure(FailureKind.WRITE_REFUSED, "no answer"),
        OTHER: Failure(FailureKind.TARGET_CHANGED, "another topic"),
    }
    with pytest.raises(QueryFailed, match=r"2 partitions could not be written, first t-1 .* another topic") as raised:
        batch.copy()
    assert raised.value.kind is FailureKind.TARGET_CHANGED
    assert batch.recorded() == {HERE: 3, OTHER: 3}


def test_who_was_only_drawn_in_goes_on_where_the_cause_is_held() -> None:
    batch = Batch()
    batch.fill(5, 5)
    (kind,) = [kind for kind in FailureKind if kind.effect is Effect.DRAWN_IN][:1]
    batch.fails = {OTHER: Failure(kind, "rolled back")}
    batch.refuse = lambda p, record: TOO_LARGE if (p, record.offset) == (HERE, 2) else None
    batch.happens = lambda number: batch.fails.clear() if number > 1 else None
    replication = batch.copy()
    assert replication.holds.keys() == {HERE}
    assert replication.positions[OTHER] == 5


def test_a_task_that_ends_early_leaves_the_rest_to_the_next_pass() -> None:
    batch = Batch()
    batch.fill(10, 10)
    batch.most_records = 7
    replication = batch.copy()
    assert replication.positions == {HERE: 10, OTHER: 10}
    assert (batch.copied(HERE), batch.copied(OTHER)) == (10, 10)
    assert len(batch.passes) > 2


def test_markers_and_compacted_offsets_are_passed() -> None:
    batch = Batch()
    batch.fill(2)
    for _ in range(3):
        batch.flow.source.log(HERE).mark()
        batch.flow.source.log(OTHER).mark()
    replication = batch.copy()
    assert replication.positions == {HERE: 5, OTHER: 3}
    assert (batch.copied(HERE), batch.copied(OTHER)) == (2, 0)


# Transactions


def test_markers_are_expected_where_a_remote_partition_was_in_the_transaction() -> None:
    batch = Batch()
    batch.fill(10, 10)
    replication = batch.begin()
    nothing = PartitionReport(HERE, slot=0, writer="p", next_offset=0, is_complete=False, is_cut=True)
    steps = [
        (nothing, 0),
        (replace(nothing, in_transaction=True), 1),  # all of it was refused: its marker stands alone
        (replace(nothing, in_transaction=True), 2),
        (replace(nothing, in_transaction=True, next_offset=3, intervals=[Interval(0, 2, 3)]), 1),
    ]
    for report, slack in steps:
        replication.take_in([report])
        assert replication.write_task({HERE: OffsetRange(0, 10)}).slack == {HERE: slack}


def test_what_a_transaction_left_that_came_to_nothing_is_expected_where_only_another_partition_pauses() -> None:
    batch = Batch()
    batch.fill(5, 5)
    replication = batch.begin()
    paused = PartitionReport(HERE, failure=Failure(FailureKind.TARGET_DENIED, "no"))
    drawn_in = PartitionReport(OTHER, failure=Failure(FailureKind.ROLLED_BACK, "rolled back"), aborted=4)
    replication.take_in([paused, drawn_in])
    task = replication.write_task({OTHER: OffsetRange(0, 5)})
    assert (task.slack, task.target_ends) == ({OTHER: 4}, {OTHER: 0}), "three records and the marker behind them"
    again = PartitionReport(OTHER, slot=0, writer="p", in_transaction=True, intervals=[Interval(0, 4, 5)])
    replication.take_in([replace(again, next_offset=5)])
    assert (set(replication.holds), replication.positions) == ({HERE}, {HERE: 0, OTHER: 5})
    assert replication.write_task({OTHER: OffsetRange(5, 6)}).slack == {OTHER: 1}


def test_behind_a_failure_no_author_of_before_is_used_on() -> None:
    """Another process may have written in its slot, whose report does not say so."""
    batch = Batch()
    batch.fill(10, 10)
    batch.process = "p"
    replication = batch.begin()
    fencing = FencingToken("srm-A->B", "progress", TokenNote("token", 1), {}, 1.0)
    replication.assignment = replace(replication.assignment, fencing=fencing)

    def writers() -> Mapping[int, str]:
        recording = replication.write_task({OTHER: OffsetRange(0, 10)}).recording
        assert recording is not None
        return recording.writers

    batch.copy(replication)
    assert writers() == {0: "p"}
    batch.fill(10, 10)
    batch.fails = {HERE: TOO_LARGE}
    batch.copy(replication)
    assert replication.holds.keys() == {HERE}
    assert writers() == {}


# What goes away amid it


def turn(
    batch: Batch, folder: Path, replication: Replication, ends: Mapping[TopicPartition, int] | None = None
) -> None:
    """A micro-batch of Spark's over all there is."""
    (folder / "offsets").mkdir(exist_ok=True)
    ends = ends or batch.flow.source.end_offsets([HERE, OTHER])
    line = json.dumps({"t": {str(p.partition): end for p, end in ends.items()}})
    (folder / "offsets" / "0").write_text(f"v1\n{{}}\n{line}\n")
    frame: Any = SimpleNamespace(sparkSession=None)
    replication.checkpoint = folder
    replication(frame, 0)


@pytest.mark.parametrize("policy", ["resume", "stop"])
def test_records_deleted_before_they_were_replicated(policy: str, tmp_path: Path) -> None:
    batch = Batch({"source.truncated.policy": policy})
    batch.fill(10, 10)
    replication = batch.begin()
    batch.flow.source.log(HERE).delete_before(4)
    turn(batch, tmp_path, replication)
    if policy == "stop":
        assert replication.holds[HERE].why.kind is FailureKind.SOURCE_TRUNCATED
        assert replication.positions == {HERE: 0, OTHER: 10}
    else:
        assert replication.positions == {HERE: 10, OTHER: 10}
        assert [(loss.offsets, loss.cause) for loss in batch.flow.losses()] == [(OffsetRange(0, 4), LossCause.DELETED)]


def test_records_deleted_while_they_are_read_are_told(tmp_path: Path) -> None:
    batch = Batch()
    batch.fill(10)
    batch.happens = lambda _: batch.flow.source.log(HERE).delete_before(6)
    turn(batch, tmp_path, batch.begin())
    assert [loss.offsets for loss in batch.flow.losses()] == [OffsetRange(0, 6)]
    assert batch.recorded()[HERE] == 10


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_topic_that_is_another_one_ends_the_batch_before_anything_is_written(is_gone: bool, tmp_path: Path) -> None:
    batch = Batch()
    batch.fill(3, 3)
    replication = batch.begin()
    ends = batch.flow.source.end_offsets([HERE, OTHER])
    before = batch.flow.source.held.pop("t")
    if not is_gone:
        batch.flow.source.held["t"] = MemoryTopic(before.partitions, {})
    with pytest.raises(SourceChanged, match="is gone" if is_gone else "created anew"):
        turn(batch, tmp_path, replication, ends)
    assert batch.passes == []


def test_a_new_leader_that_has_everything_is_found_to_be_in_order(tmp_path: Path) -> None:
    batch = Batch()
    batch.fill(3)
    replication = batch.begin()
    turn(batch, tmp_path, replication)
    batch.flow.source.log(HERE).cut(3)
    batch.fill(2)
    turn(batch, tmp_path, replication)
    assert replication.positions[HERE] == 5


def test_a_new_leader_that_lacks_what_was_copied_ends_the_batch(tmp_path: Path) -> None:
    batch = Batch()
    batch.fill(3)
    replication = batch.begin()
    turn(batch, tmp_path, replication)
    batch.flow.source.log(HERE).cut(2)
    batch.flow.source.log(HERE).append(TailRecord(0, 1_000, b"", b"other"))
    batch.fill(2)
    with pytest.raises(SourceChanged, match="is not the one that was replicated"):
        turn(batch, tmp_path, replication)
    assert batch.copied() == 3


def test_another_leader_on_the_target_among_others_ends_the_batch() -> None:
    batch = Batch({"foreign.writer.policy": "resume"})
    batch.fill(3)
    replication = batch.copy()
    remote = batch.flow.target.log(TopicPartition("A.t", 0))
    remote.cut(2)
    for _ in range(3):
        remote.append(TailRecord(0, 1, b"who", b"am I"))
    batch.fill(2)
    with pytest.raises(TargetChanged, match="has another leader"):
        batch.copy(replication)
    assert batch.recorded()[HERE] == 3


def test_without_the_lease_nothing_is_written() -> None:
    class Lost:
        def require(self) -> None:
            raise LeaseLost("another driver has it")

    batch = Batch()
    batch.fill(3)
    replication = batch.begin(permit=Lost())
    with pytest.raises(LeaseLost):
        batch.copy(replication)
    assert batch.passes == []


def test_a_held_partition_is_left_out_of_the_batches_of_a_query(tmp_path: Path) -> None:
    batch = Batch()
    batch.fill(10, 10)
    batch.refuse = lambda p, record: TOO_LARGE if (p, record.offset) == (HERE, 4) else None
    replication = batch.begin()
    turn(batch, tmp_path, replication)
    batch.fill(5, 5)
    turn(batch, tmp_path, replication)
    assert [set(part) for part in batch.passes] == [{HERE, OTHER}, {OTHER}]
    assert batch.recorded() == {HERE: 4, OTHER: 15}


# What was written outside of a batch


def test_what_the_real_time_lane_reports_is_recorded_in_the_same_way() -> None:
    batch = Batch()
    batch.fill(4, 4)
    replication = batch.begin()
    remote = batch.flow.target.log(TopicPartition("A.t", 0))
    at = [remote.append(record) for record in batch.flow.source.log(HERE).records.values()]
    replication.take_in([PartitionReport(HERE, [Interval(0, at[0], 4)], 4, records=4, target_end=0)])
    assert replication.positions == {HERE: 4, OTHER: 0}
    assert batch.recorded()[HERE] == 4
    batch.flow.source.log(HERE).cut(4)
    batch.fill(1)
    with pytest.raises(SourceChanged, match="new leader"):
        replication.take_in([PartitionReport(HERE, [Interval(4, 4, 1)], 5, records=1, target_end=4)])
    assert batch.recorded()[HERE] == 4


def test_a_batch_of_several_passes_ends_between_two_of_them_when_it_is_to_stop(tmp_path: Path) -> None:
    batch = Batch({"A->B.batch.max.bytes": "10000"})
    batch.fill(2_000)
    replication = batch.begin()
    replication.is_stopping = lambda: len(batch.passes) >= 2
    turn(batch, tmp_path, replication)
    assert len(batch.passes) == 2
    assert 0 < replication.positions[HERE] < 2_000
    assert batch.recorded()[HERE] == replication.positions[HERE]


# Under a limit


def test_a_limited_batch_ends_between_two_passes_when_it_is_to_stop(tmp_path: Path) -> None:
    batch = Batch({"A->B.bandwidth.limit.bytes": "100000"})
    batch.flow.settings = replace(batch.flow.settings, flow=Flow("A", "B"))
    batch.fill(2_000)
    replication = batch.begin()
    replication.is_stopping = lambda: len(batch.passes) >= 2
    turn(batch, tmp_path, replication)
    assert 0 < replication.positions[HERE] < 2_000
    assert batch.recorded()[HERE] == replication.positions[HERE]
