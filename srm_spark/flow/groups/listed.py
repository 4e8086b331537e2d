"""Which groups a flow takes, looked up now and then, and what its log says about those that it does not."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

from srm_spark.config.settings import CheckpointSettings
from srm_spark.core.lists import Lists
from srm_spark.core.model import Flow
from srm_spark.core.news import Every, News
from srm_spark.errors import SourceUnavailable
from srm_spark.flow.groups.choice import NO_CONSUMER_GROUP, GroupChoice

log = logging.getLogger(__name__)

_OTHERS_SECONDS = 60.0
"""The call that lists share and streams groups makes the brokers describe every group."""


class GroupList:
    """The list; `names` is the newest."""

    def __init__(self, flow: Flow, chosen: CheckpointSettings, choice: GroupChoice) -> None:
        """`choice` asks the source."""
        self.names: Sequence[str] = ()
        self._flow = flow
        self._choice = choice
        self._look = Every(chosen.refresh_seconds if chosen.refresh_enabled else math.inf)
        self._others = Every(_OTHERS_SECONDS)
        self._news = News()
        self._lists: Lists | None = None
        """With which it was looked."""

    def refresh(self, now: float) -> Sequence[str]:
        """Look again where that is due."""
        if (lists := self._choice.lists) is not self._lists or self._look.is_due(now):
            self.names = self._choice.taken()
            self._lists = lists
            self._tell("unseen", self._choice.unseen(self.names))
            self._tell_others(now)
            self._look.done(now)
        return self.names

    def _tell(self, subject: str, said: str | None) -> None:
        if self._news.is_new(subject, said):
            log.info("flow=%s %s", self._flow, said)

    def _tell_others(self, now: float) -> None:
        """Name the groups of other kinds, once: who looks for them here must learn that they are not moved."""
        if not self._others.is_due(now):
            return
        self._others.done(now)
        try:
            others = self._choice.others()
        except SourceUnavailable as error:  # nothing that the groups which are synced depend on
            self._tell("others", f"share and streams groups are not known: {error}")
            return
        for name in others:
            self._tell(f"group {name}", f"group={name} is not synced: {NO_CONSUMER_GROUP}")
