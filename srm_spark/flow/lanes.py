"""Which lane the topics of a flow take: micro-batches, or real time where that is wanted, possible and caught up.

A micro-batch carries many times as many records as the real-time lane, which is for the newest ones only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Set

from srm_spark.config.settings import FlowSettings
from srm_spark.core.filters import NameFilter
from srm_spark.core.model import TopicPartition
from srm_spark.core.news import Every, News
from srm_spark.core.wording import count
from srm_spark.spark import SparkSession
from srm_spark.spark.realtime import SLOTS, slots, why_not

log = logging.getLogger(__name__)

_CAUGHT_UP = 50_000
"""The lane begins once no more source offsets than these are ahead: with 10,000 records per second 5 s of them."""
_LEFT_BEHIND = 500_000
"""From here on micro-batches take over."""
_BATCH_SECONDS = 60.0
"""And for at least so long."""


class Lanes:
    """The lane of one flow."""

    def __init__(self, settings: FlowSettings) -> None:
        self._settings = settings
        self._topics = NameFilter(settings.realtime_topics or (".*",))
        self._is_realtime = self._is_possible = False
        self._batches = Every(_BATCH_SECONDS)
        self._news = News()
        self.obstacle: str | None = None
        """Why the flow runs in micro-batches though real time is wanted; None also where it only catches up."""
        self.live: frozenset[TopicPartition] = frozenset()
        """What is copied in real time now."""

    def choose(
        self, session: SparkSession, partitions: Set[TopicPartition], tasks: int, lag: int
    ) -> frozenset[TopicPartition]:
        """Which of the `partitions` of the next generation are copied in real time, by at most so many lasting tasks.

        All for which that is wanted, or none. `lag` is theirs, in source offsets.
        """
        wanted = self.wanted(partitions)
        is_live = self._choose(session, min(tasks, len(wanted)), lag)
        self.live = wanted if is_live else frozenset()
        return self.live

    def wanted(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of `partitions` that should be copied in real time."""
        return frozenset(p for p in partitions if self._settings.is_realtime and self._topics.matches(p.topic))

    def _choose(self, session: SparkSession, tasks: int, lag: int) -> bool:
        self._set_obstacle(self._find_obstacle(session, tasks) if tasks > 0 else None)
        self._is_possible = tasks > 0 and self.obstacle is None
        self._is_realtime = self._is_possible and lag <= _CAUGHT_UP and self._may_try
        if not self._is_realtime:
            self.leave()
        return self._is_realtime

    def is_due(self, lag: int) -> bool:
        """Whether a new generation should take the other lane, where the `wanted` partitions are so far behind."""
        if not self._is_possible:
            return False
        if not self._is_realtime:
            return lag <= _CAUGHT_UP and self._may_try
        if lag <= _LEFT_BEHIND:
            return False
        log.info("flow=%s %s behind: micro-batches catch up", self._settings.flow, count(lag, "record"))
        self._batches.done(time.monotonic())
        return True

    def leave(self) -> None:
        """Give the task slots back."""
        self.live = frozenset()
        SLOTS.free(str(self._settings.flow))

    @property
    def _may_try(self) -> bool:
        return self._batches.is_due(time.monotonic())

    def _find_obstacle(self, session: SparkSession, tasks: int) -> str | None:
        reason = why_not(session)
        if reason is None:
            reason = SLOTS.take(str(self._settings.flow), tasks, slots(session))
        return reason and f"mode=realtime is not possible, micro-batches are used: {reason}"

    def _set_obstacle(self, obstacle: str | None) -> None:
        if self._news.is_new("obstacle", obstacle):
            log.warning("flow=%s %s", self._settings.flow, obstacle)
        self.obstacle = obstacle
