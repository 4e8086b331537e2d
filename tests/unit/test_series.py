"""Figures per bucket: what they add up to is what somebody adds up who keeps everything."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srm_spark.core.metrics import Histogram
from srm_spark.core.series import BUCKET_MS, Latencies, Metric, Seen, Span, Stats, Traffic

T0 = 1_700_000_000_000 // BUCKET_MS * BUCKET_MS
SLOT_MS = 500
"""A bucket can tell moments apart that are so far from each other."""
reports = st.dictionaries(
    st.integers(0, 300),
    st.tuples(
        st.sampled_from([1.0, 15.0, 30.0]),
        st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(0, 1000), st.integers(0, 10**9)), min_size=1),
    ),
    max_size=20,
)
"""Moment → length of the period, and what some topics say."""


@settings(max_examples=60)
@given(reports, st.randoms(use_true_random=False), st.integers(0, 9), st.integers(1, 12))
def test_sums_are_those_of_all_samples(
    told: dict[int, tuple[float, dict[str, tuple[int, int]]]], chance: Random, start: int, width: int
) -> None:
    seen: Seen[str] = Seen()
    traffic: Traffic[str | None] = Traffic()
    samples = [(slot, key, *of) for slot, (_, topics) in told.items() for key, of in topics.items()]
    order = samples * 2  # each comes twice, in any order
    chance.shuffle(order)
    taken = 0
    for slot, key, records, size in order:
        at = T0 + slot * SLOT_MS
        if seen.add(key, at):
            taken += 1
            traffic.add(key, at, told[slot][0], records, size)
            traffic.add(None, at, told[slot][0], records, size)
    assert taken == len(samples)
    span = Span(T0 + start * BUCKET_MS, T0 + (start + width) * BUCKET_MS)
    keys = ["a", None, "nothing", "c"]
    by_count = traffic.line(Metric.BYTE_COUNT, span, keys).stats(span)
    by_rate = traffic.line(Metric.RECORD_RATE, span, keys).stats(span)
    for number, wanted in enumerate(keys):
        buckets: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
        for slot, (seconds, topics) in told.items():
            of = [figures for topic, figures in topics.items() if wanted in (topic, None)]
            if of and span.start <= T0 + slot * SLOT_MS < span.end:
                records, size = (sum(column) for column in zip(*of, strict=True))
                buckets[slot * SLOT_MS // BUCKET_MS].append((seconds, records, size))
        _expect(by_count[number], [sum(row[2] for row in rows) for rows in buckets.values()])
        rates = [sum(row[1] for row in rows) / sum(row[0] for row in rows) for rows in buckets.values()]
        _expect(by_rate[number], rates)


def _expect(stats: Stats, values: Sequence[float]) -> None:
    assert stats.samples == len(values)
    if not values:
        assert (stats.least, stats.most, stats.total, stats.mean, stats.latest) == (None,) * 5
        return
    found = (stats.least, stats.most, stats.total, stats.mean)
    assert found == pytest.approx((min(values), max(values), sum(values), sum(values) / len(values)))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 400), st.lists(st.integers(0, 10**6), min_size=1)), max_size=20))
def test_latencies_are_those_of_all_records(told: list[tuple[int, list[int]]]) -> None:
    latencies: Latencies[str] = Latencies()
    for slot, values in told:
        latencies.add("t", T0 + slot * SLOT_MS, Histogram.of(values))
    span = Span(T0, T0 + 400 * SLOT_MS + 1)
    stats, nothing = latencies.line(span, ["t", "u"]).stats(span)
    assert nothing == Stats(span)
    _expect(stats, [value for _, values in told for value in values])


@settings(max_examples=60)
@given(st.integers(1, 2000), st.sets(st.integers(0, 479), min_size=1, max_size=60))
def test_a_timeline_has_each_bucket_once(samples: int, buckets: set[int]) -> None:
    traffic: Traffic[str] = Traffic()
    for number in buckets:
        traffic.add("t", T0 + number * BUCKET_MS, 15.0, 1, 1)
    span = Span(T0 - 7, T0 + 480 * BUCKET_MS)
    parts = traffic.line(Metric.RECORD_COUNT, span, ["t"]).timeline(span, samples)
    assert len(parts) <= samples
    assert sum(part.samples for part in parts) == len(buckets)
    assert all(one.span.end <= other.span.start for one, other in pairwise(parts))
    assert all(part.latest_at is not None and part.span.start <= part.latest_at < part.span.end for part in parts)


def test_what_is_too_old_makes_room_and_does_not_come_back() -> None:
    traffic: Traffic[str] = Traffic(window_ms=60_000)
    seen: Seen[str] = Seen(window_ms=60_000)
    for minute in range(10):
        assert seen.add("p", T0 + minute * 60_000)
        traffic.add("t", T0 + minute * 60_000, 60.0, 5, 50)
    assert not seen.add("p", T0)
    traffic.add("t", T0, 60.0, 5, 50)
    whole = Span(T0 - 10**9, T0 + 10**9)
    (stats,) = traffic.line(Metric.RECORD_COUNT, whole, ["t"]).stats(whole)
    assert stats.total == 10  # of the newest two: a window of four buckets, and the one that is filled
    assert stats.latest_at == T0 + 9 * 60_000


def test_the_place_of_what_is_gone_is_used_again() -> None:
    seen: Seen[int] = Seen(window_ms=60_000)
    for number in range(1000):
        seen.add(number, T0 + number * BUCKET_MS)
    assert len(seen) < 20
    assert not seen.add(999, T0 + 999 * BUCKET_MS)


def test_the_lag_is_that_of_the_newest_moment_and_may_be_unknown() -> None:
    traffic: Traffic[str] = Traffic()
    for number, lag in enumerate([5.0, math.nan, 9.0]):
        at = T0 + number * BUCKET_MS
        traffic.add("t", at, 15.0, 1, 1)
        traffic.set_lag("t", at, 1_000_000.0)
        traffic.set_lag("t", at, lag)
    span = Span(T0, T0 + 3 * BUCKET_MS)
    line = traffic.line(Metric.RECORDS_LAG, span, ["t"])
    _expect(line.stats(span)[0], [5.0, 9.0])
    assert [part.latest for part in line.timeline(span, 1000)] == [5.0, 9.0]


def test_seconds_of_lag_are_the_most_that_was_told_and_may_be_unknown() -> None:
    one, other = Traffic[str](), Traffic[str]()
    for seconds in (3.0, 0.0, 2.0):
        one.add_wait("t", T0, seconds)
    one.add("t", T0 + BUCKET_MS, 15.0, 1, 1)  # nobody knows
    one.add_wait("t", T0 + 2 * BUCKET_MS, 0.0)
    other.add_wait("t", T0, 5.0)
    span = Span(T0, T0 + 3 * BUCKET_MS)
    line = one.line(Metric.SECONDS_LAG, span, ["t"])
    assert [part.latest for part in line.timeline(span, 1000)] == [3.0, 0.0]
    minute = line.coarser(Metric.SECONDS_LAG, 60_000)
    assert [part.latest for part in minute.timeline(span, 1000)] == [3.0]
    both = line.plus(other.line(Metric.SECONDS_LAG, span, ["t"]), Metric.SECONDS_LAG)
    assert [part.latest for part in both.timeline(span, 1000)] == [5.0, 0.0]


def test_two_flows_in_one_line_are_added_and_latencies_joined() -> None:
    one, other = Traffic[str](), Traffic[str]()
    one.add("t", T0, 10.0, 10, 100)
    other.add("t", T0, 10.0, 20, 300)
    other.add("t", T0 + BUCKET_MS, 10.0, 30, 600)  # where the first one says nothing
    span = Span(T0, T0 + 2 * BUCKET_MS)
    lines = [each.line(Metric.BYTE_RATE, span, ["t"]) for each in (one, other)]
    (stats,) = lines[0].plus(lines[1], Metric.RECORD_COUNT).stats(span)
    assert (stats.least, stats.most, stats.samples) == (40.0, 60.0, 2)
    slow, fast = Latencies[str](), Latencies[str]()
    slow.add("t", T0, Histogram.of([10.0, 20.0]))
    fast.add("t", T0, Histogram.of([5.0]))
    joined = slow.line(span, ["t"]).plus(fast.line(span, ["t"]), Metric.REPLICATION_LATENCY)
    (stats,) = joined.stats(span)
    assert (stats.least, stats.most, stats.total, stats.samples) == (5.0, 20.0, 35.0, 3)
