"""Batches that do not go whole: merged, taken apart and packed, compiled and interpreted alike."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords

from srm_spark.core.limits import Limits
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.errors import CodecError
from srm_spark.kafka.batches import ways
from srm_spark.kafka.batches.codecs import CODECS, compress
from srm_spark.kafka.batches.packer import Packed, Why
from srm_spark.kafka.batches.packing import merge, pack
from srm_spark.kafka.batches.unpacking import Broken, unpack
from srm_spark.kafka.batches.ways import Way
from tests.batch_bytes import NOW, Raw, batch, parts, raws_of, read, varint

TP = TopicPartition("orders", 3)
HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
CODEC = st.sampled_from(CODECS)
CONTENT = st.none() | st.binary(max_size=40) | st.just(b"x" * 300)
RAW = st.builds(
    Raw,
    CONTENT,
    CONTENT,
    st.sampled_from([-1, 0, NOW, NOW - 1, NOW + 10**9, 2**60]) | st.integers(0, 2**45),
    st.lists(st.tuples(st.binary(max_size=5) | st.sampled_from([b"\0", b"\xff\xfe"]), CONTENT), max_size=3).map(tuple),
)
LOG = st.lists(st.tuples(st.lists(st.tuples(RAW, st.integers(1, 3)), min_size=1, max_size=12), CODEC), max_size=6)


@pytest.fixture(params=["compiled", "interpreted"])
def way(request: pytest.FixtureRequest) -> Way:
    return ways.best() if request.param == "compiled" else ways.interpreted()


def test_the_loops_are_compiled_here() -> None:
    assert ways.best() is not ways.interpreted()


def log_of(pieces: Sequence[tuple[Sequence[tuple[Raw, int]], str]]) -> tuple[list[bytearray], list[tuple[int, Raw]]]:
    """Batches one behind the other, with gaps; and offsets and records in them."""
    batches, there, base = [], [], 100
    for raws, codec in pieces:
        deltas = [delta - 1 for delta in itertools.accumulate(step for _, step in raws)]
        batches.append(batch([raw for raw, _ in raws], base, codec, deltas=deltas, last_delta=deltas[-1] + 1))
        there += [(base + delta, raw) for delta, (raw, _) in zip(deltas, raws, strict=True)]
        base += deltas[-1] + 2
    return batches, there


def found(pieces: Iterable[Packed]) -> list[tuple[int, Raw]]:
    """Source offsets and records of new batches, which are as they have to be."""
    result: list[tuple[int, Raw]] = []
    for piece in pieces:
        records = read(piece.data)
        offsets = [at for stretch in piece.stretches for at in range(*stretch)]
        assert [at for at, _ in records] == list(range(piece.batch.records))
        assert parts(bytearray(piece.data))[0][0] == piece.batch._replace(base_offset=0)
        assert piece.batch.base_offset == offsets[0]
        assert piece.batch.last_delta + 1 == piece.batch.records == len(records)
        stamps = [raw.timestamp for _, raw in records]
        assert (stamps[0], max(stamps)) == (piece.batch.base_timestamp, piece.batch.max_timestamp)
        assert piece.last_timestamp == stamps[-1]
        assert piece.content_bytes == sum(len(raw.key or b"") + len(raw.value or b"") for _, raw in records)
        result += zip(offsets, (raw for _, raw in records), strict=True)
    return result


def run_of(there: Sequence[tuple[int, Raw]]) -> Run:
    lists = [[{"key": name, "value": value} for name, value in raw.headers] for _, raw in there]
    return Run(
        TP,
        np.array([at for at, _ in there], np.int64),
        np.array([raw.timestamp for _, raw in there], np.int64),
        pa.array([raw.key for _, raw in there], pa.binary()),
        pa.array([raw.value for _, raw in there], pa.binary()),
        pa.array(lists, HEADERS) if any(lists) else pa.nulls(len(there), HEADERS),
    )


@settings(deadline=None)
@given(LOG, st.integers(95, 160), st.integers(95, 160), CODEC, st.sampled_from([100, 400, 10**6]))
def test_merged_records_are_those_of_the_range(
    pieces: list[tuple[list[tuple[Raw, int]], str]], start: int, end: int, codec: str, target: int
) -> None:
    batches, there = log_of(pieces)
    results = [
        merge(TP, parts(*batches), start, end, limits=Limits(), now_ms=0, codec=codec, target_bytes=target, way=way)
        for way in (ways.best(), ways.interpreted())
    ]
    assert results[0].stop is results[1].stop is None
    assert [bytes(p.data) for p in results[0].pieces] == [bytes(p.data) for p in results[1].pieces]
    assert found(results[0].pieces) == [(at, raw) for at, raw in there if start <= at < end]


@settings(deadline=None)
@given(LOG, st.integers(95, 160), st.integers(95, 160))
def test_unpacked_records_are_those_of_the_range(
    pieces: list[tuple[list[tuple[Raw, int]], str]], start: int, end: int
) -> None:
    batches, there = log_of(pieces)
    for way in (ways.best(), ways.interpreted()):
        runs = list(unpack(TP, parts(*batches), start, end, way=way))
        assert [each for run in runs for each in raws_of(run)] == [(at, raw) for at, raw in there if start <= at < end]
        for run in runs:
            for array in (run.keys, run.values, run.headers):
                array.validate(full=True)


@settings(deadline=None)
@given(LOG, CODEC, st.sampled_from([100, 400, 10**6]), st.integers(0, 5))
def test_packed_records_are_those_of_the_run(
    pieces: list[tuple[list[tuple[Raw, int]], str]], codec: str, target: int, skipped: int
) -> None:
    _, there = log_of(pieces)
    run, there = run_of(there).slice(min(skipped, len(there)), len(there)), there[skipped:]
    results = [pack(run, codec=codec, max_bytes=10**6, target_bytes=target, way=way) for way in both()]
    assert results[0].stop is results[1].stop is None
    assert [bytes(p.data) for p in results[0].pieces] == [bytes(p.data) for p in results[1].pieces]
    assert found(results[0].pieces) == there


def both() -> tuple[Way, Way]:
    return ways.best(), ways.interpreted()


def test_headers_that_a_flow_sets_are_those_that_are_written(way: Way) -> None:
    run = run_of([(7, Raw(b"k", None)), (9, Raw(None, b""))])
    stamped = Run(
        run.partition, run.offsets, run.timestamps, run.keys, run.values, run.headers, [[("\udcff", b"")], []]
    )
    assert found(pack(stamped, codec="none", max_bytes=1000, way=way).pieces) == [
        (7, Raw(b"k", None, NOW, ((b"\xff", b""),))),
        (9, Raw(None, b"")),
    ]


def test_another_client_reads_what_is_merged(way: Way) -> None:
    raws = [Raw(b"k", b"v%d" % at, NOW + at, ((b"h", None),)) for at in range(5)]
    (piece,) = merge(TP, parts(batch(raws, 50, "lz4")), 51, 54, limits=Limits(), now_ms=0, codec="gzip", way=way).pieces
    (one,) = MemoryRecords(bytes(piece.data))
    assert [(r.offset, r.key, r.value, r.timestamp, r.headers) for r in one] == [
        (at - 1, b"k", b"v%d" % at, NOW + at, [("h", None)]) for at in (1, 2, 3)
    ]


def test_log_append_time_becomes_each_records_own(way: Way) -> None:
    source = batch([Raw(b"k", b"v", NOW + at) for at in range(3)], 10, append_time=NOW + 99)
    expected = [(10 + at, Raw(b"k", b"v", NOW + 99)) for at in range(3)]
    (piece,) = merge(TP, parts(source), 0, 99, limits=Limits(), now_ms=0, way=way).pieces
    assert found([piece]) == expected
    assert not piece.batch.is_append_time
    (run,) = unpack(TP, parts(source), 0, 99, way=way)
    assert raws_of(run) == expected


def test_control_batches_and_those_without_records_are_passed_over(way: Way) -> None:
    (first, marker, aborted) = parts(*(batch([Raw(b"k", b"v")], at) for at in (1, 2, 3)))
    marker = marker[0]._replace(attributes=0x20), marker[1]
    aborted = aborted[0]._replace(records=0), aborted[1]
    done = merge(TP, [first, marker, aborted], 0, 99, limits=Limits(), now_ms=0, way=way)
    assert found(done.pieces) == [(1, Raw(b"k", b"v"))]
    assert merge(TP, [marker, aborted], 0, 99, limits=Limits(), now_ms=0, way=way).pieces == []
    assert [run.count for run in unpack(TP, [first, marker, aborted], 0, 99, way=way)] == [1]
    assert list(unpack(TP, [marker, aborted], 0, 99, way=way)) == []


@pytest.mark.parametrize(
    ("limits", "raw", "why"),
    [
        (Limits(needs_key=True), Raw(None, b"v"), Why.NO_KEY),
        (Limits(before_ms=1000), Raw(b"k", b"v", NOW - 1001), Why.EARLY),
        (Limits(after_ms=1000), Raw(b"k", b"v", NOW + 1001), Why.LATE),
        (Limits(max_bytes=200), Raw(b"k", random.Random(1).randbytes(200)), Why.TOO_LARGE),
    ],
)
@pytest.mark.parametrize("codec", CODECS)
def test_it_stops_at_the_first_record_that_is_refused(way: Way, limits: Limits, raw: Raw, why: Why, codec: str) -> None:
    fine = Raw(b"", b"v", NOW)
    source = parts(batch([fine, fine], 10, codec), batch([fine, raw, fine], 12, codec), batch([raw], 15, codec))
    done = merge(TP, source, 0, 99, limits=limits, now_ms=NOW, way=way)
    assert found(done.pieces) == [(10, fine), (11, fine), (12, fine)]
    assert done.stop is not None
    assert (done.stop.offset, done.stop.why, done.stop.end) == (13, why, 14)
    rest = merge(TP, source, 14, 99, limits=limits, now_ms=NOW, way=way)
    assert found(rest.pieces) == [(14, fine)]
    assert rest.stop is not None
    assert rest.stop.offset == 15


def test_what_lies_at_a_limit_is_taken_and_no_time_is_not_early(way: Way) -> None:
    limits = Limits(before_ms=1000, after_ms=1000, needs_key=True)
    raws = [Raw(b"", b"v", NOW - 1000), Raw(b"", b"v", NOW + 1000), Raw(b"", None, -1)]
    done = merge(TP, parts(batch(raws)), 0, 99, limits=limits, now_ms=NOW, way=way)
    assert found(done.pieces) == list(enumerate(raws))


@pytest.mark.parametrize("codec", CODECS)
def test_no_batch_is_larger_than_the_topic_takes(way: Way, codec: str) -> None:
    """Records that hardly compress behind ones that do: what was expected of them is wrong."""
    chance = random.Random(5)
    raws = [Raw(b"k", bytes(500)) for _ in range(60)] + [Raw(None, chance.randbytes(300)) for _ in range(60)]
    source = parts(batch(raws[:60], 0, codec), batch(raws[60:], 60, codec, deltas=range(0, 120, 2)))
    offsets = [*range(60), *range(60, 180, 2)]
    done = merge(TP, source, 0, 999, limits=Limits(max_bytes=2000), now_ms=0, way=way)
    assert done.stop is None
    assert found(done.pieces) == list(zip(offsets, raws, strict=True))
    assert max(len(piece.data) for piece in done.pieces) <= 2000
    packed = pack(run_of(list(zip(offsets, raws, strict=True))), codec=codec, max_bytes=2000, way=way)
    assert found(packed.pieces) == list(zip(offsets, raws, strict=True))
    assert max(len(piece.data) for piece in packed.pieces) <= 2000


def test_a_record_larger_than_is_wanted_goes_alone(way: Way) -> None:
    raws = [Raw(None, b"a"), Raw(None, bytes(5000)), Raw(None, b"b")]
    done = merge(TP, parts(batch(raws)), 0, 9, limits=Limits(), now_ms=0, target_bytes=300, way=way)
    assert [piece.stretches for piece in done.pieces] == [(OffsetRange(at, at + 1),) for at in range(3)]
    assert found(done.pieces) == list(enumerate(raws))


def test_a_record_that_does_not_fit_is_told_by_pack(way: Way) -> None:
    run = run_of([(5, Raw(None, b"a")), (8, Raw(None, random.Random(1).randbytes(900))), (9, Raw(None, b"b"))])
    for codec in CODECS:
        done = pack(run, codec=codec, max_bytes=800, way=way)
        assert found(done.pieces) == [(5, Raw(None, b"a"))]
        assert done.stop is not None
        assert (done.stop.offset, done.stop.why) == (8, Why.TOO_LARGE)


def test_small_batches_become_one(way: Way) -> None:
    source = parts(*(batch([Raw(b"k", b"v%d" % at)], at, CODECS[at % 5]) for at in range(40)))
    (piece,) = merge(TP, source, 0, 99, limits=Limits(), now_ms=0, codec="zstd", way=way).pieces
    assert (piece.stretches, piece.batch.codec) == ((OffsetRange(0, 40),), "zstd")


def test_a_level_is_the_codecs(way: Way) -> None:
    run = run_of([(at, Raw(None, b"value %d of some" % (at * at))) for at in range(2000)])
    sizes = [len(pack(run, codec="gzip", level=level, max_bytes=10**6, way=way).pieces[0].data) for level in (1, 9)]
    assert sizes[0] > sizes[1]
    with pytest.raises(CodecError, match="level 77"):
        pack(run, codec="gzip", level=77, max_bytes=10**6, way=way)


GOOD = [Raw(b"k", b"v", NOW, ((b"h", b"x"),)), Raw(b"k", b"w", NOW + 5), Raw(None, None)]


def broken_batches() -> list[tuple[str, bytearray]]:
    good = bytes(batch(GOOD)[61:])
    return [
        ("a number", batch(GOOD, records=b"\xff" * len(good))),
        ("too few bytes", batch(GOOD, records=good[:-3])),
        ("too many bytes", batch(GOOD, records=good + b"\0")),
        ("a record too long", batch(GOOD, records=varint(100) + good[1:])),
        ("a record too short", batch(GOOD, records=varint(8) + good[1:])),
        ("offsets twice", batch(GOOD, deltas=[0, 0, 1], last_delta=2)),
        ("offsets backwards", batch(GOOD, deltas=[0, 2, 1])),
        ("an offset beyond", batch(GOOD, deltas=[0, 1, 7], last_delta=6)),
        ("a negative offset", batch(GOOD, deltas=[-1, 0, 1], last_delta=2)),
        ("a time", batch([GOOD[0], GOOD[1]._replace(timestamp=NOW + 2**61)])),
        ("damaged", batch(GOOD, 0, "zstd", records=compress("zstd", good)[:-2])),
        ("not compressed", batch(GOOD, 0, "lz4", records=good)),
        ("a bomb", batch(GOOD, 0, "gzip", records=compress("gzip", bytes(140_000_000), 1))),
    ]


@pytest.mark.parametrize(("what", "bad"), broken_batches(), ids=lambda each: each if isinstance(each, str) else "")
def test_what_is_broken_is_told_and_its_neighbours_are_packed(way: Way, what: str, bad: bytearray) -> None:
    bad[:8] = (10).to_bytes(8, "big")
    source = parts(batch(GOOD, 7, "snappy"), bad)
    for at in (0, 1):
        runs = unpack(TP, source[at:], 0, 99, way=way)
        assert at or raws_of(next(runs)) == [(7 + at, raw) for at, raw in enumerate(GOOD)]
        with pytest.raises(Broken, match=r"orders.*offset 10") as raised:
            next(runs)
        assert raised.value.at == source[1][0].base_offset
        assert raised.value.is_time == (what == "a time")
    done = merge(TP, source, 0, 99, limits=Limits(), now_ms=0, way=way)
    assert found(done.pieces) == [(7 + at, raw) for at, raw in enumerate(GOOD)], what
    assert done.stop is not None
    why = Why.NO_TIME if what == "a time" else Why.BROKEN
    assert (done.stop.offset, done.stop.end, done.stop.why) == (10, source[1][0].end, why)
    assert "orders" in done.stop.sentence


def test_an_old_format_is_none_of_these(way: Way) -> None:
    ((one, data),) = parts(batch(GOOD))
    with pytest.raises(CodecError, match="format 1"):
        merge(TP, [(one._replace(magic=1), data)], 0, 9, limits=Limits(), now_ms=0, way=way)
    with pytest.raises(CodecError, match="format 1"):
        next(unpack(TP, [(one._replace(magic=1), data)], 0, 9, way=way))


def test_a_codec_of_tomorrow_is_told(way: Way) -> None:
    ((one, data),) = parts(batch(GOOD))
    done = merge(TP, [(one._replace(attributes=6), data)], 0, 9, limits=Limits(), now_ms=0, codec="none", way=way)
    assert done.stop is not None
    assert done.stop.why is Why.BROKEN
