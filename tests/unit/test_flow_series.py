"""How a flow is by its samples: status, silence, clocks that disagree, and what is counted once."""

from __future__ import annotations

import pytest

from srm_spark.core.driver_status import FlowState
from srm_spark.core.flow_series import FlowNow, FlowSeries, Health, Hearing, health_code, moment_of
from srm_spark.core.metrics import PAUSED, FlowSample, GroupSample, Histogram, PartitionSample, TopicMeta
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.series import Metric, Span

FLOW = Flow("A", "B")
NOW = 1_764_000_000_000
HOUR = 3_600_000


def word(state: FlowState = FlowState.RUNNING, at: int = NOW, driver: str = "host/1/1", **other: object) -> FlowSample:
    values: dict[str, object] = {"topics": 1, "partitions": 1, "groups": 0, "lag_records": 0, "lag_seconds": 0.0}
    return FlowSample(FLOW, driver, at, 30.0, 30.0, state, **{**values, **other})  # type: ignore[arg-type]


def part(number: int = 0, at: int = NOW, topic: str = "t", **other: object) -> PartitionSample:
    values: dict[str, object] = {"records": 1, "bytes": 30, "lag_records": 1, "state": "running"}
    return PartitionSample(FLOW, at, 30.0, TopicPartition(topic, number), f"A.{topic}", **{**values, **other})  # type: ignore[arg-type]


def heard(now: int = NOW, clock: float = 0.0, *, is_live: bool = True) -> Hearing:
    return Hearing(now, clock, is_live)


def series(*samples: FlowSample | PartitionSample | GroupSample, is_live: bool = True) -> FlowSeries:
    made = FlowSeries(FLOW, ["left"])
    for one in samples:
        made.take(one, heard(is_live=is_live))
    made.found()
    return made


def now(of: FlowSeries, later: float = 0.0) -> FlowNow:
    return of.now(NOW + int(later * 1000), later)


@pytest.mark.parametrize(
    ("state", "health", "code"),
    [
        (FlowState.RUNNING, Health.ACTIVE, 0),
        (FlowState.STARTING, Health.WARNING, 2),
        (FlowState.STALLED, Health.WARNING, 3),
        (FlowState.RETRYING, Health.WARNING, 3),
        (FlowState.FAILED, Health.INACTIVE, 4),
        (FlowState.STOPPED, Health.INACTIVE, 1),
        (FlowState.WAITING, Health.INACTIVE, 1),
    ],
)
def test_status_by_state(state: FlowState, health: Health, code: int) -> None:
    found = now(series(word(state)))
    assert (found.health, health_code(found), found.state) == (health, code, state)
    assert bool(found.why) == (health is not Health.ACTIVE)


def test_a_running_flow_is_warned_of_for_what_stands_still() -> None:
    assert now(series(word(), part())).why == ()
    paused = now(series(word(), part(), part(1, state=PAUSED)))
    assert (paused.health, paused.why) == (Health.WARNING, ("1 partition paused: t-1",))
    lagging = now(series(word(lag_records=None)))
    assert (lagging.health, lagging.lag_records) == (Health.WARNING, None)
    fine, left = (GroupSample(FLOW, NOW, 30.0, "g", ("t",), state=state) for state in ("fine", "left"))
    assert now(series(word(), fine)).health is Health.ACTIVE
    assert now(series(word(), left)).why == ("1 group not synced: g",)


def test_a_silent_driver_is_unknown_since_its_last_word() -> None:
    flow = series(word(), part())
    assert now(flow, 89).health is Health.ACTIVE
    silent = now(flow, 91)
    assert (silent.health, silent.state, silent.unknown_since) == (Health.INACTIVE, None, NOW)
    assert (silent.topics, silent.lag_records, health_code(silent)) == (None, None, 1)
    flow.take(word(at=NOW + 95_000), heard(NOW + 95_000, 95.0))
    assert now(flow, 96).health is Health.ACTIVE


def test_an_old_word_is_no_news_when_a_service_starts() -> None:
    assert now(series(word(at=NOW - HOUR), is_live=False)).unknown_since == NOW - HOUR
    assert now(series(word(at=NOW - 20_000), is_live=False)).health is Health.ACTIVE


def test_nothing_was_ever_said() -> None:
    found = now(series())
    assert (found.health, found.unknown_since, found.why) == (
        Health.INACTIVE,
        None,
        ("no driver has said anything of it",),
    )


def test_a_target_that_is_away() -> None:
    flow = series(word())
    flow.lost(NOW - 5000, "no answer")
    found = now(flow)
    assert (found.health, found.unknown_since, found.why, found.is_known) == (
        Health.INACTIVE,
        NOW - 5000,
        ("no answer",),
        False,
    )
    flow.found()
    assert now(flow).health is Health.ACTIVE


def test_who_runs_a_flow_speaks_for_it() -> None:
    standby = word(FlowState.WAITING, driver="host/2/1", at=NOW + 5000, topics=None)
    assert now(series(word(topics=4), standby)).topics == 4
    gone = word(FlowState.STOPPED, is_last=True, at=NOW + 1)
    assert now(series(word(), gone)).state is FlowState.STOPPED


def test_a_sample_counts_once_whatever_the_order() -> None:
    flow = series(part(at=NOW + 30_000), part(), part(), part(1), part(at=NOW + 30_000), word(), word())
    assert (flow.counted, flow.repeated) == (4, 3)
    span = Span(NOW - HOUR, NOW + HOUR)
    (total,) = flow.line(Metric.RECORD_COUNT, span).stats(span)
    assert total.total == 3
    (of_topic, nothing) = flow.line(Metric.BYTE_COUNT, span, ["t", "u"]).stats(span)
    assert (of_topic.total, nothing.samples) == (90, 0)


def test_what_a_failover_would_lose_is_told_by_the_flow_and_of_a_topic_by_its_partitions() -> None:
    flow = series(part(0, lag_seconds=5.0), part(1, lag_seconds=7.5), word(lag_seconds=None))
    span = Span(NOW - HOUR, NOW + HOUR)
    assert flow.line(Metric.SECONDS_LAG, span).stats(span)[0].latest is None
    assert flow.line(Metric.SECONDS_LAG, span, ["t"]).stats(span)[0].latest == 7.5
    flow.take(word(at=NOW + 1000, lag_seconds=9.0), heard())
    assert flow.line(Metric.SECONDS_LAG, span).stats(span)[0].latest == 9.0


def test_the_lag_is_that_of_all_partitions_at_their_newest() -> None:
    flow = series(part(0, lag_records=5), part(1, lag_records=7), part(0, NOW + 30_000, lag_records=1))
    span = Span(NOW - HOUR, NOW + HOUR)
    lags = [one.latest for one in flow.line(Metric.RECORDS_LAG, span).timeline(span, 1000)]
    assert lags == [12, 8]
    assert flow.topics()[0].lag_records == 8
    flow.take(part(1, NOW + 30_000, lag_records=None), heard())
    assert flow.topics()[0].lag_records is None
    assert flow.line(Metric.RECORDS_LAG, span).stats(span)[0].latest == 12
    flow.take(part(1, NOW, lag_records=100), heard())  # late, and there already
    flow.take(part(1, NOW - 30_000, lag_records=100), heard())  # late
    assert flow.topics()[0].lag_records is None


def test_a_topic_that_is_copied_no_longer_goes_at_once_and_one_that_is_not_told_of_soon() -> None:
    flow = series(word(), part(), part(topic="u"))
    flow.take_meta("t", TopicMeta(FLOW, "t", "A.t", 1, "first"))
    assert [(one.name, one.original) for one in flow.topics()] == [("t", "first"), ("u", "u")]
    flow.take_meta("t", None)
    assert [one.name for one in flow.topics()] == ["u"]
    flow.take(word(at=NOW + 120_000), heard(NOW + 120_000))
    assert flow.topics() == []


def test_what_is_older_than_the_window_is_forgotten() -> None:
    flow = series(word(), part(), GroupSample(FLOW, NOW, 30.0, "g", ("t",), Histogram.of([5.0])))
    flow.prune(NOW + HOUR)
    assert len(flow.partitions()) == 1
    flow.prune(NOW + 3 * HOUR)
    assert (flow.partitions(), flow.groups(), now(flow).unknown_since) == ([], [], None)


MINUTE = 60_000


@pytest.mark.parametrize(
    ("at", "is_live", "stamped", "expected"),
    [
        (NOW - MINUTE, True, None, NOW - MINUTE),
        (NOW + MINUTE, True, None, NOW + MINUTE),
        (NOW + HOUR, True, NOW + HOUR, NOW),  # a driver's clock that is ahead
        (NOW - HOUR, True, NOW - HOUR, NOW),  # or behind
        (NOW - HOUR, False, NOW - HOUR, NOW - HOUR),  # what was there when it was read
        (NOW + HOUR, False, None, NOW),
        (NOW - HOUR, False, NOW - 20 * MINUTE, NOW - 20 * MINUTE),  # the cluster's clock says better
        (NOW - 22 * MINUTE, False, NOW - 20 * MINUTE, NOW - 22 * MINUTE),
    ],
)
def test_clocks_that_disagree(at: int, is_live: bool, stamped: int | None, expected: int) -> None:
    assert moment_of(at, Hearing(NOW, 0.0, is_live, stamped)) == expected


def test_a_driver_whose_clock_is_an_hour_off_is_told_of_and_its_figures_are_there() -> None:
    for ahead in (HOUR, -HOUR):
        flow = FlowSeries(FLOW)
        for second in range(0, 120, 30):
            at = NOW + second * 1000
            for one in (word(at=at + ahead), part(at=at + ahead)):
                flow.take(one, Hearing(at, float(second), True, one.at))
        flow.found()
        found = flow.now(NOW + 90_000, 90.0)
        assert (found.health, found.skew_ms) == (Health.ACTIVE, ahead)
        span = Span(NOW - MINUTE, NOW + 2 * MINUTE)
        assert flow.line(Metric.RECORD_COUNT, span).stats(span)[0].total == 4
        assert flow.now(NOW + 190_000, 190.0).unknown_since == NOW + 90_000
