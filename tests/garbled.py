"""Makes the sentence of every failure unreadable, to show that words decide nothing."""

from __future__ import annotations

import dataclasses

import pytest

from srm_spark.failure import Failure, FailureKind

GARBAGE = "\N{SNOWMAN}" * 7


def garble(monkeypatch: pytest.MonkeyPatch) -> set[FailureKind]:
    """From now on every failure of this process has the same words; the kinds that there were."""
    seen: set[FailureKind] = set()
    assert [each.name for each in dataclasses.fields(Failure)] == ["kind", "sentence", "topics"]

    def init(self: Failure, kind: FailureKind, _: str, topics: tuple[str, ...] = ()) -> None:
        for name, value in {"kind": kind, "sentence": GARBAGE, "topics": topics}.items():
            object.__setattr__(self, name, value)
        seen.add(kind)

    monkeypatch.setattr(Failure, "__init__", init)
    return seen
