"""Logs compared as batches: what is said is what is said of the same records, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.model import Interval, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.pieces import Cursor, Piece, Sealed, equal_ahead, size_of
from srm_spark.core.tail import TailRecord
from srm_spark.core.translation import IntervalMap
from srm_spark.core.verification import Checked, Difference, First, Sides, check
from srm_spark.kafka.batches.unpacking import unpack
from tests.batch_bytes import NOW, Raw, batch, parts, sealed
from tests.cluster_contract import taken

T = TopicPartition("t", 0)
CODECS = ("none", "lz4", "zstd")


def piece_of(
    records: Sequence[TailRecord],
    codec: str = "none",
    *,
    start: int = 0,
    end: int = 2**40,
    append_time: int | None = None,
) -> Sealed:
    """These records as one batch, of which offsets `start` to before `end` are wanted."""
    raws = [
        Raw(one.key, one.value, one.timestamp, tuple((name.encode(), value) for name, value in one.headers))
        for one in records
    ]
    base = records[0].offset
    deltas = [one.offset - base for one in records]
    ((header, data),) = parts(sealed(batch(raws, base, codec, deltas=deltas, append_time=append_time)))
    return Sealed(header, data[61:], start, end, lambda: list(unpack(T, [(header, data)], start, end)))


def record(offset: int, value: bytes = b"", **more: object) -> TailRecord:
    return TailRecord(offset, NOW + offset, b"k", value or b"v%d" % offset)._replace(**more)  # type: ignore[arg-type]


CONTENT = st.sampled_from([None, b"", b"a", b"b" * 40])
RECORDS = st.builds(
    TailRecord,
    st.just(0),
    st.sampled_from([NOW, NOW + 1, 0, -1]),
    CONTENT,
    CONTENT,
    st.lists(st.tuples(st.sampled_from(["", "h", "é"]), CONTENT), max_size=2).map(tuple),
    st.just(False),
)


@st.composite
def logs(draw: st.DrawFn) -> list[TailRecord]:
    """Records with gaps between some of them."""
    offset, found = 0, []
    for one in draw(st.lists(RECORDS, max_size=30)):
        offset += draw(st.sampled_from([1, 1, 1, 1, 3]))
        found.append(one._replace(offset=offset))
    return found


def cut(draw: st.DrawFn, records: Sequence[TailRecord]) -> list[Piece]:
    """The same, here as batches of any codec and there one by one."""
    pieces: list[Piece] = []
    left = list(records)
    while left:
        size = draw(st.integers(1, 8))
        some, left = left[:size], left[size:]
        codec = draw(st.sampled_from([*CODECS, ""]))
        pieces.extend([piece_of(some, codec)] if codec else some)
    return pieces


@given(st.data(), logs())
def test_a_cursor_gives_every_record_once(data: st.DataObject, log: list[TailRecord]) -> None:
    assert taken(data.draw(st.composite(cut)(log))) == log


@given(st.data(), logs(), st.integers(0, 40), st.integers(0, 40))
def test_a_part_of_a_batch_gives_what_is_wanted(
    data: st.DataObject, log: list[TailRecord], start: int, end: int
) -> None:
    pieces: list[Piece] = []
    offsets = [one.offset for one in log]
    while log:
        size = data.draw(st.integers(1, 8))
        some, log = log[:size], log[size:]
        pieces.append(piece_of(some, start=start, end=end))
    assert [one.offset for one in taken(pieces)] == [offset for offset in offsets if start <= offset < end]


FAULTS = st.sampled_from(["lose", "double", "key", "value", "headers", "time", "foreign"])


@given(st.data(), logs(), st.dictionaries(st.integers(1, 60), FAULTS, max_size=5))
def test_what_is_said_of_batches_is_what_is_said_of_records(
    data: st.DataObject, log: list[TailRecord], faults: dict[int, str]
) -> None:
    intervals, copies, at = [], [], 100
    for one in log:
        fault, copy = faults.get(one.offset), one._replace(offset=at)
        changes: dict[str, dict[str, object]] = {
            "key": {"key": b"x"},
            "value": {"value": b"x"},
            "headers": {"headers": (("x", None),)},
            "time": {"timestamp": NOW + 9},
        }
        intervals.append(Interval(one.offset, at, 1))
        if fault == "lose":
            at += 1
            continue
        copies.append(copy._replace(**changes.get(fault or "", {})))  # type: ignore[arg-type]
        at += 1
        if fault in ("double", "foreign"):
            again = copy if fault == "double" else TailRecord(0, NOW, b"f", b"f")
            copies.append(again._replace(offset=at))
            at += 1
    known = PartitionMap("id")
    known.put(IntervalMap(OffsetRange(0, log[-1].offset + 1 if log else 0), at, merged(intervals)))
    sides = Sides(T, known, lambda: First(0, 0))
    singly = check(log, copies, sides)
    at_once = check(data.draw(st.composite(cut)(log)), data.draw(st.composite(cut)(copies)), sides)
    assert at_once == singly


def merged(intervals: list[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for one in intervals:
        last = found[-1] if found else None
        if last is not None and (last.upstream_end, last.downstream_end) == (one.upstream, one.downstream):
            found[-1] = last._replace(count=last.count + 1)
        else:
            found.append(one)
    return found


LOG = [record(offset) for offset in range(100)]
COPIES = [one._replace(offset=one.offset + 50) for one in LOG]


def found(source: Iterable[Piece], target: Iterable[Piece]) -> Checked:
    known = PartitionMap("id")
    known.put(IntervalMap(OffsetRange(0, 100), 150, [Interval(0, 50, 100)]))
    return check(source, target, Sides(T, known, lambda: First(0, 0)))


def never(*_: object) -> NoReturn:
    raise AssertionError("nobody has to look into it")


def test_nobody_looks_into_batches_that_were_copied_whole() -> None:
    here = [replace(piece_of(LOG[at : at + 50]), opened=never) for at in (0, 50)]
    there = [replace(piece_of(COPIES[at : at + 50]), opened=never) for at in (0, 50)]
    assert found(here, there).equal == 100


@pytest.mark.parametrize("codec", CODECS)
def test_batches_that_were_merged_are_compared_in_columns(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cursor, "take", never)
    here = [piece_of(LOG[at : at + 10], codec) for at in range(0, 100, 10)]
    assert found(here, [piece_of(COPIES[:70]), piece_of(COPIES[70:])]).equal == 100


def test_one_changed_byte_in_a_whole_batch_is_found() -> None:
    copies = [*COPIES[:33], COPIES[33]._replace(value=b"V33"), *COPIES[34:]]
    result = found([piece_of(LOG)], [piece_of(copies)])
    assert [(one.kind, one.source, one.target) for one in result.findings] == [(Difference.CHANGED, 33, 83)]
    assert result.equal == 99


def test_other_times_of_equal_bytes_are_found() -> None:
    """A header says where the times of its records begin."""
    copies = [one._replace(timestamp=one.timestamp + 1) for one in COPIES]
    assert found([piece_of(LOG)], [piece_of(copies)]).differences == {Difference.CHANGED: 100}


def test_where_the_times_of_a_batch_begin_is_compared_by_itself() -> None:
    shifted = piece_of([one._replace(timestamp=one.timestamp + 1) for one in COPIES])
    damaged = replace(shifted, batch=shifted.batch._replace(max_timestamp=LOG[-1].timestamp))
    assert found([piece_of(LOG)], [damaged]).differences == {Difference.CHANGED: 100}


def test_equal_bytes_under_the_times_of_a_broker_are_other_records() -> None:
    """Its records all have the batch's largest time, and a copy as it is would have their producer's."""
    largest = LOG[-1].timestamp
    result = found([piece_of(LOG, append_time=largest)], [piece_of(COPIES)])
    assert (result.differences, result.equal) == ({Difference.CHANGED: 99}, 1)


def test_equal_bytes_of_another_codec_are_not_the_same() -> None:
    piece = piece_of(LOG)
    other = replace(piece, batch=piece.batch._replace(attributes=3))
    assert piece.is_like(piece)
    assert not piece.is_like(other)


def test_a_batch_whose_first_record_is_gone_begins_with_the_next_one() -> None:
    """Compaction leaves a batch where it began."""
    ((header, data),) = parts(sealed(batch([Raw(b"k", b"v")] * 2, 0, deltas=[1, 2])))
    piece = Sealed(header, data[61:], 0, 9, lambda: list(unpack(T, [(header, data)], 0, 9)))
    assert Cursor([piece]).offset == 1
    assert [one.offset for one in taken([piece])] == [1, 2]


def test_times_of_the_broker_are_not_compared() -> None:
    assert found([piece_of(LOG)], [piece_of(COPIES, append_time=NOW + 5)]).equal == 100
    assert found([piece_of(LOG)], [piece_of(COPIES)]).equal == 100


def test_a_batch_that_was_passed_is_known_when_it_is_doubled() -> None:
    again = [one._replace(offset=one.offset + 150) for one in LOG[20:23]]
    known = PartitionMap("id")
    known.put(IntervalMap(OffsetRange(0, 100), 180, [Interval(0, 50, 100)]))
    result = check([piece_of(LOG)], [piece_of(COPIES), piece_of(again)], Sides(T, known, lambda: First(0, 0)))
    assert [(one.kind, one.source, one.target) for one in result.findings] == [
        (Difference.DOUBLED, offset, offset + 150) for offset in (20, 21, 22)
    ]


def test_single_records_are_never_passed_unseen() -> None:
    assert equal_ahead(Cursor([LOG[0]]), Cursor([LOG[0]]), 1) == 0
    assert equal_ahead(Cursor([piece_of(LOG)]), Cursor(LOG), 100) == 0


def test_no_more_is_passed_than_is_asked_for() -> None:
    assert equal_ahead(Cursor([piece_of(LOG)]), Cursor([piece_of(LOG)]), 30) == 30


def test_sizes_are_those_of_what_travels() -> None:
    assert size_of(piece_of(LOG)) == piece_of(LOG).batch.size
    assert size_of(TailRecord(0, 0, b"ab", None, (("h", b"xy"),))) == 5
