"""A lost offset map is made again from the records themselves: both logs are read and matched, up to where it begins.

Both sides are known to meet where the map begins, or where progress stands; so a match that does not end exactly there
is no match, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import closing
from dataclasses import dataclass

from srm_spark.config.settings import FlowSettings
from srm_spark.core.filters import NameFilter
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.tail import TailRecord, copies, match_logs, ours
from srm_spark.core.translation import IntervalMap
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.owned import owned
from srm_spark.flow.refused.quarantine import Quarantine
from srm_spark.flow.topics.internal_topics import ensure_topic, map_topic
from srm_spark.flow.topics.lists import take_lists
from srm_spark.flow.topics.offset_map import MapWriter, OffsetMaps
from srm_spark.flow.topics.progress import ProgressTopic, state_writer_of
from srm_spark.flow.topics.remote_topics import RemoteTopics


@dataclass(frozen=True)
class Rebuilt:
    """What became of the map of one partition."""

    partition: TopicPartition
    source: OffsetRange
    """Source offsets that the map knows in addition; empty where it lacked none, or `refusal` says why not."""
    records: int = 0
    refusal: str | None = None


@dataclass(frozen=True)
class _Gap:
    """What the map lacks of one partition: everything before the place where both logs are known to meet."""

    partition: TopicPartition
    remote: TopicPartition
    source: OffsetRange
    target: OffsetRange
    quarantined: Set[int]
    """Source offsets without a copy."""


def rebuild_map(settings: FlowSettings, topics: NameFilter, reach: Connect = connect) -> tuple[Rebuilt, ...]:
    """Complete the offset map of the topics of a flow that `topics` takes.

    Raises LeaseHeld while a driver runs the flow, LeaseLost, SourceUnavailable and TargetUnavailable.
    """
    clusters = reach(settings)
    take_lists(clusters)
    ensure_topic(clusters.target, map_topic(settings))
    maps = OffsetMaps(clusters.target, settings.map_topic, f"{settings.flow}|rebuild", TargetUnavailable)
    progress = ProgressTopic(settings, clusters.target)
    quarantine = Quarantine(settings, clusters.target, f"{settings.flow}|rebuild-quarantine")
    with closing(maps), closing(progress), closing(quarantine):
        progress.ensure()
        with owned(clusters) as (mine, _):
            for topic in (maps, progress, quarantine):
                topic.refresh()
            return tuple(_rebuild(mine, maps.maps, progress, quarantine, topics))


def _rebuild(
    clusters: Clusters,
    maps: Mapping[TopicPartition, PartitionMap],
    progress: ProgressTopic,
    quarantine: Quarantine,
    topics: NameFilter,
) -> Iterable[Rebuilt]:
    remote = RemoteTopics(clusters)
    chosen = {topic: count for topic, count in remote.select().items() if topics.matches(topic)}
    routes, ids = remote.prepare(chosen).routes, clusters.source.topic_ids(chosen)
    partitions = [TopicPartition(topic, n) for topic, count in chosen.items() if topic in routes for n in range(count)]
    remotes = {p: routes[p.topic].remote(p) for p in partitions}
    here, there = clusters.source.first_offsets(partitions), clusters.target.first_offsets(remotes.values())
    quarantined = quarantine.offsets(ids)
    writer = MapWriter(clusters.settings, maps, state_writer_of(clusters, None))
    for partition in partitions:
        meet = _meet(maps.get(partition), progress, partition)
        if meet is None:
            reason = "it is not recorded how far it was replicated; the next start of the flow finds out by itself"
            yield Rebuilt(partition, OffsetRange(0, 0), refusal=reason)
            continue
        source = OffsetRange(min(here.get(partition, 0), meet[0]), meet[0])
        target = OffsetRange(min(there.get(remotes[partition], 0), meet[1]), meet[1])
        gap = _Gap(partition, remotes[partition], source, target, quarantined.get(partition, frozenset()))
        yield _fill(clusters, writer, gap, ids.get(partition.topic))


def _meet(known: PartitionMap | None, progress: ProgressTopic, partition: TopicPartition) -> tuple[int, int] | None:
    """Source and target offset behind which everything is known, or to come."""
    first = None if known is None else next(iter(known.parts()), None)
    if first is not None:
        downstream = first.intervals[0].downstream if first.intervals else first.target_end
        return None if downstream is None else (first.source.start, downstream)
    position = progress.positions.get(partition)
    if position is None or position.target_end is None:
        return None
    return position.next_offset, position.target_end


def _fill(clusters: Clusters, writer: MapWriter, gap: _Gap, topic_id: str | None) -> Rebuilt:
    settings = clusters.settings
    if gap.source.start == gap.source.end:
        return Rebuilt(gap.partition, gap.source)
    there = clusters.source.records(gap.partition, gap.source)
    source: Iterator[TailRecord] = (record for record in there if record.offset not in gap.quarantined)
    target: Iterator[TailRecord] = clusters.target.records(gap.remote, gap.target)
    if settings.stamp is not None:
        source, target = copies(settings.stamp, gap.partition, source), ours(settings.stamp, gap.partition, target)
    match = match_logs(source, target, gap.source.end)
    if match.foreign is not None:
        reason = f"the records of both sides do not pair up to the end: {match.foreign}"
        return Rebuilt(gap.partition, OffsetRange(gap.source.start, gap.source.start), refusal=reason)
    # Where no older copy is left on the target, whoever stood further back goes on at its beginning.
    is_whole = not match.intervals or match.intervals[0].downstream == gap.target.start
    asked = OffsetRange(0, gap.source.end) if is_whole else gap.source
    clusters.require_lease()
    writer.insert(gap.partition, IntervalMap(asked, gap.target.end, tuple(match.intervals)), topic_id)
    return Rebuilt(gap.partition, asked, sum(interval.count for interval in match.intervals))
