"""Names of headers: any bytes are a text that is the same bytes again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.header_names import is_plain, is_text, name_of, raw_name
from srm_spark.kafka.librdkafka import library, make_headers, read_headers


@given(st.binary())
def test_no_byte_is_lost(raw: bytes) -> None:
    assert raw_name(name_of(raw)) == raw


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_utf_8_is_the_text_that_it_says(name: str) -> None:
    assert name_of(name.encode()) == name
    assert is_text(name)


@pytest.mark.parametrize("raw", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"a\0b", b"\0"])
def test_what_others_would_change_is_not_plain(raw: bytes) -> None:
    assert not is_plain(name_of(raw))


@given(st.lists(st.tuples(st.binary().map(name_of), st.none() | st.binary())))
def test_librdkafka_keeps_them(headers: list[tuple[str, bytes | None]]) -> None:
    made = make_headers(headers, library())
    assert read_headers(made, library()) == headers
    library().rd_kafka_headers_destroy(made)
