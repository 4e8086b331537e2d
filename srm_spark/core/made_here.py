"""What is recorded as made here: remote topics, their configs, ACLs, quotas, rights that wait for a failover. Pure.

The records lie in the topic of the offset map (`flow/topics/offset_map.py`). Only what they say is ever changed back;
what cannot be read is nobody's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from srm_spark.core.acls import MADE, STAGED, Acl, decode_acls
from srm_spark.core.compact_json import compact_json
from srm_spark.core.quotas import QUOTAS, Entity, Quotas, decode_quotas, entity_of_key
from srm_spark.core.topic_configs import CONFIGS, decode_configs

_VERSION, _TOPIC = 1, "topic"
_Name = TypeVar("_Name")
_Value = TypeVar("_Value")


class MadeTopic(NamedTuple):
    """A remote topic that was made here."""

    source: str
    """Name of its source topic."""
    topic_id: str
    """One of another id was made by somebody else."""


@dataclass
class MadeHere:
    """Everything that is recorded."""

    configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Remote topic → the configs that it has from its source."""
    by_resource: dict[tuple[str, str], frozenset[Acl]] = field(default_factory=dict)
    """Kind and name of a resource → the ACLs that were made there."""
    staged_by_resource: dict[tuple[str, str], frozenset[Acl]] = field(default_factory=dict)
    """The same of those that a failover puts in force."""
    quotas_by_entity: dict[Entity, Quotas] = field(default_factory=dict)
    """Who is limited → the quotas that were made."""
    topics: dict[str, MadeTopic] = field(default_factory=dict)
    """Remote topic → its source, and which one it is."""

    @property
    def acls(self) -> frozenset[Acl]:
        """All that were made."""
        return frozenset(acl for made in self.by_resource.values() for acl in made)

    @property
    def writing(self) -> frozenset[Acl]:
        """Those that let somebody write copies since a failover."""
        return frozenset(acl for acl in self.acls if acl.allows_writing)

    @property
    def staged(self) -> frozenset[Acl]:
        """All that wait for a failover."""
        return frozenset(acl for staged in self.staged_by_resource.values() for acl in staged)

    @property
    def quotas(self) -> Quotas:
        """All quotas that were made."""
        return {quota: value for of_one in self.quotas_by_entity.values() for quota, value in of_one.items()}

    def take(self, key: bytes | None, value: bytes | None) -> bool:
        """Take in a record; False where it says nothing of this kind, or nothing that can be read.

        What an unreadable one takes the place of is not known as made here any more.
        """
        match _parts(key):
            case [kind, str(remote)] if kind == CONFIGS:
                return _put(self.configs, remote, decode_configs(value))
            case [kind, str(resource), str(name)] if kind in (MADE, STAGED):
                held = self.by_resource if kind == MADE else self.staged_by_resource
                return _put(held, (resource, name), decode_acls((resource, name), value))
            case [kind, *entity] if kind == QUOTAS:
                limited = entity_of_key(entity)
                return _put(self.quotas_by_entity, limited, decode_quotas(limited, value))
            case [kind, str(remote)] if kind == _TOPIC:
                return _put(self.topics, remote, _decode_topic(value))
        return False

    def clear(self) -> None:
        """Nothing is known."""
        for held in (self.configs, self.by_resource, self.staged_by_resource, self.quotas_by_entity, self.topics):
            held.clear()


def topic_record(remote: str, made: MadeTopic) -> tuple[bytes, bytes]:
    """Key and value of the record that a remote topic was made here, compact JSON."""
    return compact_json([_TOPIC, remote]), compact_json({"v": _VERSION, "of": made.source, "id": made.topic_id})


def _decode_topic(value: bytes | None) -> MadeTopic | None:
    try:
        document = json.loads(value or b"")
        return MadeTopic(str(document["of"]), str(document["id"])) if document["v"] == _VERSION else None
    except (KeyError, TypeError, ValueError):
        return None


def _parts(key: bytes | None) -> object:
    try:
        return json.loads(key or b"")
    except ValueError:
        return None


def _put(held: dict[_Name, _Value], name: _Name, value: _Value | None) -> bool:
    if value is None:
        held.pop(name, None)
        return False
    held[name] = value
    return True
