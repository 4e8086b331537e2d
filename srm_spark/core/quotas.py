"""Which quotas of users the target gets of those of the source (KIP-546). Pure.

What somebody else has set there stays; what was set here and is gone on the source goes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from srm_spark.core.compact_json import compact_json

_VERSION, QUOTAS = 1, "quotas"
_USER = "user"
Entity = tuple[tuple[str, str | None], ...]
"""Kind (`user`, `client-id`) and name, of each part; a name of None is the default one."""


class Quota(NamedTuple):
    """One limit of somebody."""

    entity: Entity
    key: str
    """`producer_byte_rate`, `consumer_byte_rate`, `request_percentage`, `controller_mutation_rate`."""

    @property
    def is_of_user(self) -> bool:
        """Whether it is about a user, alone or with a client id."""
        return _USER in dict(self.entity)

    def __str__(self) -> str:
        names = [f"default {kind}" if name is None else f"{kind} {name}" for kind, name in self.entity]
        return f"{self.key} of {', '.join(names)}"


Quotas = Mapping[Quota, float]


@dataclass(frozen=True)
class QuotasCompared:
    """What the quotas of two clusters come to."""

    changes: Mapping[Quota, float | None] = field(default_factory=dict)
    """To be made on the target; None takes one back."""
    kept: Quotas = field(default_factory=dict)
    """Set there by somebody else, while the source has another value."""
    made: Quotas = field(default_factory=dict)
    """What is ours then."""


def compare_quotas(here: Quotas, there: Quotas, made: Quotas, principal: Callable[[str], str | None]) -> QuotasCompared:
    """Quotas of the source, of the target, and those that were made there before; `principal` as of ACLs."""
    changes: dict[Quota, float | None] = {}
    kept: dict[Quota, float] = {}
    ours: dict[Quota, float] = {}
    wanted: dict[Quota, float] = {}
    for quota, value in here.items():
        if (mapped := _mapped(quota, principal)) is not None:
            wanted[mapped] = min(value, wanted.get(mapped, value))  # of several users that are one there
    for quota, value in wanted.items():
        now = there.get(quota)
        # Of ours that changes the old value is recorded until the change is made (`before_changes`): one that failed
        # or was cut off left either.
        if now is None or (quota in made and now in (made[quota], value)):
            ours[quota] = value
            if now != value:
                changes[quota] = value
        elif now != value:
            kept[quota] = now
    gone = {quota for quota in made.keys() - wanted.keys() if there.get(quota) == made[quota]}
    return QuotasCompared({**changes, **dict.fromkeys(sorted(gone, key=str))}, kept, ours)


def before_changes(made: Quotas, compared: QuotasCompared) -> Quotas:
    """What is ours until the changes are made: what is new as it will be, all else as it is; `made` as before."""
    return {**compared.made, **{quota: made[quota] for quota in compared.changes if quota in made}}


def after_refusals(made: Quotas, compared: QuotasCompared, refused: Mapping[Quota, str]) -> Quotas:
    """What is ours where some of the changes were refused; `made` is what was before."""
    ours = {quota: value for quota, value in compared.made.items() if quota not in refused}
    return {**ours, **{quota: made[quota] for quota in refused if quota in made}}


def _mapped(quota: Quota, principal: Callable[[str], str | None]) -> Quota | None:
    names = dict(quota.entity)
    user = names.get(_USER)
    if not quota.is_of_user:
        return None
    if user is None:
        return quota
    mapped = principal(f"User:{user}")
    if mapped is None:
        return None
    return quota._replace(entity=entity_of({**names, _USER: mapped.partition(":")[2]}))


def entity_of(names: Mapping[str, str | None]) -> Entity:
    """In its one order."""
    return tuple(sorted(names.items()))


def quota_records(before: Quotas, now: Quotas) -> dict[bytes, bytes]:
    """Key → value of the records by which what was made is `now` what it is: where that changed."""
    known, new = _by_entity(before), _by_entity(now)
    return {
        compact_json([QUOTAS, *entity]): compact_json({"v": _VERSION, "set": new.get(entity, {})})
        for entity in sorted(known.keys() | new.keys(), key=str)
        if known.get(entity) != new.get(entity)
    }


def entity_of_key(parts: Iterable[object]) -> Entity:
    """Of a key behind its first word; of what is none, one that nobody has."""
    return tuple(map(_part, parts))


def _part(part: object) -> tuple[str, str | None]:
    match part:
        case [str(kind), (str() | None) as name]:
            return kind, name
    return "", None


def decode_quotas(entity: Entity, value: bytes | None) -> Quotas | None:
    """What was made for somebody; None for anything else."""
    try:
        document = json.loads(value or b"")
        if document["v"] != _VERSION or not entity:
            return None
        return {Quota(entity, str(key)): float(limit) for key, limit in document["set"].items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _by_entity(quotas: Quotas) -> Mapping[Entity, Mapping[str, float]]:
    found: dict[Entity, dict[str, float]] = {}
    for quota in sorted(quotas, key=str):
        found.setdefault(quota.entity, {})[quota.key] = quotas[quota]
    return found
