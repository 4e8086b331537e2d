"""Looks which hosts are drained while another driver has the flow: whoever waits knows nothing else of its acts."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from srm_spark.core.acts import Command
from srm_spark.core.news import Every
from srm_spark.errors import SrmError
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.lists import ActLog

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 5.0


class Drains:
    """Of one flow."""

    def __init__(self, clusters: Clusters) -> None:
        """Nothing is asked of the target yet."""
        self._flow = clusters.settings.flow
        self._due = Every(_PAUSE_SECONDS)
        self._acts = ActLog(clusters.target, clusters.settings.control_topic, f"{self._flow}|drains")

    def look(self) -> Mapping[str, Command]:
        """Host → act, in force; asked every few seconds. A target that does not answer has nothing to say."""
        now = time.monotonic()
        if self._due.is_due(now):
            self._due.done(now)
            try:
                if self._acts.is_there:
                    self._acts.refresh()
            except SrmError as error:
                log.debug("flow=%s cannot look which hosts are drained: %s", self._flow, error)
        return self._acts.commands.drained

    def close(self) -> None:
        """Stop reading."""
        self._acts.close()
