"""What the next pass of a batch takes, by what the ones before weighed and achieved."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace

from srm_spark.core.model import Flow, Interval, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.flow.batch.passes import PROBE
from srm_spark.flow.batch.schedule import PassSchedule
from tests.unit.details import detail
from tests.unit.memory_flow import flow_settings

SMALL, LARGE = TopicPartition("small", 0), TopicPartition("large", 0)
MB = 1_000_000
LIMITED = {"A->B.bandwidth.limit.bytes": str(50 * MB)}


def schedule(name: str, keys: Mapping[str, str] | None = None, *, is_exact: bool = False) -> PassSchedule:
    """Of a flow of its own: pace and size of passes are kept per flow in this process."""
    settings = replace(flow_settings({"batch.max.bytes": str(8 * MB), **(keys or {})}), flow=Flow(name, "B"))
    return PassSchedule(settings, 4, is_exact, frozenset({"small", "large"}))


def weighing(small: int, large: int) -> dict[TopicPartition, ProgressDetail]:
    """Ten records of each that weigh so much."""
    return {p: detail(0, 10, [Interval(0, 0, 10)], 10 * size) for p, size in ((SMALL, small), (LARGE, large))}


def test_a_pass_takes_what_the_settings_allow() -> None:
    plain = schedule("plain")
    plain.learn(weighing(10, 1_000))
    assert (plain.pass_bytes, plain.is_limited) == (8 * MB, False)
    few = {SMALL: OffsetRange(10, 20), LARGE: OffsetRange(10, 20)}
    assert plain.next(few) == few
    many = {SMALL: OffsetRange(10, 110), LARGE: OffsetRange(10, 10 + 16_000)}
    part = plain.next(many)
    assert 7_900 < part[LARGE].end - part[LARGE].start < 8_100
    assert 40 < part[SMALL].end - part[SMALL].start < 60


def test_of_what_nobody_knows_a_few_records_come_first() -> None:
    unknown = schedule("unknown")
    part = unknown.next({SMALL: OffsetRange(0, 100 * PROBE)})
    assert part == {SMALL: OffsetRange(0, PROBE)}


def test_a_task_ends_early_where_it_would_take_too_much_memory() -> None:
    plain = schedule("room")
    assert plain.task_bytes({SMALL: OffsetRange(0, 9)}) == 2 * 8 * MB // 4
    exact = schedule("exact room", is_exact=True)
    ranges = {SMALL: OffsetRange(0, 9), LARGE: OffsetRange(0, 9)}
    assert exact.task_bytes(ranges) == 8 * MB // 2, "nobody knows yet what a record weighs"
    exact.learn(weighing(10, 10))
    assert exact.task_bytes(ranges) == 2 * 8 * MB


def test_a_transaction_takes_what_those_before_got_through_with() -> None:
    exact = schedule("exact", is_exact=True)
    assert exact.pass_bytes == 8 * MB
    exact.aborted(2 * MB)
    assert exact.pass_bytes == 1 * MB
    exact.committed(MB, 0.001)
    assert exact.pass_bytes == 4 * MB
    other = schedule("not exact")
    other.aborted(2 * MB)
    other.committed(1, 100.0)
    assert other.pass_bytes == 8 * MB


def test_under_a_limit_passes_are_short_and_wait() -> None:
    limited = schedule("limited", LIMITED)
    assert limited.is_limited
    assert limited.pass_bytes < 8 * MB * 10
    part = {SMALL: OffsetRange(0, 9)}
    assert limited.admit(part, lambda: False)
    limited.paid(500 * MB)
    limited.learn(weighing(1_000, 1_000))
    assert not limited.admit(part, lambda: True), "it is to stop while it waits"


def test_who_goes_first_counts_under_a_limit_alone() -> None:
    keys = {"priority.high.topics": "small", "priority.low.topics": "large"}
    assert schedule("no limit", keys).rank("large") == 0
    classes = schedule("classes", {**keys, **LIMITED})
    assert (classes.rank("small"), classes.rank("other"), classes.rank("large")) == (0, 0, 2)
    classes.learn(weighing(1_000, 1_000))
    size = classes.pass_bytes // 1_000
    part = classes.next({SMALL: OffsetRange(0, 10 * size), LARGE: OffsetRange(0, 10 * size)})
    assert part[SMALL].end > 2 * part[LARGE].end > 0, "those behind come on, too"


def test_it_travels_and_knows_what_it_knew() -> None:
    made = schedule("travels")
    made.learn(weighing(10, 1_000))
    assert pickle.loads(pickle.dumps(made)).sizes.knows(["small", "large"])
