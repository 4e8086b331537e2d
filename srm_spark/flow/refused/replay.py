"""What can be done with records in quarantine: list them, write them to their remote topics after all, forget them.

A replay needs the flow's lease, so no driver writes meanwhile. The copy, the progress that knows the new end of the
remote partition, and the end of the quarantine are one transaction: whatever dies, a record is replayed once, and no
start of the flow takes the copy for somebody else's. It lies behind what was copied since; the offset map keeps the
gap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Protocol

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import ControlRecord
from srm_spark.core.codec import progress_records
from srm_spark.core.filters import NameFilter
from srm_spark.core.limits import Limits, clamp, first_refused, is_too_large_only, unsized, will_fit
from srm_spark.core.model import OffsetRange, ProgressDetail, RefusedPolicy, TopicPartition
from srm_spark.core.quarantine import Ended, QuarantinedRecord
from srm_spark.core.rows import Run
from srm_spark.core.tail import TailRecord, ours
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.owned import owned
from srm_spark.flow.recovery.fencing import complete_map, new_fencing
from srm_spark.flow.recovery.settling import TargetEnds, settled
from srm_spark.flow.refused.quarantine import (
    Quarantine,
    QuarantineWriter,
    end_of,
    entry_tombstones,
    part_tombstones,
)
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.progress import ProgressTopic, state_writer_of
from srm_spark.flow.topics.remote_topics import limits_of
from srm_spark.kafka.clients import options
from srm_spark.kafka.fencing import FencingToken, fence
from srm_spark.kafka.lease import Lease
from srm_spark.kafka.producers import codec_of, record_options
from srm_spark.kafka.replay import AppendingWriter

_RECORD_SECONDS = 20.0
"""For one record; what a killed replay leaves open is aborted 70 s after that, and until then the flow waits."""


@dataclass(frozen=True)
class Replayed:
    """What became of one record in quarantine."""

    entry: QuarantinedRecord
    remote: TopicPartition
    downstream: int | None = None
    """Target offset of the copy; None where there is none, or none yet."""
    refusal: str | None = None
    """Why it stays in quarantine."""


class Appender(Protocol):
    """Appends single records to the target, each with what is to be recorded for it."""

    def append(self, remote: TopicPartition, run: Run, follow: Callable[[int], Iterable[ControlRecord]]) -> int:
        """Write the only record of `run` at the end of `remote`, and what `follow` makes of its target offset.

        All of it or nothing; returns the offset. Raises TargetWriteFailed.
        """


def appending_writer(settings: FlowSettings, fencing: FencingToken, stack: ExitStack) -> Appender:
    """Writes in transactions of the flow's driver, for as long as `stack` lasts."""
    # A commit returns before its markers are everywhere, initialising the id once more does not: a driver that starts
    # behind us must not see a copy without the progress that knows it.
    stack.callback(fence, fencing, 0)
    rendered = options(settings.target, settings.producer, f"{settings.flow}|replay")
    return AppendingWriter(fencing, record_options(rendered, _RECORD_SECONDS))


@dataclass(frozen=True)
class Means:
    """What a replay reaches its clusters by."""

    reach: Connect = connect
    fence: Callable[[Clusters, Lease, int], FencingToken] = new_fencing
    """Ends what older writers have begun."""
    settle: Callable[..., TargetEnds] = settled
    write: Callable[[FlowSettings, FencingToken, ExitStack], Appender] = appending_writer


KAFKA = Means()


def list_quarantine(
    settings: FlowSettings, topics: NameFilter, reach: Connect = connect
) -> tuple[QuarantinedRecord, ...]:
    """What is in quarantine of the source topics that `topics` takes, as it was put there. Raises TargetUnavailable."""
    clusters = reach(settings)
    with closing(Quarantine(settings, clusters.target, f"{settings.flow}|quarantine-list")) as quarantine:
        return tuple(_chosen(quarantine, topics))


def records_in_quarantine(
    settings: FlowSettings, partition: TopicPartition, offset: int, reach: Connect = connect
) -> tuple[tuple[QuarantinedRecord, TailRecord], ...]:
    """What was put aside of one place of the source, with its content; several where topics of one name were made anew.

    Raises TargetUnavailable, and CodecError for a content that another program wrote.
    """
    clusters = reach(settings)
    with closing(Quarantine(settings, clusters.target, f"{settings.flow}|quarantine-look")) as quarantine:
        quarantine.refresh()
        places = [one for one in quarantine.entries if (one.partition, one.offset) == (partition, offset)]
        return tuple(quarantine.contents(places)) if places else ()


def drop_from_quarantine(
    settings: FlowSettings, entries: Sequence[QuarantinedRecord], reach: Connect = connect
) -> None:
    """Forget records, those of them that are still in quarantine. Raises ProgressFailed and TargetUnavailable."""
    clusters = reach(settings)
    with closing(Quarantine(settings, clusters.target, f"{settings.flow}|quarantine-drop")) as quarantine:
        quarantine.refresh()  # somebody may have replayed some while somebody else was asked
        there = [entry for entry in entries if quarantine.entries.get(entry.place) == entry]
    QuarantineWriter(settings, state_writer_of(clusters, None)).forget(there)


def replay(settings: FlowSettings, topics: NameFilter, *, is_dry_run: bool, means: Means = KAFKA) -> Iterator[Replayed]:
    """Write what is in quarantine of these topics to their remote topics, at the end, and forget it.

    Raises LeaseHeld while a driver runs the flow, LeaseLost, TargetUnavailable and TargetWriteFailed; what was replayed
    before stays so. The source may be away.
    """
    clusters = means.reach(settings)
    with ExitStack() as stack:
        quarantine = stack.enter_context(closing(Quarantine(settings, clusters.target, f"{settings.flow}|replay")))
        if not _chosen(quarantine, topics):
            return
        lease = None
        if not is_dry_run:
            clusters, lease = stack.enter_context(owned(clusters))
        chosen = _chosen(quarantine, topics)  # whoever had the lease before may have changed it
        course = _Replay(clusters, stack, {entry.place.partition for entry in chosen})
        fencing = None if lease is None else course.begin(lease, means)
        writer = None if fencing is None else means.write(settings, fencing, stack)
        for entry, record in quarantine.contents([entry.place for entry in chosen]):
            clusters.require_lease()
            yield course.replay(entry, record, writer)


def _chosen(quarantine: Quarantine, topics: NameFilter) -> list[QuarantinedRecord]:
    quarantine.refresh()
    return [entry for place, entry in quarantine.entries.items() if topics.matches(place.partition.topic)]


class _Replay:
    """The course of one replay."""

    def __init__(self, clusters: Clusters, stack: ExitStack, partitions: set[TopicPartition]) -> None:
        self._clusters = clusters
        settings = self._settings = clusters.settings
        self._remotes = {
            p: TopicPartition(clusters.policy.format_remote_topic(settings.flow.source, p.topic), p.partition)
            for p in partitions
        }
        self._progress = stack.enter_context(closing(ProgressTopic(settings, clusters.target)))
        role = f"{settings.flow}|replay-map"
        self._maps = stack.enter_context(
            closing(OffsetMaps(clusters.target, settings.map_topic, role, TargetUnavailable))
        )
        self._progress.refresh()
        self._maps.refresh()
        self._limits = self._read_limits()
        self._refusals: Mapping[TopicPartition, str] = {}

    def begin(self, lease: Lease, means: Means) -> FencingToken:
        """Fence what may still write, and look whether everything on the target is recorded."""
        fencing = means.fence(self._clusters, lease, 0)
        if self._settings.is_exactly_once:
            complete_map(self._clusters, self._maps.maps, self._progress.newest, fencing)
        there = {p: remote for p, remote in self._remotes.items() if remote.topic in self._limits}
        target_ends = means.settle(self._clusters, there, is_fenced=False, stamp=self._settings.stamp)
        unrecorded = ((p, self._unrecorded(p, remote, target_ends.get(remote, 0))) for p, remote in there.items())
        self._refusals = {partition: why for partition, why in unrecorded if why is not None}
        return fencing

    def replay(self, entry: QuarantinedRecord, record: TailRecord, writer: Appender | None) -> Replayed:
        """Write one record; without a `writer` only see whether that would be done."""
        partition = entry.place.partition
        remote = self._remotes[partition]
        copied = self._copied(entry)
        run = self._run(partition, record)
        refusal = None if copied is not None else self._refusal(partition, run)
        if refusal is not None or writer is None or run is None:
            return Replayed(entry, remote, copied, refusal)
        if copied is not None:
            QuarantineWriter(self._settings, state_writer_of(self._clusters, None)).drop([entry])
            return Replayed(entry, remote, copied)
        offset = writer.append(remote, run, lambda offset: self._records(entry, offset))
        return Replayed(entry, remote, offset)

    def _read_limits(self) -> dict[str, Limits]:
        names = {remote.topic for remote in self._remotes.values()} & self._clusters.target.topics().keys()
        return {name: limits_of(configs) for name, configs in self._clusters.target.configs(names).items()}

    def _unrecorded(self, partition: TopicPartition, remote: TopicPartition, end: int) -> str | None:
        position = self._progress.positions.get(partition)
        if position is None or position.target_end is None:
            return f"it is not recorded how much of {remote} is the flow's own; start the flow once, and stop it"
        tail = OffsetRange(position.target_end, end)
        records: Iterator[TailRecord] = self._clusters.target.records(remote, tail)
        if self._settings.stamp is not None:
            records = ours(self._settings.stamp, partition, records)
        if any(True for _ in records):
            return f"{remote} has records that are not recorded; start the flow once, so that it finds out, and stop it"
        return None

    def _copied(self, entry: QuarantinedRecord) -> int | None:
        """Where the record was copied after all, since a crash came before it was passed, and the limits changed."""
        place = entry.place
        known = self._maps.maps.get(place.partition)
        return None if known is None or known.is_of_another(place.topic_id) else known.copy_of(place.offset)

    def _run(self, partition: TopicPartition, record: TailRecord) -> Run | None:
        """The copy as it would be written; None where the record does not go to this cluster."""
        headers: Sequence[tuple[str, bytes | None]] | None = record.headers
        if self._settings.stamp is not None:
            headers = self._settings.stamp.headers(partition, record.offset, record.headers)
        if headers is None:
            return None
        run = Run.of(partition, [record._replace(headers=tuple(headers))])
        limits = self._limits.get(self._remotes[partition].topic)
        is_fixed = limits is not None and self._settings.refused.of(partition.topic) is RefusedPolicy.FIX
        return clamp(run, limits, int(time.time() * 1000)) if is_fixed and limits is not None else run

    def _refusal(self, partition: TopicPartition, run: Run | None) -> str | None:
        remote = self._remotes[partition]
        limits = self._limits.get(remote.topic)
        if limits is None:
            return f"{self._settings.target.alias} has no topic {remote.topic}"
        if run is None:
            return f"it comes from {self._settings.target.alias}"
        now_ms, codec = int(time.time() * 1000), codec_of(self._settings.producer)
        if codec is not None and is_too_large_only(run, limits, now_ms) and will_fit(run, limits, codec):
            limits = unsized(limits)
        refused = first_refused(run, limits, now_ms)
        return self._refusals.get(partition) if refused is None else f"the target still refuses it: {refused[1]}"

    def _records(self, entry: QuarantinedRecord, offset: int) -> Iterator[ControlRecord]:
        """What is recorded with the copy at target offset `offset`."""
        settings, partition = self._settings, entry.place.partition
        position = self._progress.positions[partition]
        detail = ProgressDetail(
            source=OffsetRange(position.next_offset, position.next_offset),
            target_end=offset + 1,
            intervals=(),
            hold=position.hold,
            logs=position.logs,
        )
        for key, value, headers in progress_records(settings.connector_name, settings.flow.source, partition, detail):
            yield ControlRecord(settings.progress_topic, key, value, headers)
        yield end_of(settings.quarantine_topic, Ended(entry.place, offset))
        yield from entry_tombstones(settings.quarantine_topic, [entry])
        yield from part_tombstones(settings.quarantine_topic, [entry])
