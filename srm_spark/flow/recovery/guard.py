"""Whether the source is still what a batch takes it for: the same topic and log, and nothing deleted in front of us.

Spark reads on without a word when records vanish (`failOnDataLoss=false`, so that one topic cannot stop the others), so
topic ids, log ends, leader epochs and log starts are compared before a batch, and log starts once more after it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster
from srm_spark.core.limits import Route
from srm_spark.core.model import Flow, LogIdentity, Loss, LossCause, OffsetRange, PausedPartition, TopicPartition
from srm_spark.errors import SourceChanged
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.clusters import Connect, connect, source_of
from srm_spark.flow.recovery.agreement import differing_copies
from srm_spark.flow.topics.offset_map import Maps

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checked:
    """What can be replicated of the ranges that were to be."""

    ranges: dict[TopicPartition, OffsetRange]
    lost: dict[TopicPartition, tuple[Loss, ...]]
    """Deleted on the source before they were replicated."""
    holds: dict[TopicPartition, PausedPartition]
    """The same where the policy is to stop."""
    passed: dict[TopicPartition, int] = field(default_factory=dict)
    """Where those go on of which anything was deleted; nothing is lost of what was to be copied again."""


class SourceGuard:
    """Checks the source topics of one generation."""

    def __init__(
        self,
        settings: FlowSettings,
        logs: Mapping[TopicPartition, LogIdentity],
        routes: Mapping[str, Route],
        source: Cluster | None = None,
        reach: Connect = connect,
    ) -> None:
        """Without a `source` a client is made when it is first needed; `reach` gets to both sides."""
        self.logs = dict(logs)
        """What each partition's progress speaks of; epochs are the newest under which it was found to be true."""
        self.topic_ids = {p.topic: log.topic_id for p, log in logs.items() if log.topic_id is not None}
        """Of the topics that this generation reads."""
        self._settings = settings
        self._routes = routes
        self._source = source
        self._reach = reach

    def before(self, ranges: Mapping[TopicPartition, OffsetRange], maps: Maps) -> Checked:
        """Check before a batch. Raises SourceChanged when a topic was created anew, or a log is not what it was."""
        self._compare_ids({partition.topic for partition in ranges})
        self._compare_logs(ranges, maps)
        checked = Checked(dict(ranges), {}, {})
        for partition, first in self._cluster.first_offsets(ranges).items():
            start, end = ranges[partition]
            if first <= start:
                continue
            del checked.ranges[partition]
            losses = losses_of(maps, partition, OffsetRange(start, first))
            if losses and self._settings.policies.stops("source.truncated.policy", partition.topic):
                checked.holds[partition] = truncated(losses, start)
                continue
            checked.passed[partition] = first
            if losses:
                checked.lost[partition] = losses
            for loss in losses:
                report_loss(self._settings.flow, partition, loss)
            if first < end:
                checked.ranges[partition] = OffsetRange(first, end)
        return checked

    def unchanged(self, ranges: Mapping[TopicPartition, OffsetRange]) -> None:
        """Check behind the copy, where nothing could be checked before it.

        Raises SourceChanged also for a new leader: it may lack what was read from the old one, and the start of the
        next generation compares every record of which that is not certain.
        """
        self._compare_ids({partition.topic for partition in ranges})
        for partition, end in self._cluster.log_ends(ranges).items():
            if end.offset < ranges[partition].end or end.epoch != self.logs[partition].epoch:
                raise SourceChanged(
                    f"flow {self._settings.flow}: {partition} has a new leader on the source, or ends at offset "
                    f"{end.offset} before the position {ranges[partition].end}: comparing both sides"
                )

    def after(
        self, gaps: Mapping[TopicPartition, Iterable[OffsetRange]], maps: Maps
    ) -> dict[TopicPartition, tuple[Loss, ...]]:
        """What was deleted while it was read: gaps in front of where the log starts by now.

        Markers, compaction and records that are not copied make gaps, too. Where the source deleted amid a batch,
        nobody can tell them from lost records any more, and they are told as lost.
        """
        lost = {}
        for partition, first in self._cluster.first_offsets(gaps).items() if gaps else ():
            losses = tuple(
                loss
                for gap in gaps[partition]
                if gap.start < first
                for loss in losses_of(maps, partition, OffsetRange(gap.start, min(first, gap.end)))
            )
            if losses:
                lost[partition] = losses
            for loss in losses:
                report_loss(self._settings.flow, partition, loss)
        return lost

    def has_more(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether a new batch would bring records behind any of `ends`."""
        committed = self._settings.reads_committed
        source_ends = self._cluster.end_offsets(ends, waits=False, committed=committed) if ends else {}
        return any(end > ends[partition] for partition, end in source_ends.items())

    @property
    def _cluster(self) -> Cluster:
        if self._source is None:  # late: it travels by pickle before
            self._source = source_of(self._settings, "guard")
        return self._source

    def _compare_ids(self, topics: Iterable[str]) -> None:
        expected = {topic: self.topic_ids[topic] for topic in topics if topic in self.topic_ids}
        topic_ids = self._cluster.topic_ids(expected)
        changed = [topic for topic, topic_id in expected.items() if topic_ids.get(topic) != topic_id]
        if changed:
            what = "is gone" if changed[0] not in topic_ids else "was created anew"
            raise SourceChanged(f"flow {self._settings.flow}: topic {changed[0]} {what} on the source")

    def _compare_logs(self, ranges: Mapping[TopicPartition, OffsetRange], maps: Maps) -> None:
        """A new leader may lack records that the old one had: the last replicated one is compared with its copy."""
        ends = self._cluster.log_ends(ranges)
        for partition, end in ends.items():
            seen = min(end.offset, ranges[partition].end)
            if seen < ranges[partition].start:
                raise SourceChanged(
                    f"flow {self._settings.flow}: {partition} ends at offset {seen} on the source, before the position "
                    f"{ranges[partition].start}"
                )
        new = {p: end.epoch for p, end in ends.items() if p in self.logs and end.epoch != self.logs[p].epoch}
        positions = {partition: ranges[partition].start for partition in new}
        if positions and (differing := differing_copies(self._reach(self._settings), self._routes, maps, positions)):
            first = min(differing)
            raise SourceChanged(
                f"flow {self._settings.flow}: {first} has a new leader on the source, and the record in front of "
                f"offset {positions[first]} is not the one that was replicated, or cannot be compared"
            )
        for partition, epoch in new.items():
            self.logs[partition] = self.logs[partition]._replace(epoch=epoch)


def losses_of(maps: Maps, partition: TopicPartition, deleted: OffsetRange) -> tuple[Loss, ...]:
    """What is lost when the source has deleted the next offsets: all of them but behind a rewind."""
    known = maps.get(partition)
    return tuple(map(Loss, [deleted] if known is None else known.new_of(deleted)))


def truncated(losses: Sequence[Loss], at: int) -> PausedPartition:
    """The hold of a partition that stands `at` an offset, and whose next records were deleted."""
    start, end = losses[0].offsets.start, losses[-1].offsets.end
    return PausedPartition(
        at,
        Failure(
            FailureKind.SOURCE_TRUNCATED,
            f"the source deleted offsets {start} to {end - 1} before they were replicated; "
            "set source.truncated.policy=resume to go on behind them",
        ),
    )


def report_loss(flow: Flow, partition: TopicPartition, loss: Loss) -> None:
    """Say what is lost."""
    where = "" if loss.target is None else f" (target offsets {loss.target.start} to {loss.target.end - 1})"
    text = "flow=%s partition=%s offsets %s are lost: %s%s"
    log.error(text, flow, partition, loss, _WHAT_HAPPENED[loss.cause], where)


_WHAT_HAPPENED = {
    LossCause.DELETED: "the source deleted them before they were replicated",
    LossCause.DIVERGED: "they were replicated, and the source has none or other records there now",
    LossCause.TARGET: "they were replicated, and their copies are gone on the target",
    LossCause.SKIPPED: "somebody has set the position behind them",
}
