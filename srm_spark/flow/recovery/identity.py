"""Before a generation starts: are both topics, and both logs, still those of which progress speaks?

A topic is known by its id, a log by its leader epoch: only under another leader can it have lost its newest records
while it keeps its id (unclean election, a disk that came back from a backup). So copies are compared only where an id,
an epoch, or an end that lies before the recorded one gives cause to.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from srm_spark.core.limits import Route
from srm_spark.core.model import LogIdentity, Loss, LossCause, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.wording import some
from srm_spark.errors import TargetUnavailable
from srm_spark.failure import FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.agreement import differing_copies, first_difference
from srm_spark.flow.recovery.guard import report_loss
from srm_spark.flow.recovery.starts import Anchor, Origin, Start, Starts, flowing, going_on
from srm_spark.flow.topics.offset_map import Maps
from srm_spark.flow.topics.progress import Position

log = logging.getLogger(__name__)

_NO_MAP = PartitionMap()


def check_copies(clusters: Clusters, starts: Starts, routes: Mapping[str, Route], maps: Maps) -> Starts:
    """Compare what `starts` takes for replicated with both sides; moves or pauses what is not so any more."""
    return _Check(clusters, routes, maps).judged(starts)


class _Check:
    """One look at the partitions of one query run."""

    def __init__(self, clusters: Clusters, routes: Mapping[str, Route], maps: Maps) -> None:
        self._clusters = clusters
        self._routes = routes
        self._maps = maps

    def judged(self, starts: Starts) -> Starts:
        """Fill in what the target is now, then judge partition by partition."""
        every = {p: self._copied_once_more(p, start) for p, start in self._seen(flowing(starts)).items()}
        seen = flowing(every)
        known = {p: s for p, s in seen.items() if s.position.target_end is not None and not s.origin.is_anew}
        on_new = {p for p, start in known.items() if _is_on_a_new_target(start)}
        suspects = self._suspects({p: start for p, start in known.items() if p not in on_new})
        by_others = {p: s for p, s in seen.items() if p not in known and not s.origin.is_anew}
        first = self._clusters.target.first_offsets([self._remote(p) for p in on_new | suspects])
        judged = {p: self._on_a_new_target(p, seen[p], first.get(self._remote(p), 0)) for p in on_new}
        judged |= {p: self._searched(p, seen[p], first.get(self._remote(p), 0)) for p in suspects}
        judged |= {p: self._cut_to_the_end(p, start) for p, start in by_others.items()}
        judged = {**every, **{p: self._without_other_records(p, start) for p, start in {**seen, **judged}.items()}}
        unproven = self._unproven({p: judged[p] for p in by_others})
        unproven |= {p for p, start in seen.items() if start.origin is Origin.RENAMED and p in self._maps}
        return {**starts, **judged, **{p: replace(judged[p], is_unproven=True) for p in unproven}}

    def _seen(self, starts: Starts) -> dict[TopicPartition, Start]:
        """The starts with what the target has now.

        Raises TargetUnavailable where it does not know what was there, or made, a moment ago: a broker that has just
        started may not have heard of it yet, and all its copies would count as lost.
        """
        remotes = {partition: self._remote(partition) for partition in starts}
        ids = self._clusters.target.topic_ids({remote.topic for remote in remotes.values()})
        ends = self._clusters.target.log_ends(remotes.values())
        if absent := [str(one) for one in remotes.values() if one.topic not in ids or one not in ends]:
            flow = self._clusters.settings.flow
            text = f"cluster {flow.target} does not know {some(absent)} any more, or not yet"
            raise TargetUnavailable(f"{text}; nothing is concluded from that, and it is asked again")
        seen = {}
        for partition, remote in remotes.items():
            start, end = starts[partition], ends[remote]
            logs = start.logs._replace(remote_id=ids[remote.topic], remote_epoch=end.epoch)
            seen[partition] = replace(start, logs=logs, target_end=end.offset)
        return seen

    def _remote(self, partition: TopicPartition) -> TopicPartition:
        return self._routes[partition.topic].remote(partition)

    def _unproven(self, starts: Starts) -> set[TopicPartition]:
        """Those of them whose map ends before the position, at a copy that is not there: others copied in between.

        What they have recorded does not tell whether the remote topic was created anew or truncated meanwhile.
        """
        positions = {
            p: start.position.next_offset
            for p, start in starts.items()
            if start.paused is None
            and (source := self._maps.get(p, _NO_MAP).source) is not None
            and source.end < start.position.next_offset
        }
        return differing_copies(self._clusters, self._routes, self._maps, positions)

    def _suspects(self, starts: Starts) -> set[TopicPartition]:
        """Those of which something gives cause to look closely."""
        short, moved = set(), {}
        for partition, start in starts.items():
            position, was, now = start.position, start.position.logs, start.logs
            reach = self._reach(partition, start)
            if reach > start.source_log.end or (start.target_end or 0) < (position.target_end or 0):
                short.add(partition)
            elif _epochs(was) != _epochs(now):
                moved[partition] = reach
        return short | differing_copies(self._clusters, self._routes, self._maps, moved)

    def _searched(self, partition: TopicPartition, start: Start, first: int) -> Start:
        """Find out from where on both sides differ, and which of them has changed; `first` is the target's."""
        route, source, position = self._routes[partition.topic], start.source_log, start.position
        target = OffsetRange(first, start.target_end or 0)
        known = self._maps.get(partition, _NO_MAP)
        offset = self._reach(partition, start)
        difference = first_difference(self._clusters, route, known, partition, offset, source=source, target=target)
        if difference is None:
            end = min(position.target_end or 0, target.end)
            return self._cut_to_the_end(partition, replace(start, position=replace(position, target_end=end)))
        place = known.next_copy(difference)
        assert place is not None
        lost = OffsetRange(difference, offset)
        copies = OffsetRange(place, max(place, position.target_end or 0))
        if difference < source.end and _is_the_target_s_fault(start, place):
            if difference >= position.next_offset:  # all of it is copied again from here on
                end = min(position.target_end or 0, target.end, place)
                return replace(start, position=replace(position, target_end=end))
            lost = OffsetRange(difference, position.next_offset)
            kept = known.copies_before(difference, 1)
            agreed = Anchor(kept[0].upstream_end, kept[0].downstream_end) if kept else Anchor(source.start, first)
            start = replace(start, agreed=agreed)
            return self._target_has_lost(partition, start, Loss(lost, LossCause.TARGET, copies), place)
        loss = Loss(lost, LossCause.DIVERGED, copies)
        return self._source_has_changed(partition, start, loss, min(difference, source.end, position.next_offset))

    def _copied_once_more(self, partition: TopicPartition, start: Start) -> Start:
        """Go back to second copies that the target has lost: they may be the only ones, and are to count one day."""
        found = self._again_differs(partition, start)
        if found is None or not _is_the_target_s_fault(start, found.target):
            return start
        position, end = start.position, start.target_end or 0
        if self._clusters.settings.policies.stops("target.changed.policy", partition.topic):
            loss = Loss(OffsetRange(found.source, position.next_offset), LossCause.TARGET)
            return start.pause(
                position.next_offset,
                FailureKind.COPIES_GONE,
                f"{self._remote(partition)} was truncated or created anew amid a rewind: the copies of offsets {loss} "
                "are gone there; set target.changed.policy=resume to copy them once more",
            )
        text = "flow=%s partition=%s second copies are gone on the target: going on at offset %s, and not at %s"
        log.warning(text, self._clusters.settings.flow, partition, found.source, position.next_offset)
        target_end = position.target_end if _is_on_a_new_target(start) else min(end, found.target)
        back = replace(position, next_offset=found.source, target_end=target_end)
        return going_on(
            self._clusters, partition, replace(start, position=back, is_recorded=False, losses=()), self._maps
        )

    def _without_other_records(self, partition: TopicPartition, start: Start) -> Start:
        """Go back to where the source has other records than those of second copies that were the only ones."""
        found = self._again_differs(partition, start)
        if start.paused is not None or found is None or _is_the_target_s_fault(start, found.target):
            return start
        position = start.position
        copies = OffsetRange(found.target, max(found.target, position.target_end or 0))
        loss = Loss(OffsetRange(found.source, position.next_offset), LossCause.DIVERGED, copies)
        return self._source_has_changed(partition, start, loss, min(found.source, start.source_log.end))

    def _again_differs(self, partition: TopicPartition, start: Start) -> Anchor | None:
        """The first second copy in front of the position that is not right any more, on both sides; None without."""
        again, position = self._maps.get(partition, _NO_MAP).again, start.position
        if again is None or again.source is None or position.target_end is None or start.origin.is_anew:
            return None
        if _is_on_a_new_target(start):
            difference = again.next_original(0)
        elif (
            position.next_offset <= start.source_log.end
            and position.target_end <= (start.target_end or 0)
            and _epochs(start.position.logs) == _epochs(start.logs)
        ):
            return None
        else:
            remote = self._remote(partition)
            first = self._clusters.target.first_offsets([remote]).get(remote, 0)
            difference = first_difference(
                self._clusters,
                self._routes[partition.topic],
                again,
                partition,
                position.next_offset,
                source=start.source_log,
                target=OffsetRange(first, start.target_end or 0),
            )
        if difference is None or difference >= position.next_offset:
            return None
        place = again.next_copy(difference)
        assert place is not None
        return Anchor(difference, place)

    def _reach(self, partition: TopicPartition, start: Start) -> int:
        """Up to where there are copies: behind a rewind further than where it goes on."""
        return max(start.position.next_offset, self._maps.get(partition, _NO_MAP).copied_before or 0)

    def _source_has_changed(self, partition: TopicPartition, start: Start, loss: Loss, next_offset: int) -> Start:
        policies = self._clusters.settings.policies
        if policies.stops("source.diverged.policy", partition.topic):
            return start.pause(
                next_offset,
                FailureKind.SOURCE_DIVERGED,
                f"offsets {loss} were replicated, and the source has none or other records there now (unclean leader "
                f"election, or a log from a backup); set source.diverged.policy=resume to go on at {next_offset}",
            )
        position = replace(start.position, next_offset=next_offset, target_end=start.target_end)
        copies, end = loss.target, start.target_end
        if copies is not None and end is not None:  # what a batch that died has left there is of the old log, too
            loss = replace(loss, target=OffsetRange(copies.start, max(copies.end, end)))
        return self._gone_on(partition, start, position, loss)

    def _on_a_new_target(self, partition: TopicPartition, start: Start, first: int) -> Start:
        known = self._maps.get(partition, _NO_MAP)
        upstream, downstream = known.next_original(0), known.next_copy(0)
        position, end = start.position, start.position.target_end
        if upstream is None or downstream is None or end is None or upstream >= position.next_offset:
            return replace(start, position=replace(position, target_end=first), is_recorded=False)
        lost = OffsetRange(upstream, position.next_offset)
        loss = Loss(lost, LossCause.TARGET, OffsetRange(downstream, end))
        return self._target_has_lost(partition, start, loss, first)

    def _target_has_lost(self, partition: TopicPartition, start: Start, loss: Loss, target_end: int) -> Start:
        if self._clusters.settings.policies.stops("target.changed.policy", partition.topic):
            return start.pause(
                start.position.next_offset,
                FailureKind.COPIES_GONE,
                f"{self._remote(partition)} was truncated or created anew: the copies of offsets {loss} are gone "
                "there; set target.changed.policy=resume to go on behind them",
            )
        return self._gone_on(partition, start, replace(start.position, target_end=target_end), loss)

    def _cut_to_the_end(self, partition: TopicPartition, start: Start) -> Start:
        """The source ends before the position, and no copy differs: only markers are gone, or nothing is known."""
        offset, end = start.position.next_offset, start.source_log.end
        if offset <= end:
            return start
        if not self._maps.get(partition, _NO_MAP).has_records:
            loss = Loss(OffsetRange(end, offset), LossCause.DIVERGED)
            return self._source_has_changed(partition, start, loss, end)
        text = "flow=%s partition=%s the source ends at offset %s, before the position %s: going on there"
        log.warning(text, self._clusters.settings.flow, partition, end, offset)
        return replace(start, position=replace(start.position, next_offset=end), is_recorded=False)

    def _gone_on(self, partition: TopicPartition, start: Start, position: Position, loss: Loss) -> Start:
        report_loss(self._clusters.settings.flow, partition, loss)
        return start.lose(loss, position)


def _epochs(logs: LogIdentity) -> tuple[int | None, int | None]:
    return logs.epoch, logs.remote_epoch


def _is_on_a_new_target(start: Start) -> bool:
    return start.position.logs.remote_id not in (None, start.logs.remote_id)


def _is_the_target_s_fault(start: Start, place: int) -> bool:
    was, now = start.position.logs, start.logs
    has_moved = was.remote_epoch != now.remote_epoch and was.epoch == now.epoch
    return place >= (start.target_end or 0) or has_moved
