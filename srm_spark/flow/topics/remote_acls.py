"""Gives the target the ACLs that remote topics and groups need there, by the rules of `core/acls.py`.

Nothing is taken away but, by choice, what was made here and is gone on the source. What allows to write is recorded, by
choice, for a failover.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, replace

from srm_spark.config.rights import remote_name
from srm_spark.core.acls import (
    GROUP,
    MADE,
    STAGED,
    TOPIC,
    Acl,
    AclRules,
    NotCopied,
    acl_records,
    judge_acls,
    remote_acls,
    staged_acls,
)
from srm_spark.core.news import News
from srm_spark.core.wording import count, some
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.made_here import write_made
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.topic_configs import Remotes

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AclsCompared:
    """What the ACLs of two clusters come to."""

    judged: Mapping[Acl, Acl | NotCopied]
    """Entry of the source → what the target gets for it."""
    missing: Set[Acl]
    """To be added on the target."""
    stale: Set[Acl]
    """Made there for an entry that is gone; whether a topic flows now, or patterns are copied, does not matter."""
    made: Set[Acl]
    """What is ours then, stale ones too; to be recorded in front of the change, else nobody would take it back."""
    staged: Mapping[Acl, Acl]
    """Entry of the source that allows to write → what a failover puts in force for it."""


class AclComparison:
    """The rules of one flow."""

    def __init__(self, clusters: Clusters, remotes: Mapping[str, str]) -> None:
        """`remotes`: source topic → remote topic, of those that flow."""
        self._clusters = clusters
        self._settings = clusters.settings.acls
        self._remotes = remotes

    def compare(self, here: Set[Acl], there: Set[Acl], made: Set[Acl], waiting: Set[Acl] = frozenset()) -> AclsCompared:
        """Entries of the source, of the target, those that were made there before, and those that are staged by now."""
        judged = judge_acls(here, self._rules())
        wanted = {copy for copy in judged.values() if isinstance(copy, Acl)}
        # Whatever is switched on now: what was made by other settings goes only with its source, too.
        of_all = AclRules(
            lambda _: True,
            self._remote_topic,
            self._remote_prefix,
            lambda _: True,
            takes_group_patterns=True,
            principal=self._settings.principals.apply,
        )
        missing = wanted - there
        # What a failover put in force failback takes back: until then the source need not have it.
        in_force = {acl for acl in made if acl.allows_writing and self._settings.writes_on_failover}
        gone = (made & there) - remote_acls(here, of_all) - in_force
        stale = {acl for acl in gone if self._is_named_so(acl)}
        unread = {acl for acl in made if acl.kind not in _kinds(self._clusters)}  # those of groups, once that is off
        staged = self._staged(here, waiting) if self._settings.writes_on_failover else {}
        ours = (made & (there | wanted | set(staged.values()))) | missing | unread
        return AclsCompared(judged, missing, stale, ours, staged)

    def _staged(self, here: Set[Acl], waiting: Set[Acl]) -> dict[Acl, Acl]:
        # A topic that is held for a moment, or a flow that is about to start, has writers as before.
        chosen = replace(self._rules(), is_replicated=self._clusters.flows, remote_name=self._remote_topic)
        stays = {acl: copy for acl, copy in staged_acls(here, chosen).items() if copy in waiting}
        return {**stays, **staged_acls(here, self._rules())}

    def _remote_topic(self, topic: str) -> str:
        return self._clusters.policy.format_remote_topic(self._clusters.settings.flow.source, topic)

    def _rules(self) -> AclRules:
        """Those of the flow as it is set."""
        takes_group = self._clusters.filters.groups.matches
        rules = AclRules(
            self._remotes.__contains__,
            self._remotes.__getitem__,
            takes_group=takes_group,
            principal=self._settings.principals.apply,
        )
        if not self._settings.patterns:
            return rules
        return replace(rules, remote_prefix=self._remote_prefix, takes_group_patterns=True)

    def _is_named_so(self, acl: Acl) -> bool:
        """Whether the policy gives such a name: of what was made by another one nobody knows here what it is for."""
        if acl.kind != TOPIC:
            return True
        policy, alias = self._clusters.policy, self._clusters.settings.flow.source
        prefix = self._remote_prefix("")
        if acl.pattern != "LITERAL":
            return prefix is not None and acl.name.startswith(prefix)
        if prefix is None and re.match(rf"{re.escape(alias)}[._-]", acl.name):
            return False  # a policy that keeps names gives any; this one is of a policy that put the alias in front
        upstream = policy.upstream_topic(acl.name)
        return upstream is not None and policy.format_remote_topic(alias, upstream) == acl.name

    def _remote_prefix(self, prefix: str) -> str | None:
        """None where a policy keeps names: the prefix would be about topics of the target's own, too."""
        found = remote_name(self._clusters.policy, self._clusters.settings.flow.source, f"{prefix}*")
        return None if found in ("*", f"{prefix}*") else found.removesuffix("*")


class RemoteAcls:
    """Of one run of a flow; `look` is a periodic task."""

    def __init__(self, clusters: Clusters, maps: OffsetMaps, remotes: Remotes) -> None:
        self._clusters = clusters
        self._settings = clusters.settings.acls
        self._maps = maps
        self._remotes = remotes
        self._refused, self._said, self._denied = News(), News(), News()

    def look(self) -> None:
        """Add what is missing on the target, and take back what was made here, where that is wanted."""
        flow = self._clusters.settings.flow
        text = "flow=%s ACLs are not copied (sync.topic.acls.enabled): %s"
        with self._said.failing(lambda error: log.warning(text, flow, error)):
            obstacle = self._sync()
            if self._said.is_new("obstacle", obstacle):
                log.info("flow=%s ACLs are not copied: %s", flow, obstacle)

    def _sync(self) -> str | None:
        """Why there is nothing to do; None where there is."""
        here, there = read_acls(self._clusters)
        if here is None or there is None:
            return no_authorizer(self._clusters, here)
        made, waiting = self.made(), self.staged()
        compared = AclComparison(self._clusters, self._remotes()).compare(here, there, made, waiting)
        self._warn_of_denied(compared)
        record_acls(self._clusters, made, compared.made)
        record_staged(self._clusters, waiting, set(compared.staged.values()))
        added = self._change(compared.missing, self._clusters.target.add_acls)
        # What is refused here somebody else may make: then it is not ours to take back.
        if refused := refused_acls(added):
            made = self.made()  # a failover may have recorded what it made since
            record_acls(self._clusters, made, made - refused)
        self._tell("cannot be added", "added", added)
        stale = compared.stale if self._settings.removes else frozenset[Acl]()
        self._tell("cannot be removed", "removed", self._change(stale, self._clusters.target.remove_acls))
        return None

    def made(self) -> frozenset[Acl]:
        """What was made on the target and is recorded, by whichever process."""
        with self._maps.lock:
            self._maps.refresh()
            return self._maps.made.acls

    def staged(self) -> frozenset[Acl]:
        """What waits for a failover, as recorded at the last look."""
        with self._maps.lock:
            return self._maps.made.staged

    def _warn_of_denied(self, compared: AclsCompared) -> None:
        lifted = {acl: why.value for acl, why in compared.judged.items() if why is NotCopied.DENIED}
        flow, alias = self._clusters.settings.flow, self._clusters.target.alias
        for acl, why in self._denied.changes(lifted).items():
            log.warning("flow=%s ACL not copied: %s: %s; deny it on %s by hand", flow, acl, why, alias)

    def _change(
        self, acls: Set[Acl], change: Callable[[Collection[Acl]], Mapping[Acl, str | None]]
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


def read_acls(clusters: Clusters) -> tuple[set[Acl] | None, set[Acl] | None]:
    """The entries of the source and of the target; None where a cluster has no authorizer."""
    kinds = _kinds(clusters)
    return clusters.source.acls(kinds), clusters.target.acls(kinds)


def _kinds(clusters: Clusters) -> tuple[str, ...]:
    return (TOPIC, GROUP) if clusters.settings.acls.groups else (TOPIC,)


def no_authorizer(clusters: Clusters, here: set[Acl] | None) -> str:
    """Why nothing is copied where one side has no entries; `here` are those of the source."""
    return f"{(clusters.source if here is None else clusters.target).alias} has no authorizer"


def refused_acls(answers: Mapping[Acl, str | None]) -> set[Acl]:
    """What a cluster would not change."""
    return {acl for acl, why in answers.items() if why is not None}


def record_staged(clusters: Clusters, before: Set[Acl], now: Set[Acl]) -> None:
    """Record what waits for a failover, where that is another than `before`."""
    record_acls(clusters, before, now, STAGED)


def record_acls(clusters: Clusters, before: Set[Acl], now: Set[Acl], word: str = MADE) -> None:
    """Record what was made on the target, where that is another than `before`."""
    write_made(clusters, acl_records(before, now, word))
