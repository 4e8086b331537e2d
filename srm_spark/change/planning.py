"""From what was found to the steps that are left. Pure; the rules are the functions that a running flow uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from operator import itemgetter
from typing import Any

from srm_spark.change.facts import digest
from srm_spark.change.steps import (
    AddAcl,
    AddPartitions,
    ChangeConfigs,
    ChangeQuota,
    CreateInternalTopic,
    CreateTopic,
    RemoveAcl,
    Step,
)
from srm_spark.change.world import AclsFound, Configs, QuotasFound, TopicPair, World
from srm_spark.config.settings import FlowSettings
from srm_spark.core.acls import Acl, NotCopied
from srm_spark.core.cluster import ConfigChange, TopicSpec
from srm_spark.core.config_classes import ConfigClasses
from srm_spark.core.losing_configs import LosingConfig
from srm_spark.core.quotas import QuotasCompared, compare_quotas
from srm_spark.core.topic_configs import ConfigsCompared, NotTaken, not_taken
from srm_spark.core.wording import count
from srm_spark.flow.topics.remote_acls import AclsCompared
from srm_spark.flow.topics.topic_configs import compare_pairs, losing_after
from srm_spark.plan.renames import is_open


@dataclass(frozen=True)
class Rules:
    """What a flow asks of its remote topics."""

    settings: FlowSettings
    spec: Callable[[str, int, Configs], TopicSpec]
    """Source topic, its partitions and configs → how its remote topic is made."""
    classes: ConfigClasses
    """Of configs."""
    acls: Callable[[Set[Acl], Set[Acl], Set[Acl], Set[Acl]], AclsCompared]
    """Entries of the source, of the target, and those that were made there before."""
    prune: bool = False
    """What was made here goes with its source: ACLs, whatever `sync.topic.acls.removal.enabled` says, and configs."""


class KeptKind(Enum):
    """What is left as it is, though the sides differ."""

    CONFIG = "config"
    PARTITIONS = "partitions"
    ACL = "acl"
    STALE_ACL = "stale-acl"
    """Made here; its source is gone."""
    QUOTA = "quota"
    STALE_CONFIG = "stale-config"
    """Made here; its source gives it no more."""
    TOPIC = "topic"
    """Its source topic does not flow."""
    ORPHAN = "orphan"
    """Its source topic is gone."""

    @property
    def is_drift(self) -> bool:
        """Whether it counts as a difference; topics are never deleted."""
        return self not in (KeptKind.TOPIC, KeptKind.ORPHAN)


@dataclass(frozen=True)
class Kept:
    """Something that is left as it is."""

    kind: KeptKind
    name: str
    """Of the topic or group that it is about."""
    text: str


@dataclass(frozen=True)
class ChangePlan:
    """What is left to do for one flow, and what is not done, each with its reason."""

    world: World
    prune: bool
    steps: tuple[Step, ...]
    kept: tuple[Kept, ...]
    skipped_configs: Mapping[tuple[str, str], tuple[str, ...]]
    """Property and reason → source topics that set it."""
    skipped_acls: Mapping[Acl, str]
    losing: Mapping[str, tuple[LosingConfig, ...]]
    """Remote topic → configs by which it is worse off when all steps are done."""
    unknown: tuple[str, ...]
    made_from: Mapping[str, Any]
    """What the steps follow from."""
    ours: Mapping[str, Mapping[str, str]]
    """Remote topic → what it has from its source then; to be recorded."""
    acls: AclsCompared | None
    """None where they are not compared."""
    quotas: QuotasCompared | None = None
    """None likewise."""

    @cached_property
    def hash(self) -> str:
        """Of what it was made from."""
        return digest(self.made_from)

    @property
    def drift(self) -> tuple[Kept, ...]:
        """What is kept and differs."""
        return tuple(one for one in self.kept if one.kind.is_drift)

    @property
    def orphans(self) -> tuple[Kept, ...]:
        """Remote topics whose source topic is gone."""
        return tuple(one for one in self.kept if one.kind is KeptKind.ORPHAN)

    @property
    def staged(self) -> tuple[tuple[Acl, bool], ...]:
        """What lets applications write copies after a failover, and whether it is in force."""
        if self.acls is None or isinstance(self.world.acls, str):
            return ()
        in_force = {acl for acl in self.world.acls.made & self.world.acls.there if acl.allows_writing}
        return tuple((acl, acl in in_force) for acl in sorted({*self.acls.staged.values(), *in_force}))

    @property
    def is_open(self) -> bool:
        """Whether the flow waits for a decision."""
        return is_open(self.world.renames)

    @property
    def is_alike(self) -> bool:
        """Whether nothing differs."""
        return not self.steps and not self.drift and not self.losing


def plan_of(world: World, rules: Rules) -> ChangePlan:
    """The steps by which the target becomes what the flow asks for."""
    specs = {pair.remote: rules.spec(pair.topic, pair.partitions, pair.source) for pair in _absent(world)}
    pairs = {pair.remote: (pair.source, pair.target) for pair in world.topics if pair.is_there}
    keeps_configs = rules.settings.topics.configs_seconds is not None
    compared = (
        compare_pairs(rules.settings, rules.classes, pairs, world.ours, prunes=rules.prune) if keeps_configs else {}
    )
    found = world.acls
    acls = None if isinstance(found, str) else rules.acls(found.here, found.there, found.made, found.staged)
    limits = None
    if isinstance(world.quotas, QuotasFound):
        principal = rules.settings.acls.principals.apply
        limits = compare_quotas(world.quotas.here, world.quotas.there, world.quotas.made, principal)
    removes = rules.prune or rules.settings.acls.removes
    made = {remote: spec.configs for remote, spec in specs.items()} if keeps_configs else {}
    return ChangePlan(
        world=world,
        prune=rules.prune,
        steps=(
            *_internal(world),
            *_created(world, specs),
            *_grown(world),
            *_changed(world, compared),
            *_acls(world, acls, removes=removes),
            *_limited(world, limits),
        ),
        kept=(
            *_kept_topics(world),
            *_kept_configs(compared, prunes=rules.prune),
            *_kept_acls(world, acls, removes=removes),
            *_kept_quotas(limits),
        ),
        skipped_configs=_skipped_configs(world, rules.classes) if keeps_configs else {},
        skipped_acls={} if acls is None else _skipped_acls(acls),
        losing=dict(_losing(world, specs, compared)),
        unknown=tuple(_unknown(world, specs)),
        made_from=_made_from(world, rules, compared, acls, specs),
        ours={**{remote: each.ours for remote, each in compared.items()}, **made},
        acls=acls,
        quotas=limits,
    )


def _skipped_acls(acls: AclsCompared) -> Mapping[Acl, str]:
    skipped = {acl: why.value for acl, why in acls.judged.items() if isinstance(why, NotCopied)}
    return {acl: skipped[acl] for acl in sorted(skipped.keys() - acls.staged.keys())}


def _absent(world: World) -> list[TopicPair]:
    return [pair for pair in world.topics if not pair.is_there]


def _internal(world: World) -> Iterator[Step]:
    for found in world.internal:
        if found.partitions is None:
            spec = found.topic.spec
            reason = f"for {found.topic.holds}" if found.topic.holds else "the flow writes there"
            if found.heartbeats_of is not None:
                reason = f"for heartbeats of {found.heartbeats_of}"
            configs = tuple(sorted(spec.configs.items()))
            yield CreateInternalTopic(
                found.on, spec.name, spec.partitions, spec.replication_factor, configs, reason=reason
            )


def _created(world: World, specs: Mapping[str, TopicSpec]) -> Iterator[Step]:
    for pair in _absent(world):
        spec = specs[pair.remote]
        configs = tuple(sorted(spec.configs.items()))
        yield CreateTopic(
            world.flow.target, spec.name, spec.partitions, spec.replication_factor, configs, reason=pair.reason
        )


def _grown(world: World) -> Iterator[Step]:
    for pair in world.topics:
        if pair.remote_partitions is not None and pair.remote_partitions < pair.partitions:
            reason = f"{pair.topic} has {pair.partitions}"
            yield AddPartitions(world.flow.target, pair.remote, pair.remote_partitions, pair.partitions, reason=reason)


def _changed(world: World, compared: Mapping[str, ConfigsCompared]) -> Iterator[Step]:
    for pair in world.topics:
        each = compared.get(pair.remote)
        if each is not None and each.changes:
            own = {key: one.value for key, one in pair.target.items() if one.is_own}
            changes = tuple((key, own.get(key), value) for key, value in sorted(each.changes))
            sets = any(value is not None for _, _, value in changes)
            back = any(value is None and key not in each.stale for key, _, value in changes)
            stale = any(value is None and key in each.stale for key, _, value in changes)
            reasons = [f"{pair.topic} has it"] * sets + [f"{pair.topic} has its default"] * back
            reasons += ["made here, and not taken any more"] * stale
            yield ChangeConfigs(world.flow.target, pair.remote, changes, reason=", ".join(reasons))


def _acls(world: World, acls: AclsCompared | None, *, removes: bool) -> Iterator[Step]:
    if acls is None:
        return
    origins: dict[Acl, Acl] = {}
    for origin, copy in sorted(acls.judged.items(), key=itemgetter(0)):
        if isinstance(copy, Acl):
            origins.setdefault(copy, origin)
    for acl in sorted(acls.missing):
        yield AddAcl(world.flow.target, acl, reason=f"{world.flow.source} has {origins[acl]}")
    for acl in sorted(acls.stale) if removes else ():
        yield RemoveAcl(world.flow.target, acl, reason=f"made here, and {world.flow.source} has its source no more")


def _limited(world: World, limits: QuotasCompared | None) -> Iterator[Step]:
    if limits is None:
        return
    assert isinstance(world.quotas, QuotasFound)
    for quota in sorted(limits.changes, key=str):
        after = limits.changes[quota]
        reason = f"{world.flow.source} has it"
        if after is None:
            reason = f"made here, and {world.flow.source} has it no more"
        yield ChangeQuota(world.flow.target, quota, world.quotas.there.get(quota), after, reason=reason)


def _kept_quotas(limits: QuotasCompared | None) -> Iterator[Kept]:
    for quota, value in sorted(({} if limits is None else limits.kept).items(), key=str):
        yield Kept(KeptKind.QUOTA, str(quota), f"{value:g}: set by somebody else")


def _kept_topics(world: World) -> Iterator[Kept]:
    for pair in world.topics:
        if pair.remote_partitions is not None and pair.remote_partitions > pair.partitions:
            have, source = count(pair.remote_partitions, "partition"), f"{pair.topic} has {pair.partitions}"
            yield Kept(KeptKind.PARTITIONS, pair.remote, f"{have}, and {source}: partitions are never taken away")
    for one in world.orphans:
        kind = KeptKind.ORPHAN if one.is_gone else KeptKind.TOPIC
        why = f"is gone on {world.flow.source}" if one.is_gone else "does not flow"
        owner = "made here" if one.is_ours else "not recorded as made here"
        yield Kept(kind, one.remote, f"{one.topic} {why}; {owner}; no topic is ever deleted")


def _kept_configs(compared: Mapping[str, ConfigsCompared], *, prunes: bool) -> Iterator[Kept]:
    hint = "set by hand; target.override.policy = reset takes it back"
    for remote, each in compared.items():
        for key, value in () if prunes else sorted(each.stale.items()):
            text = f"{key}={value}: made here, and not taken any more; --prune takes it back"
            yield Kept(KeptKind.STALE_CONFIG, remote, text)
        for key, value in sorted(each.kept.items()):
            yield Kept(KeptKind.CONFIG, remote, f"{key}={value}: {hint}")


def _kept_acls(world: World, acls: AclsCompared | None, *, removes: bool) -> Iterator[Kept]:
    if acls is None:
        return
    assert isinstance(world.acls, AclsFound)
    for acl in () if removes else sorted(acls.stale):
        text = f"{acl}: made here, and {world.flow.source} has its source no more; --prune takes it back"
        yield Kept(KeptKind.STALE_ACL, acl.name, text)
    wanted = {copy for copy in acls.judged.values() if isinstance(copy, Acl)}
    remotes = {pair.remote for pair in world.topics}
    for acl in sorted(world.acls.there - wanted - acls.made):
        if acl.is_single and acl.name in remotes:
            yield Kept(KeptKind.ACL, acl.name, f"{acl}: made by somebody else")


def _skipped_configs(world: World, classes: ConfigClasses) -> Mapping[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], list[str]] = {}
    for pair in world.topics:
        for key, why in not_taken(pair.source, classes.of).items():
            reason = classes.classify(key).reason if why is NotTaken.EXCLUDED else why.value
            found.setdefault((key, reason), []).append(pair.topic)
    return {why: tuple(topics) for why, topics in sorted(found.items())}


def _losing(
    world: World, specs: Mapping[str, TopicSpec], compared: Mapping[str, ConfigsCompared]
) -> Iterator[tuple[str, tuple[LosingConfig, ...]]]:
    for pair in world.topics:
        changes = compared[pair.remote].changes if pair.remote in compared else ()
        target = pair.target
        if pair.remote in specs:
            target = world.defaults
            changes = tuple(ConfigChange(*one) for one in specs[pair.remote].configs.items())
        if losing := losing_after(pair.source, target, changes):
            yield pair.remote, losing


def _unknown(world: World, specs: Mapping[str, TopicSpec]) -> Iterator[str]:
    if world.unrecorded is not None:
        yield world.unrecorded
    if isinstance(world.quotas, str):
        yield f"the quotas: {world.quotas}"
    if specs and not world.defaults:
        alias, many = world.flow.target, count(len(specs), "topic")
        yield f"whether the defaults of {alias} lose records of the {many} to create: {alias} has no topic that tells"


def _made_from(
    world: World,
    rules: Rules,
    compared: Mapping[str, ConfigsCompared],
    acls: AclsCompared | None,
    specs: Mapping[str, TopicSpec],
) -> Mapping[str, Any]:
    return {
        "flow": str(world.flow),
        "source": world.source,
        "target": world.target,
        "prune": rules.prune,
        "internal topics": {f"{one.on} {one.topic.spec.name}": one.partitions for one in world.internal},
        "topics": {pair.topic: _facts(pair, world, compared, specs) for pair in world.topics},
        "ACLs": _acl_facts(world, acls),
        **_quota_facts(world),
    }


def _facts(
    pair: TopicPair, world: World, compared: Mapping[str, ConfigsCompared], specs: Mapping[str, TopicSpec]
) -> Mapping[str, Any]:
    if pair.remote in compared:
        values: Mapping[str, str] = compared[pair.remote].ours
    else:
        values = specs[pair.remote].configs if pair.remote in specs else {}
    return {
        "partitions": pair.partitions,
        "remote topic": pair.remote,
        "remote partitions": pair.remote_partitions,
        "configs": dict(values),
        "remote configs": {key: one.value for key, one in pair.target.items() if one.is_own},
        "recorded configs": dict(world.ours.get(pair.remote, {})),
    }


def _acl_facts(world: World, acls: AclsCompared | None) -> Mapping[str, Any] | None:
    if acls is None or isinstance(world.acls, str):
        return None
    wanted = {copy for copy in acls.judged.values() if isinstance(copy, Acl)}
    return {
        "wanted": _texts(wanted),
        "there": _texts(wanted & world.acls.there),
        "made": _texts(world.acls.made),
        "stale": _texts(acls.stale),
    }


def _quota_facts(world: World) -> Mapping[str, Any]:
    """Nothing where nobody asked for them."""
    if not isinstance(world.quotas, QuotasFound):
        return {}
    found = {"source": world.quotas.here, "target": world.quotas.there, "made": world.quotas.made}
    return {"quotas": {side: {str(one): value for one, value in quotas.items()} for side, quotas in found.items()}}


def _texts(acls: Set[Acl]) -> list[str]:
    return sorted(str(acl) for acl in acls)
