"""Headers of record batches: golden bytes of Kafka's own format, what may go whole, and bytes that are no batch."""

from __future__ import annotations

import random
import struct

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from srm_spark.core.record_batch import (
    CHECKED_FROM,
    Author,
    Batch,
    Fit,
    Odd,
    batches_in,
    next_sequence,
    readdress,
    seal,
)
from srm_spark.errors import CodecError

GOLDEN = bytes.fromhex(
    "0000000000000007"  # base offset 7
    "00000039"  # bytes behind this number
    "00000005"  # epoch of the leader
    "02"  # format
    "00000000"  # checksum, set below
    "0000"  # no codec, CreateTime
    "00000000"  # last offset delta
    "0000018bcfe56800"
    "0000018bcfe56800"  # first and largest timestamp: 1,700,000,000,000
    "ffffffffffffffff"
    "ffff"
    "ffffffff"  # no producer
    "00000001"  # one record
    "0e"
    "00"
    "00"
    "00"
    "01"
    "02"
    "76"
    "00"  # of 7 bytes: no key, value v, no headers
)
"""DefaultRecordBatch and DefaultRecord of Kafka, field by field."""


def built(count: int = 3, base_offset: int = 0, codec: int = 0) -> bytearray:
    """A batch as another client makes it."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1_000_000)
    for number in range(count):
        builder.append(number, 1_700_000_000_000 + number, b"k", b"v%d" % number, [("h", b"x")])
    batch = bytearray(builder.build())
    struct.pack_into(">q", batch, 0, base_offset)
    return batch


def test_a_header_is_read_as_kafka_wrote_it() -> None:
    (batch,) = batches_in(memoryview(GOLDEN))
    assert batch == Batch(0, 69, 7, 2, 0, 0, 0, 1_700_000_000_000, 1_700_000_000_000, -1, 1)
    assert (batch.end, batch.codec, batch.is_control, batch.is_transactional) == (8, "none", False, False)


def test_batches_behind_each_other_and_a_cut_one() -> None:
    data = built(3, 10) + built(5, 13)
    assert [(b.base_offset, b.end, b.records) for b in batches_in(memoryview(data))] == [(10, 13, 3), (13, 18, 5)]
    assert [b.end for b in batches_in(memoryview(data)[:-1])] == [13]
    assert list(batches_in(memoryview(data)[:16])) == []


def test_a_batch_of_another_author_is_read_by_another_client_as_it_was() -> None:
    data = built(4, 99)
    (batch,) = batches_in(memoryview(data))
    transactional = batch._replace(attributes=batch.attributes | 0x10)
    before = [(r.key, r.value, r.timestamp, r.headers) for one in MemoryRecords(bytes(data)) for r in one]
    readdress(memoryview(data), transactional, Author(77, 5), 1234)
    seal(memoryview(data), crc32c.crc32c(memoryview(data)[CHECKED_FROM:]))
    (one,) = MemoryRecords(bytes(data))
    assert one.validate_crc()
    assert (one.base_offset, one.producer_id, one.producer_epoch, one.base_sequence) == (0, 77, 5, 1234)
    assert not one.is_transactional
    assert [(r.key, r.value, r.timestamp, r.headers) for r in one] == before


WHOLE = Batch(0, 500, 10, 2, 0, 0, 9, 0, 0, -1, 10)


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        (WHOLE, None),
        (WHOLE._replace(magic=1), Odd.MAGIC),
        (WHOLE._replace(base_offset=9), Odd.EDGE),
        (WHOLE._replace(base_offset=95), Odd.EDGE),
        (WHOLE._replace(attributes=0x40), Odd.HORIZON),
        (WHOLE._replace(records=9), Odd.GAPS),
        (WHOLE._replace(attributes=0x08), Odd.LOG_APPEND_TIME),
        (WHOLE._replace(size=1001), Odd.SIZE),
        (WHOLE._replace(attributes=0x10), None),
    ],
)
def test_what_goes_whole(batch: Batch, why: Odd | None) -> None:
    assert Fit(1000).odd(batch, 10, 100) is why


def test_a_codec_of_the_target_is_the_only_one() -> None:
    assert Fit(1000, "lz4").odd(WHOLE._replace(attributes=3), 10, 100) is None
    assert Fit(1000, "lz4").odd(WHOLE._replace(attributes=4), 10, 100) is Odd.CODEC
    assert Fit(1000, "lz4").odd(WHOLE._replace(attributes=7), 10, 100) is Odd.CODEC


@pytest.mark.parametrize(
    ("place", "layout", "value"),
    [
        (0, ">q", -1),
        (0, ">q", 2**62),
        (8, ">i", -1),
        (8, ">i", 48),
        (23, ">i", -2),
        (57, ">i", -1),
        (57, ">i", 4),
        (57, ">i", 2**31 - 1),
        (35, ">q", 2**62),
    ],
)
def test_a_header_that_cannot_be_true_is_told(place: int, layout: str, value: int) -> None:
    data = built(3)
    struct.pack_into(layout, data, place, value)
    with pytest.raises(CodecError, match="says that it"):
        list(batches_in(memoryview(data)))


def test_more_records_than_bytes_is_told() -> None:
    data = built(3)
    struct.pack_into(">i", data, 23, 10**6 - 1)
    struct.pack_into(">i", data, 57, 10**6)
    with pytest.raises(CodecError):
        list(batches_in(memoryview(data)))


def test_sequence_numbers_begin_anew_behind_the_largest() -> None:
    assert next_sequence(2**31 - 2, 1) == 2**31 - 1
    assert next_sequence(2**31 - 2, 5) == 3


@given(st.binary(max_size=300))
def test_any_bytes_are_batches_within_them_or_an_error(data: bytes) -> None:
    check(data)


@pytest.mark.parametrize("seed", range(4))
def test_batches_with_broken_bytes_are_batches_within_them_or_an_error(seed: int) -> None:
    chance = random.Random(seed)
    good = bytes(built(3, 10) + built(2, 13, codec=1) + built(1, 15))
    for _ in range(5000):
        data = bytearray(good[: chance.randrange(len(good) + 1)])
        for _ in range(chance.randrange(4)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        check(bytes(data))


def check(data: bytes) -> None:
    at = 0
    try:
        for batch in batches_in(memoryview(data)):
            assert batch.at == at
            assert batch.size > 16
            at += batch.size
            assert at <= len(data)
            assert 0 <= batch.records <= max(1, batch.last_delta + 1)
            assert 0 <= batch.base_offset <= batch.end < 2**62 + 1
    except CodecError:
        pass
