"""Samples as they lie in Kafka: what is written is read again, and nothing else is taken for one."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import (
    BOUNDS_MS,
    FlowSample,
    GroupSample,
    Histogram,
    PartitionSample,
    Sample,
    TopicMeta,
    decode,
    decode_meta,
    decode_meta_key,
    encode,
    encode_meta,
    meta_key,
    metrics_topic,
    newer,
)
from srm_spark.core.model import Flow, TopicPartition

FLOW = Flow("A", "B")
_MS = st.integers(0, 2**41)
_COUNT = st.integers(0, 2**40)
_SECONDS = st.floats(0, 1e9)
_TEXT = st.text(max_size=20)
_LATENCIES = st.lists(st.integers(-1000, 10**6), max_size=20)
_HISTOGRAMS = _LATENCIES.map(Histogram.of)
_ALIASES = st.text("abc.-_0123456789", min_size=1, max_size=8).filter(lambda alias: "->" not in alias)
_FLOWS = st.builds(Flow, _ALIASES.filter(lambda alias: not alias.endswith("-")), _ALIASES)


def _maybe(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | kind


_FLOW_SAMPLES = st.builds(
    FlowSample,
    flow=_FLOWS,
    driver=_TEXT,
    at=_MS,
    seconds=_SECONDS,
    every=_SECONDS,
    state=st.sampled_from(FlowState),
    since=_maybe(_MS),
    reason=_maybe(_TEXT),
    sentence=_maybe(_TEXT),
    topics=_maybe(_COUNT),
    partitions=_maybe(_COUNT),
    groups=_maybe(_COUNT),
    lag_records=_maybe(_COUNT),
    lag_seconds=_maybe(_SECONDS),
    unknown_since=_maybe(_MS),
    source_checked_at=_maybe(_MS),
    is_last=st.booleans(),
)
_PARTITION_SAMPLES = st.builds(
    PartitionSample,
    flow=_FLOWS,
    at=_MS,
    seconds=_SECONDS,
    partition=st.builds(TopicPartition, _TEXT, st.integers(0, 10**5)),
    remote=_TEXT,
    records=_COUNT,
    bytes=_COUNT,
    latency=_HISTOGRAMS,
    lag_records=_maybe(_COUNT),
    lag_bytes=_maybe(_COUNT),
    lag_seconds=_maybe(_SECONDS),
    checked_at=_maybe(_MS),
    state=st.sampled_from(["running", "paused", "unknown"]),
    reason=_maybe(_TEXT),
)
_GROUP_SAMPLES = st.builds(
    GroupSample,
    flow=_FLOWS,
    at=_MS,
    seconds=_SECONDS,
    group=_TEXT,
    topics=st.lists(_TEXT, max_size=4).map(tuple),
    latency=_HISTOGRAMS,
    state=_TEXT,
    reason=_maybe(_TEXT),
)
_SAMPLES: st.SearchStrategy[Sample] = st.one_of(_FLOW_SAMPLES, _PARTITION_SAMPLES, _GROUP_SAMPLES)
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=10,
)
ORDERS = PartitionSample(
    FLOW,
    1_700_000_030_000,
    30.0,
    TopicPartition("orders", 3),
    "A.orders",
    records=3,
    bytes=300,
    latency=Histogram.of([4, 5, 700]),
    lag_records=0,
    state="running",
)


@given(_SAMPLES)
def test_what_is_written_is_read_again(sample: Sample) -> None:
    key, value = encode(sample)
    assert decode(key, value) == sample
    assert not newer(key, value)


@given(_FLOWS, _TEXT, _TEXT, st.integers(1, 10**5), _TEXT)
def test_so_is_the_meta_of_a_topic(flow: Flow, topic: str, remote: str, partitions: int, original: str) -> None:
    meta = TopicMeta(flow, topic, remote, partitions, original)
    key, value = encode_meta(meta)
    assert decode_meta(key, value) == meta
    assert key == meta_key(flow, topic)
    assert decode_meta_key(key) == (flow, topic)
    assert decode_meta(key, None) is None
    assert decode(key, value) is None


def test_the_bytes_of_a_sample() -> None:
    key, value = encode(ORDERS)
    assert key == b'["partition","A->B","orders",3]'
    assert value == (
        b'{"v":1,"at":1700000030000,"seconds":30.0,"remote":"A.orders","records":3,"bytes":300,'
        b'"latency":{"counts":[[2,2],[9,1]],"total":709,"least":4,"most":700},"lag_records":0,"state":"running"}'
    )


def test_the_bytes_of_a_topic_and_its_place() -> None:
    key, value = encode_meta(TopicMeta(FLOW, "orders", "A.orders", 3, "orders"))
    assert key == b'["topic","A->B","orders"]'
    assert value == b'{"v":1,"remote":"A.orders","partitions":3,"original":"orders"}'
    assert metrics_topic(FLOW) == "srm-metrics-A.internal"


def test_what_is_unknown_is_left_out_and_never_zero() -> None:
    sample = PartitionSample(FLOW, 1, 1.0, TopicPartition("t", 0), "A.t")
    _, value = encode(sample)
    assert {"lag_records", "lag_seconds", "lag_bytes", "checked_at", "latency"}.isdisjoint(json.loads(value))
    read = decode(*encode(sample))
    assert isinstance(read, PartitionSample)
    assert read.lag_records is None
    assert read.latency.percentile(0.5) is None


@given(st.binary(max_size=30) | _JSON.map(lambda j: json.dumps(j).encode()), st.binary(max_size=60) | st.none())
def test_bytes_of_others_are_no_samples(key: bytes, value: bytes | None) -> None:
    assert decode(key, value) is None
    assert decode_meta(key, value) is None
    assert not newer(key, value)


@given(_SAMPLES, st.data())
def test_a_sample_with_one_field_changed_never_raises(sample: Sample, data: st.DataObject) -> None:
    key, value = encode(sample)
    document = json.loads(value)
    name = data.draw(st.sampled_from(sorted(document)))
    document[name] = data.draw(_JSON)
    decode(key, json.dumps(document).encode())
    newer(key, json.dumps(document).encode())


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("at", True),
        ("at", 1.5),
        ("seconds", "5"),
        ("records", None),
        ("records", 1.0),
        ("latency", {"counts": [[17, 1]], "total": 1, "least": 1, "most": 1}),
        ("latency", {"counts": [[1, 1], [1, 1]], "total": 1, "least": 1, "most": 1}),
        ("latency", {"counts": [[1, -1]], "total": 1, "least": 1, "most": 1}),
        ("latency", {"counts": [[1, 1]], "total": 1, "least": 2, "most": 1}),
        ("latency", {"counts": [], "total": 1, "least": 1, "most": 1}),
        ("lag_records", "many"),
    ],
)
def test_fields_of_another_type_are_garbage(field: str, wrong: object) -> None:
    key, value = encode(ORDERS)
    assert decode(key, json.dumps({**json.loads(value), field: wrong}).encode()) is None


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999"])
def test_numbers_that_are_none_are_garbage(number: bytes) -> None:
    key, value = encode(ORDERS)
    assert decode(key, value.replace(b'"seconds":30.0', b'"seconds":' + number)) is None


@given(_SAMPLES, st.integers(2, 99))
def test_a_newer_version_is_told_apart_from_garbage(sample: Sample, version: int) -> None:
    key, value = encode(sample)
    later = json.dumps({**json.loads(value), "v": version, "more": []}).encode()
    assert decode(key, later) is None
    assert newer(key, later)


def test_fields_that_were_added_since_are_passed_over() -> None:
    key, value = encode(ORDERS)
    assert decode(key, json.dumps({**json.loads(value), "more": 1}).encode()) == ORDERS


@given(_LATENCIES, _LATENCIES)
def test_histograms_add_up_to_that_of_all_their_values(left: list[int], right: list[int]) -> None:
    both = Histogram.of(left) + Histogram.of(right)
    assert both == Histogram.of([*left, *right]) == Histogram.of(right) + Histogram.of(left)
    assert both.count == len(left) + len(right)


@given(st.integers(-1000, 10**6), st.integers(0, 50))
def test_many_of_the_same_value(value: int, count: int) -> None:
    assert Histogram.same(value, count) == Histogram.of([value] * count)


@given(_LATENCIES.filter(bool), st.floats(0, 1), st.floats(0, 1))
def test_percentiles_lie_within_the_values_and_rise(values: list[int], p: float, q: float) -> None:
    histogram = Histogram.of(values)
    low, high = (histogram.percentile(share) for share in sorted((p, q)))
    assert low is not None
    assert high is not None
    assert min(values) <= low <= high <= max(values)
    assert histogram.percentile(1) == max(values)
    assert histogram.mean == pytest.approx(sum(values) / len(values))


@given(_LATENCIES.filter(bool), st.integers(1, 8))
def test_a_percentile_lies_in_the_bucket_of_the_value_that_it_stands_for(values: list[int], eighths: int) -> None:
    found = Histogram.of(values).percentile(eighths / 8)
    exact = sorted(values)[math.ceil(eighths * len(values) / 8) - 1]
    bounds = (-math.inf, *BOUNDS_MS, math.inf)
    bucket = bisect_left(bounds, exact)
    assert found is not None
    assert bounds[bucket - 1] <= found <= bounds[bucket]


def test_a_value_on_a_bound_counts_below_it() -> None:
    assert Histogram.of([1]).counts[0] == 1
    assert Histogram.of([BOUNDS_MS[-1]]).counts[-2] == 1
    assert Histogram.of([BOUNDS_MS[-1] + 1]).counts[-1] == 1


def test_samples_of_a_thousand_partitions_every_five_seconds_take_less_than_srm() -> None:
    """SRM names 280 kB/s for one flow with a topic of 1,000 partitions and 100 messages per second, and one group."""
    busy = Histogram.of(range(1, 400_000, 997))
    one = PartitionSample(
        Flow("primary-datacenter", "secondary-datacenter"),
        1_700_000_030_000,
        5.0012345678,
        TopicPartition("a-topic-with-a-name-of-fifty-letters-as-some-do-have", 999),
        "primary-datacenter.a-topic-with-a-name-of-fifty-letters-as-some-do-have",
        records=10**9,
        bytes=10**12,
        latency=busy,
        lag_records=10**9,
        lag_bytes=10**12,
        lag_seconds=123.456789,
        checked_at=1_700_000_029_000,
        state="running",
        reason="timestamp-out-of-range",
    )
    overhead = 70  # of a record within a batch, at most
    assert 1000 * (sum(map(len, encode(one))) + overhead) / 5 < 280_000
