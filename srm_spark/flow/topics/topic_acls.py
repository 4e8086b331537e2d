"""Gives remote topics the ACLs of their source topics, by the rules of `core/acls.py`. Nothing is ever taken away."""

from __future__ import annotations

import logging

from srm_spark.core.acls import remote_acls
from srm_spark.core.news import News
from srm_spark.core.wording import count, some
from srm_spark.errors import FlowError
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.topic_configs import Remotes

log = logging.getLogger(__name__)


class TopicAcls:
    """Of one run of a flow; `look` is a periodic task."""

    def __init__(self, clusters: Clusters, remotes: Remotes) -> None:
        self._clusters = clusters
        self._remotes = remotes
        self._refused, self._said = News(), News()

    def look(self) -> None:
        """Add what is missing on the target."""
        flow = self._clusters.settings.flow
        try:
            obstacle = self._sync()
            self._said.is_new("failure", None)
            if self._said.is_new("obstacle", obstacle):
                log.info("flow=%s topic ACLs are not copied: %s", flow, obstacle)
        except FlowError as error:
            if self._said.is_new("failure", str(error)):
                log.warning("flow=%s topic ACLs are not copied (sync.topic.acls.enabled): %s", flow, error)

    def _sync(self) -> str | None:
        """Why there is nothing to do; None where there is."""
        flow, source, target = self._clusters.settings.flow, self._clusters.source, self._clusters.target
        remotes = self._remotes()
        here = source.topic_acls()
        there = target.topic_acls()
        for alias, acls in ((source.alias, here), (target.alias, there)):
            if acls is None:
                return f"{alias} has no authorizer"
        missing = remote_acls(here or (), remotes.__contains__, remotes.__getitem__) - (there or set())
        if missing:
            self._clusters.require_lease()
        answers = target.add_acls(missing) if missing else {}
        refused = {str(acl): why for acl, why in answers.items() if why}
        for acl, why in self._refused.changes(refused).items():
            log.warning("flow=%s cannot %s on %s: %s", flow, acl, target.alias, why)
        if added := sorted(str(acl) for acl in missing if not answers[acl]):
            log.info("flow=%s added %s on %s: %s", flow, count(len(added), "ACL"), target.alias, some(added))
        return None
