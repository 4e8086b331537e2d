"""The steps of a plan: frozen values that say what is changed on which cluster, and the same as plain values for JSON.

Two steps are equal where they do the same; the reason is for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from srm_spark.core.acls import Acl
from srm_spark.core.cluster import ConfigChange, TopicSpec
from srm_spark.core.quotas import Quota, entity_of
from srm_spark.core.wording import count

Document = dict[str, Any]


class Stage(Enum):
    """What is applied together, in this order."""

    INTERNAL = "internal topics"
    TOPICS = "remote topics"
    PARTITIONS = "partitions"
    CONFIGS = "configs"
    ACLS = "ACLs"
    QUOTAS = "quotas"


@dataclass(frozen=True)
class Step:
    """One change on one cluster."""

    on: str
    """Alias of the cluster."""
    reason: str = field(compare=False, kw_only=True)
    stage: ClassVar[Stage]
    does: ClassVar[str]
    mark: ClassVar[str] = "+"
    """How it is shown: something new, changed or taken back."""

    def detail(self) -> Document:
        """What it does, but for the cluster and the reason."""
        raise NotImplementedError


@dataclass(frozen=True)
class CreateTopic(Step):
    """Make a remote topic."""

    topic: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...] = ()
    stage = Stage.TOPICS
    does = "create-topic"

    @property
    def spec(self) -> TopicSpec:
        """As clusters take it."""
        return TopicSpec(self.topic, self.partitions, self.replication_factor, dict(self.configs))

    def detail(self) -> Document:
        """Its spec."""
        return {
            "topic": self.topic,
            "partitions": self.partitions,
            "replication_factor": self.replication_factor,
            "configs": dict(self.configs),
        }

    def __str__(self) -> str:
        values = "".join(f", {key}={value}" for key, value in self.configs)
        return f"{self.topic}: {count(self.partitions, 'partition')}, factor {self.replication_factor}{values}"


@dataclass(frozen=True)
class CreateInternalTopic(CreateTopic):
    """Make a topic that holds the state of the flow."""

    stage = Stage.INTERNAL
    does = "create-internal-topic"


@dataclass(frozen=True)
class AddPartitions(Step):
    """Let a remote topic grow."""

    topic: str
    before: int
    after: int
    stage = Stage.PARTITIONS
    does = "add-partitions"
    mark = "~"

    def detail(self) -> Document:
        """Counts of partitions."""
        return {"topic": self.topic, "from": self.before, "to": self.after}

    def __str__(self) -> str:
        return f"{self.topic}: {self.before} -> {count(self.after, 'partition')}"


@dataclass(frozen=True)
class ChangeConfigs(Step):
    """Change configs of a remote topic, and leave all others as they are."""

    topic: str
    changes: tuple[tuple[str, str | None, str | None], ...]
    """Key, what is set on the topic now, and then; None where nothing is."""
    stage = Stage.CONFIGS
    does = "change-configs"
    mark = "~"

    @property
    def asked(self) -> list[ConfigChange]:
        """As clusters take it."""
        return [ConfigChange(key, after) for key, _, after in self.changes]

    def detail(self) -> Document:
        """Values; null where nothing is set on the topic."""
        values = [{"key": key, "from": before, "to": after} for key, before, after in self.changes]
        return {"topic": self.topic, "configs": values}

    def __str__(self) -> str:
        return f"{self.topic}: " + ", ".join(
            f"{key} {_set(before)} -> {_set(after)}" for key, before, after in self.changes
        )


@dataclass(frozen=True)
class AclStep(Step):
    """Change one entry."""

    acl: Acl
    stage = Stage.ACLS

    def detail(self) -> Document:
        """Its fields."""
        return {"acl": self.acl._asdict()}

    def __str__(self) -> str:
        return str(self.acl)


@dataclass(frozen=True)
class AddAcl(AclStep):
    """Make an entry."""

    does = "add-acl"


@dataclass(frozen=True)
class RemoveAcl(AclStep):
    """Take an entry back."""

    does = "remove-acl"
    mark = "-"


@dataclass(frozen=True)
class ChangeQuota(Step):
    """Set the quota of a user, or take one back."""

    quota: Quota
    before: float | None
    after: float | None
    """None where none is set."""
    stage = Stage.QUOTAS
    does = "change-quota"
    mark = "~"

    def detail(self) -> Document:
        """Who is limited, and the limits; null where none is set."""
        entity = dict(self.quota.entity)
        return {"entity": entity, "key": self.quota.key, "from": self.before, "to": self.after}

    def __str__(self) -> str:
        before, after = ("not set" if value is None else f"{value:g}" for value in (self.before, self.after))
        return f"{self.quota} {before} -> {after}"


def step_document(step: Step, *, with_reason: bool = True) -> Document:
    """A step for JSON."""
    reason = {"reason": step.reason} if with_reason else {}
    return {"does": step.does, "on": step.on, **step.detail(), **reason}


def step_of(document: Mapping[str, Any]) -> Step:
    """The step that a document says. Raises KeyError, TypeError and ValueError where it says none."""
    on, reason, does = str(document["on"]), str(document.get("reason", "")), document["does"]
    for made in (CreateTopic, CreateInternalTopic):
        if does == made.does:
            configs = tuple((str(key), str(value)) for key, value in document["configs"].items())
            numbers = int(document["partitions"]), int(document["replication_factor"])
            return made(on, str(document["topic"]), *numbers, configs, reason=reason)
    if does == AddPartitions.does:
        return AddPartitions(on, str(document["topic"]), int(document["from"]), int(document["to"]), reason=reason)
    if does == ChangeConfigs.does:
        changes = tuple((str(one["key"]), _value(one["from"]), _value(one["to"])) for one in document["configs"])
        return ChangeConfigs(on, str(document["topic"]), changes, reason=reason)
    for changed in (AddAcl, RemoveAcl):
        if does == changed.does:
            return changed(on, Acl(**{name: str(value) for name, value in document["acl"].items()}), reason=reason)
    if does == ChangeQuota.does:
        entity = {str(kind): None if name is None else str(name) for kind, name in document["entity"].items()}
        quota = Quota(entity_of(entity), str(document["key"]))
        limits = (None if document[end] is None else float(document[end]) for end in ("from", "to"))
        return ChangeQuota(on, quota, *limits, reason=reason)
    raise ValueError(f"a step that does {does!r}")


def _value(found: object) -> str | None:
    if found is not None and not isinstance(found, str):
        raise ValueError(f"{found!r} is no value of a config")
    return found


def of_stage(steps: Iterable[Step], stage: Stage) -> tuple[Step, ...]:
    """Those of one stage."""
    return tuple(step for step in steps if step.stage is stage)


def _set(value: str | None) -> str:
    return "not set" if value is None else value
