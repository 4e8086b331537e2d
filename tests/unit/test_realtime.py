"""The real-time lane without Spark and Kafka: which reports count, and when a flow takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import LogEnd
from srm_spark.core.model import Flow, Interval, LogIdentity, OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.reports import PartitionReport, Sent
from srm_spark.errors import SourceChanged, TargetWriteFailed
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow import lanes
from srm_spark.flow.lanes import Lanes
from srm_spark.flow.recovery.guard import SourceGuard
from srm_spark.kafka.lane_reports import Chains, LaneReport
from srm_spark.kafka.lane_task import LanePartition, await_answer
from srm_spark.kafka.sinks import Answer
from srm_spark.spark.realtime import Slots

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)

HOLD = PausedPartition(7, Failure(FailureKind.TOO_LARGE, "too large"))


def _report(task: str, number: int, partition: TopicPartition | None = None, *, is_last: bool = False) -> LaneReport:
    return LaneReport(task, number, partition and PartitionReport(partition, next_offset=1), is_last)


def test_a_report_travels_as_it_is() -> None:
    report = PartitionReport(
        P,
        [Interval(5, 7, 2)],
        7,
        records=2,
        bytes=9,
        latency_ms=3,
        hold=HOLD,
    )
    assert LaneReport.decode(LaneReport("x", 3, report).encode()) == LaneReport("x", 3, report)
    assert LaneReport.decode(_report("x", 0).encode()) == _report("x", 0)


def test_all_tasks_of_all_batches_must_have_ended() -> None:
    chains = Chains(2)
    assert not chains.are_over, "tasks that have not begun may begin yet"
    assert not chains.have_begun
    for batch in ("1", "2"):
        chains.take(_report(f"a{batch}", 0))
        chains.take(_report(f"a{batch}", 1, P))
        chains.take(_report(f"a{batch}", 2, is_last=True))
        assert not chains.are_over
        chains.take(_report(f"b{batch}", 0))
        assert chains.have_begun
        assert not chains.are_over
        chains.take(_report(f"b{batch}", 1, is_last=True))
        assert chains.are_over


@pytest.mark.parametrize(
    "found",
    [
        [_report("a", 1, P)],
        [_report("a", 0), _report("a", 2, P)],
        [_report("a", 0), _report("a", 1, P), _report("a", 1, P)],
        [_report("a", 0), _report("a", 1, P), _report("b", 0), _report("b", 1, P)],
        [_report("a", 0), _report("a", 1, is_last=True), _report("a", 2, P)],
    ],
    ids=["no beginning", "one is missing", "twice", "no end of the task before", "behind the end"],
)
def test_a_missing_report_is_noticed(found: list[LaneReport]) -> None:
    chains = Chains(1)
    for one in found[:-1]:
        chains.take(one)
    with pytest.raises(TargetWriteFailed, match="missing"):
        chains.take(found[-1])


def _sent(start: int, count: int = 1) -> Sent:
    return Sent((OffsetRange(start, start + count),), count, 10, 0, 1000)


def test_reports_of_one_partition_go_on_where_the_one_before_ended() -> None:
    mine = LanePartition(PartitionReport(P, target_end=3))
    mine.take(Answer(P, _sent(5), 3, 3, 1.0, None))
    first, mine = mine.report, mine.reported()
    assert not mine.is_new
    mine.take(Answer(P, _sent(6), 4, 4, 1.0, None))
    mine.take(Answer(P, _sent(8), 5, 5, 1.0, None))
    first.join(mine.report)
    assert first.intervals == [Interval(5, 3, 2), Interval(8, 5, 1)]
    assert (first.next_offset, first.records, first.bytes) == (9, 3, 30)


def test_a_record_of_somebody_else_between_two_of_ours_stops_the_partition() -> None:
    mine = LanePartition(PartitionReport(P, target_end=3))
    mine.take(Answer(P, _sent(5), 3, 3, 1.0, None))
    mine.take(Answer(P, _sent(6), 5, 5, 1.0, None))
    assert mine.is_stuck
    assert mine.report.failure is not None
    assert mine.report.failure.kind is FailureKind.TARGET_CHANGED
    assert (mine.report.intervals, mine.report.next_offset) == ([Interval(5, 3, 1)], 6)


def test_records_of_others_are_passed_over_where_they_may_write_in_the_next_report_too() -> None:
    mine = LanePartition(PartitionReport(P, target_end=3, slack=None))
    mine.take(Answer(P, _sent(5), 4, 4, 1.0, None))
    mine = mine.reported()
    mine.take(Answer(P, _sent(6), 9, 9, 1.0, None))
    assert (mine.is_stuck, mine.report.intervals) == (False, [Interval(6, 9, 1)])


def test_what_was_refused_is_not_passed() -> None:
    refused = Failure(FailureKind.WRITE_REFUSED, "no acknowledgement")
    mine = LanePartition(PartitionReport(P))
    mine.take(Answer(P, _sent(5), 3, 3, 1.0, None))
    mine.take(Answer(P, _sent(6), -1, -1, 1.0, refused))
    assert (mine.is_stuck, mine.report.failure, mine.report.next_offset) == (True, refused, 6)


class _Waiting:
    """A lane whose target answers after so many questions."""

    def __init__(self, answers_after: int, *, is_over: bool = False) -> None:
        self.asked, self.answers_after, self.is_over = 0, answers_after, is_over

    @property
    def is_unanswered(self) -> bool:
        return self.asked < self.answers_after

    def write(self, runs: Iterable[object]) -> None:
        assert not list(runs), "nothing more is written while it waits"
        self.asked += 1


def _asked(lane: _Waiting) -> int:
    await_answer(cast("Any", lane))
    return lane.asked


def test_the_target_gets_more_when_it_has_answered_or_takes_too_long() -> None:
    assert _asked(_Waiting(0)) == 0
    assert _asked(_Waiting(3)) == 3
    assert _asked(_Waiting(3, is_over=True)) == 0
    assert 0 < _asked(_Waiting(1_000_000)) < 1_000_000


def test_slots_are_shared_by_flows_and_one_is_left_over() -> None:
    slots = Slots()
    assert slots.take("a", 3, 8) is None
    assert slots.take("a", 4, 8) is None, "in place of what it had"
    assert slots.take("b", 3, 8) is None
    assert slots.take("b", 4, 8) == (
        "4 tasks need a slot each and one must be left over, there are 8, 4 of them taken by other flows"
    )
    slots.free("a")
    assert slots.take("b", 7, 8) is None
    assert slots.take("b", 8, 8) is not None


_THREE = frozenset(TopicPartition("t", number) for number in range(3))


SESSION: Any = SimpleNamespace()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Lanes]:
    """A flow that wants it, in a session with so many slots."""

    def make(slots: int = 8, *topics: str, is_realtime: bool = True) -> Lanes:
        monkeypatch.setattr(lanes, "slots", lambda _: slots)
        monkeypatch.setattr(lanes, "SLOTS", Slots())
        settings: Any = SimpleNamespace(flow=Flow("A", "B"), is_realtime=is_realtime, realtime_topics=topics)
        found: FlowSettings = settings
        return Lanes(found)

    return make


def test_it_begins_when_the_flow_has_caught_up(made: Callable[..., Lanes]) -> None:
    lane = made()
    assert not lane.choose(SESSION, _THREE, 3, 100_000)
    assert lane.obstacle is None, "it is only behind"
    assert not lane.is_due(100_000)
    assert lane.is_due(10)
    assert lane.choose(SESSION, _THREE, 3, 10) == _THREE
    assert not lane.is_due(10)
    assert lane.is_due(600_000), "micro-batches are faster"
    assert not lane.choose(SESSION, _THREE, 3, 10), "not at once"
    assert not lane.is_due(10)


def test_what_is_in_its_way_is_said_and_nothing_is_tried(made: Callable[..., Lanes]) -> None:
    lane = made(3)
    assert not lane.choose(SESSION, _THREE, 8, 0)
    assert "mode=realtime is not possible" in str(lane.obstacle)
    assert not lane.is_due(0)
    assert lane.choose(SESSION, _THREE, 2, 0), "fewer tasks"
    assert lane.obstacle is None


def test_nobody_gets_it_unasked(made: Callable[..., Lanes]) -> None:
    lane = made(is_realtime=False)
    assert not lane.choose(SESSION, _THREE, 1, 0)
    assert lane.obstacle is None
    assert not lane.is_due(0)


def test_it_is_for_the_topics_that_are_named(made: Callable[..., Lanes]) -> None:
    lane, quick = made(3, "quick.*"), TopicPartition("quick.orders", 0)
    assert lane.wanted({*_THREE, quick}) == {quick}
    assert lane.choose(SESSION, {*_THREE, quick}, 2, 0) == {quick}, "which needs one slot"
    assert not lane.choose(SESSION, {*_THREE}, 2, 100_000)
    assert lane.obstacle is None
    assert not lane.is_due(0), "without such a topic there is nothing to begin"


class _Source:
    """A source cluster that is asked by a guard."""

    def __init__(self, topic_id: str, end: LogEnd) -> None:
        self._topic_id, self._end = topic_id, end

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return dict.fromkeys(topics, self._topic_id)

    def log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        return dict.fromkeys(partitions, self._end)


@pytest.mark.parametrize(
    ("topic_id", "end", "changed"),
    [
        ("id", LogEnd(9, 4), None),
        ("id", LogEnd(12, 4), None),
        ("other", LogEnd(9, 4), "created anew"),
        ("id", LogEnd(9, 5), "new leader"),
        ("id", LogEnd(8, 4), "ends at offset 8 before the position 9"),
    ],
)
def test_what_was_read_counts_under_the_same_leader_only(topic_id: str, end: LogEnd, changed: str | None) -> None:
    settings: Any = SimpleNamespace(flow=Flow("A", "B"))
    source: Any = _Source(topic_id, end)
    guard = SourceGuard(settings, {P: LogIdentity("id", 4)}, {}, source)
    if changed is None:
        guard.unchanged({P: OffsetRange(5, 9)})
    else:
        with pytest.raises(SourceChanged, match=changed):
            guard.unchanged({P: OffsetRange(5, 9)})
