"""Where the groups of a flow stand on both sides, asked without a running driver: for export before a failover.

While the source answers, positions are what it says now; when it is down, the newest checkpoints are all there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from srm_spark.config.settings import FlowSettings
from srm_spark.core.filters import NameFilter
from srm_spark.core.model import TopicPartition
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.groups.checkpoints import Checkpoints
from srm_spark.flow.groups.positions import Translator
from srm_spark.flow.groups.sync import GroupSync, Synced, SyncState
from srm_spark.flow.topics.lists import take_lists
from srm_spark.flow.topics.offset_map import OffsetMaps

_SECONDS = 15.0
"""Somebody is waiting: a cluster that does not answer in this time counts as down."""


@dataclass(frozen=True)
class GroupRow:
    """One group on one partition."""

    group: str
    remote: TopicPartition
    """On the target."""
    upstream: int
    """What the group committed on the source; with the source down, what its checkpoint says."""
    downstream: int | None
    """Where it goes on on the target; None where that is not known."""
    translation: str
    """How well that is known, or why it is not."""
    source_lag: int | None = None
    """Records of the source that the group has not read; None where the source is down."""
    target_offset: int | None = None
    """What the group has committed on the target; None for nothing."""
    target_lag: int | None = None
    """Records of the target from there to its end; None without such an offset."""
    sync: str | None = None
    """What group offset sync makes of it, or why it leaves it alone; None where the source is down."""


@dataclass(frozen=True)
class GroupReport:
    """What could be found out about the groups of one flow."""

    rows: tuple[GroupRow, ...]
    source_down: str | None
    """Why the rows come from checkpoints; None where the source answered."""
    refusals: tuple[str, ...] = ()
    """Groups that could not be asked or translated, with the reason."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Groups of the source that the flow does not take → why."""


def report_groups(settings: FlowSettings, groups: NameFilter, reach: Connect = connect) -> GroupReport:
    """Look at the groups of a flow that `groups` takes. Raises TargetUnavailable, without which there is no answer."""
    clusters = reach(settings.within(_SECONDS))
    try:
        return _now(clusters, groups)
    except SourceUnavailable as error:
        return GroupReport(tuple(_from_checkpoints(clusters, groups)), str(error))


def report_checkpoints(settings: FlowSettings, groups: NameFilter, reach: Connect = connect) -> GroupReport:
    """The same by the target alone, where nobody knows the source. Raises TargetUnavailable."""
    clusters = reach(settings.within(_SECONDS))
    return GroupReport(tuple(_from_checkpoints(clusters, groups)), "no file says where it is")


def _now(clusters: Clusters, groups: NameFilter) -> GroupReport:
    flow = clusters.settings.flow
    maps = OffsetMaps(clusters.target, clusters.settings.map_topic, f"{flow}|groups", TargetUnavailable)
    take_lists(clusters)
    with (
        closing(maps),
        closing(Translator(clusters, maps)) as translator,
        closing(Checkpoints(clusters)) as checkpoints,
        closing(GroupSync(clusters)) as sync,
    ):
        names = [name for name in translator.groups() if groups.matches(name)]
        positions = checkpoints.looked_up(translator.positions(names))
        sync.learn(checkpoints.last)
        source_ends = clusters.source.end_offsets({one.partition for one in positions.known}, waits=False)
        is_enabled = clusters.settings.checkpoints.sync_enabled
        rows = (
            _row(one, source_ends.get(one.position.partition), is_enabled=is_enabled)
            for one in sync.sync(positions, commits=False)
        )
        refusals = [f"{group}: {why}" for group, why in positions.refusals.items()]
        whole = [text for text in (positions.no_way_back, positions.no_syncs) if text is not None]
        left_out = {name: why for name, why in translator.choice.left_out().items() if groups.matches(name)}
        return GroupReport(tuple(sorted(rows, key=_place)), None, (*refusals, *whole), left_out)


def _place(row: GroupRow) -> tuple[str, TopicPartition]:
    return row.group, row.remote


def _row(synced: Synced, source_end: int | None, *, is_enabled: bool) -> GroupRow:
    position, there = synced.position, synced.before
    translation, committed = position.translation, position.committed.offset
    return GroupRow(
        position.group,
        position.remote,
        committed,
        translation.downstream,
        str(translation),
        None if source_end is None else max(0, source_end - committed),
        there,
        None if there is None else max(0, position.target_end - there),
        _sync(synced) if is_enabled else "not synced: sync.group.offsets.enabled is false",
    )


def _sync(synced: Synced) -> str:
    # Why there is no translation is said already.
    tells = synced.detail and synced.state is not SyncState.UNTRANSLATED
    return f"{synced.state.value} ({synced.detail})" if tells else synced.state.value


def _from_checkpoints(clusters: Clusters, groups: NameFilter) -> Iterable[GroupRow]:
    with closing(Checkpoints(clusters)) as checkpoints:
        checkpoints.refresh()
    for (group, remote), last in sorted(checkpoints.last.items()):
        if groups.matches(group):
            yield GroupRow(group, remote, last.upstream, last.downstream, "checkpoint")
