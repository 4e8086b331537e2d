"""Finds out why nothing moves in a flow: asks both clusters whether they answer, and the target whether copies arrive.

Each in a task of its own, since a cluster that is away holds up whoever asks it. The first look comes at once: an
address where nobody listens is told within seconds, however long the calls of the flow would wait for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from srm_spark.core.cluster import Cluster
from srm_spark.core.model import TopicPartition
from srm_spark.core.news import News
from srm_spark.core.vitals import SILENT_SECONDS, Silence, Vitals
from srm_spark.core.wording import count
from srm_spark.errors import FlowError
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.periodic import Periodic, Task

_ANSWER_SECONDS = 2.0
_SLOW_SECONDS = 15.0
_NONE = ""
"""The reason where nothing stalls."""
_COPIES = "copies"
"""The one who lives as long as records land, or there is nothing to copy."""


@dataclass(frozen=True)
class Stall:
    """Why nothing moves."""

    reason: str
    since: float
    """Seconds since the epoch."""


class Pulse:
    """The pulse of one run of a flow; `tell` takes the stall that begins or changes, and None when it is over."""

    def __init__(
        self, clusters: Clusters, tell: Callable[[Stall | None], None], patience: float = SILENT_SECONDS
    ) -> None:
        self._flow = clusters.settings.flow
        self._source, self._target = (
            cluster.beside(f"{self._flow}|pulse", _ANSWER_SECONDS) for cluster in (clusters.source, clusters.target)
        )
        self._tell = tell
        self._vitals = Vitals(patience)
        self._over = threading.Event()
        self._expected: frozenset[TopicPartition] = frozenset()
        self._ends: dict[TopicPartition, int] = {}
        self._news = News()
        self._news.is_new("stall", _NONE)
        self._tasks: list[Task] = []
        self._lock = threading.Lock()
        self.stall: Stall | None = None
        """That lasts."""

    def begin(self, tasks: Periodic) -> None:
        """Look from now on, as three of `tasks`."""
        for cluster in (self._source, self._target):
            self._vitals.sign(cluster.alias, time.monotonic())
        look, judge = self._vitals.patience / 4, self._vitals.patience / 8
        for job, seconds in ((self._ask_source, look), (self._ask_target, look), (self._judge, judge)):
            name = f"pulse {self._flow} {job.__name__.strip('_')}"
            # A cluster that does not answer makes a look long, and then a stall says so.
            self._tasks.append(tasks.every(seconds, name, job, slow=_SLOW_SECONDS))

    def end(self) -> None:
        """Say nothing more; a look that hangs ends by itself."""
        with self._lock:
            self._over.set()
        for task in self._tasks:
            task.stop()

    def rest(self, seconds: float) -> None:
        """No copies are expected for a while, then those that were asked for."""
        self._vitals.sign(_COPIES, time.monotonic(), seconds)

    def expect(self, remotes: Iterable[TopicPartition]) -> None:
        """Copies are to land in some of these remote partitions, as one has just seen."""
        expected, now = frozenset(remotes), time.monotonic()
        if not expected:
            self._vitals.forget(_COPIES)
        else:
            self._vitals.expect(_COPIES, now)
        self._expected = expected

    def landed(self) -> None:
        """Copies were recorded just now."""
        if self._expected:
            self._vitals.sign(_COPIES, time.monotonic())

    @property
    def is_quiet(self) -> bool:
        """Whether copies were to land and did not for a while: is there anything left to copy?"""
        return self._vitals.age(_COPIES, time.monotonic()) > self._vitals.patience / 2

    def _ask(self, cluster: Cluster) -> None:
        try:
            cluster.ping()
            self._vitals.sign(cluster.alias, time.monotonic())
        except FlowError as error:
            self._vitals.failed(cluster.alias, str(error))

    def _ask_source(self) -> None:
        self._ask(self._source)

    def _ask_target(self) -> None:
        self._ask(self._target)
        if not self.is_quiet:
            return
        expected = self._expected
        try:
            ends = self._target.end_offsets(expected, waits=False)
        except FlowError as error:
            self._vitals.failed(_COPIES, str(error))
            return
        if any(end > self._ends.get(partition, end) for partition, end in ends.items()):
            self.landed()
        self._ends = ends
        missing = sorted(expected - ends.keys())
        if missing:
            self._vitals.failed(_COPIES, f"{missing[0]} has no leader, of {count(len(missing), 'partition')}")

    def _judge(self) -> None:
        silence = self._vitals.silence(time.monotonic())
        stall = None if silence is None else self._stall_of(silence)
        with self._lock:
            self.stall = stall
            if self._news.is_new("stall", _NONE if stall is None else stall.reason) and not self._over.is_set():
                self._tell(stall)

    def _stall_of(self, silence: Silence) -> Stall:
        since = time.time() - (time.monotonic() - silence.since)
        if silence.who != _COPIES:
            return Stall(silence.why or f"cluster {silence.who} does not answer", since)
        why = "its brokers answer" if silence.why is None else silence.why
        return Stall(f"nothing lands on {self._target.alias} ({self._target.bootstrap_servers}): {why}", since)
