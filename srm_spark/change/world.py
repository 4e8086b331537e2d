"""What both sides of a flow said at one moment. Frozen values; unknown is None or a sentence, never 0."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from srm_spark.core.acls import Acl
from srm_spark.core.cluster import TopicConfig
from srm_spark.core.model import Flow, OffsetRange, TopicPartition
from srm_spark.core.quotas import Quotas
from srm_spark.doctor.report import Finding
from srm_spark.flow.topics.internal_topics import Fault, InternalTopic
from srm_spark.plan.renames import Rename

Configs = Mapping[str, TopicConfig]


@dataclass(frozen=True)
class InternalFound:
    """One topic that holds the state of the flow."""

    on: str
    """Alias of its cluster."""
    topic: InternalTopic
    partitions: int | None
    """None where it is not there."""
    fault: Fault | None = None
    """What is wrong with one that is there."""
    heartbeats_of: Flow | None = None
    """The pair of clusters that beats into it; None for one that holds the state of the flow."""


@dataclass(frozen=True)
class TopicPair:
    """A source topic that flows, and its remote topic."""

    topic: str
    partitions: int
    remote: str
    remote_partitions: int | None
    """None where it is not there."""
    source: Configs
    target: Configs
    """Nothing where it is not there."""
    reason: str
    """Why the topic flows."""

    @property
    def is_there(self) -> bool:
        """Whether there is a remote topic."""
        return self.remote_partitions is not None


@dataclass(frozen=True)
class Orphan:
    """A remote topic whose source topic does not flow."""

    remote: str
    topic: str
    """Of the source."""
    is_ours: bool
    """Whether it is recorded as made here; else somebody else made it, or a version that did not record it."""
    is_gone: bool
    """Whether the source shows no such topic."""


@dataclass(frozen=True)
class AclsFound:
    """Entries of both sides, and those that are recorded as made on the target."""

    here: Set[Acl]
    there: Set[Acl]
    made: Set[Acl]
    staged: Set[Acl] = frozenset()
    """Recorded as waiting for a failover."""


@dataclass(frozen=True)
class QuotasFound:
    """Quotas of both sides, and those that are recorded as made on the target."""

    here: Quotas
    there: Quotas
    made: Quotas


@dataclass(frozen=True)
class GroupsFound:
    """Which groups of the source the flow takes, and why it does not take the others."""

    taken: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    unknown: str | None = None
    """Why the source does not tell, or why nobody asks it."""


@dataclass(frozen=True)
class PredictedLoss:
    """Records that the source has deleted before they were copied."""

    partition: TopicPartition
    offsets: OffsetRange


@dataclass(frozen=True)
class World:
    """Both sides of one flow."""

    flow: Flow
    source: str
    """Bootstrap servers."""
    target: str
    internal: tuple[InternalFound, ...]
    topics: tuple[TopicPair, ...]
    skipped: Mapping[str, str]
    """Source topic → why it does not flow, or waits."""
    orphans: tuple[Orphan, ...]
    ours: Mapping[str, Mapping[str, str]]
    """Remote topic → configs that are recorded as from its source."""
    acls: AclsFound | str
    """Or why they are not compared."""
    defaults: Configs
    """What a topic of the target has without any config of its own, as far as its topics tell."""
    groups: GroupsFound = GroupsFound()
    losses: tuple[PredictedLoss, ...] = ()
    renames: tuple[Rename, ...] = ()
    quotas: QuotasFound | str | None = None
    """None where nobody asked for them, or why they are not compared."""
    made_topics: frozenset[str] = frozenset()
    """Remote topics that are recorded as made here."""
    unrecorded: str | None = None
    """Why it is not known what was made here."""
    owner: str | None = None
    """The driver that runs the flow."""
    rights: tuple[Finding, ...] = ()
    """What is not allowed, or cannot be told."""
    warnings: tuple[str, ...] = ()
