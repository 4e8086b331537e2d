"""Limits of a target topic: the first record it would refuse, to the byte and to the millisecond."""

from __future__ import annotations

import json

import pytest

from srm_spark.kafka.limits import Limits, first_refused
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
    assert "takes 1048589 bytes" in found[1]
    assert "max.message.bytes is 1048588" in found[1]


def test_size_of_headers_is_that_of_their_bytes_not_of_their_text() -> None:
    text = json.dumps([{"key": "n", "value": "AAAA" * 300}, {"key": "ü"}])  # 900 bytes
    exact = 61 + 2 + 3 + (1 + 1) + (1 + 1) + 1 + (1 + 1 + 2 + 900) + (1 + 2 + 1)
    run = run_of([0], headers=[text])
    assert first_refused(run, Limits(max_bytes=exact), NOW) is None
    found = first_refused(run, Limits(max_bytes=exact - 1), NOW)
    assert found is not None
    assert f"takes {exact} bytes" in found[1]


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
    assert word in found[1]


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


@pytest.mark.parametrize(
    ("most", "size"), [(1_048_588, 1_000_000), (1_000_061, 1_000_000), (1_000_060, 500_000), (20_000, 16_384), (900, 1)]
)
def test_batches_stay_below_the_topics_limit(most: int, size: int) -> None:
    assert Limits(max_bytes=most).batch_bytes == size
