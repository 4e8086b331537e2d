"""Looks for restarts while a flow does not run: it waits for its next try, or was given up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing

from srm_spark.config.settings import FlowSettings
from srm_spark.errors import SrmError
from srm_spark.flow.clusters import Connect
from srm_spark.flow.topics.commands import FlowCommands, Restarts
from srm_spark.flow.topics.lists import ActLog

log = logging.getLogger(__name__)

_CALL_SECONDS = 5.0


class RestartWatch:
    """Of one flow, by the driver's clock; `wake` is called once somebody wants the flow to start."""

    def __init__(self, settings: FlowSettings, reach: Connect, restarts: Restarts, wake: Callable[[], None]) -> None:
        """Nothing is asked of the target yet."""
        self._settings, self._reach, self._restarts, self._wake = settings, reach, restarts, wake
        self._acts: ActLog | None = None
        self._commands: FlowCommands | None = None

    def look(self) -> None:
        """Look once; a target that does not answer has nothing to say, and the flow's own reason is told already."""
        try:
            acts, commands = self._opened()
            if acts.is_there:
                acts.refresh()
            if not self._restarts.are_new(acts.commands.restarts):
                return
            log.info("flow=%s %s", self._settings.flow, list(acts.commands.restarts.values())[-1])
        except SrmError as error:
            log.debug("flow=%s cannot look for restarts: %s", self._settings.flow, error)
            return
        try:
            self._answer(commands, acts.newest)
        finally:
            self._wake()  # it is known now, and would not be new at the next look

    def close(self) -> None:
        """Stop reading."""
        if self._acts is not None:
            with closing(self._acts):
                self._acts = None

    def _answer(self, commands: FlowCommands, newest: str | None) -> None:
        """Nothing runs here; but a driver that owns the flow may be copying what `newest` pauses: then it answers."""
        lease = self._reach(self._settings).make_lease()
        try:
            if lease.other_owner() is None:
                commands.answer(newest)
        except SrmError as error:
            log.debug("flow=%s cannot look who owns the flow, and answers nothing: %s", self._settings.flow, error)
        finally:
            lease.release()

    def _opened(self) -> tuple[ActLog, FlowCommands]:
        if self._acts is None or self._commands is None:
            settings = self._settings
            clusters = self._reach(settings)
            target = clusters.target.beside(f"{settings.flow}|restarts", _CALL_SECONDS)
            self._acts = ActLog(target, settings.control_topic, f"{settings.flow}|restarts")
            self._commands = FlowCommands(clusters)
        return self._acts, self._commands
