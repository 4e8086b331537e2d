"""Keeps the consumer groups of a running flow translated: checkpoints, and offsets on the target where that is wanted.

A periodic task of its own: a thousand groups, or a cluster that does not answer, must not hold up the records.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from srm_spark.core.model import Checkpoint
from srm_spark.core.news import Every, News
from srm_spark.core.rounds import Rounds
from srm_spark.errors import FlowError
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.groups.checkpoints import Checkpoints
from srm_spark.flow.groups.listed import GroupList
from srm_spark.flow.groups.positions import Positions, Translator
from srm_spark.flow.groups.sync import GroupSync, Synced, SyncState
from srm_spark.flow.periodic import Periodic, Task
from srm_spark.flow.topics.internal_topics import checkpoints_topic, ensure_topic
from srm_spark.flow.topics.offset_map import OffsetMaps

log = logging.getLogger(__name__)

_WAIT_SECONDS = 0.5
_SLOW_SECONDS = 60.0
"""A round that takes longer is told."""


@dataclass(frozen=True)
class ConsumersReport:
    """What the newest round found."""

    positions: Positions
    synced: tuple[Synced, ...] = ()
    """Empty where group offsets are not synced."""

    @property
    def groups(self) -> set[str]:
        """All that were looked at, those that are refused included."""
        return {position.group for position in self.positions.known} | self.positions.refusals.keys()


class ConsumerGroups:
    """The task; `moved` tells it that records were replicated."""

    def __init__(
        self,
        clusters: Clusters,
        maps: OffsetMaps,
        told: Callable[[Sequence[Checkpoint], float], None] = lambda *_: None,
    ) -> None:
        """`told` takes checkpoints that were written, and how many ms before the source was asked for the groups."""
        self._told = told
        self.report: ConsumersReport | None = None
        """None until the first round is done."""
        self._clusters = clusters
        self._chosen = clusters.settings.checkpoints
        self._translator = Translator(clusters, maps)
        self._checkpoints = Checkpoints(clusters)
        self._sync = GroupSync(clusters)
        self._synced: tuple[Synced, ...] = ()
        self._is_made = False
        self._news, self._states, self._refusals = News(), News(), News()
        chosen = self._chosen
        self._groups = GroupList(clusters.settings.flow, chosen, self._translator.choice)
        self._rounds = Rounds(
            Every(chosen.emit_seconds) if chosen.emit_enabled else None,
            Every(chosen.sync_seconds) if chosen.sync_enabled else None,
        )
        self._task: Task | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether the settings ask for checkpoints or synced groups."""
        return self._chosen.emit_enabled or self._chosen.sync_enabled

    def start(self, tasks: Periodic) -> None:
        """Begin as one of `tasks`, where anything of it is wanted."""
        if self.is_wanted:
            name = f"groups {self._clusters.settings.flow}"
            self._task = tasks.every(_WAIT_SECONDS, name, self._look, slow=_SLOW_SECONDS, last=self.close)

    def moved(self) -> None:
        """Records were replicated: positions that waited for them can be translated."""
        self._rounds.moved()

    def tell_to_stop(self) -> None:
        """Let it end behind the call in progress."""
        if self._task is not None:
            self._task.stop()

    def join(self, seconds: float) -> bool:
        """Wait until it has ended; False when a call to a cluster did not return in time."""
        return self._task is None or self._task.join(seconds)

    def round(self) -> None:
        """Look once, and do what is due."""
        now = time.monotonic()
        groups = self._groups.refresh(now)
        self._rounds.begin()
        asked = time.monotonic()
        positions = self._translator.positions(groups)
        for group, why in self._refusals.changes(positions.refusals).items():
            log.warning("flow=%s group=%s is not translated: %s", self._clusters.settings.flow, group, why)
        self._tell_once("no way back", positions.no_way_back)
        self._tell_once("no syncs", positions.no_syncs)
        if self._chosen.emit_enabled:
            if not self._is_made:
                ensure_topic(self._clusters.target, checkpoints_topic(self._clusters))
                self._is_made = True
            self._checkpoints.refresh()
            if self._chosen.sync_enabled:
                self._sync.learn(self._checkpoints.last)  # before they say something else
            positions = self._checkpoints.completed(positions)
            written = self._checkpoints.write(positions)
            self._told(written, 1000 * (time.monotonic() - asked))
        has_synced = self._rounds.is_sync_due(now)
        if has_synced:
            self._synced = self._sync.sync(positions)
            self._tell(self._synced)
        self.report = ConsumersReport(positions, self._synced)
        self._rounds.done(now, time.monotonic(), has_synced=has_synced)

    def close(self) -> None:
        """Let go of the connections; the task does that by itself."""
        self._translator.close()
        self._checkpoints.close()
        self._sync.close()

    def _look(self) -> None:
        if not self._rounds.is_due(time.monotonic()):
            return
        try:
            self.round()
            self._news.is_new("failure", None)
        except Exception as error:  # a thread that dies in silence would leave groups behind for ever
            if self._news.is_new("failure", str(error)):
                text = "flow=%s consumer groups are not translated: %s"
                log.warning(text, self._clusters.settings.flow, error, exc_info=not isinstance(error, FlowError))
            self.report = None  # what was found before is no answer of now
            self._is_made = False  # somebody may have deleted the topic
            self._rounds.failed(time.monotonic())

    def _tell_once(self, subject: str, said: str | None) -> None:
        if self._news.is_new(subject, said):
            log.info("flow=%s %s", self._clusters.settings.flow, said)

    def _tell(self, synced: tuple[Synced, ...]) -> None:
        """Log what changed since the last round, a line per group and verdict."""
        changed = self._states.changes({(one.position.group, one.position.remote): one.state for one in synced})
        lines = Counter(
            (one.position.group, one.state.value, one.detail)
            for one in synced
            if (one.position.group, one.position.remote) in changed
        )
        for (group, state, detail), count in sorted(lines.items()):
            text = "flow=%s group=%s partitions=%s %s%s"
            level = logging.WARNING if state == SyncState.REFUSED.value else logging.INFO
            log.log(level, text, self._clusters.settings.flow, group, count, state, f" ({detail})" if detail else "")
