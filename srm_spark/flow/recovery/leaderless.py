"""Partitions that nobody leads wait; all others start, and go on, without them.

A leader that dies is replaced within seconds, so that long is waited. Where all brokers that could lead a partition are
away, it may take hours.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Set

from srm_spark.core.model import PausedPartition, TopicPartition
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.settling import Remotes
from srm_spark.flow.topics.progress import Position

_LOOK_SECONDS = 0.5


class Leaderless:
    """Of one flow. Every call may raise SourceUnavailable or TargetUnavailable."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._since: float | None = None
        """When the first of the partitions that are copied was found without a leader."""

    def pause(
        self, remotes: Remotes, positions: Mapping[TopicPartition, Position], paused: Set[TopicPartition]
    ) -> dict[TopicPartition, PausedPartition]:
        """Those that have no leader on one side, and get none within a while; what is `paused` is not waited for."""
        self._since = None
        deadline = time.monotonic() + self._clusters.settings.timings.leader_seconds
        while (found := without_leader(self._clusters, remotes)).keys() - paused and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        return {
            partition: PausedPartition(
                positions[partition].next_offset if partition in positions else 0,
                Failure(FailureKind.NO_LEADER, sentence),
            )
            for partition, sentence in found.items()
        }

    def is_due(self, silent: Collection[TopicPartition], now: float) -> bool:
        """Whether one of the source partitions that are copied has had no leader for a while: a new start is due.

        `silent` are those that did not say where they end.
        """
        if not silent or not self._clusters.source.leaderless(silent):
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        return now - self._since >= self._clusters.settings.timings.leader_seconds


def without_leader(clusters: Clusters, remotes: Remotes) -> dict[TopicPartition, str]:
    """Source partitions that cannot flow now, for want of a leader: which side lacks one."""
    if not remotes:
        return {}
    here = clusters.source.leaderless(remotes.keys())
    there = clusters.target.leaderless(set(remotes.values()))
    where = {p: (clusters.target.alias, remote) for p, remote in remotes.items() if remote in there}
    where |= {partition: (clusters.source.alias, partition) for partition in here}
    return {
        partition: f"{led} has no leader on {alias}: the brokers that could lead it are away; start one of them"
        for partition, (alias, led) in where.items()
    }
