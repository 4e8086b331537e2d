"""What a flow counts, and what becomes of it in samples: sums are right, and what is not known is never 0."""

from __future__ import annotations

from dataclasses import replace

from srm_spark.core.driver_status import DriverId, FlowState
from srm_spark.core.metrics import Histogram, PartitionSample
from srm_spark.core.model import Checkpoint, Flow, Interval, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.core.policy import DefaultReplicationPolicy
from srm_spark.core.tallies import Tally
from srm_spark.failure import FailureKind
from srm_spark.flow.groups.consumer_groups import ConsumersReport
from srm_spark.flow.groups.positions import Positions
from srm_spark.flow.meter import Look, Meter, Seen
from srm_spark.flow.sampling import Sampler, Samples
from srm_spark.flow.status import FlowStatus

FLOW = Flow("A", "B")
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SAMPLER = Sampler(FLOW, DriverId("here", 1, 1), 30.0, DefaultReplicationPolicy())
RUNNING = FlowStatus(FLOW, FlowState.RUNNING, topics=1, partitions=2, lag_records=7)


class Clock:
    """Both clocks of a meter."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def commit(start: int, end: int, *, latency: int | None = None, size: int = 0) -> ProgressDetail:
    offsets = OffsetRange(start, end)
    return ProgressDetail(offsets, end, (Interval(start, start, end - start),), bytes=size, latency_ms=latency)


def tally(*commits: ProgressDetail, at: int | None = None) -> Tally:
    made = Tally()
    for detail in commits:
        made.commit(detail, at)
    return made


def look(
    lag: dict[TopicPartition, int], paused: dict[TopicPartition, FailureKind] | None = None, held: tuple[str, ...] = ()
) -> Look:
    return Look({"t": 2}, {"t": "A.t"}, lag, paused or {}, held)


def sampled(meter: Meter, status: FlowStatus = RUNNING) -> Samples:
    return SAMPLER.samples(status, meter.view(), meter.take())


def of(samples: Samples, partition: TopicPartition) -> PartitionSample:
    return next(one for one in samples.partitions if one.partition == partition)


def test_a_commit_counts_with_all_its_records_and_the_latency_of_its_last() -> None:
    found = tally(commit(0, 10, latency=30, size=100), commit(10, 12, latency=3, size=20), at=5_000)
    assert (found.records, found.bytes, found.newest) == (12, 120, 4_997)
    assert found.histogram == Histogram.same(30, 10) + Histogram.same(3, 2)


def test_no_record_is_newer_than_its_copy_whatever_its_timestamp_says() -> None:
    """Else nothing would count as waiting until that time has come."""
    found = tally(commit(0, 10, latency=-3_600_000), at=5_000)
    assert found.newest == 5_000


def test_a_commit_without_timestamps_or_records_says_nothing_of_latency() -> None:
    nothing = ProgressDetail(OffsetRange(0, 5), 0, (), latency_ms=None)
    found = tally(commit(0, 3), nothing, at=5_000)
    assert (found.records, found.newest, found.histogram.count) == (3, None, 0)


def test_each_record_is_in_one_period_and_in_the_totals() -> None:
    clock = Clock()
    meter = Meter(keeps_partitions=True, wall=clock, clock=clock)
    meter.copied({T0: tally(commit(0, 10, latency=5)), T1: tally(commit(0, 1))})
    clock.now += 30
    first = meter.take()
    meter.copied({T0: tally(commit(10, 13, latency=500))})
    clock.now += 5
    second = meter.take()
    assert (first.seconds, second.seconds, second.at) == (30, 5, 1_035_000)
    assert {p: one.records for p, one in first.copied.items()} == {T0: 10, T1: 1}
    assert {p: one.records for p, one in second.copied.items()} == {T0: 3}
    view = meter.view()
    assert view.topics["t"].records == 14
    assert {p: one.records for p, one in view.partitions.items()} == {T0: 13, T1: 1}
    assert first.copied[T0].records == 10, "what was handed out changes no more"


def test_totals_of_partitions_are_kept_only_where_they_are_wanted() -> None:
    meter = Meter()
    meter.copied({T0: tally(commit(0, 1))})
    assert not meter.view().partitions


def test_lag_in_time_is_none_where_it_is_not_known_and_0_where_nothing_is_left() -> None:
    assert Seen(lag=None, caught_up_at=1).lag_seconds(9_000, 1) is None
    assert Seen(lag=0).lag_seconds(9_000, None) == 0
    assert Seen(lag=5).lag_seconds(9_000, None) is None
    assert Seen(lag=5).lag_seconds(9_000, 7_000) == 2
    assert Seen(lag=5, caught_up_at=8_500).lag_seconds(9_000, 7_000) == 0.5, "nothing was left then: it came behind"
    assert Seen(lag=5, caught_up_at=6_000).lag_seconds(9_000, 7_000) == 2
    assert Seen(lag=5, caught_up_at=9_500).lag_seconds(9_000, None) == 0, "a clock was set back"


def test_a_partition_that_the_source_says_nothing_of_is_unknown_with_the_age_of_the_last_answer() -> None:
    clock = Clock()
    meter = Meter(wall=clock, clock=clock)
    meter.looked(look({T0: 3, T1: 0}))
    clock.now += 60
    meter.looked(look({T1: -4}))
    found = sampled(meter)
    for partition in (T0, T1):
        assert (of(found, partition).lag_records, of(found, partition).lag_seconds) == (None, None)
        assert of(found, partition).checked_at == 1_000_000
    assert (found.flow.lag_seconds, found.flow.source_checked_at) == (None, 1_000_000)


def test_while_the_flow_does_not_run_nothing_is_known_but_what_was_copied() -> None:
    meter = Meter()
    meter.looked(look({T0: 0, T1: 4}))
    assert of(sampled(meter), T0).lag_records == 0
    for state in (FlowState.STALLED, FlowState.RETRYING, FlowState.STARTING):
        meter.copied({T0: tally(commit(0, 2, latency=5))})
        found = sampled(meter, replace(RUNNING, state=state, kind=FailureKind.SOURCE_AWAY))
        assert [(one.lag_records, one.lag_seconds, one.state) for one in found.partitions] == [
            (None, None, "unknown")
        ] * 2
        assert (found.flow.lag_records, found.flow.lag_seconds) == (None, None)
        assert found.flow.reason == "source-away"
        assert of(found, T0).records == 2


def test_of_a_flow_that_is_not_ours_only_what_was_copied_until_then_is_told() -> None:
    meter = Meter()
    meter.looked(look({T0: 0, T1: 4}))
    meter.copied({T1: tally(commit(0, 2))})
    found = sampled(meter, replace(RUNNING, state=FlowState.WAITING))
    assert [(one.partition, one.records) for one in found.partitions] == [(T1, 2)]
    assert not sampled(meter, replace(RUNNING, state=FlowState.STOPPED)).partitions
    meter.gone()
    assert not meter.view().seen


def test_partitions_that_stand_still_say_why() -> None:
    meter = Meter()
    meter.looked(look({T0: 1, T1: 2}, paused={T0: FailureKind.TOO_LARGE}))
    found = sampled(meter)
    assert [(one.state, one.reason) for one in found.partitions] == [("paused", "too-large"), ("running", None)]
    meter.looked(look({T0: 1, T1: 2}, held=("t",)))
    assert {one.state for one in sampled(meter).partitions} == {"paused"}


def test_topics_that_flow_no_longer_leave_and_others_come() -> None:
    meter = Meter()
    meter.looked(replace(look({}), topics={"t": 2, "A.x": 1}))
    assert {topic: (one.remote, one.partitions, one.original) for topic, one in SAMPLER.meta(meter.view()).items()} == {
        "t": ("A.t", 2, "t"),
        "A.x": ("A.A.x", 1, "x"),
    }
    meter.looked(look({}))
    assert SAMPLER.meta(meter.view()).keys() == {"t"}
    assert {one.partition.topic for one in sampled(meter).partitions} == {"t"}


def test_how_new_records_of_earlier_drivers_are_counts_though_they_do_not() -> None:
    clock = Clock()
    meter = Meter(wall=clock, clock=clock)
    meter.known({T0: tally(commit(0, 9, latency=1_000), at=996_000)})
    meter.looked(look({T0: 1, T1: 0}))
    found = sampled(meter)
    assert (of(found, T0).records, of(found, T0).lag_seconds, found.flow.lag_seconds) == (0, 5.0, 5.0)


def test_groups_are_told_with_the_latency_of_their_checkpoints() -> None:
    meter = Meter()
    remote = TopicPartition("A.t", 0)
    meter.checkpointed([Checkpoint("g", remote, 1, 1), Checkpoint("h", remote, 1, 1)], 40.0)
    meter.checkpointed([Checkpoint("g", remote, 2, 2)], 7.0)
    report = ConsumersReport(Positions((), {"refused": "no"}))
    found = sampled(meter, replace(RUNNING, consumers=report))
    assert {one.group: (one.latency, one.state) for one in found.groups} == {
        "g": (Histogram.of([7, 40]), "unknown"),
        "h": (Histogram.of([40]), "unknown"),
        "refused": (Histogram(), "unknown"),
    }
    assert found.flow.groups == 3
    assert sampled(meter).flow.groups is None, "nobody has looked at them"
    assert meter.view().checkpoints.histogram.count == 3
