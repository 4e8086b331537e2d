"""The codecs of record batches, against batches that Kafka's own Java classes have written."""

from __future__ import annotations

import contextlib
import random

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import batches_in
from srm_spark.errors import CodecError
from srm_spark.kafka.batches.codecs import CODECS, compress, decompress, decompress_into
from srm_spark.kafka.batches.unpacking import unpack
from tests.batch_bytes import NOW, Raw, raws_of

EXPECTED = [
    (7, Raw(None, b"v", NOW)),
    (8, Raw(b"k", None, NOW + 5, ((b"h", b"x"), (b"n", None)))),
    (9, Raw(b"k", b"a" * 200, NOW - 1)),
]
JAVA = {
    "none": (
        "00000000000000070000011affffffff02491872690000000000020000018bcfe568000000018bcfe56805ffffffffffffff"
        "ffffffffffffff000000030e000000010276001c000a02026b010402680278026e01a003000104026b900361616161616161"
        "6161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161"
        "6161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161"
        "6161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161"
        "6161616161616161616161616161616161616161616161616161616161616161616161616161616161616100"
    ),
    "gzip": (
        "000000000000000700000068ffffffff0231cfdd3a0001000000020000018bcfe568000000018bcfe56805ffffffffffffff"
        "ffffffffffffff000000031f8b08000000000000ffe363606060642a639061e06262ca666461ca60aa60ca635cc0cc006467"
        "4f604e1c26800100a1ea8f10e9000000"
    ),
    "snappy": (
        "000000000000000700000076ffffffff02439d72570002000000020000018bcfe568000000018bcfe56805ffffffffffffff"
        "ffffffffffffff0000000382534e4150505900000000010000000100000031e901800e000000010276001c000a02026b0104"
        "02680278026e01a003000104026b900361fe0100fe0100fe01000d010000"
    ),
    "lz4": (
        "00000000000000070000006cffffffff021d220c1c0003000000020000018bcfe568000000018bcfe56805ffffffffffffff"
        "ffffffffffffff0000000304224d186040822c000000ff120e000000010276001c000a02026b010402680278026e01a00300"
        "0104026b9003610100b050616161610000000000"
    ),
    "zstd": (
        "000000000000000700000067ffffffff02c05b75660004000000020000018bcfe568000000018bcfe56805ffffffffffffff"
        "ffffffffffffff0000000328b52ffd005854010024020e000000010276001c000a02026b010402680278026e01a003000104"
        "026b9003610001002152e009010000"
    ),
}
"""`MemoryRecords.withRecords(2, 7, Compression.of(…), …)` of kafka-clients 4.3.1, as hex."""
LENGTHS = [0, 1, 100, 65_535, 65_536, 65_537, 300_000]


@pytest.mark.parametrize("codec", CODECS)
def test_what_java_packs_is_read(codec: str) -> None:
    data = memoryview(bytes.fromhex(JAVA[codec]))
    (batch,) = batches_in(data)
    assert batch.codec == codec
    (run,) = unpack(TopicPartition("t", 0), [(batch, data)], 0, 99)
    assert raws_of(run) == EXPECTED


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("codec", CODECS)
def test_what_is_packed_is_read(codec: str, length: int) -> None:
    chance = random.Random(length)
    for data in (bytes(length), chance.randbytes(length)):
        for level in (None, 1, 5):
            assert decompress(codec, compress(codec, data, level), length) == data
    packed = compress(codec, data)
    if length:
        with pytest.raises(CodecError, match="more than"):
            decompress(codec, packed, length - 1)


def test_lz4_is_framed_as_java_does_in_independent_blocks() -> None:
    java = bytes.fromhex(JAVA["lz4"])[61:]
    assert compress("lz4", bytes(1000))[:7] == java[:7]
    assert compress("lz4", b"")[-4:] == bytes(4)


def test_snappy_is_read_in_one_raw_block_as_librdkafka_writes_it() -> None:
    data = b"abc" * 50_000
    assert decompress("snappy", bytes(cramjam.snappy.compress_raw(data)), 10**6) == data
    assert compress("snappy", data)[:8] == b"\x82SNAPPY\0"


@pytest.mark.parametrize(
    ("packed", "what"),
    [
        (b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0", "ends within the length"),
        (b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0\0\x09abc", "has 9 bytes"),
        (b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\xff\xff\xff\xffabc", "has -1 bytes"),
        (b"\xff\xff\xff\xff\x0f\0", "more than"),
        (b"", "damaged"),
    ],
)
def test_broken_snappy_is_told(packed: bytes, what: str) -> None:
    with pytest.raises(CodecError, match=what):
        decompress("snappy", packed, 10**6)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_bomb_costs_what_was_given_and_is_told(codec: str) -> None:
    packed = compress(codec, bytes(20_000_000))
    with pytest.raises(CodecError, match="more than 1000000 bytes"):
        decompress(codec, packed, 1_000_000)
    with pytest.raises(CodecError, match="more than 5000 bytes"):
        decompress_into(codec, packed, memoryview(bytearray(5000)))


@pytest.mark.parametrize("codec", CODECS[1:])
def test_damage_is_told_or_gives_other_bytes(codec: str) -> None:
    packed = compress(codec, b"some text, " * 30 + random.Random(1).randbytes(100))
    for at in range(len(packed)):
        for data in (packed[:at], packed[:at] + bytes([packed[at] ^ 0xFF]) + packed[at + 1 :]):
            with contextlib.suppress(CodecError):
                assert len(decompress(codec, data, 100_000)) <= 100_000


@given(st.sampled_from(CODECS), st.binary(max_size=200))
def test_any_bytes_are_data_or_an_error(codec: str, data: bytes) -> None:
    with contextlib.suppress(CodecError):
        assert len(decompress(codec, data, 100_000)) <= 100_000


def test_codecs_and_levels_that_there_are_not() -> None:
    with pytest.raises(CodecError, match="brotli"):
        compress("brotli", b"x")
    with pytest.raises(CodecError, match="not known: ''"):
        decompress("", b"x", 10)
    for codec in ("gzip", "lz4", "zstd"):
        with pytest.raises(CodecError, match="level 10000000000"):
            compress(codec, b"x", 10**10)
