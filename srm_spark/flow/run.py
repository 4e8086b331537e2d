"""One attempt to run a flow: lease it, make its topics ready, keep a generation of its query on the right partitions.

Ends by an exception when something failed, and in peace when it is told to stop.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any

from srm_spark.config.settings import FlowSettings
from srm_spark.core.model import PausedPartition, RefusedPolicy, TopicPartition
from srm_spark.core.news import Every
from srm_spark.errors import FlowError, LeaseHeld
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.assigning import Assigner
from srm_spark.flow.batch.pace import pace_of
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.early import EarlyGeneration, can_copy_early, early_tasks
from srm_spark.flow.generation import Generation, Running, pass_unreadable, task_count
from srm_spark.flow.lanes import Lanes
from srm_spark.flow.mending import Mending
from srm_spark.flow.meter import Look, Meter
from srm_spark.flow.ownership import Ownership
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.pulse import Stall
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.recovery.before import Before
from srm_spark.flow.services import Services
from srm_spark.flow.share import Share
from srm_spark.flow.status import FlowState
from srm_spark.flow.topics.commands import FlowCommands, Restarts
from srm_spark.flow.topics.factors import factors_too_large
from srm_spark.flow.topics.internal_topics import (
    control_topic,
    ensure_topic,
    leases_topic,
    map_topic,
    quarantine_topic,
    syncs_topic,
)
from srm_spark.flow.topics.lists import FlowLists, KnownActs
from srm_spark.flow.topics.retention import MapRetention
from srm_spark.kafka.batches.copy import prepared
from srm_spark.kafka.batches.ways import is_used
from srm_spark.kafka.lease import lost
from srm_spark.spark import SparkSession
from srm_spark.spark.opening import OwnSpark
from srm_spark.spark.write import prepare_workers

log = logging.getLogger(__name__)


_AUTHOR_SECONDS = 43_200.0
"""How often the target hears that the flow's producer id is in use: it forgets one after a week, by default."""


@dataclass(frozen=True)
class Means:
    """What a run reaches its clusters and Spark by."""

    reach: Connect = connect
    follow: Callable[[Clusters, Callable[[str], None]], Before] = Before
    """What is known of who wrote before."""
    generate: Callable[..., Running] = Generation
    generate_early: Callable[..., Running] = EarlyGeneration
    """Before Spark is there."""
    pass_unreadable: Callable[..., dict[TopicPartition, PausedPartition]] = pass_unreadable
    task_count: Callable[[SparkSession, Clusters], int] = task_count
    prepare: Callable[..., object] = prepare_workers


WITH_SPARK = Means()


class FlowRun:
    """One attempt; `show(state, reason, **changes)` takes what changes in the flow's status.

    Ticks in the thread of its flow and not by the driver's clock: a tick may take minutes, for it starts and stops
    queries, and the lease that it looks at is lost or kept with it. The lease itself has a thread, too (`kafka.lease`):
    its owner must be heard whatever anybody waits for.
    """

    def __init__(
        self,
        settings: FlowSettings,
        spark: OwnSpark,
        stop: threading.Event,
        show: Callable[..., None],
        *,
        tasks: Periodic,
        waits: bool,
        after_failure: bool,
        means: Means = WITH_SPARK,
        restarts: Restarts | None = None,
        known: KnownActs | None = None,
        meter: Meter | None = None,
        share: Share | None = None,
    ) -> None:
        """`tasks` are the driver's; `restarts` and `known` acts are those that it knows of; `meter` takes figures.

        Without the driver's `share` of the work the flow stays here until it is told to stop.
        """
        self._settings = settings
        self._means = means
        self._spark = spark
        self._stop = stop
        self._show = show
        self._meter = meter or Meter()
        self._after_failure = after_failure
        clusters = means.reach(settings)
        self._lease = clusters.make_lease()
        self._clusters = replace(clusters, require_lease=self._lease.require)
        self._before = means.follow(self._clusters, partial(show, FlowState.STARTING))
        self._recorded = Recorded(self._clusters)
        self._commands = FlowCommands(self._clusters, restarts)
        self._ownership = Ownership(self._clusters, self._lease, share, waits=waits)
        self._assigner = Assigner(self._clusters, self._recorded, self._lease, self._before, self._commands)
        self._mending = Mending(self._clusters, self._recorded.progress, self._assigner.paused)
        self._services = Services(
            self._clusters,
            self._recorded,
            tasks,
            self._stalled,
            self._remotes,
            commands=self._commands,
            known=known,
            meter=self._meter,
        )
        self._retention = MapRetention(self._clusters, self._recorded.maps)
        self._generation: Running | None = None
        self._is_early = False
        """Whether it copies without Spark."""
        self._is_prepared = False
        self.has_begun = False
        """Whether it got the lease."""
        self._lanes = Lanes(settings)
        refresh, retry = settings.topics.refresh_seconds, settings.timings.retry_paused_seconds
        self._look_due, self._lag_due = Every(refresh if refresh >= 0 else retry), Every(settings.timings.lag_seconds)
        self._paused_due = Every(retry, time.monotonic() + retry)
        self._author_due = Every(_AUTHOR_SECONDS)

    def __enter__(self) -> FlowRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, FlowError) and not isinstance(error, LeaseHeld) and not self._stop.is_set():
            self._show(FlowState.RETRYING, str(error))  # at once: with a cluster away, winding down takes its time
        # From the last one up, each whatever becomes of the others: a lease that is not given up stays ours for ever.
        with ExitStack() as ends:
            ends.callback(self._ownership.end)
            ends.callback(self._before.close)
            ends.callback(self._recorded.close)
            ends.callback(self._services.join, waits=kind is None)
            self._services.tell_to_stop()
            self._stop_generation()
            if kind is None and self._lease.is_held():  # else there is nothing of ours
                self._count()
                self._before.note_clean(self._lease)

    @property
    def lists(self) -> FlowLists:
        """The lists that it follows by the driver's clock."""
        return self._services.lists

    def until_stopped(self) -> str | None:
        """Run until the flow is told to stop; else why it ends, and is to start anew."""
        if self.begin():
            while not self._stop.wait(self._settings.timings.tick_seconds):
                if self._commands.wants_restart():
                    self._stop_generation()  # a pause may have come with it, and counts once nothing is copied any more
                    self._commands.answer(self._commands.newest)
                    return "starts anew, as somebody wants it to"
                self.tick()
                if not self._is_early and (why := self._ownership.goes(self._commands.drained)) is not None:
                    return why
        return None

    def begin(self) -> bool:
        """Take the flow's lease and start its first generation; False where it was told to stop before."""
        self._show(FlowState.STARTING, None)
        self._services.watch()
        if not self._after_failure:  # once, and not again with every retry
            for warning in factors_too_large(self._clusters):
                log.warning("flow=%s %s", self._settings.flow, warning)
        self._recorded.progress.ensure()
        ensure_topic(self._clusters.target, leases_topic(self._settings))
        if not self._ownership.take(self._stop, lambda: self._spark.is_up, self._is_well, self._waits_for):
            return False
        self.has_begun = True
        if self._spark.is_up:
            self._prepare(self._spark.session())
        ensure_topic(self._clusters.target, map_topic(self._settings))
        ensure_topic(self._clusters.target, control_topic(self._settings))
        self._services.follow_lists()
        self._ownership.drained(self._commands.drained)
        if self._settings.refused.parks:
            ensure_topic(self._clusters.target, quarantine_topic(self._settings))
        if self._settings.syncs.enabled:
            ensure_topic(self._clusters.syncs_cluster, syncs_topic(self._clusters))
        self._recorded.progress.refresh()
        self._meter.known(self._recorded.progress.take_totals().partitions)  # what earlier runs did
        self._before.follow(self._recorded.progress.last_run, after_failure=self._after_failure)
        newest = self._commands.newest
        self._start_generation(at_once=self._ownership.was_anothers)
        self._services.begin()
        self._answer(newest)
        return True

    def _waits_for(self, reason: str) -> None:
        self._show(FlowState.WAITING, reason)
        self._meter.gone()

    def _is_well(self) -> bool:
        return self._services.pulse.stall is None

    def tick(self) -> None:
        """Look what has changed, and go on with it. Raises where that fails the run."""
        newest = self._commands.newest
        self._look_around()
        self._answer(newest)  # whatever was read before the look counts behind it

    def _answer(self, newest: str | None) -> None:
        if not self._commands.wants_restart():  # that is obeyed, and answered, in front of the next look
            self._commands.answer(newest)

    def _look_around(self) -> None:
        self._check_lease()
        if self._generation is not None and (failure := self._generation.failure()) is not None:
            self._recover(self._generation, failure)
            return
        self._count()
        if self._is_early and self._spark.is_up:
            log.info("flow=%s Spark is there: its query takes over", self._settings.flow)
            self._start_generation()
            return
        now = time.monotonic()
        if self._author_due.is_due(now):
            self._author_due.done(now)
            self._before.keep_alive()
        if self._assigner.paused.discover(self._recorded.progress.positions):
            self._assigner.paused.postpone(now)
            self._start_generation()
        elif self._commands.have_changed():
            self._start_generation()
        elif self.lists.topics_changed():
            self._look(now, is_wanted=True)
        elif self._look_due.is_due(now):
            self._look_due.done(now)
            self._look(now, is_wanted=self._settings.topics.refresh_enabled)
        elif self._paused_due.is_due(now):  # however seldom anybody wants new topics
            self._paused_due.done(now)
            self._look(now, is_wanted=False)
        elif self._lag_due.is_due(now) or self._services.pulse.is_quiet:
            self._follow_lag()

    def _check_lease(self) -> None:
        if not self._lease.is_held():
            raise lost(self._settings.flow, self._lease.why_lost)

    def _may_go_on(self) -> bool:
        return not self._stop.is_set() and self._lease.is_certain()

    def _look(self, now: float, *, is_wanted: bool) -> None:
        """Look whether the set of partitions should be another one; other topics only where that `is_wanted`."""
        has_changed = is_wanted and self._assigner.has_changed()
        if has_changed:
            self._stop.wait(self._settings.timings.debounce_seconds)
        if self._assigner.paused.release(now) or has_changed:
            self._start_generation()
        else:
            if self._generation is not None:
                self._retention.look(self._generation.assignment.routes, now)
            self._follow_lag()

    def _start_generation(self, *, at_once: bool = False) -> None:
        """Begin one; `at_once` without a query first, for which Spark takes a second or two though it is up."""
        self._stop_generation()
        if (at_once or not self._spark.is_up) and can_copy_early(self._settings) and self._start_early():
            return
        if not self._spark.is_up:
            self._show(FlowState.STARTING, "Spark starts")
        if not self._spark.wait(self._stop):
            return
        session = self._spark.session()
        self._prepare(session)
        tasks = self._means.task_count(session, self._clusters)
        assigned = self._assigner.assign(tasks)
        self._count()  # what was found to be lost: a run that fails at once would not come to it
        while not self._stop.is_set() and (
            passable := {
                p: hold
                for p, hold in assigned.blocked.items()
                if assigned.assignment.routes[p.topic].policy is not RefusedPolicy.HOLD
            }
        ):
            stand_still = self._means.pass_unreadable(
                session, self._clusters, assigned.assignment, passable, self._may_go_on
            )
            self._check_lease()
            self._assigner.paused.partitions.update(stand_still)
            assigned = self._assigner.assign(tasks)  # positions and map are others now
        lag = self._moving(self._lag()) if self._settings.is_realtime else 0  # nobody else asks for it yet
        assignment, blocked = assigned.assignment, assigned.blocked
        live = self._lanes.choose(session, assignment.starts.keys() - blocked.keys(), assignment.tasks, lag)
        self._services.pulse.rest(self._settings.timings.first_copy_seconds)
        self._generation = self._means.generate(
            session, self._clusters, assignment, blocked, self._may_go_on, live=live
        )
        self._assigner.paused.partitions.update(blocked)
        self._services.begin_table(session)
        self._show_lag()

    def _start_early(self) -> bool:
        """Copy here until Spark is there; False where a record lies ahead with which it could not go on."""
        assigned = self._assigner.assign(early_tasks(self._settings))
        self._count()
        if assigned.blocked:
            return False
        self._services.pulse.rest(self._settings.timings.first_copy_seconds)
        self._generation = self._means.generate_early(self._clusters, assigned.assignment, self._may_go_on)
        self._is_early = True
        self._show_lag()
        return True

    def _prepare(self, session: SparkSession) -> None:
        """Let Spark get its workers ready, once."""
        if not self._is_prepared and is_used(self._settings.batch.in_loop):
            self._means.prepare(session, prepared, self._means.task_count(session, self._clusters))
        self._is_prepared = True

    def _stop_generation(self) -> None:
        if self._generation is not None:
            if not self._generation.stop(self._settings.timings.stop_seconds):
                log.warning("flow=%s the batch in progress was interrupted", self._settings.flow)
                self._before.cut_off()
            self._generation, self._is_early = None, False
        self._lanes.leave()

    def _recover(self, generation: Running, failure: Failure) -> None:
        self._before.cut_off()  # with the other tasks of the batch
        self._mending.mend(failure, generation.assignment.starts)
        self._start_generation()

    def _count(self) -> None:
        self._recorded.progress.refresh()
        new = self._recorded.progress.take_totals()
        self._meter.copied(new.partitions)
        self._ownership.copied(new.bytes)
        if new.records or new.losses:
            self._services.groups.moved()
            self._services.pulse.landed()
            self._show_running(
                records=new.records,
                bytes=new.bytes,
                zero_timestamps=new.zero_timestamps,
                whole=new.whole,
                merged=new.merged,
                latency_ms=new.latency_ms,
                losses={str(partition): ", ".join(map(str, lost)) for partition, lost in new.losses.items()},
                lost_records=new.lost_records,
            )

    def _expect_copies(self, lag: Mapping[TopicPartition, int]) -> None:
        """Tell the pulse where copies must land now: not where a limit makes them wait, or until the next trigger."""
        is_slow = pace_of(self._settings).describe() is not None or self._settings.batch.trigger_interval_ms > 1000
        if self._generation is None or is_slow:
            self._services.pulse.expect(())
            return
        routes = self._generation.assignment.routes
        self._services.pulse.expect(
            routes[p.topic].remote(p)
            for p, behind in lag.items()
            if behind > 0 and p in self._generation.assignment.starts and p not in self._assigner.paused.partitions
        )

    def _seen(self, lag: Mapping[TopicPartition, int]) -> Look:
        paused = self._assigner.paused
        kinds = {partition: hold.why.kind for partition, hold in paused.partitions.items()}
        return Look(dict(self._assigner.topics), self._remotes(), lag, kinds, frozenset(paused.topics))

    def _remotes(self) -> dict[str, str]:
        """Source topic → remote topic, of those that are copied."""
        generation = self._generation
        routes = {} if generation is None else generation.assignment.routes
        return {topic: route.remote_topic for topic, route in routes.items()}

    def _stalled(self, stall: Stall | None) -> None:
        """Called by the pulse, whatever the thread of the flow waits for."""
        if stall is not None:
            self._show(FlowState.STALLED, stall.reason, unknown_since=stall.since)
        elif self._generation is None:
            self._show(FlowState.STARTING, None)
        else:
            self._show_running()

    def _show_running(self, **changes: Any) -> None:
        """Show what changed; it runs unless the pulse says that nothing moves, or what copied has ended meanwhile."""
        stall = self._services.pulse.stall
        if stall is not None:
            self._show(FlowState.STALLED, stall.reason, unknown_since=stall.since, **changes)
        elif self._has_ended():
            self._show(FlowState.STARTING, None, **changes)
        else:
            self._show(FlowState.RUNNING, self._assigner.unseen or self._lanes.obstacle, **changes)

    def _has_ended(self) -> bool:
        """Whether the next look will find that nothing is copied: a look that waits for a cluster may be long over."""
        return not self._lease.is_held() or (self._generation is not None and self._generation.failure() is not None)

    def _lag(self) -> dict[TopicPartition, int]:
        """Below zero where a log ends before what was copied: it was made anew, or cut."""
        positions = self._recorded.progress.positions
        topics = self._assigner.topics
        asked = [p for p in positions if p.topic in topics and p.partition < topics[p.topic]]
        ends = self._clusters.source.end_offsets(asked, waits=False)
        return {p: end - positions[p].next_offset for p, end in ends.items()}

    def _sum(self, lag: Mapping[TopicPartition, int]) -> int | None:
        """None where it is not known of all: without a leader, or a position that fits, as of a topic that is held."""
        is_whole = len(lag) == sum(self._assigner.topics.values()) and min(lag.values(), default=0) >= 0
        return sum(lag.values()) if is_whole and not self._assigner.paused.of_kind(FailureKind.NO_LEADER) else None

    def _moving(self, lag: Mapping[TopicPartition, int]) -> int:
        """The lag of what is wanted in real time and does not stand still."""
        return sum(
            max(0, lag[partition])
            for partition in self._lanes.wanted(lag.keys() - self._assigner.paused.partitions.keys())
        )

    def _follow_lag(self) -> None:
        lag = self._show_lag()
        if self._lanes.is_due(self._moving(lag)) or self._has_lost_leaders(lag):
            self._start_generation()

    def _has_lost_leaders(self, lag: Mapping[TopicPartition, int]) -> bool:
        """Whether partitions that are copied stand in the way of the others: Spark asks all of them for their ends."""
        copied = set() if self._generation is None else set(self._generation.assignment.starts)
        silent = copied - lag.keys() - self._assigner.paused.partitions.keys()
        return self._assigner.leaderless.is_due(silent, time.monotonic())

    def _show_lag(self) -> dict[TopicPartition, int]:
        self._lag_due.done(time.monotonic())
        lag = self._lag()
        self._expect_copies(lag)
        self._meter.looked(self._seen(lag))
        self._show_running(
            topics=len(self._assigner.topics),
            partitions=sum(self._assigner.topics.values()),
            lag_records=self._sum(lag),
            batch_ms={} if self._generation is None else self._generation.phases(),
            limit=pace_of(self._settings).describe(),
            realtime=len(self._lanes.live),
            standing=self._assigner.paused.standing(),
            parked=self._recorded.quarantine().describe(),
            consumers=self._services.groups.report,
        )
        return lag
