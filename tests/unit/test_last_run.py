"""The record of how a run ended, to the byte, and what becomes of others."""

from __future__ import annotations

import json

import pytest

from srm_spark.core.codec import decode_progress_key
from srm_spark.core.last_run import UNKNOWN_RUN, LastRun, decode_last_run, last_run_key
from srm_spark.core.model import Flow

FLOW = Flow("A", "B")


def test_the_key_is_a_connector_and_a_map_as_kafka_connect_wants_it() -> None:
    key = last_run_key(FLOW)
    assert key == b'["srm-spark",{"flow":"A->B"}]'
    name, partition = json.loads(key)
    assert isinstance(name, str)
    assert isinstance(partition, dict)
    assert decode_progress_key(key) is None, "a driver that does not know it passes it over"


@pytest.mark.parametrize(
    ("run", "value"),
    [
        (LastRun(True, False, False), b'{"v":1,"run":"clean","exactly_once":false,"stamped":false}'),
        (LastRun(False, True, True), b'{"v":1,"run":"running","exactly_once":true,"stamped":true}'),
        (
            LastRun(False, False, False, True),
            b'{"v":1,"run":"running","exactly_once":false,"stamped":false,"fenced":true}',
        ),
    ],
)
def test_what_is_written_is_read(run: LastRun, value: bytes) -> None:
    assert run.value() == value
    assert decode_last_run(value) == run


@pytest.mark.parametrize("value", [None, b"", b"[]", b"{}", b'{"v":2,"run":"clean","exactly_once":false}', b"\xff"])
def test_what_cannot_be_read_is_not_clean(value: bytes | None) -> None:
    assert decode_last_run(value) == UNKNOWN_RUN
    assert not UNKNOWN_RUN.is_clean
