"""Gives the target the ACLs that remote topics and groups need there, by the rules of `core/acls.py`.

Nothing is taken away but, by choice, what was made here and is gone on the source.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from srm_spark.config.rights import remote_name
from srm_spark.core.acls import GROUP, TOPIC, Acl, AclRules, acl_records, remote_acls
from srm_spark.core.cluster import ControlRecord
from srm_spark.core.news import News
from srm_spark.core.wording import count, some
from srm_spark.errors import FlowError
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.progress import state_writer_of
from srm_spark.flow.topics.topic_configs import Remotes

log = logging.getLogger(__name__)


class RemoteAcls:
    """Of one run of a flow; `look` is a periodic task."""

    def __init__(self, clusters: Clusters, maps: OffsetMaps, remotes: Remotes) -> None:
        self._clusters = clusters
        self._settings = clusters.settings.acls
        self._maps = maps
        self._remotes = remotes
        self._refused, self._said = News(), News()

    def look(self) -> None:
        """Add what is missing on the target, and take back what was made here, where that is wanted."""
        flow = self._clusters.settings.flow
        try:
            obstacle = self._sync()
            self._said.is_new("failure", None)
            if self._said.is_new("obstacle", obstacle):
                log.info("flow=%s ACLs are not copied: %s", flow, obstacle)
        except FlowError as error:
            if self._said.is_new("failure", str(error)):
                log.warning("flow=%s ACLs are not copied (sync.topic.acls.enabled): %s", flow, error)

    def _sync(self) -> str | None:
        """Why there is nothing to do; None where there is."""
        source, target = self._clusters.source, self._clusters.target
        kinds = (TOPIC, GROUP) if self._settings.groups else (TOPIC,)
        here, there = source.acls(kinds), target.acls(kinds)
        if here is None or there is None:
            return f"{(source if here is None else target).alias} has no authorizer"
        remotes = self._remotes()
        wanted = remote_acls(
            here, self._rules(remotes.__contains__, remotes.__getitem__, self._clusters.filters.groups.matches)
        )
        missing, made = wanted - there, self.made()
        # In front of the change: what is there and not recorded would never be taken back.
        self._record(made, (made & (there | wanted)) | missing)
        self._tell("cannot be added", "added", self._change(missing, target.add_acls))
        self._tell("cannot be removed", "removed", self._change(self._stale(made & there, here), target.remove_acls))
        return None

    def _stale(self, made: set[Acl], here: set[Acl]) -> set[Acl]:
        """What was made for an entry that is gone; whether a topic flows now does not matter for that."""
        if not self._settings.removes:
            return set()
        flow, policy = self._clusters.settings.flow, self._clusters.policy
        of_all = self._rules(
            lambda _: True, lambda topic: policy.format_remote_topic(flow.source, topic), lambda _: True
        )
        return made - remote_acls(here, of_all)

    def _rules(
        self,
        is_replicated: Callable[[str], bool],
        name_of: Callable[[str], str],
        takes_group: Callable[[str], bool],
    ) -> AclRules:
        if not self._settings.patterns:
            return AclRules(is_replicated, name_of, takes_group=takes_group)
        return AclRules(is_replicated, name_of, self._remote_prefix, takes_group, takes_group_patterns=True)

    def _remote_prefix(self, prefix: str) -> str | None:
        """None where a policy keeps names: the prefix would be about topics of the target's own, too."""
        found = remote_name(self._clusters.policy, self._clusters.settings.flow.source, f"{prefix}*")
        return None if found in ("*", f"{prefix}*") else found.removesuffix("*")

    def made(self) -> set[Acl]:
        """What was made on the target and is recorded, by whichever process."""
        with self._maps.lock:
            self._maps.refresh()
            return {acl for made in self._maps.acls.values() for acl in made}

    def _record(self, before: set[Acl], now: set[Acl]) -> None:
        records = acl_records(before, now)
        if records:
            self._clusters.require_lease()
            topic = self._clusters.settings.map_topic
            # Outside of any transaction: one that comes late is put right by the next look.
            state_writer_of(self._clusters, None).write(
                ControlRecord(topic, key, value, partition=0) for key, value in records.items()
            )

    def _change(
        self, acls: set[Acl], change: Callable[[Collection[Acl]], Mapping[Acl, str | None]]
    ) -> Mapping[Acl, str | None]:
        if not acls:
            return {}
        self._clusters.require_lease()
        return change(acls)

    def _tell(self, cannot: str, done: str, answers: Mapping[Acl, str | None]) -> None:
        flow, alias = self._clusters.settings.flow, self._clusters.target.alias
        for acl, why in answers.items():
            if self._refused.is_new((done, acl), why):
                log.warning("flow=%s ACL on %s %s: %s: %s", flow, alias, cannot, acl, why)
        if changed := sorted(str(acl) for acl, why in answers.items() if why is None):
            log.info("flow=%s %s %s on %s: %s", flow, done, count(len(changed), "ACL"), alias, some(changed))
