"""What is done to a flow by `srm-control` besides its lists, as the flow sees it: pauses, restarts, other offsets.

The acts come with those of the lists (`flow/topics/lists.py`), read by the driver's clock; the flow looks here in its
own thread, and answers in the progress topic once they count.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from srm_spark.core.acts import Command, CommandState, Scope
from srm_spark.core.answers import Answer, taken_record
from srm_spark.core.cluster import ControlRecord, Writer
from srm_spark.core.driver_status import place_of
from srm_spark.core.news import Every, News
from srm_spark.errors import FlowError, ProgressFailed
from srm_spark.flow.clusters import Clusters

log = logging.getLogger(__name__)

_ANSWER_SECONDS = 5.0
"""The flow waits for it."""
AGAIN_SECONDS = 30.0
"""Between two tries to write the same answer: where it may not be written, the flow waits for that no more often."""


def driver_name() -> str:
    """This process, for people."""
    return place_of(socket.gethostname(), os.getpid())


class Restarts:
    """Which restarts of a flow its driver knows of: only a new one does anything, however often the flow starts."""

    def __init__(self) -> None:
        self._known: set[str] | None = None
        self.wanted = threading.Event()
        """Somebody wants the flow to start anew, and no start has begun since."""

    def are_new(self, ids: Iterable[str]) -> bool:
        """Take in all that there are; whether one came since the last call."""
        found, known = set(ids), self._known
        self._known = found if known is None else known | found
        return known is not None and not found <= known


class FlowCommands:
    """Of one run of a flow."""

    def __init__(self, clusters: Clusters, restarts: Restarts | None = None) -> None:
        """`restarts` are those that the driver knows of before it."""
        self._flow = clusters.settings.flow
        self._topic, self._clusters = clusters.settings.progress_topic, clusters
        self._require_lease = clusters.require_lease
        self._restarts = restarts or Restarts()
        self._writer: Writer | None = None
        self._answered: str | None = None
        self._tried: str | None = None
        self._again, self._news = Every(AGAIN_SECONDS), News()
        self._changed, self._restart = threading.Event(), threading.Event()
        self.in_force: tuple[Mapping[Scope, Command], Mapping[str, Command]] = ({}, {})
        """Pauses; and by their ids acts on offsets, those that are over, too. Of one look, in another object each time:
        an act ends with the pause that it was made in, so it says nothing beside the pauses of another look."""
        self.drained: Mapping[str, Command] = {}
        """By host, in force."""
        self.newest: str | None = None
        """Id of the newest act of any kind that was read."""

    @property
    def pauses(self) -> Mapping[Scope, Command]:
        """In force."""
        return self.in_force[0]

    def begin(self, state: CommandState, newest: str | None) -> None:
        """The flow starts: these count."""
        self._restarts.are_new(state.restarts)
        self._publish(state)
        self.newest = newest

    def take(self, state: CommandState, newest: str | None) -> None:
        """Acts that came while it runs; called by the driver's clock."""
        pauses, shifts = self.in_force
        is_other = dict(pauses) != state.pauses or shifts.keys() != state.shifts.keys()
        self._publish(state)
        if is_other:
            self._changed.set()
        if self._restarts.are_new(state.restarts):
            self._restart.set()
            self._restarts.wanted.set()
        self.newest = newest  # last: who answers it must have seen what it asks for

    def have_changed(self) -> bool:
        """Whether the flow has to assign its partitions anew for them."""
        return self._changed.is_set()

    def seen(self) -> None:
        """It assigns them now."""
        self._changed.clear()

    def wants_restart(self) -> bool:
        """Whether somebody wants the run to start anew."""
        return self._restart.is_set()

    def answer(self, act: str | None) -> None:
        """Say that this act counts here, and everything before; nothing where that was said, or was just tried."""
        if act is None or act == self._answered:
            return
        if act == self._tried and not self._again.is_due(time.monotonic()):
            return
        self._tried = act
        try:
            self._write(taken_record(self._flow, Answer(act, driver_name(), _now())))
        except FlowError as error:  # it says nothing that the flow needs
            self._again.done(time.monotonic())
            if self._news.is_new("answer", str(error)):
                log.warning("flow=%s cannot say that it took an act of srm-control: %s", self._flow, error)
            return
        self._answered = act
        self._news.is_new("answer", None)

    def _publish(self, state: CommandState) -> None:
        self.in_force = MappingProxyType(dict(state.pauses)), MappingProxyType(dict(state.shifts))
        self.drained = MappingProxyType(dict(state.drained))

    def _write(self, record: tuple[bytes, bytes]) -> None:
        self._require_lease()  # else it would tell for the driver that has the flow now
        if self._writer is None:
            self._writer = self._clusters.own_writer("answers", ProgressFailed, seconds=_ANSWER_SECONDS)
        self._writer.write([ControlRecord(self._topic, *record)])


def _now() -> int:
    return int(time.time() * 1000)
