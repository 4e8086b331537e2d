"""The pure parts of the benchmark: what is copied, how figures are kept and shown, what a quick run must not be."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from srm_spark.bench.contenders import Job
from srm_spark.bench.figures import merged, spread
from srm_spark.bench.flows import Flows
from srm_spark.bench.latency import RATES, Latency, with_half_of_maximum
from srm_spark.bench.measure import Run, Sample, run_of
from srm_spark.bench.page import SCALE_FIGURES, render
from srm_spark.bench.plots import draw
from srm_spark.bench.regression import ratios, regressions
from srm_spark.bench.workloads import BY_NAME, WORKLOADS, Workload, payloads


def figures(value: float) -> dict[str, dict[str, float]]:
    return {figure: spread([value, 2 * value, 3 * value]) for figure in Run.__dataclass_fields__}


def workload(**contenders: float) -> dict[str, Any]:
    names = {"ours": "srm-spark", "theirs": "MirrorMaker 2", "limit": "bare loop", "exactly_once": "exactly-once"}
    found = {names[name]: figures(value) for name, value in contenders.items()}
    kept = {"measured": "2026-01-01", "description": "6 partitions", "records": 10, "record_bytes": 500.0, "rounds": 3}
    return {**kept, "contenders": found}


def quick(rate: float, cpu: float) -> dict[str, dict[str, float]]:
    return {"steady_rate": {"median": rate}, "steady_cpu": {"median": cpu}}


def test_a_run_is_measured_from_the_last_sample_without_a_record() -> None:
    counts = [
        (1, 0, 0, 0),
        (9, 0, 5, 9),
        (10, 0, 5, 10),
        (11, 100, 6, 30),
        (12, 500, 8, 20),
        (13, 900, 9, 20),
        (14, 1000, 9, 20),
    ]
    samples = [Sample(*one) for one in [*counts, (15, 1000, 99, 20)]]
    assert run_of(samples) == Run(
        start_seconds=10,
        backlog_rate=1000 / 4,
        backlog_cpu=4 / 1000 * 1e6,
        steady_rate=500 / 2,
        steady_cpu=1 / 500 * 1e6,
        memory_mib=30,
    )


def test_a_copy_that_was_there_between_two_samples_took_that_long_at_most() -> None:
    run = run_of([Sample(1, 0, 1, 5), Sample(2, 1000, 2, 5)])
    assert run.steady_rate == run.backlog_rate == 1000


def test_ratios_are_ours_divided_by_theirs() -> None:
    workloads = {"100 B": {"contenders": {"srm-spark": quick(300, 3), "MirrorMaker 2": quick(200, 6)}}}
    assert ratios(workloads) == {"100 B": {"steady_rate": 1.5, "steady_cpu": 0.5}}


def test_only_what_is_worse_beyond_noise_is_named() -> None:
    before = {name: {"steady_rate": 2.0, "steady_cpu": 0.5} for name in ("same", "slow", "dear")}
    now = {
        "same": {"steady_rate": 1.5, "steady_cpu": 0.6},
        "slow": {"steady_rate": 1.3, "steady_cpu": 0.3},
        "dear": {"steady_rate": 3.0, "steady_cpu": 0.7},
        "new": {"steady_rate": 1.0, "steady_cpu": 1.0},
    }
    assert list(regressions(now, before)) == [
        "slow: 1.30 times the records per second of MirrorMaker 2, before 2.00",
        "dear: 0.70 times the CPU per record of MirrorMaker 2, before 0.50",
        "new: there is no earlier figure to compare with",
    ]


def test_names_and_topics_of_workloads_are_theirs_alone() -> None:
    assert len(BY_NAME) == len({one.topic for one in WORKLOADS}) == len(WORKLOADS)


@pytest.mark.parametrize("one", WORKLOADS, ids=lambda one: one.name)
def test_a_workload_can_be_made(one: Workload) -> None:
    assert one.records >= 100
    assert max(one.sizes) < 1_048_588 - 1000, "a broker refuses larger batches by default"
    # Characters that an alias may have.
    assert one.short_name.isalnum()


def test_a_workload_says_what_it_is() -> None:
    far = Workload("far", 10, (100, 300), headers=5, codec="lz4", partitions=1, batch_bytes=5000, round_trip_ms=50)
    assert far.described() == (
        "1 partition, values of 100 to 300 B, 200 B on average, 5 headers, lz4, "
        "batches of at most 5,000 B on the source, a round trip of 50 ms to the source"
    )


def test_payloads_have_the_sizes_in_their_shares_and_are_the_same_each_time() -> None:
    found = payloads((100, 100, 100, 7000))
    assert {size: sum(len(one) == size for one in found) for size in (100, 7000)} == {100: 75, 7000: 25}
    assert found == payloads((100, 100, 100, 7000))
    assert len(set(found)) == len(found)


def test_a_contender_compresses_as_the_workload_says(tmp_path: Path) -> None:
    job = Job("a", "t", "source:1", "target:1", tmp_path, codec="zstd")
    assert "target.producer.compression.type=zstd" in job.config({}).read_text().replace(" = ", "=")


def test_what_was_not_measured_now_stays() -> None:
    kept = {"workloads": {"100 B": 1, "1 KB": 2}, "latency": {"100": 3}, "groups": 4, "machine": "old"}
    found = {"workloads": {"1 KB": 5}, "machine": "new"}
    assert merged(kept, found) == {**kept, "workloads": {"100 B": 1, "1 KB": 5}, "machine": "new"}


def test_the_page_shows_medians_ratios_and_what_is_unknown() -> None:
    result = {"machine": {"cores": "2"}, "workloads": {"1 KB": workload(ours=3, theirs=2, limit=12)}}
    page = render(result)
    assert "| 1 KB | 1.50 | 1.50 | 1.50 | 0.25 | 0.25 |" in page
    assert "| records/s, second half | 6 (3 to 9) | 4 (2 to 6) | 24 (12 to 36) | 1.50 |" in page
    assert "| CPU s/GB, second half | 12 (6 to 18) | 8 (4 to 12) | 48 (24 to 72) | 1.50 |" in page
    assert "exactly-once" not in page
    without = render({**result, "workloads": {"1 KB": workload(ours=3, theirs=2)}})
    assert "| 1 KB | 1.50 | 1.50 | 1.50 | unknown | unknown |" in without


def test_the_page_has_the_cost_of_the_exactly_once_mode_where_it_was_measured() -> None:
    workloads = {"1 KB": workload(ours=2, theirs=2, exactly_once=3), "lz4": workload(ours=2, theirs=2)}
    page = render({"machine": {}, "workloads": workloads})
    assert "| | 1 KB |" in page
    assert "| records/s, second half | 6 (3 to 9), 1.50 times |" in page


def test_rates_are_shown_by_size() -> None:
    percentiles = {name: spread([1.0]) for name in Latency.__dataclass_fields__}
    page = render({"machine": {}, "latency": {"10000": {"srm-spark": percentiles}, "900": {"srm-spark": percentiles}}})
    assert page.index("| 900 | srm-spark | 1 | 1 | 1 |") < page.index("| 10,000 | srm-spark |")


def test_sizes_are_shown_beside_each_other() -> None:
    ones = {"one_seconds": spread([1.0, 3.0]), "look_seconds": spread([0.5])}
    found = {**dict.fromkeys(SCALE_FIGURES, 2.0), **ones}
    page = render({"machine": {}, "scale": {"10000": ones, "900": found}})
    assert "| cores, while it waits | 2.00 | unknown |" in page
    assert "| flows | 7 |" in render({"machine": {}, "flows": {"7": dict.fromkeys(Flows.__dataclass_fields__, 1.0)}})
    assert "| partitions | 900 | 10,000 |" in page
    assert "the others idle | 2 (1 to 3) | 2 (1 to 3) |" in page


def test_the_highest_rate_is_half_of_what_the_slower_one_copies() -> None:
    both = {name: {"backlog_rate": spread([rate])} for name, rate in (("srm-spark", 4e5), ("MirrorMaker 2", 1.63e5))}
    assert with_half_of_maximum({"100 B": {"contenders": both}}) == (*RATES, 80_000)
    assert with_half_of_maximum({}) == RATES


def test_plots_are_drawn_of_what_there_is_and_the_same_each_time(tmp_path: Path) -> None:
    percentiles = {name: spread([1.0]) for name in Latency.__dataclass_fields__}
    workloads = {"1 KB": workload(ours=3, theirs=2, limit=9), "alone": workload(ours=3)}
    result = {"workloads": workloads, "latency": {"100": {"srm-spark": percentiles}}}
    folder = tmp_path / "page"
    assert draw(result, folder) == ["page/throughput.svg", "page/cpu.svg", "page/latency.svg"]
    drawn = (folder / "throughput.svg").read_bytes()
    text = "".join(ET.fromstring(drawn).itertext())
    assert "1.50" in text
    assert "4.50" in text
    assert "alone" not in text
    draw(result, folder)
    assert (folder / "throughput.svg").read_bytes() == drawn
    assert draw({}, folder) == []
