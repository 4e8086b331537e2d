"""Few records as batches, read back by a reader of tests, and the same to the byte as a writer of tests makes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.record_batch import Author, batches_in, readdress, seal
from srm_spark.kafka.batches.small import small_batches
from tests import batch_bytes
from tests.batch_bytes import NOW, Raw, batch, read

RECORDS = st.lists(
    st.builds(
        ControlRecord,
        st.just("offsets"),
        st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.dictionaries(st.text(max_size=9), st.binary(max_size=300), max_size=3),
        timestamp=st.just(NOW),
    ),
    min_size=1,
    max_size=8,
)


def raw_of(record: ControlRecord) -> Raw:
    headers = tuple((name.encode(), content) for name, content in record.headers.items())
    return Raw(record.key, record.value, NOW, headers)


def records(*values: bytes) -> list[ControlRecord]:
    return [ControlRecord("offsets", b"k", value) for value in values]


@given(given=RECORDS)
def test_a_batch_is_what_any_other_writer_would_make_of_it(given: list[ControlRecord]) -> None:
    (piece,) = small_batches(given, 10**6)
    wanted = memoryview(bytearray(batch([raw_of(record) for record in given])))
    assert (piece.batch.size, piece.batch.records) == (len(piece.data), len(given))
    (theirs,) = batches_in(wanted)
    for one, content in ((piece.batch, piece.data), (theirs, wanted)):
        readdress(content, one, Author(7, 1, is_transactional=True), 5)
        seal(content, 0)
    assert piece.data == wanted


@given(given=RECORDS, most=st.integers(100, 1000))
def test_batches_are_cut_between_records(given: list[ControlRecord], most: int) -> None:
    made = list(small_batches(given, most))
    assert [raw for piece in made for _, raw in read(piece.data)] == [raw_of(record) for record in given]
    assert all(piece.batch.size <= most or piece.batch.records == 1 for piece in made)


def test_nothing_is_no_batch() -> None:
    assert list(small_batches([], 1000)) == []


def test_what_lies_there_is_what_any_producer_writes() -> None:
    whole = ControlRecord("offsets", b"k", None, {"h": b"1", "g": b""}, timestamp=1_700_000_000_000)
    (piece,) = small_batches([whole, ControlRecord("offsets", b"", b"v", timestamp=1_700_000_000_005)])
    assert [raw for _, raw in batch_bytes.read(piece.data)] == [
        batch_bytes.Raw(b"k", None, 1_700_000_000_000, ((b"h", b"1"), (b"g", b""))),
        batch_bytes.Raw(b"", b"v", 1_700_000_000_005),
    ]
    assert not piece.batch.is_transactional


def test_many_records_are_several_batches_and_a_large_one_is_alone() -> None:
    found = list(small_batches(records(b"a" * 40_000, b"b" * 40_000, b"c" * 500_000, b"d")))
    assert [piece.batch.records for piece in found] == [1, 1, 1, 1]
    assert [piece.batch.records for piece in small_batches(records(*[b"x" * 100] * 1000))] == [590, 410]
