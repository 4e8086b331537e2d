"""Which names a flow takes: filters of topics, groups and config properties, and the selection of topics.

A name here is a whole topic name, group id or property key; patterns are Java's (see core/patterns.py). No I/O.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum

from srm_spark.core.patterns import JavaPatterns, compile_entry, compile_java
from srm_spark.core.policy import ReplicationPolicy, is_cycle
from srm_spark.errors import PatternError

_NAME = re.compile(r"[\w.\-]+", re.ASCII)


@dataclass(frozen=True)
class NameFilter:
    """Takes the names that match a pattern of `include` and none of `exclude` (`DefaultTopicFilter`).

    Patterns match the whole name. An empty `include` takes nothing, an empty `exclude` leaves nothing out.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    _included: JavaPatterns = field(init=False, repr=False, compare=False)
    _excluded: JavaPatterns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_included", compile_java(self.include))
        object.__setattr__(self, "_excluded", compile_java(self.exclude))

    def matches(self, name: str) -> bool:
        """Whether the filter takes a name."""
        return self._included.matches(name) and not self._excluded.matches(name)

    def included_by(self, name: str) -> str | None:
        """The first pattern of `include` that matches, for explanations."""
        return _first_match(self.include, self._included.parts, name)

    def excluded_by(self, name: str) -> str | None:
        """The first pattern of `exclude` that matches, for explanations."""
        return _first_match(self.exclude, self._excluded.parts, name)

    def idle(self, names: Collection[str]) -> tuple[str, ...]:
        """The patterns of `include` that match none of the names; a filter of the user's own has its own rules."""
        if type(self) is not NameFilter:
            return ()
        pairs = zip(self.include, self._included.parts, strict=True)
        return tuple(pattern for pattern, part in pairs if not any(map(part.fullmatch, names)))


def _first_match(patterns: tuple[str, ...], parts: Iterable[re.Pattern[str]], name: str) -> str | None:
    return next((pattern for pattern, part in zip(patterns, parts, strict=True) if part.fullmatch(name)), None)


def is_name(pattern: str) -> bool:
    """Whether a pattern looks like one whole name: no character in it is a regular expression's but the dot."""
    return _NAME.fullmatch(pattern) is not None


def require_usable(entry: str) -> None:
    """Raises PatternError for a name or pattern that no filter can use."""
    if not is_name(entry):
        compile_entry(entry)


def split_list(text: str) -> tuple[str, ...]:
    """Split a comma-separated value; repeated entries count once, an empty one is an error (`ConfigDef`)."""
    if not text.strip():
        return ()
    entries = [entry.strip() for entry in text.split(",")]
    if "" in entries:
        raise PatternError(text, "an empty entry in the list", "remove the extra comma")
    return tuple(dict.fromkeys(entries))


class SelectionReason(Enum):
    """Why a topic is replicated, or why not."""

    INCLUDED = "matches the topic filter"
    HEARTBEATS = "is a heartbeats topic, replicated without being listed"
    INTERNAL = "is an internal topic"
    CYCLE = "has already been on the target"
    EXCLUDED = "is excluded by the topic filter"
    NOT_INCLUDED = "matches no pattern of the topic filter"


@dataclass(frozen=True)
class Selection:
    """The verdict on one topic of the source."""

    topic: str
    reason: SelectionReason
    pattern: str | None = None
    """The pattern that decided, where one did."""

    @property
    def is_replicated(self) -> bool:
        """Whether the topic flows."""
        return self.reason in (SelectionReason.INCLUDED, SelectionReason.HEARTBEATS)

    def __str__(self) -> str:
        return f"{self.topic} {self.reason.value}" + (f" ({self.pattern})" if self.pattern is not None else "")


_OF_SERVICES = re.compile(r"srm-metrics-.+\.internal|srm-meta\.internal|srm-service\.internal")
"""SRM's topics of metrics and services, which MirrorMaker 2 does not know."""


def is_internal(topic: str, policy: ReplicationPolicy) -> bool:
    """Whether a topic is nobody's data, and so never replicated."""
    return policy.is_internal_topic(topic) or _OF_SERVICES.fullmatch(topic) is not None


def is_replicated(
    topic: str, topic_filter: NameFilter, policy: ReplicationPolicy, target_alias: str, heartbeats_replicated: bool
) -> bool:
    """Whether a topic of the source flows (`MirrorSourceConnector.shouldReplicateTopic`)."""
    return (
        (topic_filter.matches(topic) or (heartbeats_replicated and policy.is_heartbeats_topic(topic)))
        and not is_internal(topic, policy)
        and not is_cycle(policy, topic, target_alias)
    )


def select(
    topic: str, topic_filter: NameFilter, policy: ReplicationPolicy, target_alias: str, heartbeats_replicated: bool
) -> Selection:
    """The same verdict as `is_replicated`, with its reason: first what no filter can change, then the filter."""
    if is_internal(topic, policy):
        return Selection(topic, SelectionReason.INTERNAL)
    if is_cycle(policy, topic, target_alias):
        return Selection(topic, SelectionReason.CYCLE)
    if topic_filter.matches(topic):
        return Selection(topic, SelectionReason.INCLUDED, topic_filter.included_by(topic))
    if heartbeats_replicated and policy.is_heartbeats_topic(topic):
        return Selection(topic, SelectionReason.HEARTBEATS)
    if pattern := topic_filter.excluded_by(topic):
        return Selection(topic, SelectionReason.EXCLUDED, pattern)
    return Selection(topic, SelectionReason.NOT_INCLUDED)
