"""How a pass is divided among the tasks that fetch its records by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from srm_spark.config import load_settings
from srm_spark.config.settings import FlowSettings, LimitSettings
from srm_spark.core.model import Interval, OffsetRange, TopicPartition
from srm_spark.doctor import machine
from srm_spark.flow.batch.passes import PROBE, RecordSizes
from srm_spark.flow.batch.reading import Reading, even_shares
from srm_spark.kafka import jit
from srm_spark.kafka.batches import ways
from srm_spark.kafka.fetch import fetch_options
from tests.unit.details import detail


def ranges_of(counts: list[int]) -> dict[TopicPartition, OffsetRange]:
    return {TopicPartition("t", number): OffsetRange(10, 10 + count) for number, count in enumerate(counts)}


def test_shares_weigh_about_the_same_whatever_the_partitions_are() -> None:
    ranges = ranges_of([900, 100, 200, 300, 100, 200])
    weights = {partition: float(end - start) for partition, (start, end) in ranges.items()}
    shares = even_shares(ranges, weights, 2)
    assert sorted(sum(weights[p] for p in share) for share in shares) == [900, 900]
    assert {p: found for share in shares for p, found in share.items()} == ranges
    assert sum(len(share) for share in shares) == len(ranges)


def test_partitions_of_no_known_weight_are_spread() -> None:
    ranges = ranges_of([5] * 6)
    assert [len(share) for share in even_shares(ranges, dict.fromkeys(ranges, 0.0), 4)] == [2, 2, 1, 1]


def test_there_is_no_share_without_a_partition() -> None:
    ranges = ranges_of([5])
    assert even_shares(ranges, dict.fromkeys(ranges, 5.0), 4) == [ranges]


@pytest.fixture
def flow(tmp_path: Path) -> FlowSettings:
    """With its defaults."""
    path = tmp_path / "srm.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\ndialect = mm2\n"
    )
    (found,) = load_settings([path]).flows
    return found


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The loops cannot be compiled."""
    monkeypatch.setattr(jit, "missing", "there is no numba")
    ways.why_interpreted.cache_clear()
    yield
    ways.why_interpreted.cache_clear()


def test_records_are_fetched_directly_where_that_is_wanted(flow: FlowSettings) -> None:
    assert flow.batch.in_loop
    assert ways.is_used(True)
    assert not ways.is_used(False)
    assert "in batches, by compiled loops" in machine.check_client().found


@pytest.mark.usefixtures("without_numba")
def test_records_are_fetched_directly_only_where_loops_are_compiled() -> None:
    assert not ways.is_used(True)
    assert "by Spark's source: there is no numba; pip install" in machine.check_client().found


def test_the_driver_copies_what_is_small_and_the_first_records_of_a_topic(flow: FlowSettings) -> None:
    sizes = RecordSizes()
    reading = Reading(flow, 2, sizes)
    first = sizes.affordable(ranges_of([PROBE] * 7), 10**9)
    assert sum(end - start for start, end in first.values()) > PROBE, "rounded up for each partition"
    assert reading.is_small(first)
    assert not reading.is_small(ranges_of([2 * PROBE + 1]))
    assert not Reading(replace(flow, limits=LimitSettings(5)), 2, sizes).is_small(first), (
        "no topic may wait for another"
    )
    sizes.learn({TopicPartition("t", 0): detail(0, 1, [Interval(0, 0, 1)], 100)})
    assert reading.is_small(ranges_of([10_000]))
    assert not reading.is_small(ranges_of([10_001]))
    sizes.learn({TopicPartition("t", 0): detail(0, 1, [Interval(0, 0, 1)], 1_000)})
    assert not reading.is_small(ranges_of([2_000])), "more than 1 MiB"
    assert not Reading(replace(flow, batch=replace(flow.batch, driver_max_bytes=0)), 2, sizes).is_small(ranges_of([1]))


def test_what_the_reading_rests_on_cannot_be_set() -> None:
    wanted: dict[str, str | int | float | bool] = {"enable.partition.eof": False, "auto.offset.reset": "latest"}
    found = fetch_options({**wanted, "isolation.level": "read_committed", "fetch.message.max.bytes": 7})
    assert found["enable.partition.eof"] is True
    assert found["auto.offset.reset"] == "earliest"
    assert (found["isolation.level"], found["fetch.message.max.bytes"]) == ("read_committed", 7)
    assert fetch_options({})["isolation.level"] == "read_uncommitted"
