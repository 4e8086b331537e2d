"""What a flow's log says about the topics that flow: which they are, which come and go, which patterns have none."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from srm_spark.config.rights import acl_name
from srm_spark.core.news import News
from srm_spark.core.wording import some
from srm_spark.flow.clusters import Clusters

log = logging.getLogger(__name__)


class ChosenTopics:
    """Tells news only, however often it is told what there is."""

    def __init__(self, clusters: Clusters) -> None:
        self._flow = clusters.settings.flow
        self._filter = clusters.topics
        self._told: frozenset[str] | None = None
        self._idle = News()

    def tell(self, topics: Mapping[str, int]) -> None:
        """Log what is new about these topics and their partition counts."""
        names, told = frozenset(topics), self._told
        if told is None:
            log.info("flow=%s topics=%s partitions=%s: %s", self._flow, len(names), sum(topics.values()), some(names))
        else:
            for what, which in (("new", names - told), ("gone", told - names)):
                if which:
                    log.info("flow=%s topics=%s %s: %s", self._flow, len(names), what, some(which))
        for pattern in sorted(self._idle.changes(dict.fromkeys(self._idle_patterns(names), "idle"))):
            log.warning(
                "flow=%s no topic that flows matches %s: %s has none, READ on it is not allowed, or it is excluded; "
                "check topics, topics.exclude and the lists",
                self._flow,
                pattern,
                self._flow.source,
            )
        self._told = names

    def _idle_patterns(self, names: Collection[str]) -> list[str]:
        """Patterns without a topic. Of whole names, and of a flow without any topic, the flow's state tells."""
        if not names:
            return []
        return [pattern for pattern in self._filter.idle(names) if acl_name(pattern).endswith("*")]
