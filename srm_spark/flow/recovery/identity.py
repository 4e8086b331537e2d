"""Before a generation starts: are both topics, and both logs, still those of which progress speaks?

A topic is known by its id, a log by its leader epoch: only under another leader can it have lost its newest records
while it keeps its id (unclean election, a disk that came back from a backup). So copies are compared only where an id,
an epoch, or an end that lies before the recorded one gives cause to.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Set
from dataclasses import replace

from srm_spark.core.limits import Route
from srm_spark.core.model import Loss, LossCause, OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.agreement import differing_copies, first_difference
from srm_spark.flow.recovery.guard import report_loss
from srm_spark.flow.recovery.starts import Starts
from srm_spark.flow.topics.offset_map import Maps
from srm_spark.flow.topics.progress import Position

log = logging.getLogger(__name__)

_NO_MAP = PartitionMap()


def check_copies(clusters: Clusters, starts: Starts, routes: Mapping[str, Route], maps: Maps) -> None:
    """Compare what `starts` takes for replicated with both sides; moves or holds what is not so any more."""
    _Check(clusters, starts, routes, maps).run()


class _Check:
    """One look at the partitions of one generation."""

    def __init__(self, clusters: Clusters, starts: Starts, routes: Mapping[str, Route], maps: Maps) -> None:
        self._clusters = clusters
        self._starts = starts
        self._routes = routes
        self._maps = maps
        self._remotes = {p: TopicPartition(routes[p.topic].remote_topic, p.partition) for p in starts.positions}
        self._was = {partition: start.logs for partition, start in starts.positions.items()}

    def run(self) -> None:
        """Fill in what the target is now, then judge partition by partition."""
        starts, remotes = self._starts, self._remotes
        ids = self._clusters.target.topic_ids({remote.topic for remote in remotes.values()})
        there = self._clusters.target.log_ends(remotes.values())
        for partition, remote in remotes.items():
            epoch = there[remote].epoch if remote in there else None
            starts.logs[partition] = starts.logs[partition]._replace(
                remote_id=ids.get(remote.topic), remote_epoch=epoch
            )
        starts.target_ends.update({remote: end.offset for remote, end in there.items()})
        anew = starts.recreated | starts.renamed
        known = [p for p in remotes if starts.positions[p].target_end is not None and p not in anew]
        on_new = [p for p in known if self._was[p].remote_id not in (None, ids.get(remotes[p].topic))]
        first = self._clusters.target.first_offsets([remotes[partition] for partition in on_new])
        for partition in on_new:
            self._target_is_new(partition, first.get(remotes[partition], 0))
        suspects = self._suspects([p for p in known if p not in set(on_new)])
        first = self._clusters.target.first_offsets([remotes[partition] for partition in suspects])
        for partition in suspects:
            self._search(partition, first.get(remotes[partition], 0))
        by_others = remotes.keys() - set(known) - anew
        for partition in by_others:
            self._cut_to_the_end(partition)
        starts.unproven.update(starts.renamed & self._maps.keys(), self._unproven(by_others))

    def _unproven(self, partitions: Set[TopicPartition]) -> set[TopicPartition]:
        """Those of them whose map ends before the position, at a copy that is not there: others copied in between.

        What they have recorded does not tell whether the remote topic was created anew or truncated meanwhile.
        """
        positions = {
            p: self._starts.positions[p].next_offset
            for p in partitions
            if (found := self._maps.get(p, _NO_MAP).source) is not None
            and found.end < self._starts.positions[p].next_offset
        }
        return differing_copies(self._clusters.settings, self._routes, self._maps, positions)

    def _suspects(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Those of which something gives cause to look closely."""
        starts, short, moved = self._starts, [], {}
        for partition in partitions:
            start, was, now = starts.positions[partition], self._was[partition], starts.logs[partition]
            target_end = starts.target_ends.get(self._remotes[partition], 0)
            if start.next_offset > starts.source_logs[partition].end or target_end < (start.target_end or 0):
                short.append(partition)
            elif (was.epoch, was.remote_epoch) != (now.epoch, now.remote_epoch):
                moved[partition] = start.next_offset
        differing = differing_copies(self._clusters.settings, self._routes, self._maps, moved)
        return short + [partition for partition in moved if partition in differing]

    def _search(self, partition: TopicPartition, first: int) -> None:
        """Find out from where on both sides differ, and which of them has changed; `first` is the target's."""
        starts, remote, route = self._starts, self._remotes[partition], self._routes[partition.topic]
        start, source = starts.positions[partition], starts.source_logs[partition]
        target = OffsetRange(first, starts.target_ends.get(remote, 0))
        found = self._maps.get(partition, _NO_MAP)
        settings, position = self._clusters.settings, start.next_offset
        difference = first_difference(settings, route, found, partition, position, source=source, target=target)
        if difference is None:
            starts.positions[partition] = replace(start, target_end=min(start.target_end or 0, target.end))
            self._cut_to_the_end(partition)
            return
        place = found.next_copy(difference)
        assert place is not None
        lost = OffsetRange(difference, position)
        copies = OffsetRange(place, max(place, start.target_end or 0))
        if difference < source.end and self._is_the_target_s_fault(partition, place, target):
            self._target_has_lost(partition, Loss(lost, LossCause.TARGET, copies), place)
        else:
            self._source_has_changed(partition, Loss(lost, LossCause.DIVERGED, copies), min(difference, source.end))

    def _is_the_target_s_fault(self, partition: TopicPartition, place: int, target: OffsetRange) -> bool:
        was, now = self._was[partition], self._starts.logs[partition]
        has_moved = was.remote_epoch != now.remote_epoch and was.epoch == now.epoch
        return place >= target.end or has_moved

    def _source_has_changed(self, partition: TopicPartition, loss: Loss, next_offset: int) -> None:
        starts, policies = self._starts, self._clusters.settings.policies
        if policies.stops("source.diverged.policy", partition.topic):
            self._hold(
                partition,
                next_offset,
                FailureKind.SOURCE_DIVERGED,
                f"offsets {loss} were replicated, and the source has none or other records there now (unclean leader "
                f"election, or a log from a backup); set source.diverged.policy=resume to go on at {next_offset}",
            )
            return
        end = starts.target_ends.get(self._remotes[partition])
        start = replace(starts.positions[partition], next_offset=next_offset, target_end=end)
        copies = loss.target
        if copies is not None and end is not None:  # what a batch that died has left there is of the old log, too
            loss = replace(loss, target=OffsetRange(copies.start, max(copies.end, end)))
        self._go_on(partition, start, loss)

    def _target_is_new(self, partition: TopicPartition, first: int) -> None:
        found = self._maps.get(partition, _NO_MAP)
        upstream, downstream = found.next_original(0), found.next_copy(0)
        start = self._starts.positions[partition]
        end = start.target_end
        if upstream is None or downstream is None or end is None:
            self._starts.positions[partition] = replace(start, target_end=first)
            self._starts.new.add(partition)
            return
        lost = OffsetRange(upstream, start.next_offset)
        self._target_has_lost(partition, Loss(lost, LossCause.TARGET, OffsetRange(downstream, end)), first)

    def _target_has_lost(self, partition: TopicPartition, loss: Loss, target_end: int) -> None:
        start, remote = self._starts.positions[partition], self._remotes[partition]
        if self._clusters.settings.policies.stops("target.changed.policy", partition.topic):
            self._hold(
                partition,
                start.next_offset,
                FailureKind.COPIES_GONE,
                f"{remote} was truncated or created anew: the copies of offsets {loss} are gone there; "
                "set target.changed.policy=resume to go on behind them",
            )
            return
        self._go_on(partition, replace(start, target_end=target_end), loss)

    def _cut_to_the_end(self, partition: TopicPartition) -> None:
        """The source ends before the position, and no copy differs: only markers are gone, or nothing is known."""
        start, end = self._starts.positions[partition], self._starts.source_logs[partition].end
        if start.next_offset <= end:
            return
        loss = Loss(OffsetRange(end, start.next_offset), LossCause.DIVERGED)
        if self._maps.get(partition, _NO_MAP).has_records:
            text = "flow=%s partition=%s the source ends at offset %s, before the position %s: going on there"
            log.warning(text, self._clusters.settings.flow, partition, end, start.next_offset)
            self._starts.positions[partition] = replace(start, next_offset=end)
            self._starts.new.add(partition)
        else:
            self._source_has_changed(partition, loss, end)

    def _go_on(self, partition: TopicPartition, start: Position, loss: Loss) -> None:
        report_loss(self._clusters.settings.flow, partition, loss)
        self._starts.positions[partition] = start
        self._starts.lose(partition, loss)

    def _hold(self, partition: TopicPartition, offset: int, kind: FailureKind, reason: str) -> None:
        del self._starts.positions[partition]
        self._starts.new.discard(partition)
        self._starts.held[partition] = PausedPartition(offset, Failure(kind, reason))
