"""What the next generation of a flow replicates, from where: everything that has to be true before a query starts.

```
choose     topics of the source      → those that flow, with remote topics that are ready     flow.topics
leave out  without a leader          → what waits for a broker                                flow.recovery.leaderless
find       progress and map          → where each partition goes on                           flow.recovery.starts
compare    both logs                 → is what is recorded still so                           flow.recovery.identity
recover    the target's ends         → what a dead writer left, recorded now                  flow.recovery.unrecorded
obey       acts on offsets           → other positions: then all of it begins anew            flow.recovery.shifts
leave out  paused, unreadable        → what waits, with its reason                            flow.refused
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from srm_spark.core.model import PausedPartition, RefusedPolicy, TopicPartition
from srm_spark.failure import FailureKind
from srm_spark.flow.batch.replicate import Assignment
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.recovery.before import Before
from srm_spark.flow.recovery.fencing import begin_fencing, complete_map
from srm_spark.flow.recovery.identity import check_copies
from srm_spark.flow.recovery.leaderless import Leaderless
from srm_spark.flow.recovery.open_transactions import pause_open_transactions
from srm_spark.flow.recovery.renames import Renames
from srm_spark.flow.recovery.shifts import Shifts
from srm_spark.flow.recovery.starts import find_starts, record_new
from srm_spark.flow.recovery.unrecorded import recover_unrecorded, remotes_of
from srm_spark.flow.refused.paused import PausedPartitions
from srm_spark.flow.refused.unreadable import unreadable
from srm_spark.flow.topics.commands import FlowCommands
from srm_spark.flow.topics.known import KnownTopics
from srm_spark.flow.topics.progress import copied_topics, forget_maps, state_writer_of
from srm_spark.flow.topics.remote_topics import RemoteTopics, record_made
from srm_spark.kafka.lease import Lease


@dataclass(frozen=True)
class Assigned:
    """What can be replicated now."""

    assignment: Assignment
    blocked: dict[TopicPartition, PausedPartition]
    """Where a record lies ahead that Spark cannot read."""


class Assigner:
    """Assigns one generation after the other; `topics` are those of the newest, with their partition counts."""

    def __init__(
        self, clusters: Clusters, recorded: Recorded, lease: Lease, before: Before, commands: FlowCommands
    ) -> None:
        """Nothing is asked of the clusters yet; `commands` is what somebody has said of the flow."""
        self._clusters = clusters
        self._recorded = recorded
        self._lease = lease
        self._before = before
        self._commands = commands
        self._remote = RemoteTopics(clusters)
        self._renames = Renames(clusters)
        self._known = KnownTopics(clusters)
        self._shifts = Shifts(clusters, recorded.progress, recorded.maps, commands)
        self.leaderless = Leaderless(clusters)
        self.paused = PausedPartitions(clusters, self._remote)
        self.topics: dict[str, int] = {}
        self.unseen: str | None = None
        """Why there may be topics that are not seen."""

    def has_changed(self) -> bool:
        """Whether other topics flow by now, one is another topic of its name, or takes what it refused before."""
        return self._remote.select() != self.topics or self._known.is_changed() or self._limits_changed()

    def _limits_changed(self) -> bool:
        """Of those whose records are put aside or made to fit; where they are held, each try looks again."""
        policy = self._clusters.settings.refused.of
        passed = [t for t in self.topics if t not in self.paused.topics and policy(t) is not RefusedPolicy.HOLD]
        return bool(self._remote.changed_limits(passed)) if passed else False

    def assign(self, tasks: int) -> Assigned:
        """Get everything ready that a query of so many tasks needs. What is recorded may have changed then."""
        self._commands.seen()
        clusters, recorded, before = self._clusters, self._recorded, self._before
        slots = tasks + 1  # the last one is the driver's own
        fencing = begin_fencing(clusters, self._lease, slots, was_exactly_once=before.was_exactly_once)
        recorded.refresh()
        if complete_map(clusters, recorded.maps.maps, recorded.progress.newest, fencing):
            recorded.maps.refresh()
        self.topics = self._remote.select()
        self.paused.keep(self.topics)
        self.unseen = self._remote.unseen(self.topics)
        positions = recorded.progress.positions
        self._renames.look(self.topics, positions)
        ready = {topic: count for topic, count in self.topics.items() if topic not in self._renames.held}
        prepared = self._remote.prepare(ready, copied_topics(positions) - set(self._renames.going_on))
        record_made(clusters, prepared.made)
        flowing = {topic: count for topic, count in self.topics.items() if topic in prepared.routes}
        routes, ids = prepared.routes, clusters.source.topic_ids(flowing)
        every = [TopicPartition(topic, number) for topic, partitions in flowing.items() for number in range(partitions)]
        remotes = {partition: routes[partition.topic].remote(partition) for partition in every}
        leaderless = self.leaderless.pause(remotes, positions, self.paused.of_kind(FailureKind.NO_LEADER))
        led = [partition for partition in every if partition not in leaderless]
        starts = find_starts(clusters, recorded.progress, led, ids, recorded.maps.maps)
        starts = self._renames.begin(starts)
        shift_writer = self._shifts.writer(fencing, are_fenced=before.are_fenced)
        self._shifts.let_go(starts, shift_writer)
        author = before.take_over(remotes_of(starts, routes))
        if fencing is not None:
            starts = pause_open_transactions(clusters, starts, remotes_of(starts, routes))
        starts = check_copies(clusters, starts, routes, recorded.maps.maps)
        if unproven := {partition for partition, start in starts.items() if start.is_unproven}:
            forget_maps(clusters, recorded.maps.maps, unproven, fencing)
            recorded.maps.refresh()
        self._known.learn(ids, {routes[p.topic].remote_topic: start.logs.remote_id for p, start in starts.items()})
        starts = recover_unrecorded(
            clusters,
            starts,
            routes,
            recorded.maps.maps,
            fencing=fencing,
            stamp=before.stamp,
            settle=before.settle,
            quarantined=recorded.quarantine().offsets(ids),
            losses=recorded.maps.losses,
        )
        before.begin(author, in_transactions=fencing is not None)
        record_new(clusters, starts, routes, recorded.maps.maps, fencing=fencing)
        held = {**prepared.held, **self._renames.held}
        if shifted := self._shifts.carry_out(starts, partial(_absent, held=held, leaderless=leaderless), shift_writer):
            self.paused.forget(shifted)
            return self.assign(tasks)
        self.paused.topics = held
        self.paused.partitions.update(leaderless)
        self.paused.partitions.update({p: start.paused for p, start in starts.items() if start.paused is not None})
        self.paused.obey(self._commands.pauses, {p: start.position.next_offset for p, start in starts.items()})
        flowing_from = {p: start.position for p, start in starts.items() if p not in self.paused.partitions}
        suspects = {p: start for p, start in flowing_from.items() if p in self.paused.suspects}
        blocked = unreadable(clusters, suspects)
        recorded.refresh()
        self.paused.begin(recorded.progress.positions)
        assignment = Assignment(
            starts=flowing_from,
            routes=routes,
            logs={partition: start.logs for partition, start in starts.items()},
            syncs_topic=clusters.syncs_topic,
            tasks=tasks,
            fencing=fencing,
            author=author,
            state=None
            if author is None
            else state_writer_of(clusters, None, only=author if before.are_fenced else None),
            permit=self._lease.permit,
            maps={partition: of_partition.copy() for partition, of_partition in recorded.maps.maps.items()},
        )
        return Assigned(assignment, blocked)


def _absent(
    partition: TopicPartition, *, held: Mapping[str, str], leaderless: Mapping[TopicPartition, PausedPartition]
) -> str:
    """Why a partition does not start."""
    if partition in leaderless:
        return f"it is held: {leaderless[partition].why}"
    return f"it is held: {held[partition.topic]}" if partition.topic in held else "it does not flow now"
