"""Checks what goes into clients: bootstrap servers, protocols, logins, stores, numbers, and what has no counterpart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from srm_spark.config.jaas import JaasError
from srm_spark.config.keys_client import CLIENT_KEYS, SECURITY_KEYS, SPELLINGS, ClientKey
from srm_spark.config.levels import Layered, Level, Setting, client_props, cluster_props, record_producer_props
from srm_spark.config.overruled import (
    BATCH_CONSUMER,
    BATCH_PRODUCER,
    CONSUMER,
    EVERY,
    EXACTLY_ONCE,
    PRODUCER,
    Overruled,
)
from srm_spark.config.render import unmapped
from srm_spark.config.resolve import Resolver
from srm_spark.config.sasl import sasl_problem
from srm_spark.config.secrets import mask
from srm_spark.config.settings import ClusterSettings, FlowSettings
from srm_spark.config.source import Sources
from srm_spark.config.tls import TlsError
from srm_spark.config.values import Report
from srm_spark.config.written import Where, take_apart

_SERVER = re.compile(r"^(?:[\w.\-%]+://)?(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})$")
_PLACEHOLDER = re.compile(r"##JAAS_SECRET_\d+##")
_CHOICES = ("isolation.level", "compression.type", "auto.offset.reset", "acks")


def check_clusters(sources: Sources, report: Report, resolver: Resolver, aliases: Sequence[str]) -> None:
    """Reports clusters that cannot be reached by what the file says."""
    for alias in aliases:
        cluster, key = resolver.cluster(alias), f"{alias}.bootstrap.servers"
        place = sources.place_of(key, "bootstrap.servers", "clusters")
        if not cluster.bootstrap_servers:
            report.problem(place, key, "is missing; allowed host:port, …", f"write {key} = host:9092")
        props = cluster_props(sources.entries, alias)
        _Client(report, props, cluster, {}, Setting("", Level.GLOBAL, key, place)).check()


def check_flows(sources: Sources, report: Report, resolver: Resolver, flows: Sequence[FlowSettings]) -> None:
    """Reports client properties with wrong values and those that have no counterpart in librdkafka."""
    for settings in flows:
        _check_source_login(sources, report, settings.source)
        connector, worker = resolver.connector(settings.flow), resolver.worker(settings.flow)
        home = Setting("", Level.GLOBAL, f"{settings.flow}.enabled", sources.place_of(f"{settings.flow}.enabled"))
        side = "target" if settings.syncs.on_target else "source"
        for kind, cluster, extra, props in (
            ("consumer", settings.source, settings.consumer, _props(resolver, connector, "source", "consumer")),
            ("producer", settings.target, settings.producer, _record_props(resolver, worker, connector)),
            ("admin", settings.source, settings.source_admin, _props(resolver, connector, "source", "admin")),
            ("admin", settings.target, settings.target_admin, _props(resolver, connector, "target", "admin")),
            ("", getattr(settings, side), settings.syncs_producer, _props(resolver, connector, side, "producer")),
        ):
            client = _Client(report, props, cluster, extra, home)
            client.check()
            client.overruled(_overruled(kind, settings))
            client.refused(kind, settings)
    _unread(sources, report, flows)


_LEAST_TELLING = ("security.protocol", "sasl.mechanism")
"""Without these, the client would not look at any other property of its login."""


def _overruled(kind: str, settings: FlowSettings) -> Mapping[str, Overruled]:
    """What does not count of a client of a flow, or not always."""
    own = {"consumer": CONSUMER, "producer": PRODUCER}.get(kind, {})
    if settings.is_exactly_once and kind == "consumer":
        own = {**own, **EXACTLY_ONCE}
    # Without compiled loops Spark's own source reads, and librdkafka in the real-time lane.
    read = BATCH_CONSUMER if settings.batch.in_loop else {}
    return {**EVERY, **own, **{"consumer": read, "producer": BATCH_PRODUCER}.get(kind, {})}


def _record_props(resolver: Resolver, worker: Layered, connector: Layered) -> Layered:
    return record_producer_props(worker, connector, resolver.dialect)


def _props(resolver: Resolver, connector: Layered, side: str, client: str) -> Layered:
    return client_props(connector, side, client, resolver.dialect)


_KERBEROS = (
    "log in by SCRAM, PLAIN, OAUTHBEARER or a certificate, or build it with Kerberos: install a librdkafka with it, "
    "then pip install --no-binary confluent-kafka confluent-kafka"
)
_JAAS_EXAMPLE = 'like org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";'


@dataclass(frozen=True)
class _Client:
    """What one kind of client gets, all of it checked as far as no network is needed."""

    report: Report
    props: Layered
    """Where each property comes from."""
    cluster: ClusterSettings
    extra: Mapping[str, str]
    """What this client has beyond the cluster's own; empty for the cluster itself."""
    home: Setting
    """The place of what was not written."""

    def check(self) -> None:
        """Reports every mistake."""
        self._servers()
        if not self.extra or any(name in SECURITY_KEYS for name in self.extra):
            self._login()
        for name, value in self.extra.items():
            if (row := CLIENT_KEYS.get(name)) is not None and name in self.props.names():
                self._value(row, value)

    def _setting(self, name: str) -> Setting:
        if (value := self.props.get(name)) is not None:
            return value
        for beside in ("sasl.mechanism", "security.protocol") if name.startswith("sasl.") else ():
            if (value := self.props.get(beside)) is not None:  # what asks for the one that is not written
                return replace(value, key=f"{value.key.removesuffix(beside)}{name}", value="")
        return replace(self.home, key=name)

    def _problem(self, name: str, message: str, hint: str = "") -> None:
        setting = self._setting(name)
        self.report.problem(setting.place, setting.key, message, hint)

    def _shown(self, name: str, value: str) -> str:
        """What a message may say of a value: what a reference brought may be a secret."""
        written = self._setting(name).value
        return written if "${" in written else mask(name, value)

    def _servers(self) -> None:
        name = "bootstrap.servers"
        for server in filter(None, self.extra.get(name, self.cluster.bootstrap_servers).split(",")):
            match = _SERVER.match(server.strip())
            if match is None or not 0 < int(match["port"]) < 65536:
                got = self._shown(name, server.strip())
                self._problem(name, f"got {got!r}; allowed host:port with a port from 1 to 65535")

    def _login(self) -> None:
        java = {**self.cluster.properties, **self.extra}
        protocol, protocols = java.get("security.protocol", "PLAINTEXT"), SPELLINGS["security.protocol"]
        if protocol not in protocols:
            got = self._shown("security.protocol", protocol)
            message = f"got {got!r}; allowed {', '.join(protocols)}"
            self._problem("security.protocol", message)
            if "sasl.mechanism" not in java:
                return
            protocol = "SASL_SSL"  # so that the login is checked, too
        if (placeholder := _PLACEHOLDER.search(java.get("sasl.jaas.config", ""))) is not None:
            message = f"has {placeholder[0]} in it, for which Cloudera Manager puts the secret of a Kafka credential"
            self._problem("sasl.jaas.config", message, "write the secret, or a reference like ${file:…}")
            return
        try:
            missing = sasl_problem(protocol, java)
            if missing is None:
                self._left_out()
            elif not self._is_reported(missing[0]):
                name, message = missing
                self._problem(name, message, _JAAS_EXAMPLE if name == "sasl.jaas.config" else "")
        except JaasError as error:
            self._problem("sasl.jaas.config", f"cannot be read: {error}")
        except TlsError as error:
            self._problem(error.key, error.message)

    def overruled(self, rows: Mapping[str, Overruled]) -> None:
        """Reports what is written, and does not count, or not always."""
        for name, row in rows.items():
            setting = self.props.get(name)
            if setting is not None and not row.counts(setting.value):
                self.report.warn(setting.place, setting.key, str(row))

    def refused(self, kind: str, settings: FlowSettings) -> None:
        """Reports what librdkafka itself does not take; where other mistakes are found, they come first."""
        if not kind or not self.cluster.bootstrap_servers or self.report.problems:
            return
        # This package lies below the one that knows librdkafka, which is asked by its name.
        trial = import_module("srm_spark.kafka.trial")
        try:
            refusal = trial.refusal(kind, settings, self.cluster, self.extra)
        except JaasError as error:
            self._problem("sasl.jaas.config", f"cannot be read: {error}")
            return
        except TlsError as error:
            self._problem(error.key, error.message)
            return
        if refusal is None:
            return
        names = [name for name in refusal.names if self.props.get(name) is not None]
        names.sort(key=_LEAST_TELLING.__contains__)
        is_login = "sasl.mechanism" in refusal.names or "security.protocol" in refusal.names
        java = {**self.cluster.properties, **self.extra}
        is_kerberos = is_login and java.get("sasl.mechanism", "GSSAPI").strip().upper() == "GSSAPI"
        name = "sasl.mechanism" if is_kerberos else next(iter(names), "bootstrap.servers")
        message = f"the client library refuses it: {refusal.reason}"
        self._problem(name, message, _KERBEROS if is_kerberos else "")

    def _is_reported(self, name: str) -> bool:
        setting = self._setting(name)
        return any((one.location, one.key) == (setting.place, setting.key) for one in self.report.problems)

    def _left_out(self) -> None:
        """Security settings that do nothing; those of the top level may be meant for other clusters."""
        for name, reason in unmapped(self.cluster, self.extra).items():
            setting = self.props.get(name)
            if name in SECURITY_KEYS and CLIENT_KEYS[name].librdkafka and setting and setting.level > Level.GLOBAL:
                self.report.warn(setting.place, setting.key, reason)

    def _value(self, row: ClientKey, value: str) -> None:
        name, setting = row.name, self._setting(row.name)
        allowed = SPELLINGS[name] if name in _CHOICES else ()
        if allowed and value not in allowed:
            self._problem(name, f"got {self._shown(name, value)!r}; allowed {', '.join(allowed)}")
        elif (row.low is not None or row.divisor > 1) and not re.fullmatch(r"[+-]?\d{1,19}", value.strip()):
            self._problem(name, f"got {self._shown(name, value)!r}; allowed a whole number")
        elif not row.librdkafka and name not in EVERY and name not in CONSUMER:
            self.report.warn(setting.place, setting.key, f"ignored: {row.note}")


def _unread(sources: Sources, report: Report, flows: Sequence[FlowSettings]) -> None:
    """Reports client properties of clients that there are none of."""
    aliases = [*dict.fromkeys(alias for one in flows for alias in (one.flow.source, one.flow.target))]
    read = {one.flow.source for one in flows}
    synced = {(one.flow, "target" if one.syncs.on_target else "source") for one in flows}
    for entry in sources.entries.values():
        parts = take_apart(entry.key, aliases)
        side, _, rest = parts.rest.partition(".")
        if parts.where is Where.CLUSTER and side == "consumer" and parts.alias not in read:
            report.warn(entry.place, entry.key, f"has no effect: no flow reads from {parts.alias}")
        elif parts.where is not Where.FLOW or parts.flow not in {one.flow for one in flows}:
            continue
        elif side == "target" and rest.startswith("consumer."):
            report.warn(entry.place, entry.key, f"has no effect: {parts.flow} reads from its source")
        elif side in ("source", "target") and rest.startswith("producer.") and (parts.flow, side) not in synced:
            report.warn(entry.place, entry.key, f"has no effect: {parts.flow} writes no offset syncs to its {side}")
        elif parts.rest.startswith("producer.override."):
            why = "counts for records; checkpoints, heartbeats and the flow's own topics are written as they must be"
            report.warn(entry.place, entry.key, why)


def _check_source_login(sources: Sources, report: Report, source: ClusterSettings) -> None:
    name = "sasl.oauthbearer.jwt.retriever.class"
    is_oauth = source.properties.get("sasl.mechanism", "").strip().upper() == "OAUTHBEARER"
    if is_oauth and source.properties.get(name, "").strip().endswith(".JwtBearerJwtRetriever"):
        key = next((key for key in (f"{source.alias}.{name}", name) if key in sources.entries), name)
        place = sources.place_of(key)
        reason = f"got a signed assertion for {source.alias}, from which Spark's Kafka client reads"
        if not any((known.location, known.key) == (place, key) for known in report.problems):
            hint = "a cluster that is only a target may use it"
            report.problem(place, key, f"{reason}; allowed client credentials", hint)
