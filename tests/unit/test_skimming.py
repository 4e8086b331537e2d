"""Small batches that are known together: what comes of them is what comes of each by itself."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from srm_spark.core.limits import Limits
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.record_batch import Batch, Fit, batches_in
from srm_spark.kafka.batches import ways
from srm_spark.kafka.batches.damage import sound, sound_sources
from srm_spark.kafka.batches.skimming import SMALL_BYTES, Skimmed, skim
from srm_spark.kafka.batches.sorting import Form, Sorted, sort
from srm_spark.kafka.batches.ways import Way
from tests.batch_bytes import NOW, Raw, batch, read, sealed

TP = TopicPartition("orders", 3)
FORM = Form(Fit(1_000_000), Limits(max_bytes=1_000_000))
KEYED = Form(Fit(1_000_000), Limits(max_bytes=1_000_000, needs_key=True))
TRANSACTIONAL, CONTROL = 0x10, 0x20


@pytest.fixture(params=["compiled", "interpreted"])
def way(request: pytest.FixtureRequest) -> Way:
    return ways.best() if request.param == "compiled" else ways.interpreted()


def marked(one: bytearray, bits: int) -> bytearray:
    """The batch with more attributes."""
    struct.pack_into(">h", one, 21, struct.unpack_from(">h", one, 21)[0] | bits)
    return sealed(one)


def small(base: int, count: int = 1, value: bytes = b"v", key: bytes | None = b"k") -> bytearray:
    """One of plain records."""
    return sealed(batch([Raw(key, value, NOW + at) for at in range(count)], base))


def marker(base: int) -> bytearray:
    """The end of a transaction."""
    return marked(batch([Raw(b"\0\0\0\1", b"\0\0\0\0\0\0")], base), TRANSACTIONAL | CONTROL)


def one_by_one(data: memoryview, start: int, end: int, form: Form) -> tuple[Sorted, str | None]:
    """Each batch looked at by itself."""
    found: list[Batch] = []
    error = sound(TP, data, end, found)
    return sort(TP, [(b, data[b.at : b.at + b.size]) for b in found], start, end, form), None if error is None else str(
        error
    )


def together(
    data: memoryview, start: int, end: int, form: Form, *, takes_transactions: bool = True, way: Way | None = None
) -> tuple[Sorted, str | None, int]:
    """The same, and how many were known together."""
    found: list[Batch | Skimmed] = []
    error = sound_sources(TP, data, end, found, takes_transactions=takes_transactions, way=way)
    sources = [b if isinstance(b, Skimmed) else (b, data[b.at : b.at + b.size]) for b in found]
    count = sum(len(one.table) for one in found if isinstance(one, Skimmed))
    return sort(TP, sources, start, end, form), None if error is None else str(error), count


def content(found: Sorted) -> tuple[list[tuple[int, Raw]], int, OffsetRange | None, object]:
    """Source offsets and records of all that goes, and where it ends."""
    records = []
    for piece in found.pieces:
        offsets = [at for stretch in piece.stretches for at in range(*stretch)]
        base = piece.batch.base_offset if piece.is_whole else 0
        records += list(zip(offsets, (raw for _, raw in read(piece.data)), strict=True))
        assert [at for at, _ in read(piece.data)] == [base + at for at in range(len(offsets))]
    return records, found.next, found.stop, found.hold


def log_by(chance: random.Random) -> bytes:
    """Batches of every kind, mostly small and plain."""
    pieces, base = [], 50
    for _ in range(chance.randrange(1, 30)):
        base += chance.choice((0, 0, 0, 3))
        raws = [
            Raw(chance.choice((b"k", None)), chance.choice((b"v" * chance.randrange(40), None)), NOW + at)
            for at in range(chance.choice((1, 1, 1, 2, 5)))
        ]
        kind = chance.random()
        if kind < 0.6:
            one = sealed(batch(raws, base))
        elif kind < 0.68:
            one = sealed(batch(raws, base, "lz4"))
        elif kind < 0.74:
            one, raws = marker(base), raws[:1]
        elif kind < 0.8:
            one = marked(batch(raws, base), TRANSACTIONAL)
        elif kind < 0.86:
            one = sealed(batch(raws, base, append_time=NOW + 77))
        elif kind < 0.92:
            one = sealed(batch(raws, base, deltas=[2 * at for at in range(len(raws))], last_delta=2 * len(raws)))
            base += len(raws) + 1
        elif kind < 0.96:
            one = sealed(batch([], base, last_delta=4))
            base += 5
        else:
            one = sealed(batch([Raw(b"k", b"x" * (SMALL_BYTES + 1))], base))
            raws = raws[:1]
        base += len(raws)
        pieces.append(one)
    if chance.random() < 0.3:
        broken = chance.choice(pieces)
        broken[chance.choice((20, 40, 60, len(broken) - 1))] ^= 0x55
    return b"".join(pieces)[: None if chance.random() < 0.8 else -3]


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**32), st.integers(40, 130), st.integers(40, 130), st.booleans())
def test_what_comes_of_them_is_what_comes_of_each_by_itself(seed: int, start: int, end: int, needs_key: bool) -> None:
    data = memoryview(log_by(random.Random(seed))).toreadonly()
    form = KEYED if needs_key else FORM
    wanted, error = one_by_one(data, start, end, form)
    # One that goes as it came is not looked into, and the target's broker finds what it refuses.
    assume(not (needs_key and any(piece.is_whole for piece in wanted.pieces)))
    for how in both():
        found, their_error, _ = together(data, start, end, form, way=how)
        assert content(found) == content(wanted)
        if wanted.next < end and not wanted.is_over:  # else nobody looks at what is behind that
            assert their_error == error


def both() -> tuple[Way, Way]:
    return ways.best(), ways.interpreted()


def skimmed(*batches: bytearray, way: Way, takes_transactions: bool = True) -> int:
    """How many batches are known together."""
    data = memoryview(b"".join(batches)).toreadonly()
    return together(data, 0, 10**6, FORM, takes_transactions=takes_transactions, way=way)[2]


def test_two_that_are_plain_go_together_and_one_goes_as_it_came(way: Way) -> None:
    assert skimmed(small(0), small(1, 3), small(4), way=way) == 3
    data = memoryview(bytes(small(0)))
    found, _, count = together(data, 0, 10, FORM, way=way)
    assert (count, [piece.is_whole for piece in found.pieces]) == (0, [True])


ODD: Sequence[bytearray] = (
    sealed(batch([Raw(b"k", b"v")], 2, "lz4")),
    small(2, value=b"x" * SMALL_BYTES),
    small(1),
    bytearray(struct.pack(">qiiB", 2, 60, 0, 1) + bytes(55)),
    marked(small(2), 0x07),
    sealed(batch([Raw(b"k", b"v")], 2, last_delta=-1)),
    sealed(batch([Raw(b"k", b"v", 2**62)], 2)),
)


@pytest.mark.parametrize("odd", ODD, ids=["lz4", "large", "again", "old", "codec", "count", "time"])
def test_what_is_odd_ends_them(odd: bytearray, way: Way) -> None:
    data = memoryview(b"".join([small(0), small(1), odd, small(3), small(4)])).toreadonly()
    first = skim(data, 10**6, takes_transactions=True, way=way)
    assert first is not None
    assert (len(first.table), first.end, first.size) == (2, 2, 2 * len(small(0)))


def test_where_transactions_were_aborted_theirs_are_looked_at_one_by_one(way: Way) -> None:
    log = (small(0), small(1), marked(small(2), TRANSACTIONAL), marker(3), small(4), small(5))
    assert skimmed(*log, way=way) == 6
    assert skimmed(*log, way=way, takes_transactions=False) == 4


def test_markers_alone_decide_nothing_of_what_comes_behind_them(way: Way) -> None:
    """Their codec is none: what is compressed stays so, and one small batch goes as it came."""
    packed = [sealed(batch([Raw(b"k", b"v" * 500)], at, "lz4")) for at in (2, 3)]
    for behind in (packed[:1], packed):
        data = memoryview(b"".join([marker(0), marker(1), *behind])).toreadonly()
        found, _, count = together(data, 0, 10, FORM, way=way)
        assert count == 2
        assert [(piece.batch.codec, piece.is_whole) for piece in found.pieces] == [("lz4", len(behind) == 1)]
    data = memoryview(b"".join([small(0), small(1), marker(2), *packed])).toreadonly()
    found, _, count = together(data, 2, 10, FORM, way=way)
    assert (count, [piece.batch.codec for piece in found.pieces]) == (3, ["lz4"])


def test_behind_the_end_nothing_is_looked_at(way: Way) -> None:
    data = memoryview(b"".join([small(0), small(1), *(small(at) for at in range(2, 50))])).toreadonly()
    found: list[Batch | Skimmed] = []
    assert sound_sources(TP, data, 2, found, takes_transactions=True, way=way) is None
    assert [(one.base_offset, one.end) for one in found] == [(0, 2), (2, 3)]


def test_a_batch_that_begins_at_the_end_is_not_taken(way: Way) -> None:
    data = memoryview(b"".join([small(0), small(1), small(2)])).toreadonly()
    found = skim(data, 2, takes_transactions=True, way=way)
    assert found is not None
    assert found.end == 2


def test_each_of_them_is_known_by_itself_where_that_is_asked(way: Way) -> None:
    data = memoryview(b"".join([small(7), marker(8), small(9, 4)])).toreadonly()
    found = skim(data, 100, takes_transactions=True, way=way)
    assert found is not None
    assert [found.batch(row)._replace(at=0) for row in range(3)] == [one._replace(at=0) for one in batches_in(data)]
    assert (found.base_offset, found.end, found.records) == (7, 13, 5)
    within = [found.within(*ends) for ends in ((0, 7), (0, 8), (8, 9), (8, 10), (12, 20), (13, 20))]
    assert [one and (one.base_offset, one.end) for one in within] == [None, (7, 8), (8, 9), (8, 13), (9, 13), None]
