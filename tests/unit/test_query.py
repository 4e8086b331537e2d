"""What a batch does that comes after the stop of its query."""

from __future__ import annotations

from typing import Any

from srm_spark.spark.query import Gate, Gated


def test_a_batch_behind_a_closed_gate_does_nothing_and_is_no_failure() -> None:
    seen: list[int] = []
    gate, frame = Gate(), Any
    batch = Gated(gate, lambda _, number: seen.append(number))
    batch(frame, 1)  # type: ignore[arg-type] # never looked at
    assert gate.close(1.0)
    batch(frame, 2)  # type: ignore[arg-type]
    assert seen == [1]


def test_a_gate_that_is_closed_waits_for_the_batch_in_progress() -> None:
    gate = Gate()
    with gate as is_open:
        assert is_open
        assert not gate.close(0.01)
    assert gate.close(0.01)
