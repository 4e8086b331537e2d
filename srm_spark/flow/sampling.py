"""From what a flow knows of itself to the samples that it writes; nothing here asks a cluster.

What was true before need not be now: of a flow that does not run, how far it is behind is unknown. What it has copied
until then is told, so that sums are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from srm_spark.core.driver_status import DriverId
from srm_spark.core.metrics import UNKNOWN, FlowSample, GroupSample, PartitionSample, Sample, TopicMeta
from srm_spark.core.model import Flow
from srm_spark.core.policy import ReplicationPolicy
from srm_spark.core.tallies import Tally
from srm_spark.flow.groups.consumer_groups import ConsumersReport
from srm_spark.flow.groups.sync import SyncState
from srm_spark.flow.meter import GroupPartition, Period, Seen, View
from srm_spark.flow.status import FlowState, FlowStatus

_OURS = (FlowState.STARTING, FlowState.RUNNING, FlowState.STALLED, FlowState.RETRYING)
"""In all others another driver has the flow, or nobody."""
_WORST_FIRST = (
    SyncState.REFUSED,
    SyncState.UNTRANSLATED,
    SyncState.AHEAD,
    SyncState.ACTIVE,
    SyncState.DUE,
    SyncState.SYNCED,
    SyncState.IN_STEP,
)


@dataclass(frozen=True)
class Samples:
    """All of one period."""

    flow: FlowSample
    period: Period
    partitions: tuple[PartitionSample, ...] = ()
    groups: tuple[GroupSample, ...] = ()

    def __iter__(self) -> Iterator[Sample]:
        yield self.flow
        yield from self.partitions
        yield from self.groups


@dataclass(frozen=True)
class Sampler:
    """Makes the samples of one flow."""

    flow: Flow
    driver: DriverId
    every: float
    """Seconds between two periods."""
    policy: ReplicationPolicy
    rpo_goal: int | None = None
    """Seconds of data that a failover may lose."""

    def samples(self, status: FlowStatus, view: View, period: Period, *, is_last: bool = False) -> Samples:
        """What there is to say of a period, as the flow is at its end."""
        partitions = tuple(self._partitions(status, view, period))
        groups = tuple(self._groups(status, period))
        is_running = status.state is FlowState.RUNNING
        lags = [one.lag_seconds for one in partitions]
        checked = [one.checked_at for one in partitions if one.checked_at is not None]
        known = [lag for lag in lags if lag is not None]
        audit = status.audit if is_running else None
        flow = FlowSample(
            flow=self.flow,
            driver=str(self.driver),
            at=period.at,
            seconds=period.seconds,
            every=self.every,
            state=status.state,
            since=_milliseconds(status.since),
            reason=None if status.kind is None else status.kind.value,
            sentence=status.reason,
            topics=status.topics,
            partitions=status.partitions,
            groups=len({one.group for one in groups}) if is_running and status.consumers is not None else None,
            lag_records=status.lag_records if is_running else None,
            lag_seconds=max(known) if known and len(known) == len(lags) else None,
            rpo_goal=self.rpo_goal,
            unknown_since=_milliseconds(status.unknown_since),
            # The oldest answer: of none of them more is known.
            source_checked_at=min(checked) if checked and len(checked) == len(partitions) else None,
            lost=status.lost_records,
            quarantined=len(status.parked) if is_running else None,
            audited_at=None if audit is None else audit.ended,
            differing=None if audit is None else audit.found_differing(period.at),
            is_audited=status.audit is not None,
            differs=None if audit is None else audit.first,
            audit_late=None if audit is None else audit.late(period.at),
            is_last=is_last,
        )
        return Samples(flow, period, partitions, groups)

    def meta(self, view: View) -> dict[str, TopicMeta]:
        """Source topic → what is said of it, of all that flow."""
        counts: dict[str, int] = {}
        for partition in view.seen:
            counts[partition.topic] = counts.get(partition.topic, 0) + 1
        return {
            topic: TopicMeta(self.flow, topic, self._remote(view, topic), count, self.policy.original_topic(topic))
            for topic, count in counts.items()
        }

    def _remote(self, view: View, topic: str) -> str:
        return view.remotes.get(topic) or self.policy.format_remote_topic(self.flow.source, topic)

    def _partitions(self, status: FlowStatus, view: View, period: Period) -> Iterator[PartitionSample]:
        is_running = status.state is FlowState.RUNNING
        ours = set(view.seen) if status.state in _OURS else set()
        for partition in sorted(ours | period.copied.keys()):
            copied, seen = period.copied.get(partition, Tally()), view.seen.get(partition, Seen(state=UNKNOWN))
            newest = view.newest.get(partition)
            yield PartitionSample(
                flow=self.flow,
                at=period.at,
                seconds=period.seconds,
                partition=partition,
                remote=self._remote(view, partition.topic),
                records=copied.records,
                bytes=copied.bytes,
                latency=copied.histogram,
                lag_records=seen.lag if is_running else None,
                lag_seconds=seen.lag_seconds(period.at, newest) if is_running else None,
                checked_at=seen.checked_at,
                state=seen.state if is_running else UNKNOWN,
                reason=seen.reason.value if is_running and seen.reason is not None else None,
            )

    def _groups(self, status: FlowStatus, period: Period) -> Iterator[GroupSample]:
        report = status.consumers if status.state is FlowState.RUNNING else None
        latencies = _by_group(period.checkpoints)
        names = set(latencies) if report is None else {*latencies, *report.groups}
        states = {} if report is None else worst_states(report)
        topics = {} if report is None else _topics(report)
        for name in sorted(names):
            state, kind = states.get(name, (None, None))
            yield GroupSample(
                flow=self.flow,
                at=period.at,
                seconds=period.seconds,
                group=name,
                topics=tuple(sorted(topics.get(name, ()))),
                latency=latencies[name].histogram if name in latencies else Tally().histogram,
                state=UNKNOWN if state is None else state.value,
                reason=kind,
            )


def worst_states(report: ConsumersReport) -> dict[str, tuple[SyncState, str | None]]:
    """Group → what sync makes of its worst partition, and the failure kind; of those that sync has looked at."""
    found: dict[str, tuple[SyncState, str | None]] = {}
    for one in report.synced:
        group = one.position.group
        if group not in found or _WORST_FIRST.index(one.state) < _WORST_FIRST.index(found[group][0]):
            found[group] = one.state, None if one.kind is None else one.kind.value
    return found


def _topics(report: ConsumersReport) -> dict[str, set[str]]:
    topics: dict[str, set[str]] = {}
    for position in report.positions.known:
        topics.setdefault(position.group, set()).add(position.partition.topic)
    return topics


def _by_group(checkpoints: Mapping[GroupPartition, Tally]) -> dict[str, Tally]:
    groups: dict[str, Tally] = {}
    for (group, _), tally in checkpoints.items():
        groups.setdefault(group, Tally()).add(tally)
    return groups


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(1000 * seconds)
