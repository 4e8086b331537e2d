"""Where each partition of a generation starts: recorded progress, checked against what the source still has."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from srm_spark.config.settings import StartAt
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
from srm_spark.core.wording import some
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.guard import losses_of, report_loss, truncated
from srm_spark.flow.topics.committer import committer_of
from srm_spark.flow.topics.offset_map import Maps
from srm_spark.flow.topics.progress import Position, ProgressTopic
from srm_spark.kafka.fencing import FencingToken

log = logging.getLogger(__name__)


class Origin(Enum):
    """What a start position rests on."""

    PROGRESS = "progress"
    MAP = "offset map"
    """Progress is lost, so it is the end of the offset map."""
    NOTHING = "nothing"
    """Nothing is recorded of this partition."""
    RECREATED = "recreated"
    """The source topic was created anew: nothing recorded says anything about it."""
    RENAMED = "renamed"
    """Copies go to a remote topic of another name from now on: nothing is known of that."""

    @property
    def is_anew(self) -> bool:
        """Whether what is recorded is of other topics."""
        return self in (Origin.RECREATED, Origin.RENAMED)


class Anchor(NamedTuple):
    """Offsets at which both logs are known to meet."""

    source: int
    target: int


@dataclass(frozen=True)
class Start:
    """Where one partition starts, and what is known of its two logs by then. Each check returns another one."""

    position: Position
    """With the identities that were recorded."""
    source_log: OffsetRange
    """From where to where the source's log reaches."""
    logs: LogIdentity
    """What both sides are now."""
    origin: Origin = Origin.PROGRESS
    is_recorded: bool = True
    """Whether progress has this position."""
    losses: tuple[Loss, ...] = ()
    """What is lost, to be recorded with the position."""
    target_end: int | None = None
    """Where the remote partition ends; None where there is none."""
    is_unproven: bool = False
    """The offset map is not true of the remote topic."""
    deleted: OffsetRange | None = None
    """What the source deleted in front of the position, copied before or not."""
    paused: PausedPartition | None = None
    """Why it does not start."""
    agreed: Anchor | None = None
    """Where the target has lost copies: right behind the last one that is still there."""

    def lose(self, loss: Loss, position: Position) -> Start:
        """Go on at `position` without what is lost."""
        return replace(self, position=position, losses=(*self.losses, loss), is_recorded=False)

    def pause(self, offset: int, kind: FailureKind, sentence: str) -> Start:
        """Not to start."""
        return replace(self, paused=PausedPartition(offset, Failure(kind, sentence)))

    @property
    def begin(self) -> int:
        """First source offset of which there is news to record: in front of the position for what is gone there."""
        gone = [loss.offsets.start for loss in self.losses if loss.cause is not LossCause.DIVERGED]
        if self.deleted is not None:
            gone.append(self.deleted.start)
        return min(gone, default=self.position.next_offset)


Starts = Mapping[TopicPartition, Start]


def flowing(starts: Starts) -> dict[TopicPartition, Start]:
    """Those that start."""
    return {partition: start for partition, start in starts.items() if start.paused is None}


def find_starts(
    clusters: Clusters,
    progress: ProgressTopic,
    partitions: Sequence[TopicPartition],
    ids: Mapping[str, str],
    maps: Maps,
) -> Starts:
    """Start positions from recorded progress, checked against what the source still has.

    Progress that is lost while the offset map is there is what the map says: it is written first.
    """
    first, end = clusters.source.first_offsets(partitions), clusters.source.log_ends(partitions)
    starts = {}
    for partition in partitions:
        if partition not in first or partition not in end:
            continue  # deleted since it was listed; the next look at the topics leaves it out
        kept = OffsetRange(first[partition], end[partition].offset)
        logs = LogIdentity(ids.get(partition.topic), end[partition].epoch)
        recorded = progress.positions.get(partition)
        if recorded is not None:
            starts[partition] = _recorded(clusters, partition, Start(recorded, kept, logs), maps)
        elif partition not in progress.reset and (mapped := _mapped(clusters, partition, logs, maps)) is not None:
            start = Start(mapped, kept, logs, Origin.MAP, is_recorded=False)
            starts[partition] = _recorded(clusters, partition, start, maps)
        else:
            starts[partition] = Start(Position(kept.start), kept, logs, Origin.NOTHING, is_recorded=False)
    return {**starts, **_begun(clusters, {p: s for p, s in starts.items() if s.origin is Origin.NOTHING})}


def _begun(clusters: Clusters, starts: Starts) -> Starts:
    """Those of which nothing is recorded, where the settings let their topics begin."""
    settings = clusters.settings
    is_latest = settings.consumer.get("auto.offset.reset", "earliest").strip().lower() == "latest"
    usual = StartAt.LATEST if is_latest else StartAt.EARLIEST
    places = {partition: settings.starts.of(partition.topic, usual) for partition in starts}
    dated = [partition for partition, at in places.items() if at is StartAt.TIMESTAMP]
    moment = settings.starts.timestamp
    since = clusters.source.offsets_since(dated, moment) if dated and moment is not None else {}
    ends = {p: start.source_log.end for p, start in starts.items() if places[p] is not StartAt.EARLIEST}
    offsets = {p: since.get(p, ends.get(p, start.source_log.start)) for p, start in starts.items()}
    if behind := [f"{p} at {offset}" for p, offset in offsets.items() if offset > starts[p].source_log.start]:
        log.info("flow=%s what lies in front of first starts is not copied: %s", settings.flow, some(behind))
    return {p: replace(start, position=Position(offsets[p])) for p, start in starts.items()}


def _mapped(clusters: Clusters, partition: TopicPartition, logs: LogIdentity, maps: Maps) -> Position | None:
    """Where the offset map ends; None where it says nothing about this topic."""
    known = maps.get(partition)
    if known is None or known.is_of_another(logs.topic_id):
        return None
    newest = known.again or known
    if newest.source is None or newest.target_end is None:
        return None
    text = "flow=%s partition=%s no progress is recorded in %s: going on at offset %s, where the offset map ends"
    log.warning(text, clusters.settings.flow, partition, clusters.settings.progress_topic, newest.source.end)
    return Position(newest.source.end, newest.target_end, LogIdentity(known.topic_id))


def _recorded(clusters: Clusters, partition: TopicPartition, start: Start, maps: Maps) -> Start:
    """Go on at the recorded position where the topic is the one of which it speaks."""
    if is_recreated(start.position.logs, start.logs):
        return _anew(clusters, partition, start)
    return going_on(clusters, partition, start, maps)


def is_recreated(was: LogIdentity, now: LogIdentity) -> bool:
    """Whether a source topic is another one than the recorded one of its name; unknown ids say nothing."""
    return None not in (was.topic_id, now.topic_id) and was.topic_id != now.topic_id


def _anew(clusters: Clusters, partition: TopicPartition, start: Start) -> Start:
    """Begin at the beginning of a source topic that was created anew, or pause it where the policy says so."""
    recorded, kept = start.position, start.source_log
    if clusters.settings.policies.stops("source.recreated.policy", partition.topic):
        sentence = "the source topic was created anew; set source.recreated.policy=resume to start at its beginning"
        return start.pause(recorded.next_offset, FailureKind.SOURCE_RECREATED, sentence)
    log.warning(
        "flow=%s partition=%s the source topic was created anew: starting at its beginning (offset %s); the old one "
        "was replicated up to offset %s, and what it had behind that nobody can say any more",
        clusters.settings.flow,
        partition,
        kept.start,
        recorded.next_offset - 1,
    )
    return replace(start, position=Position(kept.start), origin=Origin.RECREATED, is_recorded=False)


def going_on(clusters: Clusters, partition: TopicPartition, start: Start, maps: Maps) -> Start:
    """Go on at the recorded position, or behind what the source has deleted since."""
    settings, recorded, kept = clusters.settings, start.position, start.source_log
    if recorded.next_offset >= kept.start:
        return start
    deleted, position = OffsetRange(recorded.next_offset, kept.start), replace(recorded, next_offset=kept.start)
    losses = losses_of(maps, partition, deleted)
    if losses and settings.policies.stops("source.truncated.policy", partition.topic):
        return replace(start, paused=truncated(losses, recorded.next_offset))
    start = replace(start, position=position, is_recorded=False, deleted=deleted)
    for loss in losses:
        report_loss(settings.flow, partition, loss)
        start = start.lose(loss, position)
    return start


def record_new(
    clusters: Clusters, starts: Starts, routes: Mapping[str, Route], maps: Maps, *, fencing: FencingToken | None
) -> None:
    """Record where partitions start, or `latest` would skip what comes before the first batch of a restart.

    Where the remote partition is empty it is known that nothing in front of the start was ever replicated.
    """
    new = {partition: start for partition, start in flowing(starts).items() if not start.is_recorded}
    if not new:
        return
    remote = {p: routes[p.topic].remote(p) for p in new}
    target_firsts, target_ends = (
        clusters.target.first_offsets(remote.values()),
        clusters.target.end_offsets(remote.values()),
    )
    details = {}
    for partition, start in new.items():
        end = target_ends.get(remote[partition])
        is_known = start.origin in (Origin.MAP, Origin.RENAMED)
        is_empty = not is_known and end is not None and target_firsts.get(remote[partition]) == end
        details[partition] = ProgressDetail(
            source=OffsetRange(0 if is_empty else start.begin, start.position.next_offset),
            target_end=end,
            intervals=(),
            logs=start.logs,
            lost=start.losses,
        )
    committer_of(clusters, maps, fencing).commit(details)
