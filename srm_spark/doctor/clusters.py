"""Checks of the clusters of a configuration: reached or why not, enough brokers, and what may be done there.

Only asks: what can be found out only by writing stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from srm_spark.config.settings import ClusterSettings, FlowSettings, Settings
from srm_spark.core.wording import count
from srm_spark.doctor.internal_topics import check_internal_topics
from srm_spark.doctor.permissions import check_flow
from srm_spark.doctor.report import Finding, failed, ok, unknown
from srm_spark.errors import SrmError
from srm_spark.kafka.access import Access, Reach, Trouble

CLUSTER_SECONDS = 10.0

_REMEDIES = {
    Trouble.NAME: "correct the host in {alias}.bootstrap.servers",
    Trouble.REFUSED: "start the broker, or correct the port in {alias}.bootstrap.servers",
    Trouble.SILENT: "correct {alias}.bootstrap.servers, or open the firewall between here and there",
    Trouble.CREDENTIALS: "correct {alias}.sasl.jaas.config and {alias}.sasl.mechanism",
    Trouble.TLS: "correct {alias}.security.protocol and the {alias}.ssl. stores",
    Trouble.PROTOCOL: "correct {alias}.security.protocol, or the port in {alias}.bootstrap.servers",
}


@dataclass(frozen=True)
class Factor:
    """Copies that a key asks of a cluster."""

    key: str
    alias: str
    copies: int


def check_clusters(settings: Settings, seconds: float = CLUSTER_SECONDS) -> list[Finding]:
    """All clusters of the enabled flows at the same time, then each flow's permissions on what was reached."""
    aliases = sorted({alias for flow in settings.flows for alias in (flow.flow.source, flow.flow.target)})
    if not aliases:
        return []
    clusters = [settings.clusters[alias] for alias in aliases]
    with ThreadPoolExecutor(len(clusters)) as pool:
        reached = dict(zip(aliases, pool.map(lambda cluster: reach_of(cluster, seconds), clusters), strict=True))
        flows = list(pool.map(lambda flow: list(_check_flow(flow, reached, seconds)), settings.flows))
    factors = list(factors_of(settings))
    findings = [cluster_finding(cluster, reached[cluster.alias], factors) for cluster in clusters]
    return [*findings, *(finding for of_flow in flows for finding in of_flow)]


def reach_of(cluster: ClusterSettings, seconds: float) -> Reach | SrmError:
    """Whether a cluster answers within some seconds, or what forbids to ask it."""
    try:
        return Access(cluster, {}, seconds).reach()
    except SrmError as error:  # a store or a login that cannot be read
        return error


def cluster_finding(cluster: ClusterSettings, reach: Reach | SrmError, factors: Sequence[Factor] = ()) -> Finding:
    """What is to be said of that; `factors` are the copies that are asked of it."""
    check, where = f"cluster {cluster.alias}", cluster.bootstrap_servers
    if isinstance(reach, SrmError):
        return failed(check, str(reach), f"correct the {cluster.alias}. settings that it names")
    if reach.trouble is not None:
        detail = f" ({reach.detail})" if reach.detail else ""
        remedy = _REMEDIES[reach.trouble].format(alias=cluster.alias)
        return failed(check, f"{where}: {reach.trouble.value}{detail}", remedy)
    brokers = f"{where}: {count(reach.brokers, 'broker')}"
    high = [factor for factor in factors if factor.alias == cluster.alias and factor.copies > reach.brokers]
    if high:
        wanted = ", ".join(f"{factor.key} = {factor.copies}" for factor in dict.fromkeys(high))
        keys = " ".join(f"-D {key}={reach.brokers}" for key in dict.fromkeys(factor.key for factor in high))
        return failed(check, f"{brokers}, too few for {wanted}", f"add brokers, or {keys}")
    return ok(check, brokers)


def factors_of(settings: Settings) -> Iterator[Factor]:
    """How many copies each cluster is asked to keep, by the keys that say so."""
    for flow in settings.flows:
        target = flow.flow.target
        yield Factor("replication.factor", target, flow.topics.replication_factor)
        yield Factor("offset.storage.replication.factor", target, flow.progress_replication_factor)
        if flow.syncs.enabled:
            holder = target if flow.syncs.on_target else flow.flow.source
            yield Factor("offset-syncs.topic.replication.factor", holder, flow.syncs.replication_factor)
        if flow.checkpoints.emit_enabled:
            yield Factor("checkpoints.topic.replication.factor", target, flow.checkpoints.replication_factor)
    for beat in settings.heartbeats:
        yield Factor("heartbeats.topic.replication.factor", beat.flow.target, beat.replication_factor)


def _check_flow(flow: FlowSettings, reached: Mapping[str, Reach | SrmError], seconds: float) -> Iterator[Finding]:
    missing = [alias for alias in (flow.flow.source, flow.flow.target) if not is_reached(reached[alias])]
    if missing:
        unreachable = f"not checked: {' and '.join(missing)} cannot be reached"
        yield unknown(f"permissions {flow.flow}", unreachable)
        return
    source = Access(flow.source, flow.source_admin, seconds)
    target = Access(flow.target, flow.target_admin, seconds)
    yield from check_flow(flow, source, target)
    yield from check_internal_topics(flow, seconds)


def is_reached(reach: Reach | SrmError) -> bool:
    """Whether it can be asked more."""
    return isinstance(reach, Reach) and reach.trouble is None
