"""Names across clusters: what a topic is called on the target, where a remote topic came from, what is internal.

The naming rules of MirrorMaker 2 (KIP-382, KIP-716), and the way to bring another one.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from srm_spark.core.plugins import load_class
from srm_spark.errors import PluginError

HEARTBEATS_TOPIC = "heartbeats"
"""The separator never touches this name."""
JAVA_PREFIX = "org.apache.kafka.connect.mirror."
_CLOUDERA_PREFIX = "com.cloudera.dim.mirror."
_KEY = "replication.policy.class"
_OF_BROKERS = frozenset(
    f"__{name}" for name in ["consumer_offsets", "transaction_state", "share_group_state", "cluster_metadata"]
)


@runtime_checkable
class ReplicationPolicy(Protocol):
    """How topics are named on the other side (`ReplicationPolicy` of MirrorMaker 2)."""

    internal_separator: str = "."

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Name on the target of a topic of the source."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """Alias of the cluster that a remote topic was copied from; None for a local topic."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """Name of a remote topic on the cluster it was copied from; None for a local topic."""

    def original_topic(self, topic: str) -> str:
        """Name of a topic on the cluster where it was first written, however many hops away."""
        upstream = self.upstream_topic(topic)
        while upstream is not None and upstream != topic:
            topic, upstream = upstream, self.upstream_topic(upstream)
        return topic

    def heartbeats_topic(self) -> str:
        """Topic of the heartbeats, on the target of each flow."""
        return HEARTBEATS_TOPIC

    def offset_syncs_topic(self, other_alias: str) -> str:
        """Topic of the offset syncs, named after the other cluster: the target's alias when it lies on the source."""
        return f"mm2-offset-syncs{self.internal_separator}{other_alias}{self.internal_separator}internal"

    def checkpoints_topic(self, source_alias: str) -> str:
        """Topic of the checkpoints, on the target."""
        return f"{source_alias}{self.internal_separator}checkpoints{self.internal_separator}internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether a topic is a heartbeats topic, copied any number of times."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether a topic holds checkpoints."""
        return topic.endswith(f"{self.internal_separator}checkpoints{self.internal_separator}internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Whether a topic belongs to MirrorMaker 2, Connect's own topics included."""
        return self.is_checkpoints_topic(topic) or (
            topic.startswith("mm2") and topic.endswith(f"{self.internal_separator}internal")
        )

    def is_internal_topic(self, topic: str) -> bool:
        """Whether a topic is nobody's data and so never replicated: MirrorMaker 2's, Kafka's, hidden ones."""
        return topic.startswith(("__", ".")) or self.is_mm2_internal_topic(topic)


@dataclass(frozen=True)
class DefaultReplicationPolicy(ReplicationPolicy):
    """Remote topics are called source alias, separator, topic: `A.orders` (`DefaultReplicationPolicy`)."""

    separator: str = "."
    internal_separator: str = "."
    internal_excluded: bool = field(default=True, kw_only=True)
    """Whether a topic is internal by a name that begins with `__` or `.` alone."""

    def __post_init__(self) -> None:
        if not self.separator or not self.internal_separator:
            message = "the separator is empty: remote topics could not be told apart"
            raise PluginError("replication.policy.separator", "", message, "write '.'")

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        alias, separator, rest = topic.partition(self.separator)
        # Java's split drops trailing empty pieces, so a name that ends in nothing but separators is a local one.
        while rest.startswith(self.separator):
            rest = rest[len(self.separator) :]
        return alias if separator and rest else None

    def is_internal_topic(self, topic: str) -> bool:
        if self.internal_excluded:
            return super().is_internal_topic(topic)
        # Each copy of an offset sync would make another one, and brokers let nobody write to their own topics.
        return topic in _OF_BROKERS or self.is_mm2_internal_topic(topic)

    def upstream_topic(self, topic: str) -> str | None:
        alias = self.topic_source(topic)
        return None if alias is None else topic[len(alias) + len(self.separator) :]


@dataclass(frozen=True)
class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Topics keep their names, except heartbeats (`IdentityReplicationPolicy`). Nothing guards against loops."""

    source_alias: str | None = field(default=None, kw_only=True)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_alias, topic) if self._is_prefixed(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        return super().topic_source(topic) if self._is_prefixed(topic) else self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if self._is_prefixed(topic) else topic

    def _is_prefixed(self, topic: str) -> bool:
        # By suffix, as MirrorMaker 2 does it: `my-heartbeats` is prefixed too.
        return topic.endswith(HEARTBEATS_TOPIC)


def is_cycle(policy: ReplicationPolicy, topic: str, target_alias: str) -> bool:
    """Whether a topic has already been on the target, so that copying it would go round (`isCycle`)."""
    upstream: str | None = topic
    while upstream is not None:
        alias = policy.topic_source(upstream)
        if alias is None or alias == target_alias:
            return alias is not None
        topic, upstream = upstream, policy.upstream_topic(upstream)
        if upstream == topic:
            return False
    return False


def load_policy(
    class_name: str,
    *,
    source_alias: str | None = None,
    separator: str = ".",
    internal_separator: str = ".",
    internal_excluded: bool = True,
) -> ReplicationPolicy:
    """The policy that `replication.policy.class` names: a built-in Java name or `package.module:Class`.

    SRM's migrating and legacy policies keep names, as the Identity one does. Raises PluginError.
    """
    match class_name.strip().removeprefix(JAVA_PREFIX).removeprefix(_CLOUDERA_PREFIX):
        case "DefaultReplicationPolicy":
            return DefaultReplicationPolicy(separator, internal_separator, internal_excluded=internal_excluded)
        case "IdentityReplicationPolicy" | "LegacyReplicationPolicy" | "MigratingReplicationPolicy":
            return IdentityReplicationPolicy(
                separator, internal_separator, internal_excluded=internal_excluded, source_alias=source_alias
            )
        case _:
            path = class_name.strip()
            offered = {
                "source_alias": source_alias,
                "separator": separator,
                "internal_separator": internal_separator,
                "internal_excluded": internal_excluded,
            }
            return _make(path, load_class(_KEY, path, _INSTEAD_OF_JAVA), offered)


_INSTEAD_OF_JAVA = (
    f"write {_KEY} = your_package.module:YourPolicy, a subclass of srm_spark.policy.DefaultReplicationPolicy"
)


def _make(path: str, policy_class: type, offered: Mapping[str, str | bool | None]) -> ReplicationPolicy:
    try:
        parameters = inspect.signature(policy_class).parameters.values()
        takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        names = {parameter.name for parameter in parameters}
        policy = policy_class(**{name: value for name, value in offered.items() if takes_all or name in names})
    except Exception as error:  # the constructor is foreign code, too
        message = f"cannot be made: {type(error).__name__}: {error}"
        hint = f"it is called with the keywords {', '.join(offered)} as far as it takes them"
        raise PluginError(_KEY, path, message, hint) from error
    if isinstance(policy, ReplicationPolicy):
        return policy
    needed = [name for name in dir(ReplicationPolicy) if not name.startswith("_")]
    missing = ", ".join(name for name in needed if not hasattr(policy, name))
    raise PluginError(_KEY, path, f"lacks {missing}", "subclass srm_spark.policy.DefaultReplicationPolicy")
