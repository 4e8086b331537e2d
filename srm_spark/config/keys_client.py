"""Rows for Kafka's Java client properties: which client has them and what librdkafka calls them.

`librdkafka=""` means that there is no counterpart; `note` then says why that does no harm, or what to do instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ALL, CONSUMER, PRODUCER, ADMIN = "all", "consumer", "producer", "admin"


@dataclass(frozen=True)
class ClientKey:
    """One property of a Java client."""

    name: str
    clients: str
    """`all`, `consumer`, `producer` or `admin`."""
    librdkafka: str
    note: str = ""
    divisor: int = 1
    """librdkafka's unit in Java's units."""
    low: int | None = None
    high: int | None = None
    """librdkafka's range; a number outside is moved to its edge."""
    values: Mapping[str, str] | None = None
    """Renamed values."""


_JVM = "A Java class or a setting of the JVM."
_METRICS = "librdkafka has its own statistics."
_OPENSSL = "OpenSSL decides it."


def _same(names: str, clients: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name, clients, name) for name in names.split())


def _none(names: str, clients: str, note: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name, clients, "", note) for name in names.split())


COMMON = (
    *_same("bootstrap.servers client.id client.rack metadata.recovery.strategy enable.metrics.push", ALL),
    *_same("client.dns.lookup", ALL),
    ClientKey("metadata.recovery.rebootstrap.trigger.ms", ALL, "metadata.recovery.rebootstrap.trigger.ms", low=0),
    ClientKey("metadata.max.age.ms", ALL, "topic.metadata.refresh.interval.ms", low=-1, high=3_600_000),
    ClientKey("connections.max.idle.ms", ALL, "connections.max.idle.ms", low=0, high=2**31 - 1),
    ClientKey("reconnect.backoff.ms", ALL, "reconnect.backoff.ms", low=0, high=3_600_000),
    ClientKey("reconnect.backoff.max.ms", ALL, "reconnect.backoff.max.ms", low=0, high=3_600_000),
    ClientKey("retry.backoff.ms", ALL, "retry.backoff.ms", low=1, high=300_000),
    ClientKey("retry.backoff.max.ms", ALL, "retry.backoff.max.ms", low=1, high=300_000),
    ClientKey("request.timeout.ms", ALL, "socket.timeout.ms", low=10, high=300_000),
    ClientKey("socket.connection.setup.timeout.ms", ALL, "socket.connection.setup.timeout.ms", low=1000),
    ClientKey("send.buffer.bytes", ALL, "socket.send.buffer.bytes", low=0, high=100_000_000),
    ClientKey("receive.buffer.bytes", ALL, "socket.receive.buffer.bytes", low=0, high=100_000_000),
    *_none("socket.connection.setup.timeout.max.ms", ALL, "librdkafka always waits the same time."),
    *_none("default.api.timeout.ms", ALL, "Set `admin.timeout.ms` instead."),
    *_none("metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms", ALL, _METRICS),
    *_none("interceptor.classes security.providers config.providers bootstrap.controllers", ALL, _JVM),
)

CONSUMER_KEYS = (
    *_same("group.id group.instance.id session.timeout.ms heartbeat.interval.ms max.poll.interval.ms", CONSUMER),
    *_same("auto.commit.interval.ms enable.auto.commit check.crcs allow.auto.create.topics", CONSUMER),
    *_same("group.protocol group.remote.assignor", CONSUMER),
    ClientKey("isolation.level", CONSUMER, "isolation.level", "In the exactly-once mode it is `read_committed`."),
    ClientKey("auto.offset.reset", CONSUMER, "auto.offset.reset", values={"none": "error"}),
    ClientKey("fetch.min.bytes", CONSUMER, "fetch.min.bytes", low=1, high=100_000_000),
    ClientKey("fetch.max.bytes", CONSUMER, "fetch.max.bytes", low=0, high=2**31 - 513),
    ClientKey("fetch.max.wait.ms", CONSUMER, "fetch.wait.max.ms", low=0, high=300_000),
    ClientKey("max.partition.fetch.bytes", CONSUMER, "max.partition.fetch.bytes", low=1, high=1_000_000_000),
    *_none("max.poll.records", CONSUMER, "librdkafka hands over what it has; see `batch.max.records`."),
    *_none("partition.assignment.strategy", CONSUMER, "Partitions are assigned, not subscribed to."),
    *_none("exclude.internal.topics", CONSUMER, "Partitions are assigned, not subscribed to."),
    *_none("key.deserializer value.deserializer", CONSUMER, "Records are copied as bytes."),
    *_none("share.acknowledgement.mode share.acquire.mode", CONSUMER, "No share groups are used."),
    *_none("internal.throw.on.fetch.stable.offset.unsupported", CONSUMER, _JVM),
)

PRODUCER_KEYS = (
    *_same("acks compression.type enable.idempotence retries transactional.id transaction.timeout.ms", PRODUCER),
    ClientKey("batch.size", PRODUCER, "batch.size", low=1, high=2**31 - 1),
    ClientKey("linger.ms", PRODUCER, "linger.ms", low=0, high=900_000),
    ClientKey("delivery.timeout.ms", PRODUCER, "delivery.timeout.ms", low=0, high=2**31 - 1),
    ClientKey("buffer.memory", PRODUCER, "queue.buffering.max.kbytes", divisor=1024, low=1, high=2**31 - 1),
    ClientKey("max.request.size", PRODUCER, "message.max.bytes", low=1000, high=1_000_000_000),
    ClientKey(
        "max.in.flight.requests.per.connection",
        PRODUCER,
        "max.in.flight.requests.per.connection",
        low=1,
        high=1_000_000,
    ),
    *(
        ClientKey(f"compression.{codec}.level", PRODUCER, "compression.level", f"Counts while the codec is {codec}.")
        for codec in ("gzip", "lz4", "zstd")
    ),
    *_none("max.block.ms", PRODUCER, "The writer waits for room in its queue as long as `delivery.timeout.ms`."),
    *_none("metadata.max.idle.ms", PRODUCER, "librdkafka forgets unused topics by itself."),
    *_none("partitioner.class partitioner.ignore.keys", PRODUCER, "Every record keeps its partition."),
    *_none("partitioner.adaptive.partitioning.enable", PRODUCER, "Every record keeps its partition."),
    *_none("partitioner.availability.timeout.ms", PRODUCER, "Every record keeps its partition."),
    *_none("key.serializer value.serializer", PRODUCER, "Records are copied as bytes."),
    *_none("transaction.two.phase.commit.enable", PRODUCER, _JVM),
)

SSL = (
    ClientKey(
        "security.protocol",
        ALL,
        "security.protocol",
        values={name: name for name in ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")},
    ),
    ClientKey("ssl.truststore.location", ALL, "ssl.ca.location", "JKS and PKCS12 are converted in memory."),
    ClientKey("ssl.truststore.type", ALL, "ssl.ca.location", "Says how the truststore is read."),
    ClientKey("ssl.truststore.password", ALL, "ssl.ca.location", "Opens the truststore."),
    ClientKey("ssl.truststore.certificates", ALL, "ssl.ca.pem"),
    ClientKey("ssl.keystore.location", ALL, "ssl.certificate.location", "JKS and PKCS12 are converted in memory."),
    ClientKey("ssl.keystore.type", ALL, "ssl.certificate.location", "Says how the keystore is read."),
    ClientKey("ssl.keystore.password", ALL, "ssl.certificate.location", "Opens the keystore."),
    ClientKey("ssl.keystore.certificate.chain", ALL, "ssl.certificate.pem"),
    ClientKey("ssl.keystore.key", ALL, "ssl.key.pem"),
    ClientKey("ssl.key.password", ALL, "ssl.key.password"),
    *_same("ssl.endpoint.identification.algorithm", ALL),
    ClientKey("ssl.cipher.suites", ALL, "ssl.cipher.suites", "Java's names are turned into OpenSSL's."),
    *_none("ssl.enabled.protocols ssl.protocol", ALL, "OpenSSL takes the newest version both sides know."),
    *_none("ssl.keymanager.algorithm ssl.trustmanager.algorithm ssl.secure.random.implementation", ALL, _OPENSSL),
    *_none("ssl.provider ssl.engine.factory.class", ALL, _JVM),
)

_LOGIN = "librdkafka refreshes the token by itself."
_BROKER_SIDE = "Only brokers check tokens."

SASL = (
    ClientKey("sasl.mechanism", ALL, "sasl.mechanism"),
    ClientKey("sasl.jaas.config", ALL, "sasl.username", "The login module's options become librdkafka's keys."),
    ClientKey("sasl.kerberos.service.name", ALL, "sasl.kerberos.service.name"),
    ClientKey("sasl.kerberos.kinit.cmd", ALL, "sasl.kerberos.kinit.cmd"),
    ClientKey("sasl.kerberos.min.time.before.relogin", ALL, "sasl.kerberos.min.time.before.relogin", low=0),
    *_none("sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor", ALL, _LOGIN),
    ClientKey(
        "sasl.login.callback.handler.class",
        ALL,
        "sasl.oauthbearer.method",
        "Kafka's own OAuth handler is `oidc`. Any other one can run in Spark's Kafka source only: the next key is "
        "needed beside it.",
    ),
    ClientKey(
        "sasl.login.callback.handler.function",
        ALL,
        "srm.token.function",
        "`package.module:function`, which gives the tokens of OAUTHBEARER; see docs/security.md.",
    ),
    ClientKey(
        "sasl.oauthbearer.jwt.retriever.class",
        ALL,
        "sasl.oauthbearer.grant.type",
        "`JwtBearerJwtRetriever` is the signed assertion; no other Java class can run.",
    ),
    ClientKey("sasl.oauthbearer.token.endpoint.url", ALL, "sasl.oauthbearer.token.endpoint.url"),
    ClientKey("sasl.oauthbearer.scope", ALL, "sasl.oauthbearer.scope"),
    ClientKey("sasl.oauthbearer.client.credentials.client.id", ALL, "sasl.oauthbearer.client.id"),
    ClientKey("sasl.oauthbearer.client.credentials.client.secret", ALL, "sasl.oauthbearer.client.secret"),
    *_none(
        "sasl.login.class sasl.client.callback.handler.class sasl.oauthbearer.jwt.validator.class",
        ALL,
        _JVM,
    ),
    *_none(
        "sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds "
        "sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter "
        "sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.header.urlencode",
        ALL,
        _LOGIN,
    ),
    *_none(
        "sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer "
        "sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms "
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url "
        "sasl.oauthbearer.scope.claim.name",
        ALL,
        _BROKER_SIDE,
    ),
    *_same(
        "sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud "
        "sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss "
        "sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds "
        "sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file "
        "sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase "
        "sasl.oauthbearer.sub.claim.name",
        ALL,
    ),
    ClientKey("sasl.oauthbearer.assertion.template.file", ALL, "sasl.oauthbearer.assertion.jwt.template.file"),
)

SECURITY_KEYS = frozenset({"bootstrap.servers"} | {row.name for row in (*SSL, *SASL)})
"""What MM2 passes to every client of a cluster; all else it drops there."""

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "isolation.level": ("read_committed", "read_uncommitted"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "auto.offset.reset": ("earliest", "latest", "none"),
    "acks": ("all", "-1", "0", "1"),
    "security.protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "sasl.mechanism": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"),
    "ssl.truststore.type": ("JKS", "PKCS12", "PEM"),
    "ssl.keystore.type": ("JKS", "PKCS12", "PEM"),
}
"""Values as Kafka spells them."""


def spelled(name: str, value: str) -> str:
    """The value as Kafka spells it, where the case of its letters is all that differs.

    Java's clients refuse some of these and take others, librdkafka takes them all; whoever compares it afterwards, be
    it Spark's client, must not read it as another one.
    """
    return next((known for known in SPELLINGS.get(name, ()) if known.lower() == value.lower()), value)


CLIENT_KEYS: Mapping[str, ClientKey] = {row.name: row for row in (*COMMON, *CONSUMER_KEYS, *PRODUCER_KEYS, *SSL, *SASL)}
