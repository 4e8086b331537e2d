"""What the demo shows, without running it."""

from __future__ import annotations

import io

import pytest
from click import UsageError
from rich.console import Console

from srm_spark.cli.options import DIFFERENT, OK, pairs
from srm_spark.core.acts import Scope
from srm_spark.core.model import Flow
from srm_spark.core.standstills import Standstill
from srm_spark.demo.run import judge
from srm_spark.demo.view import Rate, View, fields
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.kafka.compare import PartitionComparison


def test_the_rate_is_that_of_the_last_seconds() -> None:
    rate = Rate()
    assert rate.take(0, 100.0) == 0
    assert rate.take(50, 101.0) == 50
    for second in range(2, 10):
        rate.take(50, 100.0 + second)
    assert rate.take(50, 110.0) == 0


def test_what_is_unknown_is_a_dash_and_reasons_are_shown() -> None:
    status = FlowStatus(
        Flow("A", "B"), FlowState.RETRYING, "no answer", standing=(Standstill(Scope("orders", 0), "too large"),)
    )
    shown = fields(status, 1000, 0.0)
    assert (shown["lag"], shown["latency"], shown["topics"]) == ("-", "-", "-")
    assert (shown["written"], shown["reason"], shown["held orders-0"]) == ("1,000", "no answer", "too large")


def row(records: int, difference: str | None = None) -> PartitionComparison:
    return PartitionComparison("orders", "primary.orders", 0, records, records, difference)


@pytest.mark.parametrize(
    ("rows", "code", "told"),
    [
        ([row(3), row(0)], OK, "3 records in 2 partitions, all equal"),
        ([row(3), row(3, "value b'1' / b'2'")], DIFFERENT, "1 of 2 partitions differ"),
        ([row(0)], DIFFERENT, "nothing was copied"),
    ],
)
def test_the_verdict_follows_the_rows(rows: list[PartitionComparison], code: int, told: str) -> None:
    out = io.StringIO()
    assert judge(View(Console(file=out)), rows) == code
    assert told in out.getvalue()
    assert all(one.difference is None or one.difference in out.getvalue() for one in rows)


def test_overrides_need_an_equals_sign() -> None:
    assert pairs(["a=b=c", " d = e"]) == {"a": "b=c", "d": " e"}
    with pytest.raises(UsageError, match="-D secret: write KEY=VALUE"):
        pairs(["secret"])
