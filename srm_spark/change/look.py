"""Reads both sides of a flow; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from srm_spark.change.planning import ChangePlan, Rules, plan_of
from srm_spark.change.world import (
    AclsFound,
    Configs,
    GroupsFound,
    InternalFound,
    Orphan,
    PredictedLoss,
    QuotasFound,
    TopicPair,
    World,
)
from srm_spark.config.settings import FlowSettings, HeartbeatSettings
from srm_spark.core.cluster import Cluster, TopicConfig
from srm_spark.core.filters import Selection, select
from srm_spark.core.made_here import MadeHere
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.wording import count
from srm_spark.doctor.permissions import check_flow
from srm_spark.doctor.report import Finding, Health
from srm_spark.errors import FlowError
from srm_spark.flow.batch.realtime import reports_topic
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.groups.positions import Translator
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.recovery.renames import Renames
from srm_spark.flow.topics.factors import factors_too_large
from srm_spark.flow.topics.heartbeat import heartbeats_topics
from srm_spark.flow.topics.internal_topics import InternalTopic, fault_of, internal_topics
from srm_spark.flow.topics.lists import take_lists
from srm_spark.flow.topics.progress import Position, copied_topics
from srm_spark.flow.topics.remote_acls import AclComparison, no_authorizer, read_acls
from srm_spark.flow.topics.remote_topics import RemoteTopics, lacking
from srm_spark.kafka.access import Access
from srm_spark.plan.renames import renames_of

_RIGHTS_SECONDS = 10.0
_TELLING = 5
"""Topics that are asked for the defaults of the target; each tells those that it does not set itself."""

Rights = Callable[[FlowSettings], Collection[Finding]]


def rights_of(settings: FlowSettings) -> list[Finding]:
    """What the flow's principals may do on both clusters."""
    source = Access(settings.source, settings.source_admin, _RIGHTS_SECONDS)
    target = Access(settings.target, settings.target_admin, _RIGHTS_SECONDS)
    return list(check_flow(settings, source, target))


def make_plan(
    clusters: Clusters, *, prune: bool, rights: Rights, heartbeats: Collection[HeartbeatSettings] = ()
) -> ChangePlan:
    """What is left to do for a flow; `heartbeats` are those of all pairs of clusters.

    Raises SourceUnavailable and TargetUnavailable.
    """
    take_lists(clusters)
    remote = RemoteTopics(clusters)
    world = look(clusters, remote, rights, heartbeats)
    settings = clusters.settings
    flowing = {pair.topic: pair.remote for pair in world.topics}
    acls = AclComparison(clusters, flowing)
    return plan_of(world, Rules(settings, remote.spec, settings.topics.config_classes(), acls.compare, prune))


class _Shown(NamedTuple):
    """Topics of both clusters → their partitions, listed once for the whole plan."""

    here: Mapping[str, int]
    """Of the source."""
    there: Mapping[str, int]


def look(clusters: Clusters, remote: RemoteTopics, rights: Rights, heartbeats: Collection[HeartbeatSettings]) -> World:
    """Everything that a plan follows from. Raises SourceUnavailable and TargetUnavailable."""
    settings, present = clusters.settings, clusters.target.topics()
    with closing(Recorded(clusters)) as recorded:
        if settings.progress_topic in present:
            recorded.progress.refresh()
        if settings.map_topic in present:
            recorded.maps.refresh()
        positions = recorded.progress.positions
        selected = remote.select()
        shown = _Shown(clusters.source.topics(), present)
        renames = renames_of(clusters, selected, positions)
        held = _held(clusters, remote, selected, positions)
        topics = tuple(_pairs(clusters, remote, {t: n for t, n in selected.items() if t not in held}, present))
        internal = (*_internal(clusters), *_heartbeats(clusters, heartbeats))
        topics = (*topics, *_coming(clusters, remote, internal, topics, shown))
        made = recorded.maps.made
        groups = _groups(clusters, recorded)
        owner, unknown = _owner(clusters)
        unseen = remote.unseen(selected)
        return World(
            flow=settings.flow,
            source=clusters.source.bootstrap_servers,
            target=clusters.target.bootstrap_servers,
            internal=internal,
            topics=topics,
            skipped={**_skipped(clusters, selected, shown.here), **held},
            made_topics=frozenset(made.topics),
            unrecorded=_unrecorded(clusters, recorded, present),
            orphans=_orphans(clusters, remote, recorded, {*selected}, shown),
            ours=dict(made.configs),
            acls=_acls(clusters, made),
            quotas=_quotas(clusters, made),
            defaults=_defaults(clusters.target, [pair.target for pair in topics if pair.is_there], present),
            groups=groups,
            losses=tuple(_losses(clusters, selected, positions)),
            renames=renames,
            owner=owner,
            rights=tuple(finding for finding in rights(settings) if finding.health is not Health.OK),
            warnings=(*factors_too_large(clusters), *filter(None, (unseen, unknown))),
        )


def _held(
    clusters: Clusters,
    remote: RemoteTopics,
    selected: Mapping[str, int],
    positions: Mapping[TopicPartition, Position],
) -> dict[str, str]:
    """Source topics that would flow and wait for somebody → why."""
    renames = Renames(clusters)
    renames.look(selected, positions)
    ready = {topic: count for topic, count in selected.items() if topic not in renames.held}
    names = {topic: remote.remote_name(topic) for topic in ready}
    missing, _ = lacking(ready, names, clusters.target.topics())
    return {**renames.held, **remote.gone(missing, copied_topics(positions) - set(renames.going_on))}


def _pairs(
    clusters: Clusters, remote: RemoteTopics, topics: Mapping[str, int], present: Mapping[str, int]
) -> Iterator[TopicPair]:
    names = {topic: remote.remote_name(topic) for topic in sorted(topics)}
    here = clusters.source.configs(names)
    there = clusters.target.configs([name for name in names.values() if name in present])
    for topic, name in names.items():
        if topic in here:  # else it has just been deleted
            partitions = present[name] if name in there else None
            reason = str(_selection(clusters, topic))
            yield TopicPair(topic, topics[topic], name, partitions, here[topic], there.get(name, {}), reason)


def _selection(clusters: Clusters, topic: str) -> Selection:
    settings = clusters.settings
    heartbeats = settings.topics.heartbeats_replicated
    return select(topic, clusters.topics, clusters.policy, settings.flow.target, heartbeats)


def _skipped(clusters: Clusters, selected: Mapping[str, int], here: Mapping[str, int]) -> dict[str, str]:
    others = sorted(here.keys() - selected.keys())
    return {topic: str(_selection(clusters, topic)).removeprefix(topic).strip() for topic in others}


def _orphans(
    clusters: Clusters, remote: RemoteTopics, recorded: Recorded, selected: Set[str], shown: _Shown
) -> tuple[Orphan, ...]:
    """Copied before, or made here; nothing flows there now."""
    made, positions = recorded.maps.made.topics, recorded.progress.positions
    copied = {remote.remote_name(partition.topic): partition.topic for partition in positions}
    sources = {**{name: one.source for name, one in made.items()}, **copied}
    flowing = {remote.remote_name(topic) for topic in selected}
    left = {name: topic for name, topic in sources.items() if topic not in selected and name not in flowing}
    ids = clusters.target.topic_ids(sorted(left.keys() & shown.there.keys())) if left else {}
    return tuple(
        Orphan(name, left[name], name in made and made[name].topic_id == topic_id, left[name] not in shown.here)
        for name, topic_id in sorted(ids.items())
    )


def _unrecorded(clusters: Clusters, recorded: Recorded, present: Collection[str]) -> str | None:
    """Why it is not known what was made here."""
    maps, positions = recorded.maps, recorded.progress.positions
    topic, alias = clusters.settings.map_topic, clusters.settings.flow.target
    nothing = f"nothing on {alias} counts as made here, and nothing is taken back"
    if maps.unreadable:
        what = f"{count(len(maps.unreadable), 'record')} of topic {topic} cannot be read"
        return f"what was made here, in part: {what}, and what they were about does not count as made here"
    if not positions or maps.maps or maps.made != MadeHere():
        return None
    if topic not in present:
        return f"what was made here: topic {topic} is not there, so {nothing}"
    return f"what was made here: topic {topic} knows nothing of what was copied, so it was lost; {nothing}"


def _internal(clusters: Clusters) -> Iterator[InternalFound]:
    wanted: list[tuple[Cluster, InternalTopic]] = list(internal_topics(clusters))
    if clusters.settings.is_realtime:
        wanted.append((clusters.target, reports_topic(clusters)))
    present = {cluster.alias: cluster.topics() for cluster, _ in wanted}
    for cluster, topic in wanted:
        partitions = present[cluster.alias].get(topic.spec.name)
        fault = None if partitions is None else fault_of(cluster, topic, partitions)
        yield InternalFound(cluster.alias, topic, partitions, fault)


def _heartbeats(clusters: Clusters, heartbeats: Collection[HeartbeatSettings]) -> Iterator[InternalFound]:
    """Those of the flow, and those of the way back, which the flow replicates: a driver makes both."""
    flow = clusters.settings.flow
    for cluster, beating in ((clusters.target, flow), (clusters.source, flow.reverse)):
        pairs = [pair for pair in heartbeats if pair.flow.target == cluster.alias]
        ours = {pair.topic for pair in pairs if pair.flow == beating}
        present = cluster.topics() if ours else {}
        for topic in heartbeats_topics(pairs):
            name = topic.spec.name
            if name in ours:
                yield InternalFound(cluster.alias, topic, present.get(name), heartbeats_of=beating)


def _coming(
    clusters: Clusters,
    remote: RemoteTopics,
    internal: Collection[InternalFound],
    topics: Sequence[TopicPair],
    shown: _Shown,
) -> Iterator[TopicPair]:
    """Heartbeats topics that are to be made on the source, and flow from then on."""
    coming = [one for one in internal if one.heartbeats_of is not None and one.on == clusters.source.alias]
    for found in coming:
        spec, reason = found.topic.spec, _selection(clusters, found.topic.spec.name)
        if found.partitions is None and reason.is_replicated:
            name = remote.remote_name(spec.name)
            there = clusters.target.configs([name]).get(name, {}) if name in shown.there else {}
            known = [pair.source for pair in topics]
            defaults = _defaults(clusters.source, known, shown.here)
            own = {key: _set_on_topic(value) for key, value in spec.configs.items()}
            partitions = shown.there.get(name)
            yield TopicPair(spec.name, spec.partitions, name, partitions, {**defaults, **own}, there, str(reason))


def _set_on_topic(value: str) -> TopicConfig:
    return TopicConfig(value, is_default=False, is_static=False, is_read_only=False, is_sensitive=False, is_own=True)


def _acls(clusters: Clusters, made: MadeHere) -> AclsFound | str:
    if clusters.settings.acls.seconds is None:
        return "sync.topic.acls.enabled = false"
    try:
        here, there = read_acls(clusters)
    except FlowError as error:  # the flow copies records without them, too
        return str(error)
    if here is None or there is None:
        return no_authorizer(clusters, here)
    return AclsFound(frozenset(here), frozenset(there), made.acls, made.staged)


def _quotas(clusters: Clusters, made: MadeHere) -> QuotasFound | str | None:
    if clusters.settings.acls.quotas_seconds is None:
        return None
    try:
        return QuotasFound(clusters.source.quotas(), clusters.target.quotas(), dict(made.quotas))
    except FlowError as error:  # the flow copies records without them, too
        return str(error)


def _groups(clusters: Clusters, recorded: Recorded) -> GroupsFound:
    chosen = clusters.settings.checkpoints
    if not (chosen.emit_enabled or chosen.sync_enabled):
        return GroupsFound(unknown="neither checkpoints nor group offsets are wanted")
    try:
        with closing(Translator(clusters, recorded.maps)) as translator:
            choice = translator.choice
            return GroupsFound(tuple(sorted(choice.taken())), choice.left_out())
    except FlowError as error:
        return GroupsFound(unknown=str(error))


def _owner(clusters: Clusters) -> tuple[str | None, str | None]:
    """The driver that runs the flow, and why that is not known."""
    try:
        lease = clusters.make_lease()
        try:
            return lease.other_owner(), None
        finally:
            lease.release()
    except FlowError as error:
        return None, f"whether a driver runs the flow is not known: {error}"


def _defaults(cluster: Cluster, known: Sequence[Configs], present: Collection[str]) -> Configs:
    """What the topics of a cluster have without setting it: a new topic has the same."""
    there = list(known[:_TELLING])
    if not there:
        try:
            there = list(cluster.configs(sorted(present)[:_TELLING]).values())
        except FlowError:  # DESCRIBE_CONFIGS on them is no right that a flow needs
            return {}
    return {key: replace(one, is_own=False) for found in there for key, one in found.items() if not one.is_own}


def _losses(
    clusters: Clusters, selected: Mapping[str, int], positions: Mapping[TopicPartition, Position]
) -> Iterator[PredictedLoss]:
    asked = [p for p in sorted(positions) if p.partition < selected.get(p.topic, 0)]
    first = clusters.source.first_offsets(asked, waits=False) if asked else {}
    for partition, start in first.items():
        reached = positions[partition].next_offset
        if start > reached:
            yield PredictedLoss(partition, OffsetRange(reached, start))
