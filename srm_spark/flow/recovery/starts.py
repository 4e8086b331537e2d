"""Where each partition of a generation starts: recorded progress, checked against what the source still has."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from srm_spark.core.limits import Route
from srm_spark.core.model import (
    LogIdentity,
    Loss,
    LossCause,
    OffsetRange,
    PausedPartition,
    ProgressDetail,
    TopicPartition,
)
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.guard import report_loss, truncated
from srm_spark.flow.topics.committer import committer_of
from srm_spark.flow.topics.offset_map import Maps
from srm_spark.flow.topics.progress import Position, ProgressTopic
from srm_spark.kafka.fencing import FencingToken

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Starts:
    """Where each partition of a generation starts."""

    positions: dict[TopicPartition, Position] = field(default_factory=dict)
    held: dict[TopicPartition, PausedPartition] = field(default_factory=dict)
    new: set[TopicPartition] = field(default_factory=set)
    """Partitions whose position is not recorded yet."""
    lost: dict[TopicPartition, tuple[Loss, ...]] = field(default_factory=dict)
    """What is lost, to be recorded with the position."""
    mapped: set[TopicPartition] = field(default_factory=set)
    """Those of them whose position is the end of the offset map, since progress is lost."""
    recreated: set[TopicPartition] = field(default_factory=set)
    """Of topics that were created anew: nothing recorded says anything about them."""
    renamed: set[TopicPartition] = field(default_factory=set)
    """Partitions whose copies go to a remote topic of another name from now on: nothing is known of it."""
    unproven: set[TopicPartition] = field(default_factory=set)
    """Partitions whose offset map is not true of the remote topic."""
    logs: dict[TopicPartition, LogIdentity] = field(default_factory=dict)
    """What both sides are now; `positions` have what was recorded."""
    source_logs: dict[TopicPartition, OffsetRange] = field(default_factory=dict)
    """From where to where the source's partitions reach."""
    target_ends: dict[TopicPartition, int] = field(default_factory=dict)
    """Where remote partitions end."""

    def lose(self, partition: TopicPartition, loss: Loss) -> None:
        """Remember a loss, so that it is recorded."""
        self.lost[partition] = (*self.lost.get(partition, ()), loss)
        self.new.add(partition)

    def begin(self, partition: TopicPartition) -> int:
        """First source offset of which there is news to record: in front of the position for what is lost there."""
        lost = (loss.offsets.start for loss in self.lost.get(partition, ()) if loss.cause is not LossCause.DIVERGED)
        return min(lost, default=self.positions[partition].next_offset)

    def deleted(self, partition: TopicPartition) -> OffsetRange | None:
        """What the source deleted in front of the position."""
        found = (loss.offsets for loss in self.lost.get(partition, ()) if loss.cause is LossCause.DELETED)
        return next(found, None)


def find_starts(
    clusters: Clusters, progress: ProgressTopic, topics: Mapping[str, int], ids: Mapping[str, str], maps: Maps
) -> Starts:
    """Start positions from recorded progress, checked against what the source still has.

    Progress that is lost while the offset map is there is what the map says: it is written first.
    """
    partitions = [TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)]
    first, end = clusters.source.first_offsets(partitions), clusters.source.log_ends(partitions)
    starts = Starts()
    is_latest = clusters.settings.consumer.get("auto.offset.reset", "earliest").strip().lower() == "latest"
    for partition in partitions:
        if partition not in first or partition not in end:
            continue  # deleted since it was listed; the next look at the topics leaves it out
        kept = starts.source_logs[partition] = OffsetRange(first[partition], end[partition].offset)
        starts.logs[partition] = LogIdentity(ids.get(partition.topic), end[partition].epoch)
        recorded = progress.positions.get(partition)
        if recorded is None and partition not in progress.reset:
            recorded = _mapped(clusters, starts, partition, maps)
        if recorded is not None:
            topic_id = ids.get(partition.topic, recorded.topic_id)
            is_recreated = recorded.topic_id is not None and recorded.topic_id != topic_id
            (start_anew if is_recreated else go_on_with)(clusters, starts, partition, recorded, kept)
        else:
            starts.positions[partition] = Position(kept.end if is_latest else kept.start)
            starts.new.add(partition)
    return starts


def _mapped(clusters: Clusters, starts: Starts, partition: TopicPartition, maps: Maps) -> Position | None:
    """Where the offset map ends; None where it says nothing about this topic."""
    found = maps.get(partition)
    if found is None or found.source is None or found.target_end is None:
        return None
    if found.is_of_another(starts.logs[partition].topic_id):
        return None
    text = "flow=%s partition=%s no progress is recorded in %s: going on at offset %s, where the offset map ends"
    log.warning(text, clusters.settings.flow, partition, clusters.settings.progress_topic, found.source.end)
    starts.mapped.add(partition)
    starts.new.add(partition)
    return Position(found.source.end, found.target_end, LogIdentity(found.topic_id))


def start_anew(
    clusters: Clusters, starts: Starts, partition: TopicPartition, recorded: Position, kept: OffsetRange
) -> None:
    """Begin at the beginning of a source topic that was created anew, or hold it where the policy says so."""
    if clusters.settings.policies.stops("source.recreated.policy", partition.topic):
        reason = "the source topic was created anew; set source.recreated.policy=resume to start at its beginning"
        starts.held[partition] = PausedPartition(recorded.next_offset, Failure(FailureKind.SOURCE_RECREATED, reason))
        return
    log.warning(
        "flow=%s partition=%s the source topic was created anew: starting at its beginning (offset %s); the old one "
        "was replicated up to offset %s, and what it had behind that nobody can say any more",
        clusters.settings.flow,
        partition,
        kept.start,
        recorded.next_offset - 1,
    )
    starts.positions[partition] = Position(kept.start)
    starts.new.add(partition)
    starts.recreated.add(partition)


def go_on_with(
    clusters: Clusters, starts: Starts, partition: TopicPartition, recorded: Position, kept: OffsetRange
) -> None:
    """Go on at the recorded position, or behind what the source has deleted since."""
    settings = clusters.settings
    if recorded.next_offset < kept.start:
        if settings.policies.stops("source.truncated.policy", partition.topic):
            starts.held[partition] = truncated(recorded.next_offset, kept.start)
            starts.new.discard(partition)
            return
        loss = Loss(OffsetRange(recorded.next_offset, kept.start))
        report_loss(settings.flow, partition, loss)
        starts.positions[partition] = replace(recorded, next_offset=kept.start)
        starts.lose(partition, loss)
    else:
        starts.positions[partition] = recorded


def record_new(
    clusters: Clusters, starts: Starts, routes: Mapping[str, Route], maps: Maps, *, fencing: FencingToken | None
) -> None:
    """Record where partitions start, or `latest` would skip what comes before the first batch of a restart.

    Where the remote partition is empty it is known that nothing in front of the start was ever replicated.
    """
    if not starts.new:
        return
    remote = {p: TopicPartition(routes[p.topic].remote_topic, p.partition) for p in starts.new}
    target_firsts, target_ends = (
        clusters.target.first_offsets(remote.values()),
        clusters.target.end_offsets(remote.values()),
    )
    details = {}
    for partition in starts.new:
        start = starts.positions[partition].next_offset
        end = target_ends.get(remote[partition])
        is_known = partition in starts.mapped or partition in starts.renamed
        is_empty = not is_known and end is not None and target_firsts.get(remote[partition]) == end
        details[partition] = ProgressDetail(
            source=OffsetRange(0 if is_empty else starts.begin(partition), start),
            target_end=end,
            intervals=(),
            logs=starts.logs[partition],
            lost=starts.lost.get(partition, ()),
        )
    committer_of(clusters, maps, fencing).commit(details)
