"""Few records as batches, read back by a reader of tests, and the same to the byte as a writer of tests makes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.record_batch import Author, batches_in, readdress
from srm_spark.core.small_batch import Entry, small_batches
from tests.batch_bytes import NOW, Raw, batch, read

ENTRIES = st.lists(
    st.tuples(
        st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.dictionaries(st.text(max_size=9), st.binary(max_size=300), max_size=3),
    ),
    min_size=1,
    max_size=8,
)


def raw_of(entry: Entry) -> Raw:
    key, value, headers = entry
    return Raw(key, value, NOW, tuple((name.encode(), content) for name, content in headers.items()))


@given(entries=ENTRIES)
def test_a_batch_is_what_any_other_writer_would_make_of_it(entries: list[Entry]) -> None:
    ((header, data),) = small_batches(entries, NOW, 10**6)
    wanted = batch([raw_of(entry) for entry in entries])
    assert (header.size, header.records) == (len(data), len(entries))
    (theirs,) = batches_in(memoryview(wanted))
    for one, content in ((header, data), (theirs, wanted)):
        readdress(memoryview(content), one, Author(7, 1, is_transactional=True), 5)
    assert data == wanted


@given(entries=ENTRIES, most=st.integers(0, 1000))
def test_batches_are_cut_between_records(entries: list[Entry], most: int) -> None:
    made = list(small_batches(entries, NOW, most))
    assert [raw for _, data in made for _, raw in read(memoryview(data))] == [raw_of(entry) for entry in entries]
    assert all(header.size <= most or header.records == 1 for header, _ in made)


def test_nothing_is_no_batch() -> None:
    assert list(small_batches([], NOW, 1000)) == []
