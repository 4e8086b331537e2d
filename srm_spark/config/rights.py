"""What a flow must be allowed to do on its two clusters, and nothing more: the ACLs of docs/security.md. No network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from srm_spark.config.settings import FlowSettings, HeartbeatSettings
from srm_spark.core.metrics import META_TOPIC, metrics_topic
from srm_spark.core.model import Flow
from srm_spark.core.policy import ReplicationPolicy

CLUSTER = "kafka-cluster"
"""Kafka's name of a cluster as a resource."""
_LITERAL = re.compile(r"[\w\-]+(?:\\?\.[\w\-]+)*")
_PREFIX = re.compile(r"((?:[\w\-]|\\\.)*)\.[*+]")


@dataclass(frozen=True)
class Right:
    """One ALLOW entry."""

    alias: str
    """The cluster on which it is needed."""
    operation: str
    """Kafka's name: READ, WRITE, CREATE, ALTER, DESCRIBE_CONFIGS. READ, WRITE and ALTER bring DESCRIBE."""
    kind: str
    """TOPIC, GROUP, TRANSACTIONAL_ID or CLUSTER."""
    name: str
    """Of the resource; one that ends in `*` is a prefix."""
    why: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.kind.lower().replace('_', ' ')} {self.name} of {self.alias}"

    @property
    def command(self) -> str:
        """Arguments of `kafka-acls.sh --add --allow-principal …`."""
        operation = "".join(part.capitalize() for part in self.operation.split("_"))
        if self.kind == "CLUSTER":
            return f"--operation {operation} --cluster"
        pattern = " --resource-pattern-type prefixed" if self.name.endswith("*") and self.name != "*" else ""
        name = self.name if self.name == "*" else self.name.removesuffix("*")
        return f"--operation {operation} --{self.kind.lower().replace('_', '-')} '{name}'{pattern}"


def rights_of_flow(settings: FlowSettings) -> tuple[Right, ...]:
    """Everything that a flow does, on both sides."""
    flow, policy = settings.flow, settings.policy()
    rights: list[Right] = []
    for name in _names(settings, policy.heartbeats_topic()):
        rights += _of_topic(settings, name, remote_name(policy, flow.source, name))
    rights += _control(flow.target, settings.progress_topic, "the progress topic", reads=True)
    rights += _control(flow.target, settings.map_topic, "the offset map", reads=True)
    rights += _of_lists(flow.target, settings.control_topic)
    rights += _of_status(flow.target, settings.status_topic)
    if settings.metrics.seconds is not None:
        rights += _control(flow.target, metrics_topic(flow), "samples for metrics")
        rights += _control(flow.target, META_TOPIC, "which topics are copied to where", reads=True)
    if settings.refused.parks:
        rights += _control(flow.target, settings.quarantine_topic, "the quarantine", reads=True)
    if settings.is_realtime:
        rights += _control(flow.target, settings.reports_topic, "reports of the real-time lane", reads=True)
    rights += _control(flow.target, settings.leases_topic, "the log of leases", reads=True)
    rights.append(Right(flow.target, "READ", "GROUP", f"srm-{flow}", "keeps drivers out that know no log of leases"))
    if settings.is_exactly_once:
        rights.append(
            Right(flow.target, "WRITE", "TRANSACTIONAL_ID", f"srm-{flow}-*", "commits records with their progress")
        )
    else:
        rights.append(Right(flow.target, "WRITE", "TRANSACTIONAL_ID", fence_id(flow), "fences off older writers"))
    rights += _of_groups(settings, policy.checkpoints_topic(flow.source))
    if settings.syncs.enabled:
        at, other = (flow.target, flow.source) if settings.syncs.on_target else (flow.source, flow.target)
        rights += _control(at, policy.offset_syncs_topic(other), "the offset-syncs topic", reads=True)
    if settings.acls.seconds is not None:
        rights.append(Right(flow.source, "DESCRIBE", "CLUSTER", CLUSTER, "sees its ACLs"))
        rights.append(Right(flow.target, "ALTER", "CLUSTER", CLUSTER, "adds ACLs there, and sees them"))
    if settings.acls.quotas_seconds is not None:
        rights.append(Right(flow.source, "DESCRIBE_CONFIGS", "CLUSTER", CLUSTER, "sees the quotas of users"))
        rights.append(Right(flow.target, "ALTER_CONFIGS", "CLUSTER", CLUSTER, "sets quotas there, and sees them"))
    return tuple(rights)


def fence_id(flow: Flow) -> str:
    """The transactional id under whose producer id a flow writes records."""
    return f"srm-{flow}-records"


def rights_to_steer(settings: FlowSettings) -> tuple[Right, ...]:
    """What changing the lists of a flow takes, pausing it and the like; the flow itself only reads what was done."""
    alias, topic = settings.flow.target, settings.control_topic
    return (
        *_of_lists(alias, topic),
        Right(alias, "WRITE", "TOPIC", topic, "changes the lists: not for the flow"),
        Right(alias, "READ", "TOPIC", settings.progress_topic, "sees where partitions stand, and what drivers answer"),
        Right(alias, "READ", "TOPIC", settings.map_topic, "says what setting other offsets would copy again"),
    )


def rights_of_heartbeats(settings: HeartbeatSettings) -> tuple[Right, ...]:
    """What writing heartbeats takes."""
    return tuple(_control(settings.flow.target, settings.topic, "heartbeats"))


def _control(alias: str, topic: str, what: str, *, reads: bool = False) -> Iterable[Right]:
    yield Right(alias, "CREATE", "TOPIC", topic, f"makes {what}, unless it exists")
    yield Right(alias, "WRITE", "TOPIC", topic, f"writes {what}")
    if reads:
        yield Right(alias, "READ", "TOPIC", topic, f"reads {what} when the flow starts")


def _of_lists(alias: str, topic: str) -> Iterator[Right]:
    yield Right(alias, "CREATE", "TOPIC", topic, "makes the topic of the lists, unless it exists")
    yield Right(alias, "READ", "TOPIC", topic, "reads the lists")


def _of_status(alias: str, topic: str) -> Iterator[Right]:
    yield Right(alias, "CREATE", "TOPIC", topic, "makes the status topic, unless it exists")
    yield Right(alias, "WRITE", "TOPIC", topic, "says how the flow is, for srm-control status")
    yield Right(alias, "READ", "TOPIC", topic, "removes what drivers said that are gone; for srm-control status, too")


def _of_topic(settings: FlowSettings, name: str, remote: str) -> Iterator[Right]:
    source, target = settings.flow.source, settings.flow.target
    yield Right(source, "READ", "TOPIC", name, "finds and reads the records")
    yield Right(source, "DESCRIBE_CONFIGS", "TOPIC", name, "a remote topic inherits them")
    yield Right(target, "CREATE", "TOPIC", remote, "makes remote topics, unless they exist")
    yield Right(target, "WRITE", "TOPIC", remote, "writes the records")
    yield Right(target, "READ", "TOPIC", remote, "compares what landed before a crash")
    yield Right(target, "ALTER", "TOPIC", remote, "adds partitions where the source has more")
    yield Right(target, "DESCRIBE_CONFIGS", "TOPIC", remote, "learns which records the topic takes")
    if settings.topics.configs_seconds is not None:
        yield Right(target, "ALTER_CONFIGS", "TOPIC", remote, "keeps the configs of remote topics as the source's")


def _of_groups(settings: FlowSettings, checkpoints: str) -> Iterator[Right]:
    chosen, flow = settings.checkpoints, settings.flow
    if chosen.emit_enabled:
        yield from _control(flow.target, checkpoints, "checkpoints", reads=True)
    for name in dict.fromkeys(acl_name(pattern) for pattern in chosen.groups):
        if chosen.emit_enabled or chosen.sync_enabled:
            yield Right(flow.source, "DESCRIBE", "GROUP", name, "sees where consumer groups stand")
        if chosen.sync_enabled:
            yield Right(flow.target, "READ", "GROUP", name, "sets where they stand while nobody consumes")


def _names(settings: FlowSettings, heartbeats: str) -> list[str]:
    """Source topics as names and prefixes of ACLs; `*` for a pattern that is neither."""
    names = [acl_name(pattern) for pattern in settings.topics.include]
    if settings.topics.heartbeats_replicated and "*" not in names:
        names.append(heartbeats)
    return ["*"] if "*" in names else list(dict.fromkeys(names))


def acl_name(pattern: str) -> str:
    """The narrowest name or prefix that covers a pattern of topics."""
    if _LITERAL.fullmatch(pattern):
        return pattern.replace("\\", "")
    prefix = _PREFIX.fullmatch(pattern)
    return f"{prefix[1]}*".replace("\\", "") if prefix else "*"


def remote_name(policy: ReplicationPolicy, source: str, name: str) -> str:
    """The same of the remote topics; `*` where a policy does not put something in front."""
    is_prefix = name.endswith("*")
    one, other = (policy.format_remote_topic(source, name.removesuffix("*") + end) for end in ("a", "b"))
    if not is_prefix:
        return policy.format_remote_topic(source, name)
    return f"{one[:-1]}*" if one[:-1] == other[:-1] else "*"
