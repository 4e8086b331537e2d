"""All flows that a service tells of, with what their metrics topics said; filled by readers, asked by requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from srm_spark.core.flow_series import FlowNow, FlowSeries, Hearing
from srm_spark.core.history import Grain, Series
from srm_spark.core.metrics import Sample, TopicMeta
from srm_spark.core.model import Flow
from srm_spark.core.series import Line, Metric, Span
from srm_spark.flow.groups.sync import SyncState

LEFT_STATES = frozenset(
    state.value for state in (SyncState.ACTIVE, SyncState.AHEAD, SyncState.UNTRANSLATED, SyncState.REFUSED)
)
"""What a sample of a group says where its offsets are not synced."""
_LIVE_MS = 30_000
"""Where everything was read so short a time ago, what is read now came just now."""


@dataclass
class TargetView:
    """What is known of one cluster that is read."""

    alias: str
    read_at: int | None = None
    """When all that it holds was read last, in milliseconds since the epoch; None: never."""
    why_not: str | None = "it was not read yet"
    """None while it answers."""
    cluster_id: str | None = None
    """Kafka's own; None where it was not told yet."""


@dataclass
class Unread:
    """Records that told nothing."""

    newer: int = 0
    """Of a version that this one does not know."""
    garbage: int = 0


@dataclass
class _Watched:
    series: FlowSeries
    version: int = 0
    behind_known_at: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Past(Protocol):
    """What is known of times before those in memory."""

    def line(self, metric: Metric, span: Span, grain: Grain, flow: Flow, series: Sequence[Series]) -> Line | None:
        """A metric of each of these series of a kind; None where there is no history."""

    def since(self, flow: Flow) -> int | None:
        """Since when there is history of a flow, in milliseconds since the epoch; None where there is none."""

    def newest(self, flow: Flow) -> int | None:
        """Moment of the newest sample of a flow that is kept; None where there is none, or it cannot be read."""


class Board:
    """Safe to use from several threads: each flow has a lock of its own."""

    def __init__(
        self,
        flows: Sequence[Flow],
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        past: Past | None = None,
    ) -> None:
        """Both clocks in seconds; `clock` since the epoch. `past` None: nothing is kept beyond memory."""
        self.past = past
        self._clock, self._monotonic = clock, monotonic
        self._watched = {flow: _Watched(FlowSeries(flow, LEFT_STATES)) for flow in flows}
        self.targets = {flow.target: TargetView(flow.target) for flow in flows}
        self.unread = Unread()

    @property
    def flows(self) -> tuple[Flow, ...]:
        """In the order of the configuration."""
        return tuple(self._watched)

    def only(self, flows: Collection[Flow]) -> Board:
        """The same board, as far as these flows go: for who may see no others."""
        seen = Board([], self._clock, self._monotonic, past=self.past)
        seen._watched = {flow: watched for flow, watched in self._watched.items() if flow in flows}
        seen.targets = {alias: view for alias, view in self.targets.items() if seen._into(alias)}
        seen.unread = self.unread
        return seen

    def now_ms(self) -> int:
        """This host's clock."""
        return int(self._clock() * 1000)

    @contextmanager
    def series(self, flow: Flow) -> Iterator[FlowSeries]:
        """A flow's series, which nobody else uses meanwhile."""
        watched = self._watched[flow]
        with watched.lock:
            yield watched.series

    def now(self, flow: Flow) -> FlowNow:
        """How a flow is."""
        with self.series(flow) as series:
            return series.now(self.now_ms(), self._monotonic())

    def version(self, flow: Flow) -> int:
        """Another number whenever its figures changed. What time alone changes is in `now`."""
        return self._watched[flow].version

    @contextmanager
    def _changing(self, flow: Flow) -> Iterator[FlowSeries]:
        with self.series(flow) as series:
            yield series
            self._watched[flow].version += 1

    def take(self, sample: Sample, stamped: int | None) -> None:
        """Take a sample in; one of a flow that is not ours tells nothing."""
        if sample.flow not in self._watched:
            return
        now, read_at = self.now_ms(), self.targets[sample.flow.target].read_at
        is_live = read_at is not None and now - read_at < _LIVE_MS
        with self._changing(sample.flow) as series:
            series.take(sample, Hearing(now, self._monotonic(), is_live, stamped))

    def take_meta(self, flow: Flow, topic: str, meta: TopicMeta | None) -> None:
        """Take in what the target says of a source topic; None: it is copied no longer."""
        if flow in self._watched:
            with self._changing(flow) as series:
                series.take_meta(topic, meta)

    def behind_known_at(self, flow: Flow, now: int | None) -> int | None:
        """When it was last known how far the history of a flow is behind; `now` where it is."""
        watched = self._watched[flow]
        if now is not None:
            watched.behind_known_at = now
        return watched.behind_known_at

    def clear(self, flow: Flow) -> None:
        """Forget a flow's figures."""
        with self._changing(flow) as series:
            series.clear()

    def read(self, target: str) -> None:
        """All that this cluster holds was read."""
        view, now = self.targets[target], self.now_ms()
        view.read_at, view.why_not = now, None
        for flow in self._into(target):
            with self.series(flow) as series:
                series.found()
                if series.prune(now):
                    self._watched[flow].version += 1

    def lost(self, target: str, why: str) -> None:
        """This cluster could not be asked."""
        view = self.targets[target]
        view.why_not = why
        for flow in self._into(target):
            with self.series(flow) as series:
                series.lost(view.read_at, why)

    def _into(self, target: str) -> list[Flow]:
        return [flow for flow in self._watched if flow.target == target]

    def why_not_ready(self) -> list[str]:
        """What is in the way of right answers, one sentence each."""
        return [f"cluster {view.alias}: {view.why_not}" for view in self.targets.values() if view.why_not is not None]
