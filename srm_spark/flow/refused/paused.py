"""What stands still in a flow while the rest goes on: topics and partitions, with their reasons, tried again at times.

A hold is never silent and never final: it ends when the target's limits change, when the source drops the record, or
when a new try succeeds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from srm_spark.core.acts import Command, Scope, pause_of, scope_of
from srm_spark.core.model import PausedPartition, TopicPartition
from srm_spark.core.news import Every
from srm_spark.core.standstills import Standstill, of_pauses
from srm_spark.failure import Effect, Failure, FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.leaderless import without_leader
from srm_spark.flow.topics.progress import Position
from srm_spark.flow.topics.remote_topics import RemoteTopics


def standstill(partition: TopicPartition, hold: PausedPartition) -> Standstill:
    """What is told of a partition that stands still."""
    return Standstill(scope_of(partition), f"held at offset {hold.offset}: {hold.why}", hold.why.kind)


class PausedPartitions:
    """The holds of one flow."""

    def __init__(self, clusters: Clusters, remote: RemoteTopics) -> None:
        self._clusters = clusters
        self._remote = remote
        self.topics: dict[str, str] = {}
        """Source topic → why it has no usable remote topic."""
        self.partitions: dict[TopicPartition, PausedPartition] = {}
        self.suspects: dict[TopicPartition, int] = {}
        """Partitions with records that Spark cannot read, and the offset of the newest one that was found; looked at
        again before each generation."""
        self.pauses: Mapping[Scope, Command] = {}
        """What somebody has paused."""
        self._before: dict[TopicPartition, Position] = {}
        self._retry = Every(clusters.settings.timings.retry_paused_seconds)

    def begin(self, positions: Mapping[TopicPartition, Position]) -> None:
        """A generation starts; what was recorded before says nothing about it."""
        self._before = dict(positions)

    def keep(self, topics: Collection[str]) -> None:
        """Only these flow now: nothing else waits for anything."""
        self.partitions = {partition: hold for partition, hold in self.partitions.items() if partition.topic in topics}
        self.suspects = {partition: at for partition, at in self.suspects.items() if partition.topic in topics}

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These stand elsewhere now: what was in their way there is not."""
        self.partitions = {
            partition: hold for partition, hold in self.partitions.items() if partition not in partitions
        }

    def obey(self, pauses: Mapping[Scope, Command], positions: Mapping[TopicPartition, int]) -> None:
        """Let what somebody has paused wait where it stands, and nothing else for that reason."""
        self.pauses = pauses
        others = {p: hold for p, hold in self.partitions.items() if hold.why.kind is not FailureKind.PAUSED}
        paused = {
            partition: PausedPartition(offset, Failure(FailureKind.PAUSED, pause.held))
            for partition, offset in positions.items()
            if (pause := pause_of(pauses, scope_of(partition))) is not None
        }
        self.partitions = {**paused, **others}

    def discover(self, positions: Mapping[TopicPartition, Position]) -> bool:
        """Take in the holds that batches have recorded since `begin`; whether there are new ones."""
        paused = {
            partition: position.hold
            for partition, position in positions.items()
            if position.hold is not None
            and partition not in self.partitions
            and position is not self._before.get(partition)
        }
        self.partitions.update(paused)
        return bool(paused)

    def release(self, now: float) -> bool:
        """Let go of what is worth another try; `now` in seconds of any clock. Whether there was anything."""
        trying = self._freed()
        is_time = self._retry.is_due(now)
        if is_time:
            trying |= {p for p, hold in self.partitions.items() if hold.why.kind.effect is not Effect.WAITS}
            self._retry.done(now)
        for partition in trying:
            del self.partitions[partition]
        return bool(trying) or (is_time and bool(self.topics))

    def postpone(self, now: float) -> None:
        """No try before a while: something was held just now."""
        self._retry.done(now)

    def of_kind(self, kind: FailureKind) -> set[TopicPartition]:
        """Those that wait for that."""
        return {partition for partition, hold in self.partitions.items() if hold.why.kind is kind}

    def standing(self) -> tuple[Standstill, ...]:
        """All that stands still, each thing once."""
        topics = (Standstill(Scope(topic), why) for topic, why in self.topics.items())
        partitions = (
            standstill(p, hold) for p, hold in self.partitions.items() if hold.why.kind is not FailureKind.PAUSED
        )
        return tuple({one.scope: one for one in (*of_pauses(self.pauses), *topics, *partitions)}.values())

    def _freed(self) -> set[TopicPartition]:
        """Partitions whose obstacle is gone for certain."""
        leaderless = self.of_kind(FailureKind.NO_LEADER)
        remotes = {p: TopicPartition(self._remote.remote_name(p.topic), p.partition) for p in leaderless}
        freed = leaderless - without_leader(self._clusters, remotes).keys()
        waiting = leaderless | self.of_kind(FailureKind.PAUSED)
        held = {partition: hold for partition, hold in self.partitions.items() if partition not in waiting}
        if not held:
            return freed
        first = self._clusters.source.first_offsets(held, waits=False)
        freed |= {p for p, hold in held.items() if first.get(p, hold.offset) > hold.offset}
        policies = self._clusters.settings.policies
        for partition in self.of_kind(FailureKind.FOREIGN_WRITER):
            if not policies.stops("foreign.writer.policy", partition.topic):
                freed.add(partition)  # the next start reads back what lies there and goes on
        changed = self._remote.changed_limits({partition.topic for partition in held})
        return freed | {partition for partition in held if partition.topic in changed}
