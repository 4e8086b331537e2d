"""How flows are, asked of their clusters alone: what drivers said in the status topic, and how far copies are behind.

Needs no driver, and no source: what nobody can know now is unknown, with the moment since when.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from srm_spark.config.settings import FlowSettings
from srm_spark.core.acts import Command, Scope, scope_of
from srm_spark.core.driver_status import FlowDrivers, drivers_of
from srm_spark.core.model import Flow, OffsetRange, TopicPartition
from srm_spark.core.standstills import Standstill, by_name, of_pauses
from srm_spark.errors import FlowError, SourceUnavailable, TargetUnavailable
from srm_spark.failure import FailureKind
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.refused.paused import standstill
from srm_spark.flow.topics.lists import take_lists
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.progress import ProgressTopic
from srm_spark.flow.topics.status_topic import StatusTopic

_CALL_SECONDS = 5.0
"""Somebody is waiting: a cluster that does not answer in this time counts as down."""
_AGE_SECONDS = 3.0
"""How long the oldest records that are not copied are looked for."""
_AT_ONCE = 8
"""Flows that are looked at."""


@dataclass(frozen=True)
class PartitionLag:
    """One source partition of a flow."""

    partition: TopicPartition
    remote: TopicPartition
    next_offset: int | None
    """First source offset that is not copied yet; None where nothing is recorded."""
    end: int | None
    """Of the source; None where it cannot be asked."""
    records: int | None
    """Source offsets that are not copied; None where that is not known."""
    held: str | None = None
    """Why it stands still."""
    kind: FailureKind | None = None
    """What kind of failure that is, where it was recorded or is a pause."""
    unknown: str | None = None
    """Why the records are not known, where the source answered."""


@dataclass(frozen=True)
class Lag:
    """How far copies are behind, all partitions together. None is unknown."""

    records: int | None = None
    bytes: int | None = None
    """Estimated by the size of what was copied last; not where a partition that is behind stands still."""
    seconds: float | None = None
    """Age of the oldest record that is not copied."""
    told_by: str | None = None
    """`clusters`, which were asked just now, or the `driver`, which said so last."""
    unknown_since: int | None = None
    """Since when the records are not known, in milliseconds since the epoch; None where they are, or never were."""
    reason: str | None = None
    """Why they are not known now."""


@dataclass(frozen=True)
class FlowReport:
    """One flow at one moment."""

    flow: Flow
    at: int
    """Milliseconds since the epoch, by the clock of this host."""
    drivers: FlowDrivers = field(default_factory=FlowDrivers)
    lag: Lag = field(default_factory=Lag)
    partitions: tuple[PartitionLag, ...] = ()
    standing: Mapping[Scope, Standstill] = field(default_factory=dict)
    """What stands still."""
    not_shown: tuple[str, ...] = ()
    """Topics that were copied and that the source does not show: deleted, or not ours to see. No part of the lag."""
    staged_acls: int | None = None
    """ACLs that wait for a failover; None where none is to."""
    write_acls: int | None = None
    """ACLs that let applications write copies since a failover."""
    acls_unknown: str | None = None
    """Why neither number is known, where there would be one."""
    source_down: str | None = None
    """Why the source could not be asked; None where it answered."""
    target_down: str | None = None
    """Why nothing is known at all; None where the target answered."""
    unknown_since: int | None = None
    """Since when nothing is known of the flow's drivers; None where it is, or where nothing ever was."""
    rpo_goal: int | None = None
    """Most seconds that the lag should be; None where no goal is set."""

    @property
    def held(self) -> dict[str, str]:
        """Topic, partition or the whole flow → why it stands still, for people."""
        return by_name(self.standing.values(), self.flow)

    @property
    def is_whole(self) -> bool:
        """Whether both clusters could be asked."""
        return self.source_down is None and self.target_down is None


class FlowLook:
    """Looks at one flow, as often as it is asked to."""

    def __init__(
        self, settings: FlowSettings, reach: Connect = connect, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock` is this host's, in seconds since the epoch."""
        self._clock = clock
        self._clusters = reach(hurried(settings))
        self._settings = self._clusters.settings
        self._status = StatusTopic(self._settings, self._clusters.target, "look")
        self._progress = ProgressTopic(self._settings, self._clusters.target)
        role = f"{self._settings.flow}|look-rights"
        self._maps = OffsetMaps(self._clusters.target, self._settings.map_topic, role, TargetUnavailable)
        self._copied = [0, 0]
        """Records and bytes of all commits that were read."""
        self._answered_at: int | None = None

    @property
    def clusters(self) -> Clusters:
        """Both ends; the lists count as they were at the last look."""
        return self._clusters

    def close(self) -> None:
        """Let go of the connections."""
        for part in (self._status, self._progress, self._maps):
            part.close()

    def look(self) -> FlowReport:
        """How the flow is now."""
        now, flow, goal = int(self._clock() * 1000), self._settings.flow, self._settings.rpo_goal_seconds
        try:
            report = self._look(now)
        except TargetUnavailable as error:
            why = Lag(unknown_since=self._answered_at, reason=str(error))
            return FlowReport(
                flow, now, lag=why, target_down=str(error), unknown_since=self._answered_at, rpo_goal=goal
            )
        self._answered_at = now
        return report

    def _look(self, now: int) -> FlowReport:
        self._status.refresh()
        drivers = drivers_of(self._status.words.values(), now)
        if self._settings.progress_topic in self._clusters.target.topics():
            self._progress.refresh()
        totals = self._progress.take_totals()
        self._copied[0] += totals.records
        self._copied[1] += totals.bytes
        pauses = take_lists(self._clusters)
        try:
            topics = self._clusters.source.topics()
            standing = self._standing(drivers, pauses, topics)
            partitions, not_shown = self._partitions(topics, standing), self._not_shown(topics)
            lag, source_down = self._lag(partitions), None
        except SourceUnavailable as error:
            source_down, not_shown = str(error), ()
            standing = self._standing(drivers, pauses, {})
            partitions, lag = self._recorded(standing), self._told(drivers, source_down)
        return FlowReport(
            self._settings.flow,
            now,
            drivers,
            lag,
            partitions,
            standing,
            not_shown,
            *self._rights(),
            source_down=source_down,
            unknown_since=drivers.unknown_since,
            rpo_goal=self._settings.rpo_goal_seconds,
        )

    def _rights(self) -> tuple[int | None, int | None, str | None]:
        """ACLs that are staged, and those that a failover has put in force; why both are not known."""
        if not self._settings.acls.stages_writes:
            return None, None, None
        try:
            if self._settings.map_topic in self._clusters.target.topics():
                self._maps.refresh()
        except FlowError as error:  # all the rest was read: the target answers
            return None, None, str(error)
        made = self._maps.made
        return len(made.staged - made.writing), len(made.writing), None

    def _standing(
        self, drivers: FlowDrivers, pauses: Mapping[Scope, Command], topics: Mapping[str, int]
    ) -> dict[Scope, Standstill]:
        """As whoever runs the flow says; where nobody does, as was recorded. `topics` are those of the source."""
        recorded = {
            scope_of(p): standstill(p, position.hold)
            for p, position in sorted(self._progress.positions.items())
            if position.hold is not None and flows(self._clusters, p.topic)
        }
        if drivers.owner is None:
            return {**recorded, **{one.scope: one for one in of_pauses(pauses)}}
        said = [_of_topic(one, topics) for one in drivers.owner.standing]
        return {one.scope: _with_kind(one, pauses, recorded) for one in said}

    def _not_shown(self, topics: Mapping[str, int]) -> tuple[str, ...]:
        copied = {p.topic for p in self._progress.positions}
        return tuple(sorted(topic for topic in copied - topics.keys() if flows(self._clusters, topic)))

    def _partitions(self, topics: Mapping[str, int], standing: Mapping[Scope, Standstill]) -> tuple[PartitionLag, ...]:
        """Every partition that flows, of these topics of the source, as both sides say now."""
        source, positions = self._clusters.source, self._progress.positions
        taken = {topic: count for topic, count in topics.items() if flows(self._clusters, topic)}
        every = [TopicPartition(topic, number) for topic, count in sorted(taken.items()) for number in range(count)]
        ids = source.topic_ids({p.topic for p in every if p in positions})
        ends = source.end_offsets(every, waits=False)
        first = source.first_offsets([p for p in every if p not in positions], waits=False)
        rows = []
        for p in every:
            copied = positions[p].next_offset if p in positions else None
            begins, end = first.get(p) if copied is None else copied, ends.get(p)
            row = self._row(p, copied, end, standing)
            if begins is None or end is None:
                rows.append(replace(row, unknown="has no leader"))
            elif self._is_another(p, ids.get(p.topic), end):
                rows.append(replace(row, unknown="is not the log that was copied any more"))
            else:
                rows.append(replace(row, records=max(0, end - begins)))
        return tuple(rows)

    def _is_another(self, p: TopicPartition, topic_id: str | None, end: int) -> bool:
        """Whether a recorded position is one of a topic that was made anew, or cut: then no numbers compare."""
        position = self._progress.positions.get(p)
        if position is None:
            return False
        recorded = position.logs.topic_id
        return end < position.next_offset or (None not in (recorded, topic_id) and recorded != topic_id)

    def _recorded(self, standing: Mapping[Scope, Standstill]) -> tuple[PartitionLag, ...]:
        """The same without a source."""
        positions = sorted(self._progress.positions.items())
        return tuple(
            self._row(p, position.next_offset, None, standing)
            for p, position in positions
            if flows(self._clusters, p.topic)
        )

    def _row(
        self, p: TopicPartition, copied: int | None, end: int | None, standing: Mapping[Scope, Standstill]
    ) -> PartitionLag:
        """Its lag is not known yet."""
        remote = self._clusters.policy.format_remote_topic(self._settings.flow.source, p.topic)
        around = [standing[scope] for scope in scope_of(p).around() if scope in standing]
        why, kind = (around[-1].why, around[-1].kind) if around else (None, None)  # the narrowest
        return PartitionLag(p, TopicPartition(remote, p.partition), copied, end, None, why, kind)

    def _lag(self, partitions: Sequence[PartitionLag]) -> Lag:
        unknown = [row for row in partitions if row.records is None]
        if unknown:
            why = f"{unknown[0].partition} {unknown[0].unknown} on {self._settings.flow.source}"
            return Lag(reason=why)
        records = sum(row.records or 0 for row in partitions)
        # A record that is refused is seldom one like the others.
        is_odd = any(row.records and row.held is not None for row in partitions)
        size = None if is_odd else self._bytes(records)
        return Lag(records, size, self._seconds(partitions), "clusters")

    def _told(self, drivers: FlowDrivers, reason: str) -> Lag:
        """What is known of the lag where the source cannot be asked from here."""
        owner = drivers.owner
        if owner is not None and owner.lag_records is not None:
            return Lag(owner.lag_records, self._bytes(owner.lag_records), None, "driver")
        # Who spoke last may have lost it before.
        last = owner or next(iter(sorted((*drivers.silent, *drivers.ended), key=lambda one: -one.at)), None)
        since = None if last is None else last.unknown_since
        if since is None and last is not None and last is not owner:
            since = last.at
        return Lag(unknown_since=since, reason=reason)

    def _bytes(self, records: int) -> int | None:
        copied, size = self._copied
        if not records:
            return 0
        return records * size // copied if copied and size else None

    def _seconds(self, partitions: Sequence[PartitionLag]) -> float | None:
        """None also where one of the oldest records did not come in time, or has no timestamp."""
        asked = {
            row.partition: OffsetRange(row.end - row.records, row.end)
            for row in partitions
            if row.end is not None and row.records
        }
        if not asked:
            return 0.0
        first = self._clusters.source.first_records(asked, seconds=_AGE_SECONDS)
        times = [record.timestamp for record in first.values() if record is not None]
        if len(first) < len(asked) or any(timestamp < 0 for timestamp in times):
            return None
        return round(max(0.0, self._clock() - min(times) / 1000), 3) if times else 0.0


def _of_topic(one: Standstill, topics: Mapping[str, int]) -> Standstill:
    """Drivers of before gave names alone: a topic's that ends in a number was read as that of a partition."""
    name, scope = str(one.scope), one.scope
    is_there = scope.partition is None or scope.partition < topics.get(scope.topic or "", 0)
    return one if is_there or name not in topics else replace(one, scope=Scope(name))


def _with_kind(one: Standstill, pauses: Mapping[Scope, Command], recorded: Mapping[Scope, Standstill]) -> Standstill:
    """Drivers of before did not say the kind."""
    if one.kind is not None:
        return one
    if one.scope in pauses:
        return replace(one, kind=FailureKind.PAUSED)
    return replace(one, kind=recorded[one.scope].kind if one.scope in recorded else None)


def hurried(settings: FlowSettings) -> FlowSettings:
    """The same for somebody who waits for an answer."""
    return settings.within(_CALL_SECONDS)


def flows(clusters: Clusters, topic: str) -> bool:
    """Whether a topic flows by the file and the lists that were taken."""
    return clusters.flows(topic)


def look_at(looks: Sequence[FlowLook]) -> tuple[FlowReport, ...]:
    """All of them at once: a cluster that is down holds up nobody else."""
    with ThreadPoolExecutor(max(1, min(_AT_ONCE, len(looks)))) as pool:
        return tuple(pool.map(FlowLook.look, looks))
