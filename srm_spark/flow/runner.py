"""Keeps one flow running until it is told to stop: tries again after failures, for as often as it may.

Runs in a thread of its own, so that a flow that fails or waits holds up no other.
"""

from __future__ import annotations

import gc
import logging
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from srm_spark.config.settings import FlowSettings
from srm_spark.core.audit import Audit
from srm_spark.core.driver_status import DriverId
from srm_spark.core.news import News
from srm_spark.errors import LeaseHeld, SrmError
from srm_spark.failure import Failure, failure_of
from srm_spark.flow.meter import Meter
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.publishing import StatusPublisher
from srm_spark.flow.run import WITH_SPARK, FlowRun, Means
from srm_spark.flow.sample_publishing import SamplePublisher
from srm_spark.flow.sampling import Samples
from srm_spark.flow.share import Share, new_driver
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.flow.topics.commands import Restarts
from srm_spark.flow.topics.lists import KnownActs
from srm_spark.flow.topics.restart_watch import RestartWatch
from srm_spark.spark.opening import Spark

log = logging.getLogger(__name__)

_TOTALS = ("records", "bytes", "zero_timestamps", "whole", "merged", "lost_records")
_TROUBLE = (FlowState.STALLED, FlowState.RETRYING, FlowState.FAILED)
_LOOK_SECONDS = 0.1
_SLOW_SECONDS = 60.0
"""A look for restarts that takes longer is told."""
_GOOD_RUN_SECONDS = 60.0
"""A run that lasted so long was a success: only starts that fail in a row count against `flow.retry.count`."""


class FlowRunner:
    """One flow."""

    def __init__(
        self,
        settings: FlowSettings,
        spark: Spark,
        tasks: Periodic,
        *,
        waits: bool = True,
        before: FlowStatus | None = None,
        means: Means = WITH_SPARK,
        driver: DriverId | None = None,
        meter: Meter | None = None,
        share: Share | None = None,
    ) -> None:
        """With `waits` False, a flow that another driver owns fails at once instead of waiting for it.

        `tasks` are the driver's. `before` is what it did for the same flow by other settings: its totals go on.
        As `driver` it tells others how the flow is. `meter` has the figures of the flow so far. Where the driver has a
        `share` of the work, the flow may go to another driver, and is waited for then.
        """
        self.settings = settings
        self._spark = spark.own()
        self._waits = waits
        self._tasks, self._means, self._share = tasks, means, share
        self._stop = threading.Event()
        self._restarts = Restarts()
        self._again = self._restarts.wanted
        """Somebody wants it to start before its time: while it rests, or before it failed."""
        self._has_begun = False
        """Whether a run of it had the lease."""
        self._known_acts = KnownActs()
        self._lock = threading.Lock()
        self._status = FlowStatus(settings.flow) if before is None else begun_anew(before)
        self._held, self._states = News(), News()
        self._states.changes({settings.flow: (self._status.state, self._status.reason)})
        driver = driver or new_driver()
        self._publisher = StatusPublisher(settings, driver, lambda: self._status, means.reach)
        self.meter = meter or Meter()
        self._samples = SamplePublisher(settings, driver, lambda: self._status, self.meter, means.reach)
        self._thread = threading.Thread(target=self._run, name=f"srm {settings.flow}", daemon=True)

    @property
    def status(self) -> FlowStatus:
        """The newest snapshot."""
        return self._status

    @property
    def samples(self) -> Samples | None:
        """The newest ones; None before the first."""
        return self._samples.samples

    def start(self) -> None:
        """Begin."""
        self._publisher.start(self._tasks)
        self._samples.start(self._tasks)
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end with the batch in progress."""
        self._stop.set()

    def audited(self, audit: Audit) -> None:
        """This was found by comparing its copies with their records."""
        with self._lock:
            self._status = replace(self._status, audit=audit)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until it has ended; False on timeout."""
        if self._thread.ident is None:  # never started
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._retry()
        finally:
            self._spark.release()
            self._publisher.end()
            self._samples.end()

    def _retry(self) -> None:
        failures, has_failed = 0, False
        while not self._stop.is_set():
            started = time.monotonic()
            reason = self._attempt(has_failed)
            gc.collect()  # clients in circles of references: a flow that tries again would gather hundreds of them
            has_failed = reason is not None
            if reason is None:  # it was told to stop, or to start anew
                failures = 0
                continue
            failures = 1 if time.monotonic() - started > _GOOD_RUN_SECONDS else failures + 1
            is_over = 0 <= self.settings.retry_count < failures and not self._again.is_set()
            if self._status.state is not FlowState.FAILED and is_over:
                text = f"given up after {failures} failed starts: {reason.sentence}"
                self.show(FlowState.FAILED, text, kind=reason.kind)
            if self._status.state is FlowState.FAILED:
                is_wanted = self._rest(math.inf)
            elif self._stop.is_set():
                self.show(FlowState.STOPPED, f"not in peace: {reason.sentence}", kind=reason.kind)
                return
            else:
                self.show(FlowState.RETRYING, reason.sentence, kind=reason.kind)
                is_wanted = self._rest(self.settings.retry_delay_seconds)
            if is_wanted:
                failures = 0
                self.show(FlowState.STARTING, None)
        if self._status.state is not FlowState.FAILED:
            self.show(FlowState.STOPPED, None)

    def _rest(self, seconds: float) -> bool:
        """Wait for so long, until it is told to stop, or until somebody wants it to start; whether somebody does."""
        if self._again.is_set():  # the run was told, and failed before it came to that
            return True
        watch = RestartWatch(self.settings, self._means.reach, self._restarts, self._again.set)
        name, every = f"restarts {self.settings.flow}", self.settings.timings.lists_seconds
        task = self._tasks.every(every, name, watch.look, slow=_SLOW_SECONDS, last=watch.close)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._again.is_set():
            if self._stop.wait(min(_LOOK_SECONDS, left)):
                break
        task.stop()
        return self._again.is_set()

    def _attempt(self, after_failure: bool) -> Failure | None:
        """Run once; why it failed, or None if it was told to stop, or to start anew."""
        if self._again.is_set() and self._has_begun:
            self._waits = True  # who had it started anew gave the lease away, and did not ask for an end of the flow
        self._again.clear()
        try:
            with FlowRun(
                self.settings,
                self._spark,
                self._stop,
                self.show,
                tasks=self._tasks,
                waits=self._waits,
                after_failure=after_failure,
                means=self._means,
                restarts=self._restarts,
                known=self._known_acts,
                meter=self.meter,
                share=self._share,
            ) as run:
                try:
                    if (why := run.until_stopped()) is not None:
                        log.info("flow=%s %s", self.settings.flow, why)
                finally:
                    self._has_begun |= run.has_begun
        except LeaseHeld as error:
            self.show(FlowState.FAILED, str(error), kind=error.kind)
            return error.failure
        except SrmError as error:
            return error.failure
        except Exception as error:  # Spark raises what it likes, and a flow must not die of it in silence
            log.debug("flow=%s failed", self.settings.flow, exc_info=True)
            first_line = (str(error) or repr(error)).splitlines()[0]
            return Failure(failure_of(error).kind, f"flow {self.settings.flow}: {type(error).__name__}: {first_line}")
        return None

    def show(self, state: FlowState, reason: str | None, **changes: Any) -> None:
        """Change the status; totals are added up. A change of state is logged, and what stands still from now on."""
        with self._lock:
            old = self._status
            for total in _TOTALS:
                changes[total] = getattr(old, total) + changes.get(total, 0)
            for partition, lost in changes.pop("losses", {}).items():
                losses = changes.setdefault("losses", dict(old.losses))
                losses[partition] = f"{losses[partition]}, {lost}" if partition in losses else lost
            is_same = (state, reason) == (old.state, old.reason)
            changes.setdefault("kind", old.kind if is_same else None)
            changes = {**changes, **_unknown(old, state, changes), **_noted(old, state, reason)}
            self._status = replace(old, state=state, reason=reason, **changes)
            held = self._held.changes(self._status.held)
            has_changed = self._states.is_new(self.settings.flow, (state, reason))
        for what, why in held.items():
            log.warning("flow=%s %s %s", self.settings.flow, what, why)
        if has_changed:
            level = logging.WARNING if state in _TROUBLE else logging.INFO
            log.log(level, "flow=%s state=%s%s", self.settings.flow, state.value, f" reason={reason}" if reason else "")


def _noted(old: FlowStatus, state: FlowState, reason: str | None) -> dict[str, Any]:
    """When a state began, and what was wrong last: that stays known when it is over."""
    began = {} if state is old.state and old.since is not None else {"since": time.time()}
    is_news = state in _TROUBLE and reason is not None and (state, reason) != (old.state, old.reason)
    return {**began, "last_error": reason, "last_error_at": time.time()} if is_news else began


def begun_anew(before: FlowStatus) -> FlowStatus:
    """The status of a flow that starts by other settings: what was done stays done, what was known is not."""
    kept = {name: getattr(before, name) for name in (*_TOTALS, "losses", "last_error", "last_error_at")}
    return FlowStatus(before.flow, **kept)


def _unknown(old: FlowStatus, state: FlowState, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of numbers that are true of the moment only: nothing is left of them where nothing runs."""
    if state is FlowState.RUNNING:
        latency = changes.get("latency_ms")
        return {"latency_ms": old.latency_ms if latency is None else latency, "unknown_since": None}
    since = changes.get("unknown_since") or old.unknown_since
    if since is None and old.state is FlowState.RUNNING:
        since = time.time()
    return {"lag_records": None, "limit": None, "latency_ms": None, "unknown_since": since}
