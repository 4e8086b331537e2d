"""One driver process: a Spark session, a runner per flow, one clock for all that is periodic, a clean stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType

from srm_spark.config.reload import Changes, compare
from srm_spark.config.settings import ExportSettings, FlowSettings, Settings
from srm_spark.core.model import Flow
from srm_spark.errors import SessionEnded, SetupError
from srm_spark.export.figures import FlowFigures
from srm_spark.export.server import MetricsServer
from srm_spark.flow.meter import Meter
from srm_spark.flow.periodic import Periodic, Task
from srm_spark.flow.runner import FlowRunner
from srm_spark.flow.share import Share, new_driver
from srm_spark.flow.status import FlowState, Statuses
from srm_spark.flow.topics.heartbeat import BeatGroup, Heartbeats, beat_groups, telling
from srm_spark.kafka.batches.ways import is_used
from srm_spark.look.auditing import Auditor
from srm_spark.spark import SparkSession
from srm_spark.spark.opening import Spark, start_spark
from srm_spark.spark.realtime import WIDE_SESSION
from srm_spark.spark.session import (
    LIGHT_SESSION,
    check_connector,
    check_session,
    end,
    is_alive,
    listen_for_batches,
    open_session,
)

log = logging.getLogger(__name__)

JOIN_SECONDS = 150.0
"""How long a clean stop waits for batches, and for what flows do beside them."""
_DEAD_JOIN_SECONDS = 15.0
"""Where Spark has died there is no batch to wait for, and a call to it may never return; the leases must get free."""
_LAST_SECONDS = 1.0
"""How long it waits for what is still at it then; all of it is a daemon, and nobody depends on it."""
_SLOW_BEAT_SECONDS = 60.0
"""A beat that is late is told by itself (`no heartbeat`)."""
_ENDED = (FlowState.STOPPED, FlowState.FAILED)


def _session_for(settings: Settings) -> dict[str, str]:
    """What an embedded session has beside its own settings, for these flows."""
    light = LIGHT_SESSION if all(is_used(flow.batch.in_loop) for flow in settings.flows) else {}
    wide = WIDE_SESSION if any(flow.is_realtime for flow in settings.flows) else {}
    return {**light, **wide}


class Driver:
    """Runs all enabled flows of a configuration. Use as a context manager, or `start` and `stop`."""

    def __init__(
        self,
        settings: Settings,
        *,
        session: SparkSession | None = None,
        jars: Iterable[Path] | None = None,
        spark_settings: Mapping[str, str] | None = None,
        waits: bool = True,
        spark_later: bool = False,
    ) -> None:
        """`session` is used and left alone; without one, the existing session or an embedded one is taken.

        `jars` (None: those of our list, downloaded when missing) and `spark_settings` are for the embedded one. With
        `spark_later` nothing waits until that is there: flows copy without it, and `wait` raises where it does not
        start. Raises SetupError where a session cannot be used.
        """
        self.settings = settings
        self._owns_session = False

        def opened() -> SparkSession:
            mine, self._owns_session = open_session(jars, {**_session_for(settings), **(spark_settings or {})})
            if not self._owns_session:
                check_connector(mine)
            return mine

        if session is not None:
            check_session(session)
            check_connector(session)
        if session is None and spark_later:
            self._spark = start_spark(opened)
        else:
            session = session or opened()
            listen_for_batches(session)
            self._spark = Spark.given(session)
        self._waits = waits
        self._tasks = Periodic()
        self._id = new_driver()
        # One that must not wait for a flow cannot give any away.
        self._share = Share(self._id) if waits else None
        self._runners = [self._runner(flow) for flow in settings.flows]
        self._auditors: dict[Flow, Auditor] = {}
        self._beats: dict[str, tuple[BeatGroup, Task]] = {}
        self._metrics: MetricsServer | None = None
        self._stopping = threading.Event()

    def __enter__(self) -> Driver:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start every flow and the heartbeats. Raises SetupError where metrics cannot be shown at their address."""
        try:
            self._show_metrics(self.settings.export)
        except SetupError:
            self.stop()  # Spark has begun to start
            raise
        self._schedule_heartbeats()
        self._tasks.start()
        for runner in self._runners:
            self._start(runner)

    def reload(self, settings: Settings) -> Changes:
        """Run by other settings: flows that changed start again, the others are not touched."""
        changes = compare(self.settings, settings)
        if changes.settings.export != self.settings.export:
            self._show_others(changes.settings.export)
        leaving = {*changes.stopped, *(restart.settings.flow for restart in changes.restarted)}
        known = {runner.settings.flow: runner for runner in self._runners}
        late = self._end([runner for runner in self._runners if runner.settings.flow in leaving])
        changes = changes.put_off(late, self.settings)
        self.settings = changes.settings
        self._runners = [runner for runner in self._runners if runner.settings.flow not in leaving - late]
        new = [*changes.started, *(restart.settings for restart in changes.restarted)]
        for started in [self._runner(settings, known.get(settings.flow)) for settings in new]:
            self._runners.append(started)
            self._start(started)
        self._schedule_heartbeats()
        return changes

    def status(self) -> Statuses:
        """A snapshot of every flow."""
        return Statuses(runner.status for runner in self._runners)

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until `request_stop`, until no flow is left, or for `seconds`; False when the time was up.

        Raises SessionEnded when Spark is gone, and SetupError where it does not start: a flow that goes on trying would
        keep others from taking over.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self._stopping.wait(0.2):
            if all(runner.status.state in _ENDED for runner in self._runners) and not self._beats:
                return True
            if self._runners and all(runner.status.state is FlowState.FAILED for runner in self._runners):
                return True
            if self._spark.is_up and not is_alive(self._spark.session()):
                raise SessionEnded("Spark ended under the driver; start it again, it goes on where the flows stand")
            if deadline is not None and time.monotonic() > deadline:
                return False
        return True

    def request_stop(self) -> None:
        """End `wait`; safe in a signal handler."""
        self._stopping.set()

    def stop(self) -> bool:
        """Let every flow end its batch and record its progress; False when one did not end in time."""
        self._stopping.set()
        for _, beats in self._beats.values():
            beats.stop()
        late = self._end(self._runners)
        self._tasks.stop(_LAST_SECONDS)
        self._show_metrics(None)
        with suppress(SetupError):  # `wait` has told it
            session = self._spark.session()
            if self._owns_session and is_alive(session):
                end(session)
        return not late

    def _has_spark(self) -> bool:
        """Whether there are batches to wait for, now or soon."""
        try:
            return not self._spark.is_up or is_alive(self._spark.session())
        except SetupError:
            return False

    def _runner(self, settings: FlowSettings, before: FlowRunner | None = None) -> FlowRunner:
        export = self.settings.export
        return FlowRunner(
            settings,
            self._spark,
            self._tasks,
            waits=self._waits,
            before=None if before is None else before.status,
            driver=self._id,
            meter=Meter(keeps_partitions=export is not None and export.has_partitions)
            if before is None
            else before.meter,
            share=self._share,
        )

    def _start(self, runner: FlowRunner) -> None:
        runner.start()
        auditor = Auditor(runner.settings, lambda: runner.status, runner.audited)
        auditor.start(self._tasks)
        self._auditors[runner.settings.flow] = auditor

    def _show_metrics(self, export: ExportSettings | None) -> None:
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None
        if export is not None:
            self._metrics = MetricsServer(export, partial(self._figures, export))

    def _show_others(self, export: ExportSettings | None) -> None:
        """While flows run; an address that cannot be had stops none of them."""
        for runner in self._runners:
            runner.meter.keeps_partitions = export is not None and export.has_partitions
        try:
            self._show_metrics(export)
        except SetupError as error:
            log.error("metrics are not shown: %s", error)

    def _figures(self, export: ExportSettings) -> list[FlowFigures]:
        now = int(time.time() * 1000)
        return [
            FlowFigures(
                runner.settings,
                runner.status,
                runner.meter.view(),
                None if runner.samples is None else runner.samples.period,
                now,
                export.has_partitions,
            )
            for runner in self._runners
        ]

    def _end(self, runners: Sequence[FlowRunner]) -> set[Flow]:
        """Stop these flows with their batches; those that did not end in time."""
        for runner in runners:
            if (auditor := self._auditors.pop(runner.settings.flow, None)) is not None:
                auditor.stop()
            runner.stop()
        seconds = JOIN_SECONDS if self._has_spark() else _DEAD_JOIN_SECONDS
        deadline = time.monotonic() + seconds
        late = {r.settings.flow for r in runners if not r.join(max(0.0, deadline - time.monotonic()))}
        for flow in late:
            log.error("flow=%s did not end within %g s", flow, seconds)
        return late

    def _schedule_heartbeats(self) -> None:
        """One task per target; those whose pairs are as before go on undisturbed."""
        wanted = beat_groups(self.settings.heartbeats, self.settings.clusters)
        for key in [key for key, (group, _) in self._beats.items() if wanted.get(key) != group]:
            self._beats.pop(key)[1].stop()
        for key, group in wanted.items():
            if key not in self._beats:
                beat, seconds = telling(group, Heartbeats(group).beat), group.interval_seconds
                task = self._tasks.every(seconds, f"heartbeats {key}", beat, slow=_SLOW_BEAT_SECONDS)
                self._beats[key] = group, task
