"""The pure parts of the benchmark: what is copied, how figures are kept and shown, what a quick run must not be."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from srm_spark.bench.__main__ import chosen_in
from srm_spark.bench.contenders import Job
from srm_spark.bench.figures import merged, spread
from srm_spark.bench.fill import producer_options
from srm_spark.bench.flows import Flows
from srm_spark.bench.latency import RATES, Latency, with_half_of_maximum
from srm_spark.bench.measure import BenchRun, Sample, run_of
from srm_spark.bench.page import SCALE_FIGURES, render
from srm_spark.bench.plots import draw
from srm_spark.bench.records import each
from srm_spark.bench.regression import ratios, regressions
from srm_spark.bench.source_batches import SourceBatches, misfit, source_batches
from srm_spark.bench.store import in_order, keep, kept
from srm_spark.bench.ways import Ways, shares
from srm_spark.bench.workloads import BY_NAME, RUN, WORKLOADS, Workload, key_of, payloads
from srm_spark.core.record_batch import Batch
from srm_spark.errors import SrmError
from srm_spark.flow.topics.progress import Totals
from tests.batch_bytes import Raw, batch


def figures(value: float) -> dict[str, dict[str, float]]:
    return {figure: spread([value, 2 * value, 3 * value]) for figure in BenchRun.__dataclass_fields__}


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
        (15, 1000, 99, 20),
    ]
    samples = [Sample(*one, broker_cpu=2 * at) for at, one in enumerate(counts)]
    assert run_of(samples) == BenchRun(
        start_seconds=10,
        backlog_rate=1000 / 4,
        backlog_cpu=4 / 1000 * 1e6,
        steady_rate=500 / 2,
        steady_cpu=1 / 500 * 1e6,
        cores=0.5,
        broker_cores=2,
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
        "batches of at most 5,000 B on the source before they are compressed, a round trip of 50 ms to the source"
    )
    begins = "6 partitions, values of 1,000 B"
    near = Workload("near", 10, has_keys=True, transaction=5, is_compacted=True)
    assert near.described() == (
        f"{begins}, a key, uncompressed, transactions of 5 records, every third record taken out by compaction"
    )
    assert Workload("one", 10, batch_records=1).described() == (
        f"{begins}, uncompressed, 1 record in a batch on the source"
    )
    assert Workload("java", 10, by_java=True).described() == (
        f"{begins}, uncompressed, written by Kafka's own producer with its default `batch.size`"
    )


def test_keys_are_told_apart_but_for_every_third_where_compaction_is_to_take_it() -> None:
    plain = Workload("plain", 1, has_keys=True, partitions=4)
    assert len({key_of(plain, number) for number in range(9000)}) == 9000
    assert key_of(Workload("without", 1), 0) is None
    compacted = replace(plain, is_compacted=True)
    partitions: dict[bytes, set[int]] = defaultdict(set)
    for number in range(9000):
        key = key_of(compacted, number)
        assert key is not None
        assert len(key) == 16
        partitions[key].add(number // RUN % compacted.partitions)
    assert len(partitions) == 6000 + 1000, "6,000 are unique, and of the others each is there three times"
    assert all(len(numbers) == 1 for numbers in partitions.values()), "a key never changes its partition"


def test_every_batch_of_a_workload_is_the_producers_own_doing() -> None:
    said = producer_options(Workload("x", 1, codec="zstd", batch_bytes=5000))
    assert (said["compression.type"], said["batch.size"], said["linger.ms"]) == ("zstd", 5000, 60_000)
    single = producer_options(Workload("x", 1, batch_records=1))
    assert (single["batch.num.messages"], single["linger.ms"]) == (1, 0)
    assert producer_options(Workload("x", 1, transaction=5))["linger.ms"] == 1000


def batch_of(size: int, records: int = 10, *, gaps: int = 0, attributes: int = 0) -> Batch:
    return Batch(0, size, 0, 2, 0, attributes, records + gaps - 1, records=records)


LZ4, TRANSACTIONAL, CONTROL = 3, 0x10, 0x20


@pytest.mark.parametrize(
    ("one", "batch", "is_one"),
    [
        (Workload("x", 1), batch_of(900_000), True),
        (Workload("x", 1), batch_of(400_000), False),
        (Workload("x", 1), batch_of(1_100_000), False),
        (Workload("x", 1), batch_of(900_000, attributes=LZ4), False),
        (Workload("x", 1), batch_of(900_000, gaps=1), False),
        (Workload("x", 1), batch_of(900_000, attributes=TRANSACTIONAL), False),
        (BY_NAME["lz4"], batch_of(100_000, attributes=LZ4), True),
        (BY_NAME["lz4"], batch_of(99_999, attributes=LZ4), False),
        (BY_NAME["1 record per batch"], batch_of(1070, 1), True),
        (BY_NAME["1 record per batch"], batch_of(1070, 2), False),
        (BY_NAME["compacted"], batch_of(300_000, gaps=1, attributes=LZ4), True),
        (BY_NAME["compacted"], batch_of(300_000, attributes=LZ4), False),
    ],
)
def test_batches_of_a_workload_are_told_from_others(one: Workload, batch: Batch, *, is_one: bool) -> None:
    found = SourceBatches()
    found.add([*[batch] * 40, batch_of(1, 1)])  # what was left over may be anything
    assert (misfit(one, found) is None) == is_one


def test_some_batches_may_be_others() -> None:
    found = SourceBatches()
    found.add([*[batch_of(900_000)] * 95, *[batch_of(100)] * 6])
    assert misfit(Workload("x", 1), found) is None
    found.add([batch_of(100)] * 2)
    assert misfit(Workload("x", 1), found) == (
        "950 of 1,010 records lie in batches as it says, the middle one in a batch of 900,000 B with 10 records, none"
    )


def test_transactions_have_markers_and_others_have_none() -> None:
    ends, marker = batch_of(5000, 5, attributes=TRANSACTIONAL), batch_of(78, 1, attributes=TRANSACTIONAL | CONTROL)
    found = SourceBatches()
    found.add([ends, marker] * 20)
    assert misfit(BY_NAME["transactions"], found) is None
    assert (found.records, found.markers, found.middle.size) == (100, 20, 5000)
    found.add([batch_of(5000, 5, attributes=TRANSACTIONAL)])
    plain = SourceBatches()
    plain.add([batch_of(900_000), marker])
    assert misfit(Workload("x", 1), plain) == "there are 1 markers of transactions"


def test_batches_are_read_from_a_brokers_files(tmp_path: Path) -> None:
    for number, name in enumerate(("0", "5")):
        folder = tmp_path / "t-1"
        folder.mkdir(exist_ok=True)
        (folder / f"{name.zfill(20)}.log").write_bytes(batch([Raw(b"k", b"v")] * 5, 5 * number, "lz4") * 2)
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{'0' * 20}.log").touch()
    found = source_batches(tmp_path, "t", 2)
    assert (found.records, sum(found.full.values()), sum(found.rest.values())) == (20, 3, 1)
    assert {(kind.records, kind.codec, kind.has_gaps) for kind in found.full} == {(5, "lz4", False)}


def test_where_none_went_one_by_one_the_share_is_nothing() -> None:
    assert shares(Totals(records=1000, whole=891, merged=109)).single == 0


def test_ways_are_shares_of_all_records() -> None:
    assert shares(Totals(records=200, whole=150, merged=25)) == Ways(0.75, 0.125, 0.125)
    assert shares(Totals()) == Ways(0, 0, 1)


def test_a_workload_that_fails_does_not_end_the_others() -> None:
    def measured(one: Workload) -> dict[str, Any]:
        if one.name == "zstd":
            raise SrmError("its batches are others")
        return {"records": one.records}

    chosen = [BY_NAME[name] for name in ("lz4", "zstd", "gzip")]
    failed: list[str] = []
    assert [name for name, _ in each(chosen, measured, failed)] == ["lz4", "gzip"]
    assert failed == ["zstd"]
    with pytest.raises(SrmError, match="its batches are others"):
        list(each(chosen, measured, None))


def test_parts_and_workloads_are_chosen_by_name() -> None:
    assert chosen_in("lz4, 1 KB,16kbbatches,latency") == ["lz4", "1 KB", "16 KB batches", "latency"]
    with pytest.raises(click.BadParameter, match=r"there is no lz5; there are records, latency, .*1000partitions"):
        chosen_in("lz5,records")


def test_a_workload_measured_anew_stays_in_its_place() -> None:
    assert list(in_order({"old": 1, "lz4": 2, "100 B": 3, "older": 4})) == ["100 B", "lz4", "old", "older"]


def test_payloads_have_the_sizes_in_their_shares_and_are_the_same_each_time() -> None:
    found = payloads((100, 100, 100, 7000))
    assert {size: sum(len(one) == size for one in found) for size in (100, 7000)} == {100: 3 * 273, 7000: 273}
    assert found == payloads((100, 100, 100, 7000))
    assert len(set(found)) == len(found)


def test_a_contender_compresses_as_the_workload_says(tmp_path: Path) -> None:
    job = Job("a", "t", "source:1", "target:1", tmp_path, codec="zstd")
    assert "target.producer.compression.type=zstd" in job.config({}).read_text().replace(" = ", "=")


def test_what_was_not_measured_now_stays() -> None:
    kept = {"workloads": {"100 B": 1, "1 KB": 2}, "latency": {"100": 3}, "groups": 4, "machine": "old"}
    found = {"workloads": {"1 KB": 5}, "machine": "new"}
    assert merged(kept, found) == {**kept, "workloads": {"100 B": 1, "1 KB": 5}, "machine": "new"}


def test_a_page_that_was_not_there_is_made_with_its_folder(tmp_path: Path) -> None:
    page = tmp_path / "new" / "page.md"
    keep(page, {"machine": {"cores": "2"}, "workloads": {"lz4": workload(ours=3), "old": workload(ours=1)}})
    keep(page, {"machine": {"cores": "4"}, "workloads": {"100 B": workload(ours=5)}})
    assert list(kept(page)["workloads"]) == ["100 B", "lz4", "old"]
    text = page.read_text()
    assert text.index("## 100 B") < text.index("## lz4") < text.index("## old")


def test_the_page_shows_medians_ratios_and_what_is_unknown() -> None:
    result = {"machine": {"cores": "2"}, "workloads": {"1 KB": workload(ours=3, theirs=2, limit=12)}}
    page = render(result)
    assert "| 1 KB | 1.50 | 1.50 | 1.50 | 0.25 | 0.25 | unknown |" in page
    assert "| records/s, second half | 6 (3 to 9) | 4 (2 to 6) | 24 (12 to 36) | 1.50 |" in page
    assert "| CPU s/GB, second half | 12 (6 to 18) | 8 (4 to 12) | 48 (24 to 72) | 1.50 |" in page
    assert "exactly-once" not in page
    without = render({**result, "workloads": {"1 KB": workload(ours=3, theirs=2)}})
    assert "| 1 KB | 1.50 | 1.50 | 1.50 | unknown | unknown | unknown |" in without


def test_the_page_shows_how_records_went_and_in_which_batches_they_came() -> None:
    ways = {"whole": spread([0.5, 0.973, 1]), "merged": spread([0.027]), "single": spread([0.0])}
    one = {**workload(ours=3, theirs=2), "ways": ways, "batch": {"bytes": 400_000, "records": 1020}}
    page = render({"machine": {}, "workloads": {"lz4": one}})
    assert "| unknown | whole 97.3 %, merged 2.7 % |" in page
    assert "On the source the middle record lies in a batch of 400,000 B with 1020 records." in page
    assert "Records of srm-spark went: whole 97.3 %, merged 2.7 %." in page


def test_the_page_leaves_out_what_was_not_measured_of_a_workload_then() -> None:
    one = workload(ours=3, theirs=2)
    assert "| cores of both brokers meanwhile |" in render({"machine": {}, "workloads": {"lz4": one}})
    for contender in one["contenders"].values():
        del contender["broker_cores"]
    assert "cores of both brokers" not in render({"machine": {}, "workloads": {"lz4": one}})


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
