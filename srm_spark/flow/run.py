"""One attempt to run a flow: lease it, make its topics ready, keep a generation of its query on the right partitions.

Ends by an exception when something failed, and in peace when it is told to stop.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any

from srm_spark.config.settings import FlowSettings
from srm_spark.core.model import PausedPartition, RefusedPolicy, TopicPartition
from srm_spark.errors import FlowError, LeaseHeld, QueryFailed, TargetUnavailable
from srm_spark.failure import Effect, Failure, FailureKind
from srm_spark.flow.batch.pace import pace_of
from srm_spark.flow.batch.replicate import Assignment
from srm_spark.flow.clusters import connect
from srm_spark.flow.generation import Generation, pass_unreadable, task_count
from srm_spark.flow.groups.consumer_groups import ConsumerGroups
from srm_spark.flow.lanes import Lanes
from srm_spark.flow.pulse import Pulse, Stall
from srm_spark.flow.recovery.before import Before
from srm_spark.flow.recovery.fencing import begin_fencing, complete_map
from srm_spark.flow.recovery.identity import check_copies
from srm_spark.flow.recovery.open_transactions import hold_open_transactions
from srm_spark.flow.recovery.renames import Renames
from srm_spark.flow.recovery.starts import find_starts, record_new
from srm_spark.flow.recovery.unrecorded import recover_unrecorded, remotes_of
from srm_spark.flow.refused.paused import PausedPartitions
from srm_spark.flow.refused.quarantine import Quarantine
from srm_spark.flow.refused.unreadable import unreadable
from srm_spark.flow.status import FlowState
from srm_spark.flow.topics.factors import factors_too_large
from srm_spark.flow.topics.internal_topics import ensure_topic, map_topic, quarantine_topic, syncs_topic
from srm_spark.flow.topics.known import KnownTopics
from srm_spark.flow.topics.map_table import MapTable
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.progress import Position, ProgressTopic, forget_maps
from srm_spark.flow.topics.remote_topics import RemoteTopics
from srm_spark.flow.topics.retention import MapRetention
from srm_spark.flow.topics.rights import not_readable
from srm_spark.kafka.compiled import is_used
from srm_spark.kafka.fetch import prepared
from srm_spark.kafka.lease import Lease, lost
from srm_spark.spark import SparkSession
from srm_spark.spark.write import prepare_workers

log = logging.getLogger(__name__)

TICK_SECONDS = 1.0
STOP_SECONDS = 120.0
"""How long a clean stop waits for the batch in progress."""
_GROUPS_SECONDS = 10.0
"""How long a clean stop waits for a call about consumer groups; one that comes late does no harm."""
_TABLE_SECONDS = 10.0
"""How long it waits for a write to the table; one that is cut off leaves the table as it was."""
_LAG_SECONDS = 5.0
"""How old the lag in the status may be, however seldom topics are looked for."""
_FIRST_COPY_SECONDS = 30.0
"""Spark may need so long for the first batch of a query."""
_DEBOUNCE_SECONDS = 1.0
"""Topics are often created several at a time: one new generation for all of them."""


class FlowRun:
    """One attempt; `show(state, reason, **changes)` takes what changes in the flow's status."""

    def __init__(
        self,
        settings: FlowSettings,
        session: SparkSession,
        stop: threading.Event,
        show: Callable[..., None],
        *,
        waits: bool,
        after_failure: bool,
    ) -> None:
        self._settings = settings
        self._session = session
        self._stop = stop
        self._show = show
        self._waits = waits
        self._after_failure = after_failure
        clusters = connect(settings)
        self._lease = Lease(settings.flow, clusters.target, settings.progress_topic)
        self._ends = replace(clusters, require_lease=self._lease.require)
        self._before = Before(self._ends, partial(show, FlowState.STARTING))
        self._pulse = Pulse(self._ends, self._stalled)
        self._remote = RemoteTopics(self._ends)
        self._holds = PausedPartitions(self._ends, self._remote)
        self._renames = Renames(self._ends)
        self._progress = ProgressTopic(settings, self._ends.target)
        role = f"{settings.flow}|offset-map"
        self._maps = OffsetMaps(self._ends.target, settings.map_topic, role, TargetUnavailable)
        self._quarantine = Quarantine(settings, self._ends.target, f"{settings.flow}|quarantine")
        self._groups = ConsumerGroups(self._ends, self._maps)
        self._retention = MapRetention(self._ends, self._maps)
        self._table = MapTable(settings, session, self._maps)
        self._generation: Generation | None = None
        self._topics: dict[str, int] = {}
        self._unseen: str | None = None
        self._known = KnownTopics(self._ends)
        self._lanes = Lanes(settings, session)
        self._next_look = self._next_lag = 0.0

    def __enter__(self) -> FlowRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, FlowError) and not isinstance(error, LeaseHeld):
            self._show(FlowState.RETRYING, str(error))  # at once: with a cluster away, winding down takes its time
        self._pulse.end()
        self._groups.tell_to_stop()
        self._table.tell_to_stop()
        try:
            self._stop_generation()
            if kind is None and self._lease.is_held():  # else there is nothing of ours
                self._count()
                self._before.note_clean(self._lease)
        finally:
            self._groups.join(_GROUPS_SECONDS if kind is None else 0.0)
            self._table.join(_TABLE_SECONDS if kind is None else 0.0)
            self._progress.close()
            self._maps.close()
            self._quarantine.close()
            self._lease.release()

    def until_stopped(self) -> None:
        """Run until the flow is told to stop."""
        self._show(FlowState.STARTING, None)
        self._pulse.begin()
        if not self._after_failure:  # once, and not again with every retry
            for warning in factors_too_large(self._ends):
                log.warning("flow=%s %s", self._settings.flow, warning)
        self._progress.ensure()
        if not self._own():
            return
        if is_used(self._settings.batch.in_loop):
            prepare_workers(self._session, prepared, task_count(self._session, self._ends))
        ensure_topic(self._ends.target, map_topic(self._settings))
        if self._settings.refused.parks:
            ensure_topic(self._ends.target, quarantine_topic(self._settings))
        if self._settings.syncs.enabled:
            ensure_topic(self._ends.syncs_cluster, syncs_topic(self._ends))
        self._progress.refresh()
        self._progress.take_totals()  # what earlier runs did
        self._before.follow(self._progress.last_run, after_failure=self._after_failure)
        self._start_generation()
        if self._groups.is_wanted:
            self._groups.start()
        self._table.start()
        while not self._stop.wait(TICK_SECONDS):
            self._tick()

    def _own(self) -> bool:
        while not self._stop.is_set():
            owner = self._lease.other_owner()
            if owner is None and self._lease.acquire():
                return True
            reason = f"another driver owns the flow: {owner or 'it was faster'}"
            if not self._waits:
                raise LeaseHeld(f"flow {self._settings.flow}: {reason}; stop that driver, or start without --no-wait")
            self._show(FlowState.WAITING, reason)
            self._stop.wait(TICK_SECONDS)
        return False

    def _tick(self) -> None:
        self._check_lease()
        failure = self._generation.failure() if self._generation is not None else None
        if failure is not None:
            self._recover(failure)
            return
        self._count()
        now = time.monotonic()
        if self._holds.discover(self._progress.positions):
            self._holds.postpone(now)
            self._start_generation()
        elif now >= self._next_look:
            self._next_look = now + self._settings.topics.refresh_seconds
            self._look(now)
        elif now >= self._next_lag or self._pulse.is_quiet:
            self._follow_lag()

    def _check_lease(self) -> None:
        if not self._lease.is_held():
            raise lost(self._settings.flow, self._lease.group)

    def _may_go_on(self) -> bool:
        return self._lease.is_held() and not self._stop.is_set()

    def _look(self, now: float) -> None:
        """Look whether the set of partitions should be another one."""
        has_changed = self._settings.topics.refresh_enabled and self._has_changed()
        if has_changed:
            self._stop.wait(_DEBOUNCE_SECONDS)
        if self._holds.release(now) or has_changed:
            self._start_generation()
        else:
            if self._generation is not None:
                self._retention.look(self._generation.assignment.routes, now)
            self._follow_lag()

    def _start_generation(self) -> None:
        self._stop_generation()
        assignment, blocked = self._assignment()
        self._count()  # what was found to be lost: a run that fails at once would not come to it
        while not self._stop.is_set() and (
            passable := {
                p: hold for p, hold in blocked.items() if assignment.routes[p.topic].policy is not RefusedPolicy.HOLD
            }
        ):
            stand_still = pass_unreadable(self._session, self._ends, assignment, passable, self._may_go_on)
            self._check_lease()
            self._holds.partitions.update(stand_still)
            assignment, blocked = self._assignment()  # positions and map are others now
        lag = self._moving(self._lag()) if self._settings.is_realtime else 0  # nobody else asks for it yet
        live = self._lanes.choose(assignment.starts.keys() - blocked.keys(), assignment.tasks, lag)
        self._pulse.rest(_FIRST_COPY_SECONDS)
        self._generation = Generation(self._session, self._ends, assignment, blocked, self._may_go_on, live=live)
        self._holds.partitions.update(blocked)
        self._show_lag()

    def _assignment(self) -> tuple[Assignment, dict[TopicPartition, PausedPartition]]:
        """What the next generation replicates, and where a record lies ahead that Spark cannot read."""
        tasks = task_count(self._session, self._ends)
        slots = tasks + 1  # the last one is the driver's own
        fencing = begin_fencing(self._ends, self._lease, slots, was_exactly_once=self._before.was_exactly_once)
        self._progress.refresh()
        self._maps.refresh()
        if complete_map(self._ends, self._maps.maps, self._progress.newest, fencing):
            self._maps.refresh()
        self._topics = self._remote.select()
        self._unseen = self._remote.unseen(self._topics)
        positions = self._progress.positions
        self._renames.look(self._topics, positions)
        copied = {partition.topic for partition, known in positions.items() if known.logs.remote_id is not None}
        ready = {topic: count for topic, count in self._topics.items() if topic not in self._renames.held}
        prepared = self._remote.prepare(ready, copied - set(self._renames.going_on))
        flowing = {topic: count for topic, count in self._topics.items() if topic in prepared.routes}
        routes, ids = prepared.routes, self._ends.source.topic_ids(flowing)
        starts = find_starts(self._ends, self._progress, flowing, ids, self._maps.maps)
        self._renames.begin(starts)
        if not self._before.is_clean:
            self._before.wait(remotes_of(starts, routes))
        if fencing is not None:
            hold_open_transactions(self._ends, starts, remotes_of(starts, routes))
        check_copies(self._ends, starts, routes, self._maps.maps)
        if starts.unproven:
            forget_maps(self._ends, self._maps.maps, starts.unproven, fencing)
            self._maps.refresh()
        self._known.learn(ids, {routes[p.topic].remote_topic: logs.remote_id for p, logs in starts.logs.items()})
        recover_unrecorded(
            self._ends,
            starts,
            routes,
            self._maps.maps,
            fencing=fencing,
            stamp=self._before.stamp,
            settle=self._before.settle,
            parked=self._parked().offsets(ids),
        )
        self._before.begin(in_transactions=fencing is not None)
        record_new(self._ends, starts, routes, self._maps.maps, fencing=fencing)
        self._holds.topics = {**prepared.held, **self._renames.held}
        self._holds.partitions.update(starts.held)
        positions = {p: start for p, start in starts.positions.items() if p not in self._holds.partitions}
        blocked = unreadable(self._ends, {p: start for p, start in positions.items() if p in self._holds.suspects})
        self._progress.refresh()
        self._maps.refresh()
        self._holds.begin(self._progress.positions)
        assignment = Assignment(
            starts=positions,
            routes=routes,
            logs=starts.logs,
            syncs_topic=self._ends.syncs_topic,
            tasks=tasks,
            fencing=fencing,
            permit=self._lease.permit,
            maps={partition: found.copy() for partition, found in self._maps.maps.items()},
        )
        return assignment, blocked

    def _stop_generation(self, seconds: float = STOP_SECONDS) -> None:
        if self._generation is not None:
            if not self._generation.stop(seconds):
                log.warning("flow=%s the batch in progress was interrupted", self._settings.flow)
                self._before.cut_off()
            self._generation = None
        self._lanes.leave()

    def _recover(self, failure: Failure) -> None:
        """Go on after a failure that other partitions or start positions mend; anything else fails the run."""
        self._before.cut_off()  # with the other tasks of the batch
        flow = self._settings.flow
        if failure.kind.effect is Effect.STARTS_ANEW:
            log.warning("flow=%s %s", flow, failure)
        elif not self._hold_denied(failure) and not self._suspect_unreadable(failure):
            raise QueryFailed(f"flow {flow}: {failure}", failure.kind)
        self._start_generation()

    def _positions(self) -> dict[TopicPartition, Position]:
        """Where the partitions of the generation that ended stand now."""
        assert self._generation is not None
        self._progress.refresh()
        return {p: self._progress.positions.get(p, start) for p, start in self._generation.assignment.starts.items()}

    def _hold_denied(self, failure: Failure) -> bool:
        """Hold the topics that may not be read; whether there are any. Java's clients do not say which: we ask."""
        if failure.kind is not FailureKind.SOURCE_DENIED:
            return False
        positions = self._positions()
        topics = set(failure.topics) or not_readable(self._ends, {p.topic for p in positions})
        found = {p: PausedPartition(start.next_offset, failure) for p, start in positions.items() if p.topic in topics}
        self._holds.partitions.update(found)
        self._holds.postpone(time.monotonic())
        return bool(found)

    def _suspect_unreadable(self, failure: Failure) -> bool:
        """Remember where a record lies that Spark cannot read; whether there is a new one."""
        if failure.kind is not FailureKind.TIMESTAMP_OVERFLOW:
            return False
        found = unreadable(self._ends, self._positions())
        known = self._holds.suspects
        new = {partition: hold for partition, hold in found.items() if known.get(partition) != hold.offset}
        for partition, hold in new.items():
            log.warning("flow=%s partition=%s at offset %s: %s", self._settings.flow, partition, hold.offset, hold.why)
        known.update({partition: hold.offset for partition, hold in new.items()})
        return bool(new)

    def _has_changed(self) -> bool:
        return self._remote.select() != self._topics or self._known.is_changed()

    def _count(self) -> None:
        self._progress.refresh()
        new = self._progress.take_totals()
        if new.records or new.losses:
            self._groups.moved()
            self._pulse.landed()
            self._show_running(
                records=new.records,
                bytes=new.bytes,
                zero_timestamps=new.zero_timestamps,
                latency_ms=new.latency_ms,
                losses={str(partition): ", ".join(map(str, lost)) for partition, lost in new.losses.items()},
                lost_records=new.lost_records,
            )

    def _expect_copies(self, lag: Mapping[TopicPartition, int]) -> None:
        """Tell the pulse where copies must land now: not where a limit makes them wait, or until the next trigger."""
        is_slow = pace_of(self._settings).describe() is not None or self._settings.batch.trigger_interval_ms > 1000
        if self._generation is None or is_slow:
            self._pulse.expect(())
            return
        routes = self._generation.assignment.routes
        self._pulse.expect(
            TopicPartition(routes[p.topic].remote_topic, p.partition)
            for p, behind in lag.items()
            if behind and p in self._generation.assignment.starts and p not in self._holds.partitions
        )

    def _stalled(self, stall: Stall | None) -> None:
        """Called by the pulse, whatever the thread of the flow waits for."""
        if stall is not None:
            self._show(FlowState.STALLED, stall.reason, unknown_since=stall.since)
        elif self._generation is None:
            self._show(FlowState.STARTING, None)
        else:
            self._show_running()

    def _show_running(self, **changes: Any) -> None:
        """Show what changed; it runs unless the pulse says that nothing moves."""
        stall = self._pulse.stall
        if stall is None:
            self._show(FlowState.RUNNING, self._unseen or self._lanes.obstacle, **changes)
        else:
            self._show(FlowState.STALLED, stall.reason, unknown_since=stall.since, **changes)

    def _parked(self) -> Quarantine:
        if self._settings.refused.parks:
            self._quarantine.refresh()
        return self._quarantine

    def _lag(self) -> dict[TopicPartition, int]:
        positions = self._progress.positions
        ends = self._ends.source.end_offsets(
            p for p in positions if p.topic in self._topics and p.partition < self._topics[p.topic]
        )
        return {p: max(0, end - positions[p].next_offset) for p, end in ends.items()}

    def _moving(self, lag: Mapping[TopicPartition, int]) -> int:
        """The lag of what is wanted in real time and does not stand still."""
        return sum(lag[partition] for partition in self._lanes.wanted(lag.keys() - self._holds.partitions.keys()))

    def _follow_lag(self) -> None:
        if self._lanes.is_due(self._moving(self._show_lag())):
            self._start_generation()

    def _show_lag(self) -> dict[TopicPartition, int]:
        self._next_lag = time.monotonic() + _LAG_SECONDS
        lag = self._lag()
        self._expect_copies(lag)
        self._show_running(
            topics=len(self._topics),
            partitions=sum(self._topics.values()),
            lag_records=sum(lag.values()),
            batch_ms={} if self._generation is None else self._generation.phases(),
            limit=pace_of(self._settings).describe(),
            held=self._holds.describe(),
            parked=self._parked().describe(),
            consumers=self._groups.report,
        )
        return lag
