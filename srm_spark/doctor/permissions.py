"""Checks of what one flow may do on its two clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import cached_property

from srm_spark.config.rights import fence_id
from srm_spark.config.settings import ClusterSettings, FlowSettings
from srm_spark.core.metrics import META_TOPIC, metrics_topic
from srm_spark.core.wording import count, some
from srm_spark.doctor.report import Finding, Health, failed, ok, unknown, warned
from srm_spark.errors import ProtocolUnavailable, SrmError, TargetUnavailable
from srm_spark.flow.batch.way import why_not_whole
from srm_spark.flow.clusters import Clusters, connect, fence_of
from srm_spark.flow.topics.lists import take_lists
from srm_spark.kafka.access import Access, Operations
from srm_spark.kafka.lease import lease_group

_SHOWN = 3


class _Topics:
    """What flows, by file and lists, and under which names: asked for once, and needed by several checks."""

    def __init__(self, flow: FlowSettings, source: Access) -> None:
        self._flow, self.source = flow, source

    @cached_property
    def ends(self) -> Clusters:
        """The flow with its lists, where they can be read; that they cannot is a finding of its own."""
        ends = connect(self._flow)
        with suppress(TargetUnavailable):
            take_lists(ends)
        return ends

    @cached_property
    def selected(self) -> list[str]:
        """Topics of the source that flow."""
        return [name for name in self.source.topic_partitions() if self.ends.flows(name)]

    @cached_property
    def remote(self) -> set[str]:
        """Their remote topics, there or not."""
        return {self.ends.policy.format_remote_topic(self._flow.flow.source, topic) for topic in self.selected}


def check_flow(flow: FlowSettings, source: Access, target: Access) -> Iterator[Finding]:
    """What the flow may do; what goes wrong amid a check leaves the rest of it unknown, and the others go on."""
    topics = _Topics(flow, source)
    for check in (_check_source, _check_target, _check_kept_alike):
        try:
            yield from check(flow, topics, target)
        except SrmError as error:
            yield unknown(f"permissions {flow.flow}", f"not all checked: {error}")


def _check_source(flow: FlowSettings, topics: _Topics, target: Access) -> Iterator[Finding]:
    """READ and DESCRIBE_CONFIGS on the selected topics, WRITE on the offset-syncs topic or CREATE."""
    alias = flow.flow.source
    needed = frozenset({"READ", "DESCRIBE", "DESCRIBE_CONFIGS"})
    yield from _unseen(flow, topics)
    yield check_topics(f"{flow.flow}: read the topics on {alias}", topics.selected, needed, topics.source, flow.source)
    if flow.syncs.enabled:
        side, cluster = (target, flow.target) if flow.syncs.on_target else (topics.source, flow.source)
        check = f"{flow.flow}: write offset syncs on {cluster.alias}"
        yield _own_topic(check, topics.ends.syncs_topic, frozenset({"WRITE"}), side, cluster)


def _check_target(flow: FlowSettings, topics: _Topics, target: Access) -> Iterator[Finding]:
    """CREATE, WRITE on the remote topics, READ and WRITE on progress, map and status, READ on lists and lease."""
    alias = flow.flow.target
    on_cluster = target.on_cluster()
    check = f"{flow.flow}: create topics on {alias}"
    if on_cluster is not None and "CREATE" in on_cluster:
        yield ok(check, "CREATE on the cluster")
    else:
        unseen = "no CREATE on the cluster; whether single names or prefixes may be created cannot be seen"
        yield unknown(check, unseen, _grant(flow.target, target, ["CREATE"], "--cluster"))
    there = topics.remote & target.topic_partitions().keys()
    yield check_topics(
        f"{flow.flow}: write the remote topics on {alias}", there, frozenset({"WRITE"}), target, flow.target
    )
    needed = frozenset({"READ", "WRITE"})
    check = f"{flow.flow}: record progress on {alias}"
    yield _own_topic(check, flow.progress_topic, needed, target, flow.target)
    yield _own_topic(f"{flow.flow}: take the lease on {alias}", flow.leases_topic, needed, target, flow.target)
    yield _own_topic(f"{flow.flow}: keep the offset map on {alias}", flow.map_topic, needed, target, flow.target)
    check = f"{flow.flow}: read the lists of srm-control on {alias}"
    yield _own_topic(check, flow.control_topic, frozenset({"READ"}), target, flow.target)
    yield _warned(_own_topic(f"{flow.flow}: say how it is on {alias}", flow.status_topic, needed, target, flow.target))
    if flow.metrics.seconds is not None:
        check, topic = f"{flow.flow}: write samples for metrics on {alias}", metrics_topic(flow.flow)
        yield _warned(_own_topic(check, topic, frozenset({"WRITE"}), target, flow.target))
        check = f"{flow.flow}: write which topics are copied to where on {alias}"
        yield _warned(_own_topic(check, META_TOPIC, needed, target, flow.target))
    if flow.is_realtime:
        yield _own_topic(
            f"{flow.flow}: report in real time on {alias}", flow.reports_topic, needed, target, flow.target
        )
    yield _group(flow, target)
    yield _transactions(flow) if flow.is_exactly_once else _fence(flow)
    reason = why_not_whole(flow)
    check = f"{flow.flow}: how records travel"
    yield ok(check, f"one by one: {reason}" if reason else "in the batches that they came in, where nothing forbids it")


def _warned(found: Finding) -> Finding:
    """The flow runs without."""
    return replace(found, health=Health.WARNED) if found.health is Health.FAILED else found


_ACLS = "sync.topic.acls.enabled = false says that ACLs are not copied"
_QUOTAS = "sync.user.quotas.enabled = false says that quotas are not copied"


def _check_kept_alike(flow: FlowSettings, topics: _Topics, target: Access) -> Iterator[Finding]:
    """ALTER_CONFIGS on the remote topics; for ACLs DESCRIBE on the source's cluster and ALTER on the target's.

    Records are copied without them, too, so that what is missing is a warning.
    """
    alias = flow.flow.target
    if flow.topics.configs_seconds is not None:
        there = topics.remote & target.topic_partitions().keys()
        check = f"{flow.flow}: keep the configs of remote topics on {alias}"
        found = check_topics(check, there, frozenset({"ALTER_CONFIGS"}), target, flow.target)
        yield _warned(found)
    if flow.acls.seconds is not None:
        sides = (
            ("see the ACLs", "DESCRIBE", topics.source, flow.source),
            ("give remote topics ACLs", "ALTER", target, flow.target),
        )
        for what, operation, access, cluster in sides:
            yield _on_cluster(f"{flow.flow}: {what} on {cluster.alias}", operation, access, cluster, _ACLS)
    if flow.acls.quotas_seconds is not None:
        for what, operation, access, cluster in (
            ("see the quotas", "DESCRIBE_CONFIGS", topics.source, flow.source),
            ("set quotas", "ALTER_CONFIGS", target, flow.target),
        ):
            yield _on_cluster(f"{flow.flow}: {what} on {cluster.alias}", operation, access, cluster, _QUOTAS)


def _on_cluster(check: str, operation: str, access: Access, cluster: ClusterSettings, off: str) -> Finding:
    allowed = access.on_cluster()
    if allowed is None:
        unseen = f"without DESCRIBE on the cluster it cannot be seen whether {operation} on it is allowed"
        return unknown(check, unseen, _grant(cluster, access, [operation], "--cluster"))
    if operation in allowed:
        return ok(check, f"{operation} on the cluster")
    missing = f"{operation} on the cluster is missing; {off}"
    return warned(check, missing, _grant(cluster, access, [operation], "--cluster"))


def _fence(flow: FlowSettings) -> Finding:
    """Whether older writers can be fenced off in the default mode."""
    check, name = f"{flow.flow}: fence off older writers on {flow.flow.target}", fence_id(flow.flow)
    otherwise = "a start behind an unclean end waits, and a writer that comes back later than that doubles records"
    try:
        fence = fence_of(flow)
    except ProtocolUnavailable as error:
        return warned(check, f"{error}: {otherwise}", "docs/delivery.md says what is promised then")
    with closing(fence):
        try:
            fence.look()
        except ProtocolUnavailable as error:
            right = f"allow WRITE on transactional id {name} of {flow.flow.target}"
            return warned(check, f"{error}: {otherwise}", right)
    return ok(check, f"by transactional id {name}")


def _transactions(flow: FlowSettings) -> Finding:
    """Whether the exactly-once mode can write."""
    check = f"{flow.flow}: write in transactions on {flow.flow.target}"
    name = f"{lease_group(flow.flow)}-0"
    try:
        with closing(fence_of(flow, name)) as fence:
            fence.look()
    except ProtocolUnavailable as error:
        way = f"allow WRITE on transactional ids {lease_group(flow.flow)}-*, and see docs/delivery.md for its logins"
        return failed(check, str(error), way)
    return ok(check, f"by transactional ids {lease_group(flow.flow)}-*")


def _unseen(flow: FlowSettings, topics: _Topics) -> Iterator[Finding]:
    """What `topics` names and the source does not show."""
    if idle := topics.ends.topics.idle(topics.selected):
        nothing = (
            f"no topic that flows matches {some(idle)}: there is none, READ on it is not allowed, or it is excluded"
        )
        yield warned(
            f"{flow.flow}: topics on {flow.flow.source}", nothing, f"check {flow.flow}.topics and topics.exclude"
        )


def check_topics(
    check: str, names: Collection[str], needed: Operations, access: Access, cluster: ClusterSettings
) -> Finding:
    """Whether the operations that are needed are allowed on all of these topics, which are there."""
    if not names:
        return unknown(check, "no such topic is there yet, or none may be described")
    allowed = access.on_topics(names)
    lacking = {name: needed - had for name, had in allowed.items() if had is not None and needed - had}
    if lacking:
        missing = sorted(frozenset().union(*lacking.values()))
        return failed(
            check,
            f"{len(lacking)} of {len(names)} topics lack {', '.join(missing)}: {_some(lacking)}",
            _grant(cluster, access, missing, f"--topic '{sorted(lacking)[0]}'"),
        )
    dark = [name for name, had in allowed.items() if had is None]
    if dark:
        return unknown(check, f"the cluster does not tell what is allowed on {_some(dict.fromkeys(dark))}")
    return ok(check, f"{', '.join(sorted(needed))} on {count(len(names), 'topic')}")


def _own_topic(check: str, topic: str, needed: Operations, access: Access, cluster: ClusterSettings) -> Finding:
    allowed = access.on_topics([topic])
    if topic in allowed:
        return check_topics(check, [topic], needed, access, cluster)
    on_cluster = access.on_cluster()
    if on_cluster is not None and "CREATE" in on_cluster:
        return ok(check, f"{topic} is not there yet and may be created")
    missing = f"{topic} is not there, or hidden; CREATE on the cluster is missing"
    return unknown(check, missing, _grant(cluster, access, ["CREATE", *sorted(needed)], f"--topic '{topic}'"))


def _group(flow: FlowSettings, target: Access) -> Finding:
    group = f"srm-{flow.flow}"
    check = f"{flow.flow}: keep drivers of older versions out on {flow.flow.target}"
    allowed = target.on_group(group)
    if allowed is None:
        return unknown(
            check, f"READ on group {group} shows when the flow starts for the first time: there is no such group yet"
        )
    if "READ" in allowed:
        return ok(check, f"READ on group {group}")
    return failed(
        check, f"READ on group {group} is missing", _grant(flow.target, target, ["READ"], f"--group '{group}'")
    )


def _some(names: Mapping[str, object]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN])
    return f"{shown}, …" if len(names) > _SHOWN else shown


def _grant(cluster: ClusterSettings, access: Access, operations: Collection[str], resource: str) -> str:
    named = " ".join(f"--operation {''.join(part.title() for part in name.split('_'))}" for name in operations)
    server = cluster.bootstrap_servers
    return f"kafka-acls.sh --bootstrap-server {server} --add --allow-principal '{access.principal}' {named} {resource}"
