"""Keeps the consumer groups of a running flow translated: checkpoints, and offsets on the target where that is wanted.

Runs in a thread of its own: a thousand groups, or a cluster that does not answer, must not hold up the records.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from dataclasses import dataclass

from srm_spark.core.news import Every, News
from srm_spark.errors import FlowError, SourceUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.groups.checkpoints import Checkpoints
from srm_spark.flow.groups.choice import NO_CONSUMER_GROUP
from srm_spark.flow.groups.positions import Positions, Translator
from srm_spark.flow.groups.sync import GroupSync, Synced, SyncState
from srm_spark.flow.topics.internal_topics import checkpoints_topic, ensure_topic
from srm_spark.flow.topics.offset_map import OffsetMaps

log = logging.getLogger(__name__)

_WAIT_SECONDS = 0.5
_OTHERS_SECONDS = 60.0
"""The call that lists share and streams groups makes the brokers describe every group."""
_REST = 10.0
"""After a round that records caused, rest so many times as long as it took: groups must not cost more than records."""


@dataclass(frozen=True)
class ConsumersReport:
    """What the newest round found."""

    positions: Positions
    synced: tuple[Synced, ...] = ()
    """Empty where group offsets are not synced."""


class ConsumerGroups:
    """The thread; `moved` tells it that records were replicated."""

    def __init__(self, clusters: Clusters, maps: OffsetMaps) -> None:
        self.report: ConsumersReport | None = None
        """None until the first round is done."""
        self._clusters = clusters
        self._chosen = clusters.settings.checkpoints
        self._translator = Translator(clusters, maps)
        self._checkpoints = Checkpoints(clusters)
        self._sync = GroupSync(clusters)
        self._synced: tuple[Synced, ...] = ()
        self._groups: list[str] = []
        self._is_made = False
        self._news = News()
        chosen = self._chosen
        self._look = Every(chosen.refresh_seconds if chosen.refresh_enabled else math.inf)
        self._emit, self._sync_due = Every(chosen.emit_seconds), Every(chosen.sync_seconds)
        self._others = Every(_OTHERS_SECONDS)
        self._rest_until = 0.0
        self._moved = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"srm groups {clusters.settings.flow}", daemon=True)

    @property
    def is_wanted(self) -> bool:
        """Whether the settings ask for checkpoints or synced groups."""
        return self._chosen.emit_enabled or self._chosen.sync_enabled

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def moved(self) -> None:
        """Records were replicated: positions that waited for them can be translated."""
        self._moved.set()

    def tell_to_stop(self) -> None:
        """Let it end behind the call in progress."""
        self._stop.set()

    def join(self, seconds: float) -> bool:
        """Wait until it has ended; False when a call to a cluster did not return in time."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def round(self) -> None:
        """Look once, and do what is due."""
        now = time.monotonic()
        if self._look.is_due(now):
            self._groups = self._translator.groups()
            self._tell_once("unseen", self._translator.choice.unseen(self._groups))
            self._tell_others(now)
            self._look.done(now)
        self._moved.clear()
        positions = self._translator.positions(self._groups)
        self._tell_once("no way back", positions.no_way_back)
        self._tell_once("no syncs", positions.no_syncs)
        if self._chosen.emit_enabled:
            if not self._is_made:
                ensure_topic(self._clusters.target, checkpoints_topic(self._clusters))
                self._is_made = True
            self._checkpoints.refresh()
            positions = self._checkpoints.completed(positions)
            self._checkpoints.write(positions)
            self._emit.done(now)
        if self._chosen.sync_enabled and self._sync_due.is_due(now):
            self._tell(self._sync.sync(positions))
            self._sync_due.done(now)
        self.report = ConsumersReport(positions, self._synced)
        self._rest_until = time.monotonic() + _REST * (time.monotonic() - now)

    def close(self) -> None:
        """Let go of the connections; the thread does that by itself."""
        self._translator.close()
        self._checkpoints.close()
        self._sync.close()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if self._is_due(time.monotonic()):
                    self._try()
                self._stop.wait(_WAIT_SECONDS)
        finally:
            self.close()

    def _try(self) -> None:
        try:
            self.round()
            self._news.is_new("failure", None)
        except Exception as error:  # a thread that dies in silence would leave groups behind for ever
            if self._news.is_new("failure", str(error)):
                text = "flow=%s consumer groups are not translated: %s"
                log.warning(text, self._clusters.settings.flow, error, exc_info=not isinstance(error, FlowError))
            self._is_made = False  # somebody may have deleted the topic
            self._emit.done(time.monotonic())
            self._sync_due.done(time.monotonic())

    def _is_due(self, now: float) -> bool:
        chosen = self._chosen
        if chosen.emit_enabled and (self._emit.is_due(now) or (self._moved.is_set() and now >= self._rest_until)):
            return True
        return chosen.sync_enabled and self._sync_due.is_due(now)

    def _tell_once(self, subject: str, said: str | None) -> None:
        if self._news.is_new(subject, said):
            log.info("flow=%s %s", self._clusters.settings.flow, said)

    def _tell_others(self, now: float) -> None:
        """Name the groups of other kinds, once: who looks for them here must learn that they are not moved."""
        if not self._others.is_due(now):
            return
        self._others.done(now)
        try:
            others = self._translator.choice.others()
        except SourceUnavailable as error:  # nothing that the groups which are synced depend on
            self._tell_once("others", f"share and streams groups are not known: {error}")
            return
        for name in others:
            self._tell_once(f"group {name}", f"group={name} is not synced: {NO_CONSUMER_GROUP}")

    def _tell(self, synced: tuple[Synced, ...]) -> None:
        """Log what changed since the last round, a line per group and verdict."""
        known = {(one.position.group, one.position.remote): one.state for one in self._synced}
        changed = Counter(
            (one.position.group, one.state.value, one.detail)
            for one in synced
            if known.get((one.position.group, one.position.remote)) is not one.state
        )
        for (group, state, detail), count in sorted(changed.items()):
            text = "flow=%s group=%s partitions=%s %s%s"
            level = logging.WARNING if state == SyncState.REFUSED.value else logging.INFO
            log.log(level, text, self._clusters.settings.flow, group, count, state, f" ({detail})" if detail else "")
        self._synced = synced
