"""Whether both sides still hold what was replicated: records are read again and compared with their copies.

Where to look is what the offset map says; how copies were made, they say themselves. Many partitions at once are asked
for their last record only, which costs two consumers; the few that differ are gone through backwards, one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from functools import partial

from srm_spark.config.settings import FlowSettings
from srm_spark.core.divergence import compare_copies
from srm_spark.core.limits import Route
from srm_spark.core.model import Interval, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.tail import TailRecord, is_copy_either_way
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.offset_map import Maps

_FIRST_STRETCH, _GROWTH, _LONGEST_STRETCH = 1000, 4, 1_000_000
"""Records of the first stretch that is compared, how much longer each further one is, and where that ends."""


def differing_copies(
    clusters: Clusters, routes: Mapping[str, Route], maps: Maps, positions: Mapping[TopicPartition, int]
) -> set[TopicPartition]:
    """Partitions of which the last record in front of a position is not what its copy says, or one of both is gone.

    Partitions without any copy are not among them. Raises SourceUnavailable and TargetUnavailable.
    """
    last = {p: maps[p].copies_before(offset, 1) for p, offset in positions.items() if p in maps}
    here = {
        p: OffsetRange(intervals[0].upstream, intervals[0].upstream + 1) for p, intervals in last.items() if intervals
    }
    if not here:
        return set()
    there = {routes[p.topic].remote(p): OffsetRange(last[p][0].downstream, last[p][0].downstream + 1) for p in here}
    source, target = clusters.source.first_records(here), clusters.target.first_records(there)
    differing = set()
    for (partition, at), remote in zip(here.items(), there, strict=True):
        record, copy = source.get(partition), target.get(remote)
        if record is None or copy is None or (record.offset, copy.offset) != (at.start, there[remote].start):
            differing.add(partition)
            continue
        if not is_copy_either_way(clusters.settings.own_stamp, partition, record, copy):
            differing.add(partition)
    return differing


def first_difference(
    clusters: Clusters,
    route: Route,
    known: PartitionMap,
    partition: TopicPartition,
    position: int,
    *,
    source: OffsetRange,
    target: OffsetRange,
) -> int | None:
    """First source offset in front of `position` that is not the same on both sides any more; None where all is right.

    `source` and `target` say from where to where both logs reach. What neither side can show counts as right; what the
    target has and shows to nobody who reads committed records does not: an election that cost the marker of a
    transaction has made it one that is not committed (KIP-664).
    """
    remote = route.remote(partition)
    reach, count, difference = position, _FIRST_STRETCH, None
    while stretch := known.copies_before(reach, count):
        here = _within(OffsetRange(stretch[0].upstream, stretch[-1].upstream_end), source)
        there = _within(OffsetRange(stretch[0].downstream, stretch[-1].downstream_end), target)
        records: Iterable[TailRecord] = ()
        made: Iterable[TailRecord] = ()
        visible: Set[int] = frozenset()
        if here.start < here.end and there.start < there.end:
            records = clusters.source.records(partition, here)
            made = clusters.target.records(remote, there, committed=False)
            visible = {one.offset for one in clusters.target.records(remote, there, committed=True)}
        compared = compare_copies(
            stretch,
            records,
            made,
            source_end=source.end,
            target_end=target.end,
            may_be_compacted=route.limits.needs_key,
            is_copy=partial(_is_visible_copy, clusters.settings, partition, visible),
        )
        difference = difference if compared.difference is None else compared.difference
        if compared.agrees or not _may_say_more(stretch[0], source, target):
            break
        reach, count = stretch[0].upstream, min(count * _GROWTH, _LONGEST_STRETCH)
    return difference


def _is_visible_copy(
    settings: FlowSettings, partition: TopicPartition, visible: Set[int], record: TailRecord, copy: TailRecord
) -> bool:
    return copy.offset in visible and is_copy_either_way(settings.own_stamp, partition, record, copy)


def _may_say_more(first: Interval, source: OffsetRange, target: OffsetRange) -> bool:
    """Whether both logs reach back in front of an interval, or one of them does not even reach there."""
    is_behind = first.upstream >= source.end or first.downstream >= target.end
    return is_behind or (first.upstream > source.start and first.downstream > target.start)


def _within(offsets: OffsetRange, log: OffsetRange) -> OffsetRange:
    return OffsetRange(max(offsets.start, log.start), min(offsets.end, log.end))
