"""Says in the status topic how a flow of this driver is: every few seconds, whatever the flow itself waits for.

Beside the flow and never in its way: by a client of its own, outside of any transaction, and what fails is told once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster, ControlRecord, Writer
from srm_spark.core.driver_status import DriverId, DriverStatus, GroupsSummary, driver_key, encode_status
from srm_spark.core.news import Every, News
from srm_spark.errors import SrmError, TargetUnavailable
from srm_spark.flow.clusters import Connect
from srm_spark.flow.groups.consumer_groups import ConsumersReport
from srm_spark.flow.groups.sync import SyncState
from srm_spark.flow.periodic import Periodic, Task
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.flow.topics.internal_topics import ensure_topic, status_topic
from srm_spark.flow.topics.status_topic import StatusTopic

log = logging.getLogger(__name__)

_CALL_SECONDS = 5.0
"""A word that comes later is worth nothing: the next one comes soon."""
_SLOW_SECONDS = 60.0
"""One that takes longer is told."""
_CLEAN_SECONDS = 3600.0
"""How often the owner removes the words of drivers that are gone, and how long these stay."""
_IN_SYNC = (SyncState.SYNCED, SyncState.IN_STEP)


class StatusPublisher:
    """Of one flow of one driver."""

    def __init__(
        self, settings: FlowSettings, driver: DriverId, status: Callable[[], FlowStatus], reach: Connect
    ) -> None:
        """Nothing is asked of any cluster yet."""
        self._settings, self._driver, self._status, self._reach = settings, driver, status, reach
        self._target: Cluster | None = None
        self._writer: Writer | None = None
        self._is_made = self._is_refused = False
        self._rate = Rate()
        self._news = News()
        self._clean_due = Every(_CLEAN_SECONDS)
        self._lock = threading.Lock()
        self._is_over = False
        self._task: Task | None = None

    def start(self, tasks: Periodic) -> None:
        """Begin as one of `tasks`."""
        seconds = self._settings.timings.status_seconds
        self._task = tasks.every(seconds, f"status {self._settings.flow}", self.write, slow=_SLOW_SECONDS)

    def write(self) -> None:
        """Say how the flow is now; what goes wrong is told once and raised never."""
        with self._lock:
            if self._is_over:
                return
            if self._try("write", "is not written", self._write) and self._status().state is FlowState.RUNNING:
                self._try("clean", "keeps what drivers said that are gone", self._clean)

    def end(self) -> None:
        """Say that this was the last word; nothing where the one before could not be written either."""
        if self._task is not None:
            self._task.stop()
        with self._lock:
            if not self._is_over and not self._is_refused:
                self._try("write", "is not written", lambda: self._write(is_last=True))
            self._is_over = True

    def _try(self, subject: str, what: str, work: Callable[[], None]) -> bool:
        try:
            work()
            self._news.is_new(subject, None)
            self._is_refused = False
            return True
        except Exception as error:  # whatever it is, the flow has nothing to do with it
            self._is_made, self._is_refused = False, subject == "write"  # somebody may have deleted it
            if self._news.is_new(subject, "failed"):  # once, however the words change
                text = "flow=%s status topic %s %s, the flow runs on: %s"
                is_strange = not isinstance(error, SrmError)
                log.warning(text, self._settings.flow, self._settings.status_topic, what, error, exc_info=is_strange)
            return False

    def _write(self, *, is_last: bool = False) -> None:
        if self._target is None:
            self._target = self._reach(self._settings).target.beside(f"{self._settings.flow}|status", _CALL_SECONDS)
        if not self._is_made:
            ensure_topic(self._target, status_topic(self._settings))
            self._is_made = True
        if self._writer is None:
            role = f"{self._settings.flow}|status"
            self._writer = self._target.writer(role, TargetUnavailable, seconds=_CALL_SECONDS)
        status = said(self._status(), self._driver, self._settings, self._rate, is_last=is_last)
        value = encode_status(status, self._settings.flow)
        self._writer.write([self._record(driver_key(self._driver), value, status.at)])

    def _clean(self) -> None:
        now = time.monotonic()
        if not self._clean_due.is_due(now):
            return
        self._clean_due.done(now)
        assert self._target is not None
        assert self._writer is not None
        with closing(StatusTopic(self._settings, self._target, "status-cleaner")) as topic:
            topic.refresh()
            wall = int(time.time() * 1000)
            old = {key for key, word in topic.words.items() if wall - word.status.at > 1000 * _CLEAN_SECONDS}
        if gone := sorted(old - {driver_key(self._driver)}):
            self._writer.write([self._record(key, None, wall) for key in gone])

    def _record(self, key: bytes, value: bytes | None, at: int) -> ControlRecord:
        return ControlRecord(self._settings.status_topic, key, value, partition=0, timestamp=at)


class Rate:
    """Records and bytes per second between two looks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before: tuple[float, int, int] | None = None

    def of(self, status: FlowStatus) -> tuple[float | None, float | None]:
        """Since the last call; None where the flow does not run now, or did not then."""
        now = (self._clock(), status.records, status.bytes)
        before, self._before = self._before, now if status.state is FlowState.RUNNING else None
        if before is None or self._before is None or now[0] <= before[0]:
            return None, None
        seconds = now[0] - before[0]
        records, size = (round(max(0, now[n] - before[n]) / seconds, 1) for n in (1, 2))
        return records, size


def said(
    status: FlowStatus, driver: DriverId, settings: FlowSettings, rate: Rate, *, is_last: bool = False
) -> DriverStatus:
    """What a snapshot comes to in the status topic."""
    records_per_second, bytes_per_second = rate.of(status)
    consumers = status.consumers if status.state is FlowState.RUNNING else None  # else it is that of before
    return DriverStatus(
        driver=driver,
        at=int(time.time() * 1000),
        every=settings.timings.status_seconds,
        state=status.state,
        since=_milliseconds(status.since),
        is_last=is_last,
        reason=status.reason,
        topics=status.topics,
        partitions=status.partitions,
        realtime=status.realtime,
        records=status.records,
        bytes=status.bytes,
        records_per_second=records_per_second,
        bytes_per_second=bytes_per_second,
        latency_ms=status.latency_ms,
        lag_records=status.lag_records,
        unknown_since=_milliseconds(status.unknown_since),
        limit=status.limit,
        standing=status.standing,
        parked=len(status.parked),
        lost_records=status.lost_records,
        groups=None if consumers is None else summary_of(consumers, settings.checkpoints.sync_enabled),
        audit=status.audit if status.state is FlowState.RUNNING else None,
        last_error=status.last_error,
        last_error_at=_milliseconds(status.last_error_at),
    )


def summary_of(report: ConsumersReport, is_synced: bool) -> GroupsSummary:
    """How many groups are where they should be; a group is as well off as its worst partition."""
    known = {position.group for position in report.positions.known}
    left: dict[str, str] = dict(report.positions.refusals)
    for position in report.positions.known:
        if position.translation.downstream is None:
            left.setdefault(position.group, f"{position.partition}: {position.translation}")
    for one in report.synced if is_synced else ():
        if one.state not in _IN_SYNC:
            detail = f" ({one.detail})" if one.detail else ""
            left.setdefault(one.position.group, f"{one.position.partition}: {one.state.value}{detail}")
    taken = known | left.keys()
    return GroupsSummary(len(taken), len(taken - left.keys()) if is_synced else None, _sorted(left))


def _sorted(left: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(left.items()))


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)
