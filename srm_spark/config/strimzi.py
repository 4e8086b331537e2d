"""Reads Kubernetes resources of Strimzi and of CSM Operator: `KafkaMirrorMaker2`, and `KafkaConnector` of a mirror.

Their clusters, mirrors and connectors become the keys of a dedicated-mode file. What lives in Kubernetes (secrets,
replicas, resources) cannot be read from here; each such part is named in a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import yaml

from srm_spark.config import strimzi_logins as logins
from srm_spark.config.spelling import did_you_mean

KINDS = ("KafkaMirrorMaker2", "KafkaConnector")
_CONNECTORS = ("sourceConnector", "checkpointConnector", "heartbeatConnector")
_PATTERNS = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
}
_CLUSTER = ("alias", "bootstrapServers", "tls", "authentication", "config")
_PODS = (
    *("version", "replicas", "image", "connectCluster", "resources", "livenessProbe", "readinessProbe", "jvmOptions"),
    *("jmxOptions", "logging", "clientRackInitImage", "rack", "metricsConfig", "tracing", "template"),
    "externalConfiguration",
)
"""Parts of a KafkaMirrorMaker2 that say how its pods run."""
_HEARTBEATS = ("emit.heartbeats.", "heartbeats.topic.")
_ALIASES = ("sourceCluster", "targetCluster", "source", "target")

Add = Callable[[str, yaml.Node, str], None]
"""Takes a key, the node that gives the line, and the value."""
Flatten = Callable[[str, yaml.Node], None]
"""Takes a prefix and a mapping whose leaves become keys."""
Warn = Callable[[yaml.Node, str, str], None]
"""Takes the node that gives the line, a key and a message."""


def is_resource(root: yaml.MappingNode) -> bool:
    """Whether a document of YAML is a resource of Kubernetes."""
    kind = child(root, "kind")
    return isinstance(kind, yaml.ScalarNode) and (kind.value in KINDS or child(root, "apiVersion") is not None)


def child(node: yaml.Node | None, name: str) -> yaml.Node | None:
    """The value of a key of a mapping."""
    return next((value for key, value in _pairs(node) if key == name), None)


def _pairs(node: yaml.Node | None) -> Iterator[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from ((str(key.value), value) for key, value in node.value if isinstance(key, yaml.ScalarNode))


def _items(node: yaml.Node | None) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _text(node: yaml.Node | None) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


class Resources:
    """One walk over the resources of a file."""

    def __init__(self, add: Add, flatten: Flatten, warn: Warn, *, keeps_secrets: bool = False) -> None:
        """`keeps_secrets`: what Secrets hold becomes a reference to them, and not a warning."""
        self._keeps_secrets = keeps_secrets
        self._add = add
        self._flatten = flatten
        self._warn = warn
        self._aliases: list[str] = []

    def read(self, root: yaml.MappingNode) -> None:
        """Adds an entry for everything that has a meaning here."""
        if (kind := _text(child(root, "kind"))) not in KINDS:
            self._warn(root, f"kind: {kind}", f"ignored: of such resources only {' and '.join(KINDS)} are read")
            return
        spec = child(root, "spec") or root
        if _text(child(root, "kind")) == "KafkaConnector":
            self._one_connector(spec)
        else:
            self._mirrors(spec)
        self._add("clusters", spec, ",".join(self._aliases))

    def _mirrors(self, spec: yaml.Node) -> None:
        for cluster in _items(child(spec, "clusters")):
            self._cluster(cluster)
        if (target := child(spec, "target")) is not None:
            self._cluster(target)
        for mirror in _items(child(spec, "mirrors")):
            self._mirror(mirror, _text(child(target, "alias")))
        for key, value in _pairs(spec):
            if key in _PODS:
                self._warn(value, f"spec.{key}", "ignored: it describes pods, and srm-spark runs on Spark")
            elif key not in ("clusters", "mirrors", "target"):
                self._unknown(value, f"spec.{key}", "a KafkaMirrorMaker2", ("clusters", "mirrors", "target", *_PODS))

    def _one_connector(self, spec: yaml.Node) -> None:
        """A connector of Connect: its `source.cluster.` and `target.cluster.` settings are those of the clusters."""
        config, kind = child(spec, "config"), _text(child(spec, "class")).rpartition(".")[2]
        ends = {side: _text(child(config, f"{side}.cluster.alias")) for side in ("source", "target")}
        flow = f"{ends['source']}->{ends['target']}"
        self._aliases += [alias for alias in ends.values() if alias and alias not in self._aliases]
        if kind == "MirrorSourceConnector":
            self._add(f"{flow}.enabled", spec, "true")
            if (tasks := child(spec, "tasksMax")) is not None:
                self._add(f"{flow}.tasks.max", tasks, _text(tasks))
        for key, value in _pairs(spec):
            if key not in ("config", "class") and (key != "tasksMax" or kind != "MirrorSourceConnector"):
                self._warn(value, f"{flow}.{key}", "ignored: srm-spark runs no Connect tasks")
        for key, value in _pairs(config):
            side, _, rest = key.partition(".cluster.")
            if rest == "alias":
                continue
            if kind == "MirrorHeartbeatConnector" and not key.startswith(_HEARTBEATS):
                # CSM Operator points this connector's target at the source, which must not become the flow's target.
                self._warn(value, f"{flow}.{key}", "ignored: heartbeats use the clusters of the source connector")
            else:
                self._add(f"{ends[side]}.{rest}" if side in ends and rest else f"{flow}.{key}", value, _text(value))

    def _cluster(self, node: yaml.Node) -> None:
        alias = _text(child(node, "alias"))
        if alias in self._aliases:
            return
        self._aliases.append(alias)
        servers, config = child(node, "bootstrapServers"), child(node, "config")
        tls, login = child(node, "tls"), child(node, "authentication")
        if servers is not None:
            self._add(f"{alias}.bootstrap.servers", servers, _text(servers))
        if self._keeps_secrets:
            self._login(alias, tls, login)
        elif tls is not None or login is not None:
            kind = _text(child(login, "type"))
            has_sasl = login is not None and kind != "tls"
            protocol = ("SASL_" if has_sasl else "") + ("SSL" if tls is not None else "PLAINTEXT")
            self._add(f"{alias}.security.protocol", tls or login or node, protocol)
            if has_sasl and login is not None:
                self._add(f"{alias}.sasl.mechanism", login, kind.upper())
        if config is not None:
            self._flatten(alias, config)
        for part, right in ((tls, "ssl.truststore.location"), (login, "sasl.jaas.config or ssl.keystore.location")):
            if part is not None and part.value and not self._keeps_secrets:
                self._warn(
                    part,
                    f"{alias}.{right}",
                    "is a secret of Kubernetes; mount it, name it in a second file, and give both files",
                )
        for key, value in _pairs(node):
            if key not in _CLUSTER:
                self._unknown(value, f"{alias}.{key}", "a cluster", _CLUSTER)

    def _login(self, alias: str, tls: yaml.Node | None, login: yaml.Node | None) -> None:
        """How the cluster is logged in to, with references to Secrets."""
        place, kind, parts = login or tls, _text(child(login, "type")), dict(_pairs(login))
        if place is None:
            return
        has_sasl = logins.has_sasl(kind, parts)
        protocol = ("SASL_" if has_sasl else "") + ("SSL" if tls is not None else "PLAINTEXT")
        self._add(f"{alias}.security.protocol", place, protocol)
        if has_sasl and logins.mechanism(kind):
            self._add(f"{alias}.sasl.mechanism", place, logins.mechanism(kind))
        for key, value in logins.login_keys(kind, parts, _pairs).items():
            self._add(f"{alias}.{key}", place, value)
        for key, node in logins.left_out(kind, parts):
            self._warn(node, f"{alias}.authentication.{key}", "ignored: it has no counterpart here")
        certificates, unnamed = logins.trusted(dict(_pairs(tls)), _pairs)
        for key, value in certificates.items():
            self._add(f"{alias}.{key}", tls or place, value)
        for node in unnamed:
            message = "ignored: name the certificate by secretName and certificate, not by a pattern"
            self._warn(node, f"{alias}.tls.trustedCertificates", message)

    def _unknown(self, node: yaml.Node, key: str, where: str, known: Sequence[str]) -> None:
        hint = did_you_mean(key.rpartition(".")[2], known)
        self._warn(node, key, f"ignored: unknown in {where}{f'; {hint}' if hint else ''}")

    def _mirror(self, node: yaml.Node, target: str) -> None:
        inline = child(node, "source")
        if inline is not None:
            self._cluster(inline)
        source = _text(child(node, "sourceCluster")) or _text(child(inline, "alias"))
        flow = f"{source}->{_text(child(node, 'targetCluster')) or target}"
        self._add(f"{flow}.enabled", node, "true")
        for key, value in _pairs(node):
            if key in _PATTERNS:
                self._add(f"{flow}.{_PATTERNS[key]}", value, _text(value))
            elif key in _CONNECTORS:
                self._connector(flow, key, value)
            elif key not in _ALIASES:
                self._unknown(value, f"{flow}.{key}", "a mirror", (*_PATTERNS, *_CONNECTORS, *_ALIASES))

    def _connector(self, flow: str, name: str, node: yaml.Node) -> None:
        for key, value in _pairs(node):
            if key == "config":
                self._flatten(flow, value)
            elif key == "tasksMax" and name == "sourceConnector":
                self._add(f"{flow}.tasks.max", value, _text(value))
            elif key in ("tasksMax", "autoRestart", "pause", "state", "version", "listOffsets", "alterOffsets"):
                self._warn(value, f"{flow}.{name}.{key}", "ignored: srm-spark runs no Connect tasks")
            else:
                self._unknown(value, f"{flow}.{name}.{key}", "a connector", ("config", "tasksMax"))
