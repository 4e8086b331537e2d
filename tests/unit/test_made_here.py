"""What is recorded as made here, and that what cannot be read is nobody's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.acls import MADE, STAGED, Acl, acl_records
from srm_spark.core.made_here import MadeHere, MadeTopic, topic_record
from srm_spark.core.topic_configs import configs_key, configs_value

READS = Acl("A.t", "LITERAL", "User:ann", "*", "READ", "ALLOW")
TOPIC = b'["topic","A.t"]', b'{"v":1,"of":"t","id":"x"}'
CONFIGS = configs_key("A.t"), configs_value({"a": "1"})
(ACLS,) = acl_records([], [READS]).items()
NEWER = b'{"v":2,"set":{},"made":[],"of":"t","id":"x"}'
(WAITING,) = acl_records([], [READS], STAGED).items()


def test_what_is_recorded_is_read_back() -> None:
    made = MadeHere()
    assert topic_record("A.t", MadeTopic("t", "x")) == TOPIC
    assert WAITING[0] == b'["staged","TOPIC","A.t"]'
    assert all(made.take(*record) for record in (TOPIC, CONFIGS, ACLS, WAITING))
    assert (made.topics, made.configs) == ({"A.t": MadeTopic("t", "x")}, {"A.t": {"a": "1"}})
    assert {*made.acls} == {*made.staged} == {READS}
    made.clear()
    assert made == MadeHere()


@pytest.mark.parametrize("record", [TOPIC, CONFIGS, ACLS, WAITING], ids=["topic", "configs", MADE, STAGED])
@pytest.mark.parametrize(
    "value", [None, b"", b"\xff", b"[]", b"7", b"{}", b'{"v":2,"set":{},"made":[],"of":"t","id":"x"}']
)
def test_what_is_written_over_a_record_takes_it_away(record: tuple[bytes, bytes], value: bytes | None) -> None:
    made = MadeHere()
    made.take(*record)
    assert not made.take(record[0], value)
    assert made == MadeHere()


@given(st.binary() | st.sampled_from([TOPIC[0], CONFIGS[0], ACLS[0]]), st.none() | st.binary())
def test_no_bytes_are_an_error_and_none_of_them_make_something_ours(key: bytes, value: bytes | None) -> None:
    made = MadeHere()
    assert not made.take(key, value)
    assert made == MadeHere()
