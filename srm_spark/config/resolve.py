"""From entries to `Settings`: which clusters and flows, and everything that one flow needs. Reports, never raises."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from srm_spark.config import levels
from srm_spark.config.keys_client import SECURITY_KEYS, spelled
from srm_spark.config.keys_connector import (
    ACL_PATTERNS_KEY,
    ACL_PRINCIPALS_KEY,
    ACL_REMOVAL_KEY,
    ACL_WRITE_KEY,
    GROUP_ACLS_KEY,
    INTERNAL_KEY,
    LOSS_POLICIES,
    METRIC_NAMES_KEY,
    MODE_KEY,
    OVERRIDES_KEY,
    PROVENANCE_KEY,
    REALTIME_TOPICS_KEY,
    SOURCE_ID_KEY,
    SOURCE_OFFSET_KEY,
)
from srm_spark.config.keys_process import LISTENER_KEY, PARTITIONS_KEY
from srm_spark.config.levels import Layered, Level, Setting
from srm_spark.config.schema import Dialect
from srm_spark.config.settings import (
    AclSettings,
    AuditSettings,
    BatchSettings,
    CheckpointSettings,
    ClusterSettings,
    ExportSettings,
    FlowSettings,
    HeartbeatSettings,
    LimitSettings,
    LossPolicies,
    MetricNames,
    MetricsSettings,
    RefusedPolicies,
    StartAt,
    StartSettings,
    StateSettings,
    SyncSettings,
    TopicSettings,
)
from srm_spark.config.source import Sources
from srm_spark.config.values import Report, Values
from srm_spark.core.config_classes import ConfigClass
from srm_spark.core.filter_plugins import CONFIG_PROPERTIES, GROUPS, TOPICS, FilterKey, is_kafkas_own
from srm_spark.core.model import Flow, RefusedPolicy
from srm_spark.core.moments import moment_of
from srm_spark.core.policy import HEARTBEATS_TOPIC, load_policy
from srm_spark.core.principal_rules import AS_THEY_ARE, PrincipalRules, RuleError, read_rules
from srm_spark.errors import PluginError

CONSUMER_DEFAULTS = {
    # librdkafka's own default is read_committed, Java's is not.
    "isolation.level": "read_uncommitted",
    "auto.offset.reset": "earliest",
}
_PORTS = 65_535
_HEARTBEATS = "emit.heartbeats.enabled"
_STATE_SECONDS, _REALTIME_STATE_SECONDS = 60.0, 600.0
"""To write a table keeps two cores busy for seconds: of a real-time flow that must be less than 1 % of the time."""


@dataclass(frozen=True)
class Resolver:
    """Resolves one set of sources under one dialect."""

    sources: Sources
    dialect: Dialect
    report: Report
    expand: Callable[[Setting], str]
    """The value with its `${…}` references replaced."""

    def cluster(self, alias: str) -> ClusterSettings:
        """How to reach a cluster."""
        return self._cluster(alias, levels.cluster_props(self.sources.entries, alias))

    def connector(self, flow: Flow) -> Layered:
        """Everything that claims a property of the flow's connectors."""
        return levels.connector_props(self.sources.entries, flow, self.dialect)

    def worker(self, flow: Flow) -> Layered:
        """Everything that claims a property of the flow's worker."""
        return levels.worker_props(self.sources.entries, flow, self.dialect)

    def values(self, flow: Flow, props: Layered) -> Values:
        """Typed access to `props`."""
        home = self.sources.place_of(f"{flow}.enabled", "clusters")
        return Values(props, self.dialect, self.report, self.expand, home)

    def process(self) -> Values:
        """Typed access to what is said of the process itself."""
        props, home = levels.process_props(self.sources.entries), self.sources.place_of("clusters")
        return Values(props, self.dialect, self.report, self.expand, home)

    def export(self) -> ExportSettings | None:
        """Where metrics are shown to Prometheus; None where they are not."""
        values = self.process()
        has_partitions = values.flag(PARTITIONS_KEY)
        if not values.is_set(LISTENER_KEY):
            if has_partitions:
                values.refuse(PARTITIONS_KEY, f"has no effect without {LISTENER_KEY}", "write both or none")
            return None
        written = values.text(LISTENER_KEY)
        host, _, port = written.rpartition(":")
        if not host or not port.isdecimal() or not port.isascii() or int(port) > _PORTS:
            hint = f"write {LISTENER_KEY} = 127.0.0.1:9464"
            values.refuse(LISTENER_KEY, f"got {written!r}; allowed HOST:PORT, the port from 0 to {_PORTS}", hint)
            return None
        return ExportSettings(host.removeprefix("[").removesuffix("]"), int(port), has_partitions)

    def is_enabled(self, flow: Flow, connector: Layered) -> bool:
        """Whether records flow; as in MM2 only `A->B.enabled` brings a pair without heartbeats to life."""
        values, before = self.values(flow, connector), len(self.report.problems)
        if not values.flag("enabled") and len(self.report.problems) == before:
            return False  # what is misspelled may have been meant to be true: the rest of the flow is checked, too
        setting = connector.get("enabled")
        return (setting is not None and setting.level is Level.REPLICATION) or values.flag(_HEARTBEATS)

    def heartbeat(self, flow: Flow, connector: Layered, enabled: bool) -> HeartbeatSettings | None:
        """The heartbeats of a pair; None where they are off."""
        values = self.values(flow, connector)
        seconds = values.number("emit.heartbeats.interval.seconds")
        factor = values.number("heartbeats.topic.replication.factor")
        if not values.flag(_HEARTBEATS) or seconds < 0:
            return None
        return HeartbeatSettings(flow, enabled, float(seconds), factor, _heartbeats_topic(flow, values))

    def flow(self, flow: Flow, connector: Layered) -> FlowSettings:
        """Everything that an enabled flow needs."""
        worker = self.worker(flow)
        values, of_worker = self.values(flow, connector), self.values(flow, worker)
        of_target = self.values(flow, levels.cluster_props(self.sources.entries, flow.target))
        source = self._cluster(flow.source, connector.below("source.cluster."))
        target = self._cluster(flow.target, connector.below("target.cluster."))
        syncs, is_exactly_once = _syncs(values), _is_exactly_once(values, of_worker)
        consumer = {**CONSUMER_DEFAULTS, **self._client(source, connector, "source", "consumer")}
        return FlowSettings(
            flow=flow,
            source=source,
            target=target,
            topics=_topics(values),
            syncs=syncs,
            batch=_batch(values),
            policies=_policies(values),
            refused=_refused(values),
            starts=_starts(values),
            limits=_limits(values, of_target),
            state=_state(values, source, target),
            metrics=_metrics(values, self.process()),
            audit=_audit(values),
            rpo_goal_seconds=values.optional_number("rpo.goal.seconds"),
            rto_goal_seconds=values.optional_number("rto.goal.seconds"),
            consumer={**consumer, "isolation.level": "read_committed"} if is_exactly_once else consumer,
            producer=self._record_producer(target, worker, connector),
            connector_name=values.text("name") or "MirrorSourceConnector",
            progress_topic=of_worker.text("offset.storage.topic") or f"mm2-offsets.{flow.source}.internal",
            progress_replication_factor=of_worker.number("offset.storage.replication.factor"),
            control_replication_factor=_control_factor(values, of_worker),
            progress_partitions=of_worker.number("offset.storage.partitions"),
            retry_count=values.number("flow.retry.count"),
            source_id=values.text(SOURCE_ID_KEY),
            is_spread=values.flag("flow.spread.enabled"),
            retry_delay_seconds=values.number("flow.retry.delay.ms") / 1000,
            admin_timeout_seconds=values.number("admin.timeout.ms") / 1000,
            source_admin=self._client(source, connector, "source", "admin"),
            target_admin=self._client(target, connector, "target", "admin"),
            syncs_producer=self._client(
                target if syncs.on_target else source, connector, "target" if syncs.on_target else "source", "producer"
            ),
            checkpoints=_checkpoints(values),
            acls=_acls(values),
            provenance_enabled=values.flag(PROVENANCE_KEY if values.is_set(PROVENANCE_KEY) else SOURCE_OFFSET_KEY),
            is_realtime=_is_realtime(values),
            realtime_topics=values.patterns(REALTIME_TOPICS_KEY),
            is_exactly_once=is_exactly_once,
            places={**_places(connector), **_places(worker)},
        )

    def _cluster(self, alias: str, props: Layered) -> ClusterSettings:
        security = self._expanded(props, sorted(SECURITY_KEYS))
        return ClusterSettings(alias, security.pop("bootstrap.servers", "").strip(), security)

    def _client(self, cluster: ClusterSettings, connector: Layered, side: str, client: str) -> dict[str, str]:
        props = levels.client_props(connector, side, client, self.dialect)
        return _beyond(cluster, self._expanded(props, props.names()))

    def _record_producer(self, target: ClusterSettings, worker: Layered, connector: Layered) -> dict[str, str]:
        props = levels.record_producer_props(worker, connector, self.dialect)
        return _beyond(target, self._expanded(props, props.names()))

    def _expanded(self, props: Layered, names: Iterable[str]) -> dict[str, str]:
        settings = {name: setting for name in names if (setting := props.get(name)) is not None}
        # Kafka trims texts and passwords, too; a secret from a file often ends in a line break.
        return {name: spelled(name, self.expand(setting).strip()) for name, setting in settings.items()}


def _heartbeats_topic(flow: Flow, values: Values) -> str:
    """As the pair's policy says; one that cannot be made is reported where flows are checked."""
    separator = values.text("replication.policy.separator")
    try:
        name = values.text("replication.policy.class").strip()
        return load_policy(name, source_alias=flow.source, separator=separator).heartbeats_topic()
    except PluginError:
        return HEARTBEATS_TOPIC


_EXPLAINED = frozenset(
    {
        "topics",
        "topics.exclude",
        TOPICS.key,
        "groups",
        "groups.exclude",
        GROUPS.key,
        "config.properties.exclude",
        CONFIG_PROPERTIES.key,
        "heartbeats.replication.enabled",
        "emit.checkpoints.enabled",
        "sync.group.offsets.enabled",
        "sync.topic.configs.enabled",
        "sync.topic.acls.enabled",
        "use.defaults.from",
        OVERRIDES_KEY,
        ACL_PRINCIPALS_KEY,
        ACL_WRITE_KEY,
        *(one.key for one in ConfigClass),
    }
)
"""Properties that `srm-control explain` names with their places."""


def _places(props: Layered) -> dict[str, str]:
    """Where the replication factors were written, which may not fit the clusters, and what is to be explained."""
    names = [name for name in props.names() if name.endswith("replication.factor") or name in _EXPLAINED]
    settings = {name: setting for name in names if (setting := props.get(name)) is not None}
    return {name: f"{setting.place}: {setting.key}" for name, setting in settings.items()}


def _beyond(cluster: ClusterSettings, props: Mapping[str, str]) -> dict[str, str]:
    """The properties that say something else than the cluster's own."""
    common = {"bootstrap.servers": cluster.bootstrap_servers, **cluster.properties}
    return {name: value for name, value in props.items() if common.get(name) != value}


def _is_exactly_once(values: Values, of_worker: Values) -> bool:
    """By MirrorMaker 2's switch of the worker, or for one flow (KIP-618, KIP-710)."""
    is_enabled = of_worker.text("exactly.once.source.support").lower() == "enabled"
    return is_enabled or values.text("exactly.once.support").lower() == "required"


def _audit(values: Values) -> AuditSettings:
    seconds, rate = values.number("audit.interval.seconds"), values.number("audit.limit.bytes")
    return AuditSettings(float(seconds) if seconds > 0 else None, rate or None)


def _topics(values: Values) -> TopicSettings:
    separator = values.text("replication.policy.separator")
    internal = values.flag("replication.policy.internal.topic.separator.enabled")
    seconds = values.number("refresh.topics.interval.seconds")
    return TopicSettings(
        include=values.patterns("topics"),
        exclude=values.patterns(_old_name(values, "topics.exclude", "topics.blacklist")),
        config_exclude=values.patterns(
            _old_name(values, "config.properties.exclude", "config.properties.blacklist"),
        ),
        policy_class=values.text("replication.policy.class").strip(),
        separator=separator,
        internal_separator=separator if internal else ".",
        replication_factor=_factor(values, "replication.factor"),
        use_defaults_from=values.text("use.defaults.from"),
        refresh_seconds=float(seconds),
        refresh_enabled=values.flag("refresh.topics.enabled") and seconds > 0,
        heartbeats_replicated=values.flag("heartbeats.replication.enabled"),
        internal_excluded=values.flag(INTERNAL_KEY),
        filter_class=_filter_class(values, TOPICS),
        config_filter_class=_filter_class(values, CONFIG_PROPERTIES),
        configs_seconds=_every(values, "sync.topic.configs"),
        resets_overrides=values.text(OVERRIDES_KEY) == "reset",
        config_moved={one: values.patterns(one.key) for one in ConfigClass},
    )


def _acls(values: Values) -> AclSettings:
    return AclSettings(
        seconds=_every(values, "sync.topic.acls"),
        patterns=values.flag(ACL_PATTERNS_KEY),
        groups=values.flag(GROUP_ACLS_KEY),
        removes=values.flag(ACL_REMOVAL_KEY),
        writes_on_failover=values.text(ACL_WRITE_KEY) == "failover",
        principals=_principals(values),
        quotas_seconds=_every(values, "sync.user.quotas"),
    )


def _principals(values: Values) -> PrincipalRules:
    try:
        return read_rules(values.text(ACL_PRINCIPALS_KEY))
    except RuleError as error:
        hint = "write rules as of ssl.principal.mapping.rules: RULE:^CN=([^,]+).*$/$1/L, DEFAULT"
        values.refuse(ACL_PRINCIPALS_KEY, f"got {values.text(ACL_PRINCIPALS_KEY)!r}: {error}", hint)
        return AS_THEY_ARE


def _every(values: Values, prefix: str) -> float | None:
    """Seconds between two times; None where it is off."""
    seconds = values.number(f"{prefix}.interval.seconds")
    return float(seconds) if values.flag(f"{prefix}.enabled") and seconds > 0 else None


def _filter_class(values: Values, filter_key: FilterKey) -> str:
    name = values.text(filter_key.key)
    return "" if is_kafkas_own(filter_key, name) else name


def _old_name(values: Values, name: str, old: str) -> str:
    return old if values.is_set(old) and not values.is_set(name) else name


def _factor(values: Values, name: str) -> int:
    factor = values.number(name)
    if factor == 0:
        values.refuse(name, "got 0; allowed 1 or more, or -1 for the broker's default")
    return factor


def _control_factor(values: Values, of_worker: Values) -> int:
    name = "control.topic.replication.factor"
    return _factor(values, name) if values.is_set(name) else of_worker.number("offset.storage.replication.factor")


def _syncs(values: Values) -> SyncSettings:
    return SyncSettings(
        enabled=values.flag("emit.offset-syncs.enabled"),
        on_target=values.text("offset-syncs.topic.location") == "target",
        lag_max=values.number("offset.lag.max"),
        replication_factor=_factor(values, "offset-syncs.topic.replication.factor"),
    )


def _policies(values: Values) -> LossPolicies:
    return LossPolicies(
        defaults={key: values.text(key) for key, _, _ in LOSS_POLICIES},
        stop_topics=values.patterns("policy.stop.topics"),
        resume_topics=values.patterns("policy.resume.topics"),
    )


def _refused(values: Values) -> RefusedPolicies:
    tolerated = not values.is_set("refused.record.policy") and values.text("errors.tolerance") == "all"
    return RefusedPolicies(
        default=RefusedPolicy.PARK if tolerated else RefusedPolicy(values.text("refused.record.policy")),
        topics={policy: values.patterns(f"policy.{policy.value}.topics") for policy in RefusedPolicy},
    )


def _starts(values: Values) -> StartSettings:
    topics = {at: values.patterns(f"topics.start.{at.value}") for at in StartAt}
    name, timestamp = "topics.start.time", None
    if topics[StartAt.TIMESTAMP] and not values.is_set(name):
        values.refuse("topics.start.timestamp", f"{name} does not say when", f"write {name} = 2026-01-31T12:00:00Z")
    if values.is_set(name):
        try:
            timestamp = moment_of(values.text(name))
        except ValueError as error:
            values.refuse(name, f"got {values.text(name)!r}; allowed {error}")
    return StartSettings(topics, timestamp)


def _limits(values: Values, of_target: Values) -> LimitSettings:
    return LimitSettings(
        flow_bytes=values.optional_number("bandwidth.limit.bytes"),
        cluster_bytes=of_target.optional_number("bandwidth.limit.bytes"),
        high_topics=values.patterns("priority.high.topics"),
        low_topics=values.patterns("priority.low.topics"),
    )


def _is_realtime(values: Values) -> bool:
    return values.text(MODE_KEY) == "realtime"


def _state(values: Values, source: ClusterSettings, target: ClusterSettings) -> StateSettings:
    given = values.optional_number("state.interval.seconds")
    usual = _REALTIME_STATE_SECONDS if _is_realtime(values) else _STATE_SECONDS
    seconds = usual if given is None else float(given)
    path = values.text("state.path")
    if values.is_set("state.path"):
        is_folder = path and "://" not in path and not path.startswith("file:")
        return StateSettings(str(Path(path).expanduser().absolute()) if is_folder else path, interval_seconds=seconds)
    # Other clusters under the same aliases, a development pair for example, must not share a table.
    pair = hashlib.sha256(f"{source.bootstrap_servers} {target.bootstrap_servers}".encode()).hexdigest()[:8]
    folder = Path(tempfile.gettempdir()) / f"srm-spark-{os.getuid()}-{pair}"
    return StateSettings(str(folder), is_default=True, interval_seconds=seconds)


def _metrics(values: Values, of_process: Values) -> MetricsSettings:
    seconds, factor = of_process.number("metrics.period"), None
    if of_process.is_set("metrics.topic.replication.factor"):
        factor = _factor(of_process, "metrics.topic.replication.factor")
    allowed = {one.value: one for one in MetricNames}
    written = values.names(METRIC_NAMES_KEY)
    unknown = [name for name in written if name.lower() not in allowed]
    if unknown or not written:
        got = ", ".join(unknown) or "nothing"
        values.refuse(METRIC_NAMES_KEY, f"got {got}; allowed {', '.join(allowed)}, or both")
        return MetricsSettings()
    names = tuple(allowed[name.lower()] for name in written)
    return MetricsSettings(float(seconds) if seconds > 0 else None, factor, names)


def _batch(values: Values) -> BatchSettings:
    return BatchSettings(
        max_records=values.number("batch.max.records"),
        max_bytes=values.number("batch.max.bytes"),
        arrow_max_records=values.number("arrow.max.records"),
        arrow_max_bytes=values.number("arrow.max.bytes"),
        in_loop=values.flag("compiled.loop.enabled"),
        driver_max_bytes=values.number("driver.pass.max.bytes"),
        trigger_interval_ms=values.number("trigger.interval.ms"),
        tasks_max=values.optional_number("tasks.max"),
    )


def _checkpoints(values: Values) -> CheckpointSettings:
    emit, sync = (
        values.number("emit.checkpoints.interval.seconds"),
        values.number("sync.group.offsets.interval.seconds"),
    )
    refresh = values.number("refresh.groups.interval.seconds")
    return CheckpointSettings(
        groups=values.patterns("groups"),
        groups_exclude=values.patterns(_old_name(values, "groups.exclude", "groups.blacklist")),
        refresh_enabled=values.flag("refresh.groups.enabled") and refresh > 0,
        refresh_seconds=float(refresh),
        emit_enabled=values.flag("emit.checkpoints.enabled") and emit > 0,
        emit_seconds=float(emit),
        sync_enabled=values.flag("sync.group.offsets.enabled") and sync > 0,
        sync_seconds=float(sync),
        replication_factor=_factor(values, "checkpoints.topic.replication.factor"),
        filter_class=_filter_class(values, GROUPS),
        reverse_enabled=values.flag("cloudera.reverse.checkpointing.enabled"),
        rewinds_enabled=values.flag("sync.group.offsets.rewinds.enabled"),
    )
