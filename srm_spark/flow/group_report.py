"""Where the groups of a flow stand on both sides, asked without a running driver: for export before a failover.

While the source answers, positions are what it says now; when it is down, the newest checkpoints are all there is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from srm_spark.config.settings import FlowSettings
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.filters import NameFilter
from srm_spark.flow.checkpoint import Checkpoints
from srm_spark.flow.clusters import Ends, connect
from srm_spark.flow.offset_map import OffsetMaps
from srm_spark.flow.positions import GroupPosition, Translator
from srm_spark.kafka.groups import Committed, Groups
from srm_spark.model import TopicPartition

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
    standing: str
    """How well that is known, or why it is not."""
    source_lag: int | None = None
    """Records of the source that the group has not read; None where the source is down."""
    target_offset: int | None = None
    """What the group has committed on the target; None for nothing."""
    target_lag: int | None = None
    """Records of the target from there to its end; None without such an offset."""


@dataclass(frozen=True)
class GroupReport:
    """What could be found out about the groups of one flow."""

    rows: tuple[GroupRow, ...]
    source_down: str | None
    """Why the rows come from checkpoints; None where the source answered."""
    refusals: tuple[str, ...] = ()
    """Groups that could not be asked or translated, with the reason."""


def report_groups(settings: FlowSettings, groups: NameFilter) -> GroupReport:
    """Look at the groups of a flow that `groups` takes. Raises TargetUnavailable, without which there is no answer."""
    ends = connect(replace(settings, admin_timeout_seconds=min(_SECONDS, settings.admin_timeout_seconds)))
    try:
        return _now(ends, groups)
    except SourceUnavailable as error:
        return GroupReport(tuple(_from_checkpoints(ends, groups)), str(error))


def _now(ends: Ends, groups: NameFilter) -> GroupReport:
    flow = ends.settings.flow
    maps = OffsetMaps(ends.target, ends.settings.map_topic, f"{flow}|groups", TargetUnavailable)
    translator, theirs = Translator(ends, maps), Groups(ends.target, "DESCRIBE")
    try:
        names = [name for name in translator.groups() if groups.matches(name)]
        positions = translator.positions(names)
        source_ends = ends.source.end_offsets({found.partition for found in positions.found}, waits=False)
        committed = theirs.offsets({position.group for position in positions.found})
        rows = tuple(
            _row(
                position, source_ends.get(position.partition), committed[position.group].committed.get(position.remote)
            )
            for position in positions.found
        )
        refusals = [f"{group}: {why}" for group, why in positions.refusals.items()]
        return GroupReport(rows, None, (*refusals, *([positions.no_way_back] if positions.no_way_back else [])))
    finally:
        translator.close()
        theirs.close()
        maps.close()


def _row(position: GroupPosition, source_end: int | None, there: Committed | None) -> GroupRow:
    found = position.translation
    return GroupRow(
        position.group,
        position.remote,
        position.committed.offset,
        found.downstream,
        str(found),
        None if source_end is None else max(0, source_end - position.committed.offset),
        None if there is None else there.offset,
        None if there is None else max(0, position.target_end - there.offset),
    )


def _from_checkpoints(ends: Ends, groups: NameFilter) -> Iterable[GroupRow]:
    checkpoints = Checkpoints(ends)
    try:
        checkpoints.refresh()
    finally:
        checkpoints.close()
    for (group, remote), last in sorted(checkpoints.last.items()):
        if groups.matches(group):
            yield GroupRow(group, remote, last.upstream, last.downstream, "checkpoint")
