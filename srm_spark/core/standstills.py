"""What stands still in a flow, why, and by which kind of failure; each under a name for people that nothing else has.

`t-0` may be a topic, and partition 0 of `t`: what is told apart is the `Scope`, never its name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from srm_spark.core.acts import Command, Scope
from srm_spark.core.model import Flow
from srm_spark.failure import FailureKind


@dataclass(frozen=True)
class Standstill:
    """A partition, a topic, or all of the flow."""

    scope: Scope
    why: str
    kind: FailureKind | None = None
    """None where no record is the cause, as of a topic that has no remote topic; or where it is not known."""


def of_pauses(pauses: Mapping[Scope, Command]) -> tuple[Standstill, ...]:
    """What somebody has paused."""
    return tuple(Standstill(scope, pause.held, FailureKind.PAUSED) for scope, pause in pauses.items())


def by_name(found: Iterable[Standstill], flow: Flow) -> dict[str, str]:
    """Topic or partition, or the whole flow → why, for people."""
    ordered = list(found)
    partitions = {str(one.scope) for one in ordered if one.scope.partition is not None}
    return {_name(one.scope, flow, partitions): one.why for one in ordered}


def _name(scope: Scope, flow: Flow, partitions: Collection[str]) -> str:
    if scope == Scope():
        return str(flow)
    is_ambiguous = scope.partition is None and str(scope) in partitions
    return f"topic {scope}" if is_ambiguous else str(scope)


def document_of(one: Standstill) -> dict[str, Any]:
    """For JSON; what there is not is left out."""
    scope = {name: value for name, value in vars(one.scope).items() if value is not None}
    kind = {} if one.kind is None else {"kind": one.kind.value}
    return {**scope, "why": one.why, **kind}


def standstill_of(document: Mapping[str, Any]) -> Standstill:
    """Read it back; a kind of a newer version is one that is not known. Raises KeyError and TypeError."""
    topic, partition, why = document.get("topic"), document.get("partition"), document["why"]
    if not isinstance(topic, str | None) or type(partition) not in (int, type(None)) or not isinstance(why, str):
        raise TypeError(document)
    kinds = {kind.value: kind for kind in FailureKind}
    return Standstill(Scope(topic, partition), why, kinds.get(document.get("kind", "")))


def from_names(held: Mapping[str, str]) -> tuple[Standstill, ...]:
    """As drivers of before said it, by names alone: one that ends in a number is taken for a partition."""
    return tuple(Standstill(_scope(name), why) for name, why in held.items())


def _scope(name: str) -> Scope:
    if "->" in name:
        return Scope()
    topic, dash, number = name.rpartition("-")
    is_number = number.isdecimal() and number == str(int(number))
    return Scope(topic, int(number)) if dash and topic and is_number else Scope(name)
