"""The two ends of one flow, and the policy and filter between them, made once from the settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from srm_spark.config.rights import fence_id
from srm_spark.config.settings import ClusterSettings, FlowSettings
from srm_spark.core.cluster import Cluster, Fence, Writer
from srm_spark.core.filter_plugins import GROUPS, TOPICS, load_filter
from srm_spark.core.filters import NameFilter, is_replicated
from srm_spark.core.listed_filter import Filters, ListedFilter
from srm_spark.core.policy import ReplicationPolicy
from srm_spark.core.record_batch import Author
from srm_spark.errors import FlowError, ProgressFailed, SourceUnavailable, TargetUnavailable
from srm_spark.flow.own_writer import AuthorWriter, CurrentAuthor
from srm_spark.kafka.clients import options
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.fencing import FencingToken, TokenNote
from srm_spark.kafka.lease import Lease, lease_group
from srm_spark.kafka.older_drivers import OlderDrivers
from srm_spark.kafka.transactions import LeasedWriter, SettledWriter

if TYPE_CHECKING:
    from srm_spark.kafka.batches.fence import BrokerFence

_FENCE_SECONDS = 20.0
"""A cluster that has no place for transactions (too few brokers for their topic) says so for ever."""


@dataclass(frozen=True)
class Clusters:
    """What a running flow talks to."""

    settings: FlowSettings
    source: Cluster
    target: Cluster
    policy: ReplicationPolicy
    filters: Filters
    """Of the file and the lists, which may be others while the flow runs."""
    make_lease: Callable[[], Lease]
    """The right to write the flow, which is not held yet."""
    make_fence: Callable[[], Fence | None] = lambda: None
    """The flow's producer id on the target, nothing asked of it yet; None where records are not ours to fence."""
    require_lease: Callable[[], None] = lambda: None
    """Raises LeaseLost where nothing of the flow may be written any more; to be called right before anything is."""
    make_shift_writer: Callable[[FencingToken | None, bool, Callable[[], None]], Writer | None] = lambda *_: None
    """Writes another position, all or nothing, and never once another driver has begun: by the token of the
    exactly-once mode, or, where the flow is fenced by its producer id, by that and `require_lease`. Else there is none.
    """

    current: CurrentAuthor = field(default_factory=CurrentAuthor)
    """As whom the flow writes on the target, once a run of it has begun."""

    def own_writer(
        self, role: str, error: type[FlowError], *, seconds: float | None = None, only: Author | None = None
    ) -> AuthorWriter:
        """Writes what only the flow's owner writes on the target: nothing of it is taken once there is another owner.

        As long as `only` is the flow's author, where that is said; else see `Cluster.writer`.
        """
        name = f"{self.settings.flow}|{role}"
        plain = self.target.writer(name, error, seconds=seconds)
        wait = self.target.timeout if seconds is None else seconds
        return self.current.writer(plain, name, error, wait, only=only)

    @property
    def topics(self) -> ListedFilter:
        """Which topics flow."""
        return self.filters.topics

    @property
    def syncs_cluster(self) -> Cluster:
        """Where the offset-syncs topic lies."""
        return self.target if self.settings.syncs.on_target else self.source

    @property
    def syncs_topic(self) -> str:
        """The offset-syncs topic, named after the cluster on which it does not lie (KIP-716)."""
        flow = self.settings.flow
        return self.policy.offset_syncs_topic(flow.source if self.settings.syncs.on_target else flow.target)

    def flows(self, topic: str) -> bool:
        """Whether a topic of the source flows by the file and the lists that were taken, be it there now or not."""
        target, heartbeats = self.settings.flow.target, self.settings.topics.heartbeats_replicated
        return is_replicated(topic, self.topics, self.policy, target, heartbeats)


Connect = Callable[[FlowSettings], Clusters]
"""What a command gets to its clusters by: `connect`, or in tests clusters in memory."""


def connect(settings: FlowSettings) -> Clusters:
    """Clients of both clusters; nothing is asked of them yet."""
    target = target_of(settings, "admin")
    return Clusters(
        settings=settings,
        source=source_of(settings, "admin"),
        target=target,
        policy=settings.policy(),
        filters=filters_of(settings),
        make_lease=partial(lease_of, settings, target),
        make_fence=partial(fence_of, settings),
        make_shift_writer=partial(shift_writer_of, settings),
    )


def filters_of(settings: FlowSettings) -> Filters:
    """The filters of the file, without lists yet."""
    topics, chosen = settings.topics, settings.checkpoints
    return Filters(
        ListedFilter(load_filter(TOPICS, topics.filter_class, topics.include, topics.exclude)),
        ListedFilter(load_filter(GROUPS, chosen.filter_class, chosen.groups, chosen.groups_exclude)),
        ListedFilter(NameFilter((".*",)), steps_back=True),
    )


def lease_of(settings: FlowSettings, target: ClusterClient) -> Lease:
    """The right to write the flow, which is not held yet."""
    older = OlderDrivers(target, lease_group(settings.flow), settings.progress_topic)
    return Lease(settings.flow, target, settings.leases_topic, older)


def fence_of(settings: FlowSettings, name: str = "") -> BrokerFence:
    """The flow's producer id on its target, or that of another transactional id.

    Raises ProtocolUnavailable for a login that only librdkafka makes.
    """
    # Every command of srm-control comes by here, and few of them write: numpy, pyarrow and a second client library
    # take as long to load as all the rest.
    from srm_spark.kafka.batches.brokers import Brokers  # noqa: PLC0415
    from srm_spark.kafka.batches.fence import BrokerFence  # noqa: PLC0415

    logged_in = options(settings.target, settings.producer, f"{settings.flow}|fence")
    brokers = Brokers(logged_in, settings.flow.target)
    control = Brokers(options(settings.target, {}, f"{settings.flow}|progress"), settings.flow.target)
    seconds = min(settings.admin_timeout_seconds, _FENCE_SECONDS)
    return BrokerFence(brokers, name or fence_id(settings.flow), seconds, control)


def shift_writer_of(
    settings: FlowSettings, fencing: FencingToken | None, are_fenced: bool, require_lease: Callable[[], None]
) -> SettledWriter | None:
    """See `Clusters.make_shift_writer`; nothing is asked of the target yet."""
    role = f"{settings.flow}|offsets"
    if fencing is not None:
        return SettledWriter(fencing, role, ProgressFailed)
    if not are_fenced:
        return None
    client = options(settings.target, {}, role)
    note = TokenNote("", 0)  # of the default mode: nobody looks at it
    own = FencingToken(lease_group(settings.flow), settings.leases_topic, note, client, settings.admin_timeout_seconds)
    return LeasedWriter(own, role, ProgressFailed, require_lease)


def source_of(settings: FlowSettings, role: str) -> ClusterClient:
    """A client of the source, which reads as the flow does."""
    return ClusterClient(
        settings.source,
        SourceUnavailable,
        properties=settings.source_admin,
        reads=settings.consumer,
        timeout=settings.admin_timeout_seconds,
        role=f"{settings.flow}|{role}",
    )


def target_of(settings: FlowSettings, role: str) -> ClusterClient:
    """A client of the target."""
    return ClusterClient(
        settings.target,
        TargetUnavailable,
        properties=settings.target_admin,
        timeout=settings.admin_timeout_seconds,
        role=f"{settings.flow}|{role}",
    )


def target_alone(settings: ClusterSettings, role: str, seconds: float) -> ClusterClient:
    """A client of a cluster of which no flow is known; each call lasts so many seconds at most."""
    return ClusterClient(settings, TargetUnavailable, timeout=seconds, role=role)
