"""Why something flows, or does not: one answer per flow, with the rule that decided and what to do about it. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from srm_spark.core.model import Flow


class Verdict(Enum):
    """What becomes of the thing."""

    FLOWS = "flows"
    WAITS = "waits"
    """It would flow, and something is in its way."""
    LEFT_OUT = "left out"
    """A rule says so."""
    UNKNOWN = "unknown"
    """Who knows does not answer."""


class Because(Enum):
    """Why, as a code that does not change."""

    # What rules say
    INCLUDED = "included"
    HEARTBEATS = "heartbeats"
    NOT_INCLUDED = "not-included"
    EXCLUDED = "excluded"
    DENIED = "denied"
    FILTER_CLASS = "filter-class"
    INTERNAL = "internal"
    CYCLE = "cycle"
    SWITCHED_OFF = "switched-off"
    # What there is
    NOT_SHOWN = "not-shown"
    READ_DENIED = "read-denied"
    NO_CONSUMER_GROUP = "no-consumer-group"
    NO_OFFSETS = "no-offsets"
    NO_TOPIC_FLOWS = "no-topic-flows"
    # What is in the way
    HELD = "held"
    PARTITIONS_HELD = "partitions-held"
    NO_REMOTE_TOPIC = "no-remote-topic"
    TOO_FEW_PARTITIONS = "too-few-partitions"
    NO_DRIVER = "no-driver"
    FLOW_NOT_RUNNING = "flow-not-running"
    REFUSED = "refused"
    UNTRANSLATED = "untranslated"
    ACTIVE = "active-on-target"
    AHEAD = "ahead-on-target"
    SOURCE_DOWN = "source-down"
    TARGET_DOWN = "target-down"
    # Of properties and ACLs
    NO_PROPERTY = "no-property"
    READ_ONLY = "read-only"
    SENSITIVE = "sensitive"
    STATIC = "static"
    DEFAULT = "default-on-source"
    KEPT = "set-by-hand"
    DIFFERENT = "different"
    WRITE = "write"
    STAGED = "staged"
    PRINCIPAL = "principal"
    PATTERN = "pattern"
    NO_AUTHORIZER = "no-authorizer"


@dataclass(frozen=True)
class Rule:
    """What decided."""

    text: str
    """As it is written: a pattern, an entry of a list, a key with its value."""
    place: str
    """`file:line: key`, or where else it comes from."""
    who: str | None = None
    """Who added it, of an entry of a list."""
    at: int | None = None
    """When, in milliseconds since the epoch."""
    why: str | None = None
    """What was said about it then."""


@dataclass(frozen=True)
class Answer:
    """Of one thing in one flow."""

    flow: Flow
    subject: str
    """`topic orders`."""
    verdict: Verdict
    because: Because
    why: str
    """One sentence."""
    rule: Rule | None = None
    since: int | None = None
    """Since when it is so, in milliseconds since the epoch; None where that is not known."""
    waits_for: str | None = None
    remedy: str | None = None
    """What to do where it is to be otherwise."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What else is known, by name."""
