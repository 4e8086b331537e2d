"""Bytes of the quarantine topic, as they must stay: other versions and other programs read them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.quarantine import (
    PART_BYTES,
    Ended,
    QuarantinedRecord,
    SourcePlace,
    decode_content,
    decode_end,
    decode_entry,
    decode_key,
    encode_content,
    encode_end,
    encode_entry,
    end_key,
    entry_key,
    part_key,
    split_content,
)
from srm_spark.core.tail import TailRecord
from srm_spark.errors import CodecError
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.refused.quarantine import summary

REFUSED = Failure(FailureKind.TOO_LARGE, "too large")

PLACE = SourcePlace(Flow("A", "B"), TopicPartition("örders", 3), "abc-ID", 70)
RECORD = TailRecord(70, 1_700_000_000_000, b"k", None, (("h", b"\x00v"), ("ü", None)))
CONTENT = bytes.fromhex(
    "00000001 6b"  # key
    "ffffffff"  # no value
    "00000002"  # two headers
    "00000001 68 00000002 0076"
    "00000002 c3bc ffffffff"
)
ENTRY = QuarantinedRecord(PLACE, REFUSED, 1_700_000_000_000, False, len(CONTENT), 1_700_000_000_001)


def test_keys_are_the_source_position() -> None:
    assert entry_key(PLACE) == '["A->B","örders","abc-ID",3,70]'.encode()
    assert part_key(PLACE, 2) == '["A->B","örders","abc-ID",3,70,2]'.encode()
    assert decode_key(entry_key(PLACE)) == (PLACE, None)
    assert decode_key(part_key(PLACE, 2)) == (PLACE, 2)
    unknown = PLACE._replace(topic_id=None)
    assert entry_key(unknown) == '["A->B","örders",null,3,70]'.encode()
    assert decode_key(entry_key(unknown)) == (unknown, None)


@pytest.mark.parametrize(("copy", "value"), [(9, b'{"v":1,"copy":9}'), (None, b'{"v":1,"copy":null}')])
def test_what_became_of_a_record_is_kept_where_versions_without_it_see_nothing(copy: int | None, value: bytes) -> None:
    ended = Ended(PLACE, copy)
    assert end_key(PLACE) == '["A->B","örders","abc-ID",3,70,"end"]'.encode()
    assert encode_end(ended) == value
    assert decode_end(end_key(PLACE), value) == ended
    assert decode_key(end_key(PLACE)) is None, "as older versions read it"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (entry_key(PLACE), b'{"v":1,"copy":9}'),
        (part_key(PLACE, 2), b'{"v":1,"copy":9}'),
        (end_key(PLACE), None),
        (end_key(PLACE), b"[]"),
        (end_key(PLACE), b'{"v":2,"copy":9}'),
        (end_key(PLACE), b'{"v":1}'),
        (end_key(PLACE), b'{"v":1,"copy":"x"}'),
        (b"7", b'{"v":1,"copy":9}'),
    ],
)
def test_anything_else_says_nothing_of_what_became_of_a_record(key: bytes | None, value: bytes | None) -> None:
    assert decode_end(key, value) is None


@pytest.mark.parametrize(
    "key",
    [None, b"", b"{}", b"[1]", b'["A","t",null,0,1]', b'["A->B","t",null,0,"1"]', b'["A->B",1,null,0,1]', b"\xff"],
)
def test_keys_of_others_are_none(key: bytes | None) -> None:
    assert decode_key(key) is None


def test_an_entry_says_what_the_record_is_and_why_it_is_there() -> None:
    value = (
        '{"v":1,"reason":"too large","kind":"too-large","timestamp":1700000000000,'
        '"timestamp_type":"CreateTime","size":34,"part_size":500000,"parked_at":1700000000001}'
    )
    assert encode_entry(ENTRY) == value.encode()
    assert decode_entry(PLACE, value.encode()) == ENTRY


@pytest.mark.parametrize(
    "value", [b"", b"[]", b'{"v":2}', json.dumps({"v": 1, "part_size": 7}).encode(), b'{"v":1,"part_size":500000}']
)
def test_an_entry_of_another_program_is_an_error(value: bytes) -> None:
    with pytest.raises(CodecError, match="written by another program"):
        decode_entry(PLACE, value)


def test_content_is_key_value_and_headers() -> None:
    assert encode_content(RECORD) == CONTENT
    assert decode_content(ENTRY, CONTENT) == RECORD


def test_content_that_is_not_whole_is_an_error() -> None:
    with pytest.raises(CodecError, match=r"örders-3 at offset 70: 33 bytes of 34 are there"):
        decode_content(ENTRY, CONTENT[:-1])
    with pytest.raises(CodecError, match="cannot be read"):
        decode_content(ENTRY, b"\x7f" * len(CONTENT))


_BYTES = st.none() | st.binary(max_size=20)


@given(_BYTES, _BYTES, st.lists(st.tuples(st.text(max_size=5), _BYTES), max_size=4), st.booleans())
def test_any_record_comes_back(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], is_append_time: bool
) -> None:
    record = TailRecord(70, -1, key, value, tuple(headers), is_append_time)
    content = encode_content(record)
    assert decode_content(QuarantinedRecord(PLACE, ENTRY.why, -1, is_append_time, len(content), 0), content) == record


def test_content_is_cut_into_parts_that_fit_into_a_record() -> None:
    content = bytes(range(256)) * 4000
    parts = list(split_content(content))
    assert b"".join(parts) == content
    assert [len(part) for part in parts] == [PART_BYTES, PART_BYTES, len(content) - 2 * PART_BYTES]
    assert QuarantinedRecord(PLACE, ENTRY.why, 0, False, len(content), 0).parts == 3
    assert QuarantinedRecord(PLACE, ENTRY.why, 0, False, PART_BYTES, 0).parts == 1


def test_those_of_one_kind_are_counted_and_the_first_one_is_told() -> None:
    first, second = (Failure(FailureKind.TOO_LARGE, f"it takes {size} bytes") for size in (7, 9))
    assert summary([first, Failure(FailureKind.NO_KEY, "no key"), second]) == (
        "2 in quarantine: it takes 7 bytes; 1 in quarantine: no key"
    )
