"""One attempt to run a flow: claim it, make its topics ready, keep a generation of its query on the right partitions.

Ends by an exception when something failed, and in peace when it is told to stop.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType

from srm_spark.config.settings import FlowSettings
from srm_spark.errors import ClaimHeld, ClaimLost, FlowError, SourceChanged, TargetUnavailable
from srm_spark.flow.clusters import connect
from srm_spark.flow.consumers import ConsumerGroups
from srm_spark.flow.factors import factors_too_large
from srm_spark.flow.generation import Generation, task_count
from srm_spark.flow.holds import Holds
from srm_spark.flow.map_table import MapTable
from srm_spark.flow.offset_map import OffsetMaps, map_spec
from srm_spark.flow.progress import ProgressTopic, ensure_topic
from srm_spark.flow.replicate import Assignment
from srm_spark.flow.resume import take_in_tails
from srm_spark.flow.retention import MapRetention
from srm_spark.flow.starts import find_starts, record_new, unreadable
from srm_spark.flow.status import FlowState
from srm_spark.flow.terms import begin_term, complete_map
from srm_spark.flow.topics import RemoteTopics
from srm_spark.kafka.claim import Claim
from srm_spark.kafka.cluster import TopicSpec
from srm_spark.model import OffsetRange
from srm_spark.spark import SparkSession

log = logging.getLogger(__name__)

TICK_SECONDS = 1.0
STOP_SECONDS = 120.0
"""How long a clean stop waits for the batch in progress."""
_GROUPS_SECONDS = 10.0
"""How long a clean stop waits for a call about consumer groups; one that comes late does no harm."""
_TABLE_SECONDS = 10.0
"""How long it waits for a write to the table; one that is cut off leaves the table as it was."""
_DEBOUNCE_SECONDS = 1.0
"""Topics are often created several at a time: one new generation for all of them."""
_IDS_PER_LOOK = 500
"""Topic ids are compared in slices, so that 10 000 topics do not cost a burst of requests at every look."""


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
        self._is_unclean = after_failure
        self._ends = connect(settings)
        self._remote = RemoteTopics(self._ends)
        self._holds = Holds(self._ends, self._remote)
        self._progress = ProgressTopic(settings, self._ends.target)
        role = f"{settings.flow}|offset-map"
        self._maps = OffsetMaps(self._ends.target, settings.map_topic, role, TargetUnavailable)
        self._claim = Claim(settings.flow, self._ends.target, settings.progress_topic, self._stop_generation)
        self._groups = ConsumerGroups(self._ends, self._maps)
        self._retention = MapRetention(self._ends, self._maps)
        self._table = MapTable(settings, session, self._maps)
        self._generation: Generation | None = None
        self._topics: dict[str, int] = {}
        self._unseen: str | None = None
        self._topic_ids: dict[str, str] = {}
        self._next_look = 0.0
        self._ids_looked_at = 0

    def __enter__(self) -> FlowRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, FlowError) and not isinstance(error, ClaimHeld):
            self._show(FlowState.RETRYING, str(error))  # at once: with a cluster away, winding down takes its time
        self._groups.tell_to_stop()
        self._table.tell_to_stop()
        try:
            self._stop_generation()
            if kind is None:
                self._count()
        finally:
            self._groups.join(_GROUPS_SECONDS if kind is None else 0.0)
            self._table.join(_TABLE_SECONDS if kind is None else 0.0)
            self._progress.close()
            self._maps.close()
            self._claim.release()

    def until_stopped(self) -> None:
        """Run until the flow is told to stop."""
        self._show(FlowState.STARTING, None)
        if not self._is_unclean:  # once, and not again with every retry
            for warning in factors_too_large(self._ends):
                log.warning("flow=%s %s", self._settings.flow, warning)
        self._progress.ensure()
        if not self._own():
            return
        ensure_topic(self._ends.target, map_spec(self._settings))
        if self._settings.syncs.enabled:
            factor = self._settings.syncs.replication_factor
            spec = TopicSpec(self._ends.syncs_topic, 1, factor, {"cleanup.policy": "compact"})
            ensure_topic(self._ends.syncs_cluster, spec)
        self._progress.refresh()
        self._progress.take_totals()  # what earlier runs did
        self._start_generation()
        if self._groups.is_wanted:
            self._groups.start()
        self._table.start()
        while not self._stop.wait(TICK_SECONDS):
            self._tick()

    def _own(self) -> bool:
        while not self._stop.is_set():
            owner = self._claim.other_owner()
            if owner is None and self._claim.acquire():
                return True
            reason = f"another driver owns the flow: {owner or 'it was faster'}"
            if not self._waits:
                raise ClaimHeld(f"flow {self._settings.flow}: {reason}; stop that driver, or start without --no-wait")
            self._show(FlowState.WAITING, reason)
            self._stop.wait(TICK_SECONDS)
        return False

    def _tick(self) -> None:
        if not self._claim.is_held():
            raise ClaimLost(f"flow {self._settings.flow}: the claim (group {self._claim.group}) is lost")
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
            self._show_lag()

    def _start_generation(self) -> None:
        self._stop_generation()
        tasks = task_count(self._session, self._ends)
        term = begin_term(self._ends, self._claim, tasks)
        self._progress.refresh()
        self._maps.refresh()
        if complete_map(self._ends, self._maps.maps, self._progress.newest, term):
            self._maps.refresh()
        self._topics = self._remote.select()
        self._unseen = self._remote.unseen(self._topics)
        prepared = self._remote.prepare(self._topics)
        flowing = {topic: count for topic, count in self._topics.items() if topic in prepared.routes}
        self._topic_ids = self._ends.source.topic_ids(flowing)
        starts = find_starts(self._ends, self._progress, flowing, self._topic_ids)
        routes, ids = prepared.routes, self._topic_ids
        take_in_tails(self._ends, starts, routes, ids, self._maps.maps, term=term, is_unclean=self._is_unclean)
        self._is_unclean = False
        record_new(self._ends, starts, routes, ids, self._maps.maps, term=term)
        self._holds.topics = dict(prepared.held)
        self._holds.partitions.update(starts.held)
        positions = {p: start for p, start in starts.positions.items() if p not in self._holds.partitions}
        blocked = unreadable(self._ends, {p: start for p, start in positions.items() if p in self._holds.suspects})
        self._progress.refresh()
        self._maps.refresh()
        self._holds.begin(self._progress.positions)
        assignment = Assignment(
            starts=positions,
            routes=routes,
            topic_ids=ids,
            syncs_topic=self._ends.syncs_topic,
            tasks=tasks,
            term=term,
            maps={partition: found.copy() for partition, found in self._maps.maps.items()},
        )
        self._generation = Generation(self._session, self._ends, assignment, blocked)
        self._holds.partitions.update(blocked)
        self._show_lag()

    def _stop_generation(self, seconds: float = STOP_SECONDS) -> None:
        if self._generation is not None:
            if not self._generation.stop(seconds):
                log.warning("flow=%s the batch in progress was interrupted", self._settings.flow)
                self._is_unclean = True
            self._generation = None

    def _recover(self, failure: str) -> None:
        """Go on after a failure that another start position mends; anything else fails the run."""
        self._is_unclean = True  # the failure cut off the other tasks of the batch
        if SourceChanged.__name__ in failure:
            log.warning("flow=%s %s", self._settings.flow, first_cause(failure, self._settings.flow.source))
            self._start_generation()
            return
        assert self._generation is not None  # a record whose timestamp Spark cannot hold fails the query
        found = unreadable(self._ends, self._generation.assignment.starts) if "overflow" in failure else {}
        if not found.keys() - self._holds.suspects:
            raise FlowError(f"flow {self._settings.flow}: {first_cause(failure, self._settings.flow.source)}")
        for partition, hold in found.items():
            log.warning(
                "flow=%s partition=%s held at offset %s: %s", self._settings.flow, partition, hold.offset, hold.reason
            )
        self._holds.suspects.update(found)
        self._start_generation()

    def _has_changed(self) -> bool:
        return self._remote.select() != self._topics or self._is_recreated()

    def _is_recreated(self) -> bool:
        names = sorted(self._topic_ids)
        if self._ids_looked_at >= len(names):
            self._ids_looked_at = 0
        part = names[self._ids_looked_at : self._ids_looked_at + _IDS_PER_LOOK]
        self._ids_looked_at += _IDS_PER_LOOK
        now = self._ends.source.topic_ids(part)
        return any(now.get(name) != self._topic_ids[name] for name in part)

    def _count(self) -> None:
        self._progress.refresh()
        new = self._progress.take_totals()
        if new.records or new.losses:
            self._groups.moved()
            self._show(
                FlowState.RUNNING,
                self._unseen,
                records=new.records,
                bytes=new.bytes,
                zero_timestamps=new.zero_timestamps,
                latency_ms=new.latency_ms,
                losses={str(partition): _ranges(lost) for partition, lost in new.losses.items()},
            )

    def _show_lag(self) -> None:
        positions = self._progress.positions
        ends = self._ends.source.end_offsets(
            p for p in positions if p.topic in self._topics and p.partition < self._topics[p.topic]
        )
        self._show(
            FlowState.RUNNING,
            self._unseen,
            topics=len(self._topics),
            partitions=sum(self._topics.values()),
            lag_records=sum(max(0, end - positions[p].next_offset) for p, end in ends.items()),
            held=self._holds.describe(),
            consumers=self._groups.report,
        )


def _ranges(lost: Iterable[OffsetRange]) -> str:
    return ", ".join(f"{start} to {end - 1}" for start, end in lost)


_DENIED = re.compile(r"Not authorized to access (topics?|group): \[?([^\]\s]+)\]?")


def first_cause(failure: str, source: str) -> str:
    """The line of a Spark error that says most: the innermost error of ours, else the first line."""
    lines = [line.strip() for line in failure.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("srm_spark.errors.")]
    inner = [line.partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    if not ours and (denied := _DENIED.search(failure)) is not None:
        what = f"READ on {denied[1].rstrip('s')} {denied[2]}"
        return f"Spark cannot read from {source}: {denied[0]}; allow {what} to the principal of these credentials"
    if ours:
        return ours[-1].partition(": ")[2]
    first = lines[0] if lines else "the query ended without a reason"
    return f"{first} ({inner[-1]})" if inner and inner[-1] not in first else first
