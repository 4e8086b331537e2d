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
from srm_spark.core.news import Every
from srm_spark.errors import FlowError, LeaseHeld, QueryFailed
from srm_spark.failure import Effect, Failure, FailureKind
from srm_spark.flow.assigning import Assigner
from srm_spark.flow.batch.pace import pace_of
from srm_spark.flow.clusters import connect
from srm_spark.flow.generation import Generation, pass_unreadable, task_count
from srm_spark.flow.groups.consumer_groups import ConsumerGroups
from srm_spark.flow.lanes import Lanes
from srm_spark.flow.pulse import Pulse, Stall
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.recovery.before import Before
from srm_spark.flow.refused.unreadable import unreadable
from srm_spark.flow.status import FlowState
from srm_spark.flow.topics.factors import factors_too_large
from srm_spark.flow.topics.internal_topics import ensure_topic, map_topic, quarantine_topic, syncs_topic
from srm_spark.flow.topics.map_table import MapTable
from srm_spark.flow.topics.progress import Position
from srm_spark.flow.topics.retention import MapRetention
from srm_spark.flow.topics.rights import not_readable
from srm_spark.kafka.compiled import is_used
from srm_spark.kafka.fetch import prepared
from srm_spark.kafka.lease import lost
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
        self._lease = clusters.make_lease()
        self._clusters = replace(clusters, require_lease=self._lease.require)
        self._before = Before(self._clusters, partial(show, FlowState.STARTING))
        self._pulse = Pulse(self._clusters, self._stalled)
        self._recorded = Recorded(self._clusters)
        self._assigner = Assigner(self._clusters, self._recorded, self._lease, self._before)
        self._groups = ConsumerGroups(self._clusters, self._recorded.maps)
        self._retention = MapRetention(self._clusters, self._recorded.maps)
        self._table = MapTable(settings, session, self._recorded.maps)
        self._generation: Generation | None = None
        self._lanes = Lanes(settings, session)
        self._look_due, self._lag_due = Every(settings.topics.refresh_seconds), Every(_LAG_SECONDS)

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
            self._recorded.close()
            self._lease.release()

    def until_stopped(self) -> None:
        """Run until the flow is told to stop."""
        self._show(FlowState.STARTING, None)
        self._pulse.begin()
        if not self._after_failure:  # once, and not again with every retry
            for warning in factors_too_large(self._clusters):
                log.warning("flow=%s %s", self._settings.flow, warning)
        self._recorded.progress.ensure()
        if not self._own():
            return
        if is_used(self._settings.batch.in_loop):
            prepare_workers(self._session, prepared, task_count(self._session, self._clusters))
        ensure_topic(self._clusters.target, map_topic(self._settings))
        if self._settings.refused.parks:
            ensure_topic(self._clusters.target, quarantine_topic(self._settings))
        if self._settings.syncs.enabled:
            ensure_topic(self._clusters.syncs_cluster, syncs_topic(self._clusters))
        self._recorded.progress.refresh()
        self._recorded.progress.take_totals()  # what earlier runs did
        self._before.follow(self._recorded.progress.last_run, after_failure=self._after_failure)
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
        if self._assigner.paused.discover(self._recorded.progress.positions):
            self._assigner.paused.postpone(now)
            self._start_generation()
        elif self._look_due.is_due(now):
            self._look_due.done(now)
            self._look(now)
        elif self._lag_due.is_due(now) or self._pulse.is_quiet:
            self._follow_lag()

    def _check_lease(self) -> None:
        if not self._lease.is_held():
            raise lost(self._settings.flow, self._lease.group)

    def _may_go_on(self) -> bool:
        return self._lease.is_held() and not self._stop.is_set()

    def _look(self, now: float) -> None:
        """Look whether the set of partitions should be another one."""
        has_changed = self._settings.topics.refresh_enabled and self._assigner.has_changed()
        if has_changed:
            self._stop.wait(_DEBOUNCE_SECONDS)
        if self._assigner.paused.release(now) or has_changed:
            self._start_generation()
        else:
            if self._generation is not None:
                self._retention.look(self._generation.assignment.routes, now)
            self._follow_lag()

    def _start_generation(self) -> None:
        self._stop_generation()
        tasks = task_count(self._session, self._clusters)
        assigned = self._assigner.assign(tasks)
        self._count()  # what was found to be lost: a run that fails at once would not come to it
        while not self._stop.is_set() and (
            passable := {
                p: hold
                for p, hold in assigned.blocked.items()
                if assigned.assignment.routes[p.topic].policy is not RefusedPolicy.HOLD
            }
        ):
            stand_still = pass_unreadable(self._session, self._clusters, assigned.assignment, passable, self._may_go_on)
            self._check_lease()
            self._assigner.paused.partitions.update(stand_still)
            assigned = self._assigner.assign(tasks)  # positions and map are others now
        lag = self._moving(self._lag()) if self._settings.is_realtime else 0  # nobody else asks for it yet
        assignment, blocked = assigned.assignment, assigned.blocked
        live = self._lanes.choose(assignment.starts.keys() - blocked.keys(), assignment.tasks, lag)
        self._pulse.rest(_FIRST_COPY_SECONDS)
        self._generation = Generation(self._session, self._clusters, assignment, blocked, self._may_go_on, live=live)
        self._assigner.paused.partitions.update(blocked)
        self._show_lag()

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
        self._recorded.progress.refresh()
        return {
            p: self._recorded.progress.positions.get(p, start)
            for p, start in self._generation.assignment.starts.items()
        }

    def _hold_denied(self, failure: Failure) -> bool:
        """Hold the topics that may not be read; whether there are any. Java's clients do not say which: we ask."""
        if failure.kind is not FailureKind.SOURCE_DENIED:
            return False
        positions = self._positions()
        topics = set(failure.topics) or not_readable(self._clusters, {p.topic for p in positions})
        found = {p: PausedPartition(start.next_offset, failure) for p, start in positions.items() if p.topic in topics}
        self._assigner.paused.partitions.update(found)
        self._assigner.paused.postpone(time.monotonic())
        return bool(found)

    def _suspect_unreadable(self, failure: Failure) -> bool:
        """Remember where a record lies that Spark cannot read; whether there is a new one."""
        if failure.kind is not FailureKind.TIMESTAMP_OVERFLOW:
            return False
        found = unreadable(self._clusters, self._positions())
        known = self._assigner.paused.suspects
        new = {partition: hold for partition, hold in found.items() if known.get(partition) != hold.offset}
        for partition, hold in new.items():
            log.warning("flow=%s partition=%s at offset %s: %s", self._settings.flow, partition, hold.offset, hold.why)
        known.update({partition: hold.offset for partition, hold in new.items()})
        return bool(new)

    def _count(self) -> None:
        self._recorded.progress.refresh()
        new = self._recorded.progress.take_totals()
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
            if behind and p in self._generation.assignment.starts and p not in self._assigner.paused.partitions
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
            self._show(FlowState.RUNNING, self._assigner.unseen or self._lanes.obstacle, **changes)
        else:
            self._show(FlowState.STALLED, stall.reason, unknown_since=stall.since, **changes)

    def _lag(self) -> dict[TopicPartition, int]:
        positions = self._recorded.progress.positions
        ends = self._clusters.source.end_offsets(
            p for p in positions if p.topic in self._assigner.topics and p.partition < self._assigner.topics[p.topic]
        )
        return {p: max(0, end - positions[p].next_offset) for p, end in ends.items()}

    def _moving(self, lag: Mapping[TopicPartition, int]) -> int:
        """The lag of what is wanted in real time and does not stand still."""
        return sum(
            lag[partition] for partition in self._lanes.wanted(lag.keys() - self._assigner.paused.partitions.keys())
        )

    def _follow_lag(self) -> None:
        if self._lanes.is_due(self._moving(self._show_lag())):
            self._start_generation()

    def _show_lag(self) -> dict[TopicPartition, int]:
        self._lag_due.done(time.monotonic())
        lag = self._lag()
        self._expect_copies(lag)
        self._show_running(
            topics=len(self._assigner.topics),
            partitions=sum(self._assigner.topics.values()),
            lag_records=sum(lag.values()),
            batch_ms={} if self._generation is None else self._generation.phases(),
            limit=pace_of(self._settings).describe(),
            held=self._assigner.paused.describe(),
            parked=self._recorded.parked().describe(),
            consumers=self._groups.report,
        )
        return lag
