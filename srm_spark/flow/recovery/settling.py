"""Behind an unclean end: wait until nothing of a dead writer is under way, before anything is compared or written.

Two things may hide records of his. A follower of the target hangs: the leader has them, but its high watermark, which
is the end that clients see, stands still. Or they are on their way: in his sockets, behind a quota, in a request that
a broker has not read yet.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.provenance import Stamp
from srm_spark.core.rest import Patience, Rest
from srm_spark.core.tail import ours
from srm_spark.core.wording import count
from srm_spark.errors import ProtocolUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.kafka.protocol import Protocol as KafkaProtocol

log = logging.getLogger(__name__)

Remotes = Mapping[TopicPartition, TopicPartition]
"""Source partition → its remote partition."""
TargetEnds = dict[TopicPartition, int]
"""Remote partition → offset of its next record, as clients see it."""
Settle = Callable[[Remotes], TargetEnds]
"""Waits until nothing of an old writer is behind these ends any more."""
Tell = Callable[[str], None]
"""Takes what is waited for, for people."""

PATIENCE = Patience()


class LeaderLogs(Protocol):
    """What brokers tell beside what clients see. Every call may raise ProtocolUnavailable."""

    def leader_log_ends(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Where the leaders' logs end; partitions of which that is not known now are left out."""

    def smallest_produce_quota(self) -> float | None:
        """Bytes per second of the smallest quota that a writer has; None where there is none."""

    def close(self) -> None:
        """Let go of the connections."""


def ask_leaders(clusters: Clusters) -> LeaderLogs:
    """Those of the target. Raises ProtocolUnavailable for a login by which they cannot be asked."""
    settings = clusters.settings
    role = f"{settings.flow}|log-ends"
    return KafkaProtocol(settings.target, settings.target_admin, role, settings.admin_timeout_seconds)


def settled(
    clusters: Clusters,
    remotes: Remotes,
    *,
    is_fenced: bool,
    stamp: Stamp | None,
    tell: Tell = lambda _: None,
    patience: Patience = PATIENCE,
    ask: Callable[[Clusters], LeaderLogs] = ask_leaders,
) -> TargetEnds:
    """The target's ends once nothing of an old writer is behind them, or under way.

    `stamp` is what an old writer put on its copies. One that `is_fenced` has nothing under way that a broker would
    take. Raises TargetUnavailable after `patience.settle_seconds`.
    """
    with _Behind(clusters, ask) as logs:
        rest = Rest(patience, time.monotonic(), logs.are_known, None if is_fenced else logs.quota())
        deadline = time.monotonic() + patience.settle_seconds
        ends, behind = logs.look(clusters, remotes)
        while True:
            if not behind and ((is_fenced and logs.are_known) or rest.is_over(time.monotonic())):
                return ends
            reason = _reason(clusters, behind, rest)
            if time.monotonic() > deadline:
                raise TargetUnavailable(
                    f"cluster {clusters.target.alias}: not settled after {patience.settle_seconds:g} s: {reason}; an "
                    "old writer of this flow is alive, somebody else writes to its remote topics, or a broker hangs"
                )
            tell(reason)
            time.sleep(min(patience.look_seconds, patience.still_seconds))
            now, behind = logs.look(clusters, remotes)
            if _has_moved(clusters, remotes, stamp, ends, now):
                rest.moved(time.monotonic())
            ends = now


class _Behind:
    """How far the leaders' logs go beyond what clients see, while the block lasts."""

    def __init__(self, clusters: Clusters, ask: Callable[[Clusters], LeaderLogs]) -> None:
        self._leaders: LeaderLogs | None = None
        try:
            self._leaders = ask(clusters)
        except ProtocolUnavailable as error:
            text = "flow=%s where the leaders' logs end is unknown, so the start waits longer: %s"
            log.warning(text, clusters.settings.flow, error)

    def __enter__(self) -> _Behind:
        return self

    def __exit__(self, *_: object) -> None:
        if self._leaders is not None:
            self._leaders.close()

    @property
    def are_known(self) -> bool:
        """Whether they can be asked for at all, with the login that there is."""
        return self._leaders is not None

    def quota(self) -> float | None:
        """The smallest one that a writer has; None where there is none, or we may not know."""
        if self._leaders is None:
            return None
        try:
            return self._leaders.smallest_produce_quota()
        except ProtocolUnavailable as error:
            log.debug("quotas are unknown: %s", error)
            return None

    def look(self, clusters: Clusters, remotes: Remotes) -> tuple[TargetEnds, dict[TopicPartition, int | None]]:
        """The ends that clients see, and where a log goes on behind them, with its end; None where that is unknown.

        The leaders are asked first: others may write all the time, and what they add between the two questions would
        look like something that followers do not have.
        """
        logs: Mapping[TopicPartition, int] = {}
        if self._leaders is not None:
            try:
                logs = self._leaders.leader_log_ends(remotes.values())
            except ProtocolUnavailable as error:
                log.debug("where logs end is unknown: %s", error)
        ends = clusters.target.end_offsets(remotes.values())
        if self._leaders is None:
            return ends, {}
        return ends, {p: logs.get(p) for p, end in ends.items() if logs.get(p) is None or logs[p] > end}


def _reason(clusters: Clusters, behind: Mapping[TopicPartition, int | None], rest: Rest) -> str:
    alias = clusters.target.alias
    for partition, end in behind.items():
        if end is None:
            return f"{alias} does not say where the log of {partition} ends, of {count(len(behind), 'partition')}"
        return (
            f"the log of {partition} on {alias} ends at {end}, and not all in-sync replicas have it yet; of "
            f"{count(len(behind), 'partition')}"
        )
    return f"remote topics on {alias} must stand still for {rest.needed:g} s: the last writer did not end cleanly"


def _has_moved(
    clusters: Clusters, remotes: Remotes, stamp: Stamp | None, before: Mapping[TopicPartition, int], now: TargetEnds
) -> bool:
    """Whether an old writer of this flow was at work; with provenance headers its records can be told from others."""
    if stamp is None:
        return before != now
    for partition, remote in remotes.items():
        new = OffsetRange(before.get(remote, 0), now.get(remote, 0))
        if new.start < new.end:
            newer = clusters.target.records(remote, new)
            if any(ours(stamp, partition, newer)):
                return True
    return False
