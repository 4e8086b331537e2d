"""Transactions on the target that nobody will ever end, in the exactly-once mode.

A log that an unclean election has cut may have lost the marker that ended a transaction, while the coordinator knows it
as done. Its records stay open for ever (KIP-664): no reader of committed records gets past them, and what this flow has
written behind them cannot be compared. Such a partition waits, and the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from srm_spark.core.model import TopicPartition
from srm_spark.failure import FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.settling import Remotes
from srm_spark.flow.recovery.starts import Start, Starts


@dataclass(frozen=True)
class OpenPatience:
    """How long a start waits for transactions to end."""

    end_seconds: float = 10.0
    """Somebody else's transaction, and the markers of our own, may take so long."""
    look_seconds: float = 0.5


OPEN_PATIENCE = OpenPatience()


def pause_open_transactions(
    clusters: Clusters, starts: Starts, remotes: Remotes, patience: OpenPatience = OPEN_PATIENCE
) -> Starts:
    """Pause partitions whose remote log has a transaction that stays open, when all of this flow are ended."""
    deadline = time.monotonic() + patience.end_seconds
    left = dict(remotes)
    while still_open := _open(clusters, left):
        left = {partition: remotes[partition] for partition in still_open}
        if time.monotonic() > deadline:
            break
        time.sleep(patience.look_seconds)
    paused = {
        partition: _paused(clusters, starts[partition], remotes[partition], still_open[partition])
        for partition in still_open
    }
    return {**starts, **paused}


def _paused(clusters: Clusters, start: Start, remote: TopicPartition, since: int) -> Start:
    target = clusters.settings.target
    tool = f"kafka-transactions.sh --bootstrap-server {target.bootstrap_servers}"
    place = f"--topic {remote.topic} --partition {remote.partition}"
    hint = f"if `{tool} find-hanging {place}` names it, `{tool} abort {place} --start-offset …` ends it"
    sentence = f"{remote} on {target.alias} has a transaction open since offset {since}: {hint}"
    return start.pause(start.position.next_offset, FailureKind.OPEN_TRANSACTION, sentence)


def _open(clusters: Clusters, remotes: Mapping[TopicPartition, TopicPartition]) -> dict[TopicPartition, int]:
    """Source partition → target offset behind which nothing is committed."""
    if not remotes:
        return {}
    committed = clusters.target.end_offsets(remotes.values(), committed=True)
    there = clusters.target.end_offsets(remotes.values())
    return {
        partition: committed[remote]
        for partition, remote in remotes.items()
        if remote in committed and remote in there and committed[remote] < there[remote]
    }
