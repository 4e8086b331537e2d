"""What a reader makes of the topics of a target: samples, topics that come and go, garbage, a target that is away."""

from __future__ import annotations

import json
import time

import pytest

from srm_spark.core.cluster import ControlRecord, TopicSpec
from srm_spark.core.driver_status import FlowState
from srm_spark.core.flow_series import Health
from srm_spark.core.metrics import (
    META_TOPIC,
    FlowSample,
    PartitionSample,
    TopicMeta,
    encode,
    encode_meta,
    meta_key,
    metrics_topic,
)
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.series import Metric, Span
from srm_spark.errors import TargetUnavailable
from srm_spark.look.board import Board
from srm_spark.look.metrics_reader import MetricsReader, Readers
from tests.awaiting import await_until
from tests.memory_cluster import MemoryCluster
from tests.unit.api.boards import NOW, Filled
from tests.unit.memory_flow import flow_settings

FLOW = Flow("A", "B")
TOPIC = metrics_topic(FLOW)


def clock() -> int:
    return int(time.time() * 1000)


class Target:
    """Cluster B, a board and its reader."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster("B", TargetUnavailable)
        self.board = Board([FLOW])
        self.reader = MetricsReader(self.board, [flow_settings()], self.cluster)

    def make(self, *topics: str) -> None:
        self.cluster.create([TopicSpec(name, 1, 1, {}) for name in topics])

    def write(self, topic: str, key: bytes, value: bytes | None, at: int | None = None) -> None:
        record = ControlRecord(topic, key, value, partition=0, timestamp=clock() if at is None else at)
        self.cluster.writer("test", TargetUnavailable).write([record])

    def report(self, at: int | None = None, records: int = 5) -> None:
        at = clock() if at is None else at
        word = FlowSample(FLOW, "host/1/1", at, 30.0, 30.0, FlowState.RUNNING, topics=1, lag_records=0)
        partition = PartitionSample(FLOW, at, 30.0, TopicPartition("t", 0), "A.t", records, 100, state="running")
        for one in (word, partition):
            self.write(TOPIC, *encode(one), at=at)

    @property
    def records(self) -> float | None:
        span = Span(clock() - 7_200_000, clock() + 60_000)
        with self.board.series(FLOW) as series:
            return series.line(Metric.RECORD_COUNT, span).stats(span)[0].total


@pytest.fixture
def target() -> Target:
    made = Target()
    made.make(TOPIC, META_TOPIC)
    return made


def test_samples_are_read_once_and_what_comes_later_is_added(target: Target) -> None:
    target.report(clock() - 60_000)
    target.reader.look()
    target.reader.look()
    assert target.records == 5
    target.report()
    target.reader.look()
    assert target.records == 10
    assert target.board.now(FLOW).health is Health.ACTIVE
    assert target.board.targets["B"].cluster_id == "id-of-B"


def test_a_flow_that_never_ran_is_no_error() -> None:
    target = Target()
    target.reader.look()
    assert target.board.why_not_ready() == []
    found = target.board.now(FLOW)
    assert (found.health, found.unknown_since) == (Health.INACTIVE, None)


def test_what_is_none_of_ours_or_newer_is_counted_and_the_rest_goes_on(target: Target) -> None:
    sample = FlowSample(FLOW, "host/1/1", clock(), 30.0, 30.0, FlowState.RUNNING)
    key, value = encode(sample)
    newer = json.dumps({**json.loads(value), "v": 2}).encode()
    for written in ((b"garbage", b"x"), (key, b"\xff\xfe"), (key, newer), (b"", None)):
        target.write(TOPIC, *written)
    target.write(META_TOPIC, b"garbage", b"x")
    target.report()
    target.reader.look()
    assert (target.board.unread.newer, target.board.unread.garbage) == (1, 3)
    assert target.board.now(FLOW).health is Health.ACTIVE


def test_topics_that_are_copied_no_longer_leave(target: Target) -> None:
    target.report()
    target.write(META_TOPIC, *encode_meta(TopicMeta(FLOW, "t", "A.t", 1, "t")))
    target.reader.look()
    with target.board.series(FLOW) as series:
        assert [one.name for one in series.topics()] == ["t"]
    target.write(META_TOPIC, meta_key(FLOW, "t"), None)
    target.reader.look()
    with target.board.series(FLOW) as series:
        assert series.topics() == []


def test_a_target_that_is_away_makes_its_flows_unknown_until_it_is_back(target: Target) -> None:
    target.report()
    target.reader.look()
    read_at = target.board.targets["B"].read_at
    target.cluster.down = "nobody answers"
    target.reader.look()
    away = target.board.now(FLOW)
    assert (away.is_known, away.unknown_since, away.lag_records) == (False, read_at, None)
    assert target.board.why_not_ready() != []
    target.cluster.down = None
    target.reader.look()
    assert target.board.now(FLOW).health is Health.ACTIVE
    assert target.records == 5


def test_a_topic_that_was_made_anew_is_read_anew(target: Target) -> None:
    target.report()
    target.report(clock() - 30_000)
    target.reader.look()
    target.cluster.delete(TOPIC)
    target.make(TOPIC)
    target.report(records=7)
    target.reader.look()
    target.reader.look()
    assert target.records == 7


def test_samples_of_before_the_window_are_left_out(target: Target) -> None:
    target.report(clock() - 3 * 3_600_000, records=1000)
    target.report()
    target.reader.look()
    assert target.records == 5


def test_readers_run_by_themselves_and_stop() -> None:
    target = Target()
    target.make(TOPIC, META_TOPIC)
    target.report()
    readers = Readers(target.board, [flow_settings()], lambda _: target.cluster)
    readers.start()
    await_until(lambda: target.records == 5, 10, "the sample is read")
    readers.stop()


def test_a_reader_that_breaks_says_so_and_goes_on(target: Target) -> None:
    calls: list[str] = []

    def happens(what: str) -> None:
        calls.append(what)
        if len(calls) == 1:
            raise RuntimeError("a bug")

    target.cluster.happens = happens
    target.report()
    target.reader.look()
    assert target.board.why_not_ready() == ["cluster B: a bug"]
    target.reader.look()
    assert target.board.why_not_ready() == []


def test_what_piled_up_while_a_target_was_away_keeps_its_time() -> None:
    filled = Filled(flows=(FLOW,))
    filled.live()
    filled.clock.pass_by(600)
    filled.report(FLOW, NOW + 60_000)
    filled.live()
    filled.report(FLOW, NOW + 120_000)  # came just now, so that the clock of its driver is behind
    with filled.board.series(FLOW) as series:
        span = Span(NOW, NOW + 700_000)
        parts = series.line(Metric.RECORD_COUNT, span).timeline(span, 1000)
    assert [part.latest_at for part in parts] == [NOW + 60_000, NOW + 600_000]
