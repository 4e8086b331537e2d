"""Provenance headers: their bytes, which records end their way where, and what a flow knows for its own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.codec import PROVENANCE_HEADER, decode_provenance, encode_provenance
from srm_spark.core.limits import Limits, first_refused
from srm_spark.core.model import Interval, Provenance, TopicPartition
from srm_spark.core.provenance import Header, Stamp
from srm_spark.core.reports import PartitionReport, Sent
from srm_spark.core.tail import TailRecord, copies, match_tail, ours
from srm_spark.errors import CodecError
from tests.unit.arrow_rows import run_of

T0 = TopicPartition("t", 0)
FIRST = (Provenance("A", TopicPartition("t1", 3), 100), "0000000141000274310000000000030000000000000064")
ON_ITS_WAY = (
    Provenance("A", TopicPartition("t1", 3), 100, ("B", "C")),
    "000000014100027431000200014200014300000003" + "0000000000000064",
)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.mark.parametrize(("provenance", "value"), [FIRST, ON_ITS_WAY])
def test_the_bytes_are_these(provenance: Provenance, value: str) -> None:
    assert encode_provenance(provenance).hex() == value
    assert decode_provenance(bytes.fromhex(value)) == provenance


@given(
    st.builds(
        Provenance,
        names,
        st.builds(TopicPartition, names, st.integers(0, 2**31 - 1)),
        st.integers(0, 2**63 - 1),
        st.lists(names, max_size=4).map(tuple),
    )
)
def test_every_provenance_survives_the_round_trip(provenance: Provenance) -> None:
    assert decode_provenance(encode_provenance(provenance)) == provenance


@pytest.mark.parametrize("value", [None, b"", b"\x00\x01", bytes.fromhex(FIRST[1])[:-1], b"\xff" * 40])
def test_other_bytes_are_none(value: bytes | None) -> None:
    with pytest.raises(CodecError):
        decode_provenance(value)


def hop(source: str, target: str, offset: int, headers: list[Header] | None) -> list[Header] | None:
    """What a record on `source` carries on `target`; None where it does not come there."""
    return None if headers is None else Stamp(source, target).headers(T0, offset, headers)


@pytest.mark.parametrize("ring", ["AB", "ABC", "ABCDE"])
def test_a_record_goes_round_a_ring_once_and_keeps_where_it_began(ring: str) -> None:
    for at in range(len(ring)):
        way = ring[at:] + ring[:at]
        headers: list[Header] | None = [("own", b"1")]
        for number, (source, target) in enumerate(itertools.pairwise(way)):
            headers = hop(source, target, 7 + number, headers)
            assert headers is not None
            assert [name for name, _ in headers] == ["own", PROVENANCE_HEADER]
            found = decode_provenance(headers[-1][1])
            assert (found.alias, found.partition, found.offset) == (way[0], T0, 7)
            assert found.via == tuple(way[1 : number + 1])
        assert hop(way[-1], way[0], 99, headers) is None


def test_a_chain_of_pairs_does_not_play_ping_pong() -> None:
    """A<->B<->C: what came to C through B does not go back to B, though it was first written on A."""
    at_b = hop("A", "B", 0, [])
    at_c = hop("B", "C", 0, at_b)
    assert at_c is not None
    assert hop("C", "B", 0, at_c) is None
    assert hop("B", "A", 0, at_b) is None


def test_a_header_that_an_application_hands_on_makes_no_copy_of_its_record() -> None:
    forwarded = [("srm-provenance", encode_provenance(Provenance("A", TopicPartition("orders", 0), 5)))]
    headers = Stamp("B", "A").headers(T0, 9, forwarded)
    assert headers is not None
    assert headers[0] == forwarded[0]
    assert decode_provenance(headers[1][1]) == Provenance("B", T0, 9)
    assert Stamp("A", "B").headers(T0, 3, headers) is None  # the last one decides


@pytest.mark.parametrize("value", [None, b"", b"mine"])
def test_a_header_of_this_name_that_says_nothing_is_kept(value: bytes | None) -> None:
    headers = Stamp("A", "B").headers(T0, 9, [("srm-provenance", value)])
    assert headers == [("srm-provenance", value), ("srm-provenance", encode_provenance(Provenance("A", T0, 9)))]


def test_a_flow_knows_its_own_copies() -> None:
    stamp = Stamp("A", "B")
    copied = stamp.headers(T0, 4, [("h", None)])
    assert copied is not None
    assert stamp.is_ours("t", copied)
    assert not stamp.is_ours("other", copied)
    assert not stamp.is_ours("t", [("h", None)])
    assert not Stamp("C", "B").is_ours("t", copied)
    onward = Stamp("B", "C").headers(T0, 8, copied)
    assert onward is not None
    assert Stamp("B", "C").is_ours("t", onward)
    assert not Stamp("A", "C").is_ours("t", onward)


def test_a_run_without_headers_is_stamped_as_one_with_them() -> None:
    bare, mixed = run_of([3, 5, 6]), run_of([3, 5, 6], headers=[None, [], None])
    stamp = Stamp("A", "B")
    assert bare.stamp(stamp).stamped == mixed.stamp(stamp).stamped
    assert [record[3] for record in bare.stamp(stamp).records()] == [stamp.headers(T0, at, []) for at in (3, 5, 6)]


def test_what_came_from_the_target_is_left_out_of_a_run() -> None:
    back = Stamp("B", "A").headers(T0, 0, [("h", None)])
    assert back is not None
    run = run_of([3, 4, 6, 7], values=[b"a", b"b", None, b"d"], headers=[None, back, [("x", None)], None])
    run = run.stamp(Stamp("A", "B"))
    assert (run.offsets.tolist(), run.count, run.bytes) == ([3, 6, 7], 3, 5)
    assert [record[1] for record in run.records()] == [b"a", None, b"d"]
    assert [[name for name, _ in record[3] or []] for record in run.slice(1, 3).records()] == [
        ["x", PROVENANCE_HEADER],
        [PROVENANCE_HEADER],
    ]
    nothing = run_of([4], headers=[back]).stamp(Stamp("A", "B"))
    assert nothing.count == 0
    assert first_refused(nothing, Limits(needs_key=True), 0) is None


def test_the_header_counts_towards_the_size_of_a_record() -> None:
    run = run_of([0], values=[b"x" * 1000])
    size = next(size for size in range(1000, 1200) if first_refused(run, Limits(max_bytes=size), 0) is None)
    stamped = run.stamp(Stamp("A", "B"))
    header = len(PROVENANCE_HEADER) + len(encode_provenance(Provenance("A", T0, 0))) + 2  # and two lengths
    assert first_refused(stamped, Limits(max_bytes=size + header), 0) is None
    assert first_refused(stamped, Limits(max_bytes=size + header - 1), 0) is not None


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=20))
def test_records_among_those_of_others_are_mapped_one_by_one(steps: list[tuple[int, int]]) -> None:
    """Steps of source and target offset to the next record; what lies between was written by others."""
    there, here = np.cumsum(np.array(steps), axis=0).T.tolist()
    sent, report = Sent.of(run_of(there)), PartitionReport(T0, slack=None)
    for part, first, last in sent.pieces(here):
        report.add(part, first, last, 1.0, None)
    pairs = [(i.upstream + n, i.downstream + n) for i in report.intervals for n in range(i.count)]
    assert pairs == list(zip(there, here, strict=True))
    assert (report.failure, report.records, report.bytes) == (None, len(steps), sent.bytes)


def test_what_landed_among_records_of_others_is_found_again() -> None:
    stamp = Stamp("A", "B")

    def at(offset: int, value: bytes, headers: list[Header] | None = None) -> TailRecord:
        return TailRecord(offset, 1000, b"k", value, tuple(headers or ()))

    back = Stamp("B", "A").headers(T0, 0, [])
    source = [at(40, b"a"), at(41, b"from b", back), at(42, b"c"), at(43, b"d")]
    landed = [at(offset, value, stamp.headers(T0, up, [])) for offset, value, up in ((8, b"a", 40), (10, b"c", 42))]
    target = [at(7, b"b's"), landed[0], at(9, b"b's"), landed[1], at(11, b"b's")]
    match = match_tail(copies(stamp, T0, source), ours(stamp, T0, target), 40, 7)
    assert (match.foreign, match.next_offset) == (None, 43)
    assert match.intervals == [Interval(40, 8, 1), Interval(42, 10, 1)]
