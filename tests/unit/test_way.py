"""Whether batches go as they came, and why not."""

from __future__ import annotations

import pytest

from srm_spark.flow.batch.way import why_not_whole
from tests.unit.memory_flow import flow_settings


def test_nothing_forbids_it_by_default() -> None:
    assert why_not_whole(flow_settings()) is None
    assert why_not_whole(flow_settings({"A->B.exactly.once.support": "required"})) is None
    assert why_not_whole(flow_settings({"A->B.mode": "realtime"})) is None


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("provenance.header.enabled", "true", "header"),
        ("compiled.loop.enabled", "false", "Spark"),
    ],
)
def test_what_forbids_it_is_named(key: str, value: str, word: str) -> None:
    assert word in (why_not_whole(flow_settings({key: value})) or "")
