"""Checks what goes into clients: bootstrap servers, protocols, logins, stores, numbers, and what has no counterpart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from srm_spark.config.jaas import JaasError
from srm_spark.config.keys_client import CLIENT_KEYS
from srm_spark.config.levels import cluster_props
from srm_spark.config.render import unmapped
from srm_spark.config.resolve import Resolver
from srm_spark.config.sasl import sasl_problem
from srm_spark.config.secrets import mask
from srm_spark.config.settings import ClusterSettings, FlowSettings
from srm_spark.config.source import Sources
from srm_spark.config.tls import TlsError
from srm_spark.config.values import Report

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_SERVER = re.compile(r"^(?:[\w.\-%]+://)?(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})$")
_CHOICES = {
    "isolation.level": ("read_committed", "read_uncommitted"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "auto.offset.reset": ("earliest", "latest", "none"),
    "acks": ("all", "-1", "0", "1"),
}


def check_clusters(sources: Sources, report: Report, resolver: Resolver, aliases: Sequence[str]) -> None:
    """Reports clusters that cannot be reached by what the file says."""
    for alias in aliases:
        cluster = resolver.cluster(alias)
        key = f"{alias}.bootstrap.servers"
        place = sources.place_of(key, "bootstrap.servers", "clusters")
        if not cluster.bootstrap_servers:
            report.problem(place, key, "is missing; allowed host:port, …", f"write {key} = host:9092")
        for server in filter(None, cluster.bootstrap_servers.split(",")):
            match = _SERVER.match(server.strip())
            if match is None or not 0 < int(match["port"]) < 65536:
                shown = _shown(sources, key, server.strip())
                report.problem(place, key, f"got {shown!r}; allowed host:port with a port from 1 to 65535")
        _check_login(sources, report, alias, cluster)


def _shown(sources: Sources, key: str, value: str) -> str:
    """What a message may say of a value: what a reference brought may be a secret."""
    written = sources.entries.get(key)
    return written.value if written and "${" in written.value else mask(key, value)


def _check_login(sources: Sources, report: Report, alias: str, cluster: ClusterSettings) -> None:
    props = cluster_props(sources.entries, alias)
    protocol = cluster.properties.get("security.protocol", "PLAINTEXT").strip().upper()

    def place(name: str) -> tuple[str, str]:
        setting = props.get(name)
        return (setting.place, setting.key) if setting else (sources.place_of(f"{alias}.bootstrap.servers"), name)

    if protocol not in PROTOCOLS:
        report.problem(*place("security.protocol"), f"got {protocol!r}; allowed {', '.join(PROTOCOLS)}")
        return
    try:
        missing = sasl_problem(protocol, cluster.properties)
        if missing is None:
            for name, reason in unmapped(cluster, {}).items():
                if CLIENT_KEYS[name].librdkafka and place(name)[1].startswith(f"{alias}."):
                    report.warn(*place(name), reason)
        elif not any((problem.location, problem.key) == place(missing[0]) for problem in report.problems):
            report.problem(*place(missing[0]), missing[1])
        if protocol.startswith("SASL") and cluster.properties.get("sasl.mechanism", "GSSAPI").upper() == "GSSAPI":
            report.warn(
                *place("sasl.mechanism"), "GSSAPI needs a confluent-kafka built with Kerberos; its wheels are not"
            )
    except JaasError as error:
        report.problem(*place("sasl.jaas.config"), f"cannot be read: {error}")
    except TlsError as error:
        report.problem(*place(error.key), error.message)


def check_flows(sources: Sources, report: Report, flows: Sequence[FlowSettings]) -> None:
    """Reports client properties with wrong values and those that have no counterpart in librdkafka."""
    for settings in flows:
        _check_source_login(sources, report, settings.source)
        for alias, client, props in (
            (settings.flow.source, "consumer", settings.consumer),
            (settings.flow.target, "producer", settings.producer),
        ):
            prefixes = (f"{settings.flow}.{client}.", f"{settings.flow}.{client}.override.", f"{alias}.{client}.")
            _check_values(sources, report, (*prefixes, f"connectors.{client}."), props)


def _check_source_login(sources: Sources, report: Report, source: ClusterSettings) -> None:
    name = "sasl.oauthbearer.jwt.retriever.class"
    is_oauth = source.properties.get("sasl.mechanism", "").strip().upper() == "OAUTHBEARER"
    if is_oauth and source.properties.get(name, "").strip().endswith(".JwtBearerJwtRetriever"):
        key = next((key for key in (f"{source.alias}.{name}", name) if key in sources.entries), name)
        reason = f"got a signed assertion for {source.alias}, from which Spark's Kafka client (3.9) reads"
        problem = (sources.place_of(key), key, f"{reason}; allowed client credentials")
        if not any((known.location, known.key) == problem[:2] for known in report.problems):
            report.problem(*problem, "a cluster that is only a target may use it")


def _check_values(sources: Sources, report: Report, prefixes: Sequence[str], props: Mapping[str, str]) -> None:
    for name, value in props.items():
        row = CLIENT_KEYS.get(name)
        key = next((prefix + name for prefix in prefixes if prefix + name in sources.entries), None)
        if row is None or key is None:
            continue
        place = sources.place_of(key)
        allowed = _CHOICES.get(name)
        if allowed and value.strip().lower() not in allowed:
            report.problem(place, key, f"got {_shown(sources, key, value)!r}; allowed {', '.join(allowed)}")
        elif (row.low is not None or row.divisor > 1) and not re.fullmatch(r"[+-]?\d{1,19}", value.strip()):
            report.problem(place, key, f"got {_shown(sources, key, value)!r}; allowed a whole number")
        elif not row.librdkafka and row.clients == "producer":
            report.warn(place, key, f"ignored: {row.note}")
