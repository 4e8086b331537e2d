"""What a resolved configuration is: frozen, typed, one object per cluster and per flow. No secrets in any repr."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from srm_spark.core.alerting import AlertSettings
from srm_spark.core.config_classes import ConfigClass, ConfigClasses
from srm_spark.core.filters import NameFilter
from srm_spark.core.model import Flow, RefusedPolicy
from srm_spark.core.policy import HEARTBEATS_TOPIC, ReplicationPolicy, load_policy
from srm_spark.core.principal_rules import AS_THEY_ARE, PrincipalRules
from srm_spark.core.provenance import Stamp
from srm_spark.core.vitals import SILENT_SECONDS


@dataclass(frozen=True)
class ClusterSettings:
    """How to reach one cluster: Java client properties, the same for every client of that cluster."""

    alias: str
    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Java client properties common to all clients (`security.protocol`, `sasl.*`, `ssl.*` …)."""


@dataclass(frozen=True)
class TopicSettings:
    """Which topics flow, how they are named and made."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    config_exclude: tuple[str, ...]
    policy_class: str
    separator: str
    internal_separator: str
    replication_factor: int
    use_defaults_from: str
    refresh_seconds: float
    refresh_enabled: bool
    heartbeats_replicated: bool
    internal_excluded: bool = True
    """Whether no topic flows whose name begins with `__` or `.`."""
    filter_class: str = ""
    """`package.module:Class` of a filter of the user's own; empty for the usual one."""
    config_filter_class: str = ""
    """The same, of topic configs."""
    configs_seconds: float | None = None
    """How often configs of remote topics are compared; None: never."""
    resets_overrides: bool = False
    """What somebody set on a remote topic goes back to its default where the source has that."""
    config_moved: Mapping[ConfigClass, tuple[str, ...]] = field(default_factory=dict)
    """Class of topic configs → patterns of those that were moved to it."""

    def config_classes(self) -> ConfigClasses:
        """Which class a topic config is of. Raises PluginError and PatternError."""
        return ConfigClasses(self.config_exclude, self.config_filter_class, self.config_moved)


@dataclass(frozen=True)
class SyncSettings:
    """Offset syncs of one flow."""

    enabled: bool
    on_target: bool
    lag_max: int
    replication_factor: int


@dataclass(frozen=True)
class AclSettings:
    """Which ACLs the target gets of those of the source."""

    seconds: float | None = None
    """How often they are compared; None: never."""
    patterns: bool = False
    """Entries for prefixes and for `*`, too."""
    groups: bool = False
    """Those of the groups that the flow takes, too."""
    removes: bool = False
    """What was made here goes when it goes on the source."""
    writes_on_failover: bool = False
    """What allows to write is recorded, and put in force by a failover."""
    principals: PrincipalRules = AS_THEY_ARE
    """How principals of the source are called on the target."""
    quotas_seconds: float | None = None
    """How often quotas of users are compared; None: never."""

    @property
    def stages_writes(self) -> bool:
        """Whether what allows to write is looked for, and recorded for a failover."""
        return self.seconds is not None and self.writes_on_failover


@dataclass(frozen=True)
class CheckpointSettings:
    """Translation of consumer group offsets of one flow."""

    groups: tuple[str, ...] = (".*",)
    groups_exclude: tuple[str, ...] = ()
    refresh_enabled: bool = True
    refresh_seconds: float = 5.0
    emit_enabled: bool = True
    emit_seconds: float = 5.0
    sync_enabled: bool = False
    sync_seconds: float = 5.0
    replication_factor: int = 3
    filter_class: str = ""
    """`package.module:Class` of a filter of groups of the user's own; empty for the usual one."""
    reverse_enabled: bool = True
    """Groups that read remote topics of the target are translated back."""
    rewinds_enabled: bool = False
    """A group that rewound on the source is set back on the target, unless it moved there by itself."""


@dataclass(frozen=True)
class HeartbeatSettings:
    """Heartbeats of one ordered pair of clusters, enabled as a flow or not."""

    flow: Flow
    enabled: bool
    interval_seconds: float
    replication_factor: int
    topic: str = HEARTBEATS_TOPIC
    """As the replication policy calls it."""


@dataclass(frozen=True)
class BatchSettings:
    """How much one micro-batch takes, and how often."""

    max_records: int
    """Source offsets per trigger, all partitions together."""
    max_bytes: int
    """Bytes that one pass writes before progress is committed."""
    arrow_max_records: int
    arrow_max_bytes: int
    in_loop: bool
    """Whether tasks fetch batches by themselves, where compiled loops can take them apart."""
    driver_max_bytes: int
    """What is so small is copied without a Spark job."""
    trigger_interval_ms: int
    tasks_max: int | None
    """Most tasks of one batch; None takes the parallelism of the session."""


@dataclass(frozen=True)
class LossPolicies:
    """What to do with a topic when one side is not as recorded: `stop` holds it, `resume` goes on and reports."""

    defaults: Mapping[str, str] = field(default_factory=dict)
    """Key → `stop` or another word for going on, for `source.truncated.policy` and its like."""
    stop_topics: tuple[str, ...] = ()
    resume_topics: tuple[str, ...] = ()
    """Source topics (patterns) for which all policies are the one or the other."""

    def stops(self, key: str, topic: str) -> bool:
        """Whether `topic` is held in the case that `key` names."""
        if NameFilter(self.stop_topics).matches(topic):
            return True
        return self.defaults.get(key) == "stop" and not NameFilter(self.resume_topics).matches(topic)


class StartAt(Enum):
    """Where a partition begins of which nothing is recorded; of a topic that several match, the first one here wins."""

    EARLIEST = "earliest"
    TIMESTAMP = "timestamp"
    LATEST = "latest"


@dataclass(frozen=True)
class StartSettings:
    """Where topics begin that were never copied."""

    topics: Mapping[StartAt, tuple[str, ...]] = field(default_factory=dict)
    """Source topics (patterns) with a place of their own; all others begin where `auto.offset.reset` says."""
    timestamp: int | None = None
    """Milliseconds since the epoch."""

    def of(self, topic: str, default: StartAt) -> StartAt:
        """The place of one source topic."""
        return next((at for at in StartAt if NameFilter(self.topics.get(at, ())).matches(topic)), default)


@dataclass(frozen=True)
class RefusedPolicies:
    """What to do with records that the target would refuse, or that Spark's source cannot read."""

    default: RefusedPolicy = RefusedPolicy.HOLD
    topics: Mapping[RefusedPolicy, tuple[str, ...]] = field(default_factory=dict)
    """Source topics (patterns) with a policy of their own; where several match, `hold` wins, then `park`."""

    def of(self, topic: str) -> RefusedPolicy:
        """The policy of one source topic."""
        matching = (policy for policy in RefusedPolicy if NameFilter(self.topics.get(policy, ())).matches(topic))
        return next(matching, self.default)

    @property
    def parks(self) -> bool:
        """Whether a record may go into quarantine."""
        return self.default is RefusedPolicy.PARK or bool(self.topics.get(RefusedPolicy.PARK))


@dataclass(frozen=True)
class AuditSettings:
    """How often the driver compares what it has copied with its source."""

    seconds: float | None = None
    """None: never."""
    rate: int | None = None
    """Bytes/s of both sides together; None for no limit."""


@dataclass(frozen=True)
class LimitSettings:
    """How many bytes a flow may write per second, and whose records go first then."""

    flow_bytes: int | None = None
    """None: as many as it can."""
    cluster_bytes: int | None = None
    """All flows of the process into the target together."""
    high_topics: tuple[str, ...] = ()
    low_topics: tuple[str, ...] = ()
    """Source topics (patterns) that go before and after all others; what matches both goes first."""

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.flow_bytes is not None or self.cluster_bytes is not None

    @property
    def has_classes(self) -> bool:
        """Whether a limit makes some topics wait for others."""
        return self.is_limited and bool(self.high_topics or self.low_topics)

    def ranks(self, topics: Iterable[str]) -> dict[str, int]:
        """The class of each source topic, 0 goes first."""
        high, low = NameFilter(self.high_topics), NameFilter(self.low_topics)
        return {topic: 0 if high.matches(topic) else 2 if low.matches(topic) else 1 for topic in topics}


@dataclass(frozen=True)
class StateSettings:
    """Tables for SQL and notebooks, which are filled beside the records."""

    path: str = ""
    """Absolute folder or URI; empty: no tables."""
    is_default: bool = False
    """Nobody chose the folder: only of use where Spark's executors run on this machine."""
    interval_seconds: float = 60.0


class MetricNames(Enum):
    """How MirrorMaker 2's metrics are called (`metric.names.formats`, KIP-1280)."""

    LEGACY = "legacy"
    NEW = "new"


@dataclass(frozen=True)
class MetricsSettings:
    """The samples of one flow."""

    seconds: float | None = 30.0
    """Between two of them; None: none are written."""
    replication_factor: int | None = None
    """Of their topics; None: as the progress topic's."""
    names: tuple[MetricNames, ...] = (MetricNames.LEGACY,)


@dataclass(frozen=True)
class ExportSettings:
    """Where a driver shows its metrics to Prometheus."""

    host: str
    port: int
    """0: any that is free."""
    has_partitions: bool = False
    """A series for each partition, too."""


@dataclass(frozen=True)
class Timings:
    """How long a flow waits for what, where no key says so. Tests hand in shorter ones."""

    tick_seconds: float = 1.0
    """Between two looks of a flow at itself."""
    lists_seconds: float = 1.0
    """Between two looks at the allow and deny lists."""
    status_seconds: float = 5.0
    """Between two words of a driver in the status topic."""
    lag_seconds: float = 5.0
    """How old the lag in the status may be, however seldom topics are looked for."""
    debounce_seconds: float = 1.0
    """Topics are often created several at a time: one new generation for all of them."""
    silent_seconds: float = SILENT_SECONDS
    """Without a sign of life for so long a flow is stalled."""
    first_copy_seconds: float = 30.0
    """Spark may need so long for the first batch of a query."""
    visible_seconds: float = 30.0
    """How long a start waits for what it has made on the target to show before it goes on without it."""
    leader_seconds: float = 10.0
    """How long a start waits for partitions without a leader before it goes on without them."""
    retry_paused_seconds: float = 60.0
    """Until a paused partition is tried again: that costs a restart of the query, and reads the refused record anew."""
    stop_seconds: float = 120.0
    """How long a clean stop waits for the batch in progress."""
    groups_stop_seconds: float = 10.0
    """How long it waits for a call about consumer groups; one that comes late does no harm."""
    table_stop_seconds: float = 10.0
    """How long it waits for a write to the table; one that is cut off leaves the table as it was."""


def control_topic(source: str) -> str:
    """Where the lists of topics and groups of this source lie on a target; a name of this form never flows."""
    return f"mm2-control.{source}.internal"


@dataclass(frozen=True)
class FlowSettings:
    """Everything that one enabled flow needs."""

    flow: Flow
    source: ClusterSettings
    target: ClusterSettings
    topics: TopicSettings
    syncs: SyncSettings
    batch: BatchSettings
    consumer: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Java consumer properties of the replication consumer, on top of the source's common ones."""
    producer: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Java producer properties of the record producer, on top of the target's common ones."""
    connector_name: str = "MirrorSourceConnector"
    """First element of the progress keys (`MirrorSourceConnector` is its name)."""
    progress_topic: str = ""
    progress_replication_factor: int = 3
    progress_partitions: int = 25
    control_replication_factor: int = 3
    retry_count: int = -1
    """Failed starts in a row before the flow is given up; -1 retries for ever."""
    retry_delay_seconds: float = 10.0
    source_id: str = ""
    """What Kafka's id of the source cluster must be; empty: whatever the flow was copied from before."""
    is_spread: bool = True
    """A driver with more to do than another one that stands by gives the flow to that."""
    admin_timeout_seconds: float = 60.0
    source_admin: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Java admin properties on the source, on top of the source's common ones."""
    target_admin: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Java admin properties on the target, on top of the target's common ones."""
    syncs_producer: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Java producer properties of the offset-syncs producer, on top of the common ones of the cluster it writes to."""
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    acls: AclSettings = field(default_factory=AclSettings)
    policies: LossPolicies = field(default_factory=LossPolicies)
    refused: RefusedPolicies = field(default_factory=RefusedPolicies)
    starts: StartSettings = field(default_factory=StartSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    state: StateSettings = field(default_factory=StateSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    rpo_goal_seconds: int | None = None
    """How many seconds of data a failover may lose; None where no goal is set."""
    rto_goal_seconds: int | None = None
    """How many seconds a failover may take; None where no goal is set."""
    provenance_enabled: bool = False
    """Copies carry a header that says where they were first written, and are not copied back."""
    is_realtime: bool = False
    """Records are copied by tasks that last where that is possible, else in micro-batches."""
    realtime_topics: tuple[str, ...] = ()
    """Source topics (patterns) of which that is meant; empty: all."""
    is_exactly_once: bool = False
    """Records and progress are committed in one transaction (KIP-618)."""
    timings: Timings = field(default_factory=Timings, repr=False)
    places: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Property → `file:line: key` where it was written, for what only a running cluster shows to be wrong."""

    def policy(self) -> ReplicationPolicy:
        """How remote topics are called, and what never flows. Raises PluginError."""
        return load_policy(
            self.topics.policy_class,
            source_alias=self.flow.source,
            separator=self.topics.separator,
            internal_separator=self.topics.internal_separator,
            internal_excluded=self.topics.internal_excluded,
        )

    def within(self, seconds: float) -> FlowSettings:
        """The same for somebody who waits: an administrative call may last so many seconds at most."""
        return replace(self, admin_timeout_seconds=min(seconds, self.admin_timeout_seconds))

    @property
    def metrics_factor(self) -> int:
        """Replication factor of the topics of samples."""
        factor = self.metrics.replication_factor
        return self.progress_replication_factor if factor is None else factor

    @property
    def stamp(self) -> Stamp | None:
        """What copies get as a provenance header; None where they get none."""
        return self.own_stamp if self.provenance_enabled else None

    @property
    def own_stamp(self) -> Stamp:
        """What copies get where they get one, and what those have that were made while they did."""
        return Stamp(self.flow.source, self.flow.target)

    @property
    def map_topic(self) -> str:
        """The offset map on the target. MirrorMaker 2 leaves names of this form alone: `isInternalTopic`."""
        return f"mm2-offset-map.{self.flow.source}.internal"

    @property
    def control_topic(self) -> str:
        """The allow and deny lists, on the target."""
        return control_topic(self.flow.source)

    @property
    def leases_topic(self) -> str:
        """Who may write the flow, on the target: a log of claims (`core/leases.py`)."""
        return f"mm2-leases.{self.flow.source}.internal"

    @property
    def quarantine_topic(self) -> str:
        """The quarantine, on the target; a name of this form never flows (`ReplicationPolicy.isMM2InternalTopic`)."""
        return f"mm2-quarantine.{self.flow.source}.internal"

    @property
    def status_topic(self) -> str:
        """What drivers say of themselves, on the target; `mm2-status` is Connect's own."""
        return f"mm2-srm-status.{self.flow.source}.internal"

    @property
    def reads_committed(self) -> bool:
        """Whether records of open and aborted transactions are not copied."""
        return self.consumer.get("isolation.level") == "read_committed"

    @property
    def reports_topic(self) -> str:
        """Where the real-time lane tells on the target what it has written; the name never flows either."""
        return f"mm2-realtime.{self.flow.source}.internal"

    @property
    def map_table(self) -> str:
        """The same as a Delta table, for SQL: a folder or URI; empty where none is wanted."""
        return self._table("offset-map")

    @property
    def loss_table(self) -> str:
        """What was lost, as a Delta table beside it."""
        return self._table("losses")

    def _table(self, name: str) -> str:
        return self.state.path and f"{self.state.path}/{name}/{self.flow.source}/{self.flow.target}"


@dataclass(frozen=True)
class HistorySettings:
    """Figures of more than two hours."""

    path: str
    """Absolute, of a folder."""
    days: int = 30
    """For which they are kept."""
    is_embedded: bool = True
    """Whether the service writes them itself."""


LOGIN_DONE = "/login/done"
"""Where a provider sends browsers back to."""


@dataclass(frozen=True)
class OidcSettings:
    """An OpenID provider, and what it is asked for."""

    issuer: str
    roles_file: str
    client_id: str = ""
    """Empty: nobody logs in by a browser."""
    client_secret: str = field(default="", repr=False)
    """Empty: a public client."""
    redirect: str = ""
    """The service's address for browsers, with the path `LOGIN_DONE` behind a root path."""
    audience: str = ""
    """Empty: no access tokens are taken."""
    roles_claim: str = "groups"
    name_claim: str = "preferred_username"
    scopes: tuple[str, ...] = ("openid", "profile")
    session_minutes: int = 480


@dataclass(frozen=True)
class AdvertisedSettings:
    """Where other services find a service, as far as that is not where it listens."""

    protocol: str | None = None
    """http or https."""
    host: str | None = None
    """An IPv6 address has no brackets."""
    port: int | None = None
    path: str = ""
    """In front of all its paths; empty, or begins with a slash and does not end with one."""
    replication_factor: int | None = None
    """Of the topic; None: that of the topics of samples."""


@dataclass(frozen=True)
class RemoteSettings:
    """Services of other sites that a service asks for their flows."""

    targets: tuple[str, ...]
    """Clusters in which they say where they are."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    """Instead of user and password."""
    ca_file: str | None = None
    """PEM file; None: the authorities of the system."""


@dataclass(frozen=True)
class ServiceSettings:
    """What `srm-service` serves, and to whom."""

    targets: tuple[str, ...] = ()
    """Clusters whose incoming flows it tells of; empty: all."""
    host: str = "127.0.0.1"
    port: int = 6670
    users_file: str | None = None
    certificate: str | None = None
    """PEM file; None: no TLS."""
    key: str | None = None
    anonymous_role: str = "viewer"
    """viewer, operator or admin."""
    audit_path: str | None = None
    """None: the log."""
    moves_path: str = "."
    alerts: AlertSettings | None = None
    """None: nobody is told."""
    history: HistorySettings | None = None
    """None: nothing is kept beyond what memory holds."""
    advertised: AdvertisedSettings = field(default_factory=AdvertisedSettings)
    remote: RemoteSettings | None = None
    """None: no other service is asked."""
    oidc: OidcSettings | None = None
    """None: there is no OpenID provider."""

    @property
    def has_logins(self) -> bool:
        """Whether everybody has to log in."""
        return self.users_file is not None or self.oidc is not None


@dataclass(frozen=True)
class SigningSettings:
    """What signs statements."""

    key: str
    """PEM file, or `pkcs11:` URI."""
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Settings:
    """A whole configuration file, resolved."""

    clusters: Mapping[str, ClusterSettings]
    flows: tuple[FlowSettings, ...]
    """The enabled flows."""
    heartbeats: tuple[HeartbeatSettings, ...]
    """Every ordered pair for which heartbeats are emitted."""
    warnings: tuple[str, ...] = ()
    """What the file says that is not honoured, one line each with its place."""
    dialect: str = "mm2"
    """Whose rules were followed where MirrorMaker 2 and SRM disagree: `mm2` or `srm`."""
    export: ExportSettings | None = None
    """None: nothing is shown to Prometheus."""
    service: ServiceSettings = field(default_factory=ServiceSettings)
    signing: SigningSettings | None = None
    """None: statements are not signed."""
    written: Mapping[str, str] = field(default_factory=dict)
    """What the files and overrides say, by key; secrets are masked."""
