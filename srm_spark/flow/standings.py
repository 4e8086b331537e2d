"""Where the partitions of a flow stand, for a command: by what is recorded, and by what the source has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from srm_spark.core.acts import Scope, pause_of, scope_of
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.errors import SourceUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.commanding import Commanding


@dataclass(frozen=True)
class Standing:
    """Where one partition stands."""

    partition: TopicPartition
    position: int | None
    """First source offset that is not replicated; None where nothing is recorded."""
    source: OffsetRange | None
    """From where to where the source has records now; None where it does not say."""
    paused: str | None = None
    """By whom and why it stands still."""
    waiting: int | None = None
    """Where an act sets it that no driver has carried out yet."""

    @property
    def lag(self) -> int | None:
        """Source offsets that are not replicated yet; None where that is not known."""
        if self.source is None or self.position is None:
            return None
        return max(0, self.source.end - self.position)


@dataclass(frozen=True)
class Standings:
    """Of the partitions that were asked for."""

    found: tuple[Standing, ...]
    unknown: str | None = None
    """Why nothing is known of the source; None where it is."""


def standings(commanding: Commanding, takes: Callable[[str], bool], number: int | None) -> Standings:
    """Where all recorded partitions of these topics stand, or those of one number. Raises TargetUnavailable."""
    source = commanding.clusters.source
    recorded = {partition for partition in commanding.progress.positions if takes(partition.topic)}
    try:
        counts = source.topics()
        names = {partition.topic for partition in recorded}
        there = {TopicPartition(name, n) for name in names for n in range(counts.get(name, 0))}
        asked = [p for p in sorted(recorded | there) if number in (None, p.partition)]
        ranges, unknown = _ranges(commanding.clusters, [p for p in asked if p in there]), None
    except SourceUnavailable as error:
        asked = [p for p in sorted(recorded) if number in (None, p.partition)]
        ranges, unknown = {}, str(error)
    waiting = {one.scope: one.shift.end for one in commanding.waiting.values() if one.shift is not None}
    return Standings(tuple(_standing(commanding, p, ranges.get(p), waiting) for p in asked), unknown)


def _ranges(clusters: Clusters, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
    first = clusters.source.first_offsets(partitions, waits=False)
    ends = clusters.source.end_offsets(partitions, waits=False, committed=clusters.settings.reads_committed)
    return {p: OffsetRange(first[p], ends[p]) for p in partitions if p in first and p in ends}


def _standing(
    commanding: Commanding, partition: TopicPartition, source: OffsetRange | None, waiting: Mapping[Scope, int]
) -> Standing:
    recorded = commanding.progress.positions.get(partition)
    scope = scope_of(partition)
    pause = pause_of(commanding.pauses, scope)
    position = None if recorded is None else recorded.next_offset
    held = None if pause is None else pause.held
    return Standing(partition, position, source, held, waiting.get(scope))
