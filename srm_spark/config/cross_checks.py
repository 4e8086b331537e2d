"""Settings that are right one by one and wrong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from srm_spark.config.keys_connector import (
    ACL_PRINCIPALS_KEY,
    ACL_WRITE_KEY,
    MODE_KEY,
    PROVENANCE_KEY,
    REALTIME_TOPICS_KEY,
)
from srm_spark.config.sasl import FUNCTION_KEY, is_by_librdkafka_only, needs_java_login
from srm_spark.config.schema import Dialect
from srm_spark.config.settings import ClusterSettings, FlowSettings, StartAt
from srm_spark.config.source import Sources
from srm_spark.config.values import Report
from srm_spark.core.model import Flow
from srm_spark.core.principal_rules import AS_THEY_ARE

_TRUNCATED = "source.truncated.policy"
_WORKER_KEY = "exactly.once.source.support"


def check_across(
    sources: Sources,
    report: Report,
    flows: Sequence[FlowSettings],
    clusters: Mapping[str, ClusterSettings],
    dialect: Dialect,
) -> None:
    """Reports what one setting makes of another."""
    for settings in flows:
        _checkpoints(sources, report, settings)
        _servers(sources, report, settings, clusters)
        _one_cluster(sources, report, settings)
        _priorities(sources, report, settings)
        _starts(sources, report, settings)
        _acls(sources, report, settings)
        if needs_java_login({**settings.source.properties, **settings.consumer}):
            _java_login(sources, report, settings)
        if settings.is_exactly_once and is_by_librdkafka_only({**settings.target.properties, **settings.producer}):
            _transactional_login(sources, report, settings)
        if settings.is_realtime:
            _realtime(sources, report, settings)
        elif settings.realtime_topics:
            place, key = _written(sources, settings.flow, REALTIME_TOPICS_KEY)
            report.warn(place, key, f"without {MODE_KEY}=realtime all topics of {settings.flow} go in micro-batches")
        if not settings.topics.include:
            reason = "SRM starts with an empty list" if dialect is Dialect.SRM else "the list is empty"
            place, key = _written(sources, settings.flow, "topics")
            adds = f"srm-control topics --source {settings.flow.source} --target {settings.flow.target} --add LIST"
            report.warn(
                place,
                key,
                f"no topic of {settings.flow} flows before its list has entries: {reason}; {adds}, or write "
                f"{settings.flow}.topics",
            )
        elif dialect is Dialect.MM2 and "dialect" not in sources.entries:
            _ask_for_dialect(sources, report, settings.flow)


def _ask_for_dialect(sources: Sources, report: Report, flow: Flow) -> None:
    """A file of SRM's without any key of its own looks like one of MirrorMaker 2, which copies all that there is."""
    if _written(sources, flow, "topics")[1] not in sources.entries:
        place, _ = _written(sources, flow, "enabled")
        message = f"nobody says which topics of {flow.source} flow: MirrorMaker 2 would take all of them, SRM none"
        report.problem(place, f"{flow}.topics", message, f"write {flow}.topics, or dialect = mm2 or srm")


def _java_login(sources: Sources, report: Report, settings: FlowSettings) -> None:
    place, key = _written(sources, settings.flow, f"consumer.{FUNCTION_KEY}")
    of_cluster = f"{settings.flow.source}.{FUNCTION_KEY}"
    place, key = (sources.entries[of_cluster].place, of_cluster) if of_cluster in sources.entries else (place, key)
    report.problem(
        place,
        key,
        f"the source of {settings.flow} is read by Spark's Kafka source, too, which runs in the JVM and cannot call it",
        "write sasl.login.callback.handler.class beside it, and give Spark its jar; or a token endpoint",
    )


def _transactional_login(sources: Sources, report: Report, settings: FlowSettings) -> None:
    target = settings.flow.target
    place, key = _written(sources, settings.flow, "exactly.once.support")
    of_worker = next((name for name in (f"{target}.{_WORKER_KEY}", _WORKER_KEY) if name in sources.entries), "")
    if of_worker and key not in sources.entries:
        place, key = sources.entries[of_worker].place, of_worker
    report.problem(
        place,
        key,
        f"{settings.flow} cannot write in transactions: nobody but librdkafka logs in to {target} by Kerberos or a "
        "signed assertion",
        f"log in to {target} by PLAIN, SCRAM, OAUTHBEARER with client credentials or a certificate; or leave the mode "
        "off, which doubles nothing either unless a writer lives on unseen (docs/delivery.md)",
    )


def _written(sources: Sources, flow: Flow, name: str) -> tuple[str, str]:
    for key in (f"{flow}.{name}", f"connectors.{name}", name):
        if key in sources.entries:
            return sources.entries[key].place, key
    return sources.place_of(f"{flow}.enabled", "clusters"), f"{flow}.{name}"


def _acls(sources: Sources, report: Report, settings: FlowSettings) -> None:
    """What would be done with ACLs that nobody looks at."""
    acls = settings.acls
    wanted = {
        ACL_WRITE_KEY: acls.writes_on_failover,
        ACL_PRINCIPALS_KEY: acls.principals != AS_THEY_ARE and acls.quotas_seconds is None,
    }
    for name in [name for name, is_set in wanted.items() if is_set and acls.seconds is None]:
        place, key = _written(sources, settings.flow, name)
        report.warn(place, key, f"has no effect: no ACLs of {settings.flow} are copied (sync.topic.acls.enabled)")


def _checkpoints(sources: Sources, report: Report, settings: FlowSettings) -> None:
    checkpoints = settings.checkpoints
    if checkpoints.emit_enabled and not settings.syncs.enabled:
        place, key = _written(sources, settings.flow, "emit.offset-syncs.enabled")
        report.warn(place, key, f"without offset syncs {settings.flow} writes no checkpoints either")
    if checkpoints.sync_enabled and not (checkpoints.emit_enabled and settings.syncs.enabled):
        place, key = _written(sources, settings.flow, "sync.group.offsets.enabled")
        report.problem(
            place,
            key,
            f"got true for {settings.flow}, which writes no checkpoints",
            "set emit.checkpoints.enabled and emit.offset-syncs.enabled to true, or this to false",
        )


def _realtime(sources: Sources, report: Report, settings: FlowSettings) -> None:
    """What the real-time lane cannot keep, since its records are on the target before anything is compared."""
    policies, flow = settings.policies, settings.flow
    stops = policies.defaults.get(_TRUNCATED) == "stop" or bool(policies.stop_topics)
    for is_set, what in (
        (settings.is_exactly_once, "the exactly-once mode: a transaction for each record would not be real time"),
        (settings.provenance_enabled, f"{PROVENANCE_KEY}=true"),
        (settings.limits.is_limited, "a limit of bytes per second"),
        (
            settings.refused.parks,
            "records in quarantine (refused.record.policy, policy.park.topics, errors.tolerance)",
        ),
        (stops, f"{_TRUNCATED}=stop or policy.stop.topics: what lies behind deleted records is copied before it shows"),
    ):
        if is_set:
            place, key = _written(sources, flow, MODE_KEY)
            report.problem(
                place, key, f"got realtime for {flow}, which cannot go with {what}", "remove one of the two settings"
            )


def _servers(sources: Sources, report: Report, settings: FlowSettings, clusters: Mapping[str, ClusterSettings]) -> None:
    for side, cluster in (("source", settings.source), ("target", settings.target)):
        usual = clusters[cluster.alias].bootstrap_servers
        if cluster.bootstrap_servers != usual:
            place, key = _written(sources, settings.flow, f"{side}.cluster.bootstrap.servers")
            report.warn(
                place,
                key,
                f"{settings.flow} reaches {cluster.alias} at other servers than {cluster.alias}.bootstrap.servers says;"
                " both must belong to the same cluster",
            )


def _one_cluster(sources: Sources, report: Report, settings: FlowSettings) -> None:
    """Copied by mistake, mostly; the copies get longer and longer names, or come back without end."""
    source, target = settings.source, settings.target
    if set(source.bootstrap_servers.split(",")) & set(target.bootstrap_servers.split(",")):
        place = sources.place_of(f"{target.alias}.bootstrap.servers", "clusters")
        message = f"{source.alias} has the same servers: {settings.flow} would copy a cluster into itself"
        report.warn(place, f"{target.alias}.bootstrap.servers", message)


def _starts(sources: Sources, report: Report, settings: FlowSettings) -> None:
    starts = settings.starts
    if starts.topics.get(StartAt.LATEST):
        place, key = _written(sources, settings.flow, "topics.start.latest")
        what = "what is written to them before the flow has found them is not copied: not at least once, but never"
        report.warn(place, key, f"{what}; a partition that is added later begins at its end, too")
    if starts.timestamp is not None and not starts.topics.get(StartAt.TIMESTAMP):
        place, key = _written(sources, settings.flow, "topics.start.time")
        report.warn(place, key, f"no topic of {settings.flow} begins there: write topics.start.timestamp")


def _priorities(sources: Sources, report: Report, settings: FlowSettings) -> None:
    limits, name = settings.limits, "bandwidth.limit.bytes"
    for word, topics in (("high", limits.high_topics), ("low", limits.low_topics)):
        if topics and not limits.has_classes:
            place, key = _written(sources, settings.flow, f"priority.{word}.topics")
            flow = settings.flow
            report.warn(
                place, key, f"without a limit no topic of {flow} waits; set {flow}.{name} or {flow.target}.{name}"
            )
