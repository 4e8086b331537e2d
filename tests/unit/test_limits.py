"""Limits of a target topic: the first record it would refuse, to the byte and to the millisecond."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from srm_spark.core.cluster import TopicConfig
from srm_spark.core.codec import ORIGINAL_TIMESTAMP_HEADER
from srm_spark.core.limits import Limits, clamp, first_refused, is_too_large_only, refusal, will_fit
from srm_spark.core.model import TopicPartition
from srm_spark.core.provenance import Stamp
from srm_spark.core.rows import Headers
from srm_spark.core.tail import TailRecord
from srm_spark.flow.topics.remote_topics import limits_of
from srm_spark.kafka.producers import record_options, suited
from tests.unit.arrow_rows import run_of

NOW = 1_700_000_000_000
HOUR = 3_600_000
FREE = Limits()


def test_what_fits_is_not_refused() -> None:
    assert first_refused(run_of([0, 1], timestamps=[NOW, -5]), FREE, NOW) is None


def test_size_is_counted_as_the_broker_counts() -> None:
    """61 bytes of batch header; the record: its length, 3 fixed, key and value with lengths, count of headers."""
    limits = Limits(max_bytes=1_048_588)
    fits = 1_048_588 - 61 - 3 - 3 - (1 + 1) - 3 - 1
    assert first_refused(run_of([0], values=[b"x" * fits]), limits, NOW) is None
    found = first_refused(run_of([7, 8], values=[b"x", b"x" * (fits + 1)]), limits, NOW)
    assert found is not None
    assert found[0] == 1
    assert "takes 1048589 bytes" in found[1].sentence
    assert "max.message.bytes is 1048588" in found[1].sentence


def test_size_of_headers() -> None:
    exact = 61 + 2 + 3 + (1 + 1) + (1 + 1) + 1 + (1 + 1 + 2 + 900) + (1 + 2 + 1)
    run = run_of([0], headers=[[("n", b"a" * 900), ("ü", None)]])
    assert first_refused(run, Limits(max_bytes=exact), NOW) is None
    found = first_refused(run, Limits(max_bytes=exact - 1), NOW)
    assert found is not None
    assert f"takes {exact} bytes" in found[1].sentence


@pytest.mark.parametrize(
    ("limits", "stamp", "word"),
    [
        (Limits(after_ms=HOUR), NOW + HOUR + 1, "in the future"),
        (Limits(before_ms=HOUR), NOW - HOUR - 1, "too old"),
        (Limits(needs_key=True), NOW, "no key"),
    ],
)
def test_the_first_bad_record_is_named(limits: Limits, stamp: int, word: str) -> None:
    run = run_of([0, 1, 2, 3], timestamps=[NOW, NOW, stamp, stamp], keys=[b"", b"k", None, None])
    found = first_refused(run, limits, NOW)
    assert found is not None
    assert found[0] == 2
    assert word in found[1].sentence


def test_the_borders_of_time_are_allowed() -> None:
    limits = Limits(after_ms=HOUR, before_ms=HOUR)
    assert first_refused(run_of([0, 1], timestamps=[NOW + HOUR, NOW - HOUR]), limits, NOW) is None


def test_a_record_without_timestamp_is_never_too_old() -> None:
    assert first_refused(run_of([0], timestamps=[-1]), Limits(before_ms=HOUR), NOW) is None


def test_the_earliest_of_several_reasons_wins() -> None:
    run = run_of([0, 1, 2], timestamps=[NOW, NOW, 5], keys=[b"k", None, b"k"], values=[b"v", b"v", b"x" * 999])
    found = first_refused(run, Limits(500, before_ms=HOUR, needs_key=True), NOW)
    assert found is not None
    assert found[0] == 1


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_what_fits_compressed_for_certain(codec: str) -> None:
    large, noise = run_of([0], values=[b"z" * 50_000]), run_of([0], values=[random.Random(1).randbytes(50_000)])
    limits = Limits(20_000)
    assert will_fit(large, limits, codec)
    assert not will_fit(noise, limits, codec)
    assert not will_fit(noise, Limits(50_200), codec)  # it may fit, but for certain nobody knows
    assert not will_fit(large, replace(limits, keeps_batches=False), codec)
    assert will_fit(large, replace(limits, keeps_batches=False, codec=codec), codec)


def test_a_record_that_is_too_large_and_more_than_that() -> None:
    run = run_of([0, 1], values=[b"z" * 50_000] * 2, keys=[b"k", None])
    limits = Limits(20_000, needs_key=True)
    assert is_too_large_only(run.head(1), limits, NOW)
    assert not is_too_large_only(run.slice(1, 2), limits, NOW)


def test_a_name_that_java_may_have_replaced_is_refused_where_java_has_read_it() -> None:
    headers: list[Headers | None] = [[("ü", b"1")], None, [("a", None), ("b\ufffd", None)]]
    run = run_of([3, 4, 5], headers=headers)
    found = first_refused(run, FREE, NOW)
    assert found is not None
    assert found[0] == 2
    assert "header 'b\\ufffd'" in found[1].sentence
    assert first_refused(run.slice(2, 3), FREE, NOW) == (0, found[1])
    assert first_refused(run.head(2), FREE, NOW) is None
    assert first_refused(replace(run, is_decoded=False), FREE, NOW) is None


@pytest.mark.parametrize(
    ("most", "size"), [(1_048_588, 1_000_000), (1_000_061, 1_000_000), (1_000_060, 500_000), (20_000, 16_384), (900, 1)]
)
def test_batches_stay_below_the_topics_limit(most: int, size: int) -> None:
    assert Limits(max_bytes=most).batch_bytes == size


@pytest.mark.parametrize(("said", "codec"), [("zstd", "zstd"), ("producer", ""), ("uncompressed", ""), (None, "")])
def test_a_topic_has_a_codec_where_its_config_names_one(said: str | None, codec: str) -> None:
    assert limits_of({"compression.type": TopicConfig(said, True, False, False, False)}).codec == codec


def test_records_come_in_the_codec_of_their_topic_unless_the_user_chose_one() -> None:
    zstd = Limits(max_bytes=20_000, codec="zstd")
    found = suited(record_options({}, 1.0), zstd)
    assert (found["compression.type"], found["batch.size"]) == ("zstd", 16_384)
    assert "compression.type" not in suited(record_options({}, 1.0), FREE)
    assert suited(record_options({"compression.type": "none"}, 1.0), zstd)["compression.type"] == "none"


def test_timestamps_outside_of_the_limits_are_moved_inside_and_the_header_says_what_they_were() -> None:
    limits = Limits(before_ms=HOUR, after_ms=1000)
    headers: list[Headers | None] = [None, [("h", b"\x00")], None, None]
    run = run_of([0, 1, 2, 3], timestamps=[NOW, NOW - 2 * HOUR, NOW + 1001, -1], headers=headers)
    fixed = clamp(run, limits, NOW)
    # Ten minutes inside of a limit, or half of it where that is less: the broker looks later.
    assert fixed.timestamps.tolist() == [NOW, NOW - HOUR + 600_000, NOW + 500, -1]
    assert [found for _, _, _, found in fixed.records()] == [
        [],
        [("h", b"\x00"), (ORIGINAL_TIMESTAMP_HEADER, str(NOW - 2 * HOUR).encode())],
        [(ORIGINAL_TIMESTAMP_HEADER, str(NOW + 1001).encode())],
        [],
    ]
    assert first_refused(fixed, limits, NOW + 1000) is None
    assert run.timestamps.tolist() == [NOW, NOW - 2 * HOUR, NOW + 1001, -1]


def test_a_run_within_the_limits_is_left_as_it_is() -> None:
    run = run_of([0, 1], timestamps=[NOW - HOUR, NOW + HOUR])
    assert clamp(run, Limits(before_ms=HOUR, after_ms=HOUR), NOW) is run
    assert clamp(run, FREE, NOW) is run
    assert clamp(run, Limits(before_ms=2**63 - 1, after_ms=2**63 - 1), NOW) is run


def test_a_stamped_run_keeps_its_stamps() -> None:
    run = run_of([5], timestamps=[1]).stamp(Stamp("A", "B"))
    ((_, _, timestamp, headers),) = clamp(run, Limits(before_ms=HOUR), NOW).records()
    assert timestamp == NOW - HOUR + 600_000
    assert headers is not None
    assert [name for name, _ in headers] == ["srm-provenance", ORIGINAL_TIMESTAMP_HEADER]
    assert run.stamped is not None
    assert len(run.stamped[0]) == 1


def test_a_record_of_a_plain_consumer_is_judged_alike() -> None:
    place = TopicPartition("t", 0)
    record = TailRecord(7, NOW, None, b"x" * 100, (("h", b"y" * 50),))
    exact = 61 + 2 + 3 + 1 + (2 + 100) + 1 + (1 + 1 + 1 + 50)
    assert refusal(place, record, Limits(max_bytes=exact), NOW) is None
    assert f"takes {exact} bytes" in str(refusal(place, record, Limits(max_bytes=exact - 1), NOW))
    assert "no key" in str(refusal(place, record, Limits(needs_key=True), NOW))


@pytest.mark.parametrize(
    ("policy", "needs_key"),
    [("compact", True), ("compact,delete", True), ("delete, compact", True), ("delete", False), ("", False)],
)
def test_a_compacted_topic_needs_keys_however_its_policy_is_written(policy: str, *, needs_key: bool) -> None:
    configs = {"cleanup.policy": TopicConfig(policy, False, False, False, False)}
    assert limits_of(configs).needs_key is needs_key
