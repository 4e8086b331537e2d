"""Bounds: memory with large records."""

from __future__ import annotations

import os

import pytest

from tests.broker.conftest import Pair
from tests.broker.mirror import await_count, await_lag_zero
from tests.broker.progress_reader import read_progress
from tests.kafka_io import Record

pytestmark = pytest.mark.slow

RECORDS = 600
MEGABYTE = 1_000_000
MOST_PER_PASS = 32_000_000


def test_600_records_of_a_megabyte_pass_in_small_steps_through_a_small_heap(pair: Pair) -> None:
    """The session has 1 GB; each pass writes at most `batch.max.bytes` and records its progress."""
    pair.source.create(pair.topic(), 3)
    block = os.urandom(MEGABYTE)

    def value(number: int) -> bytes:
        return number.to_bytes(4, "big") + block[4:]

    pair.source.write(
        pair.topic(), (Record(b"k", value(i), i % 3) for i in range(RECORDS)), message_max_bytes=2 * MEGABYTE
    )
    driver = pair.replicate({"batch.max.bytes": str(MOST_PER_PASS)})
    await_count(pair.target, pair.remote(), RECORDS, 240)
    await_lag_zero(driver)
    driver.stop()
    for partition, log in pair.target.read(pair.remote()).items():
        found = [stored.record.value for stored in log]
        assert [int.from_bytes(content[:4], "big") for content in found if content] == list(
            range(partition, RECORDS, 3)
        )
        assert all(content is not None and content[4:] == block[4:] for content in found)
    passes = [progress.header["bytes"] for progress in read_progress(pair.target, pair.progress_topic)]
    assert RECORDS * MEGABYTE < sum(passes) < 1.001 * RECORDS * MEGABYTE, "as they travel: batches of one record"
    # A task may go over its share by what one Arrow batch holds.
    assert max(passes) < 2 * MOST_PER_PASS
