"""Rows for the keys of the process: clusters, Connect workers, REST, and SRM's Service and Client."""

from __future__ import annotations

from srm_spark.config.schema import Key, KeyEffect, Scope, ValueKind
from srm_spark.core.alerting import AlertKind

_H, _T, _I = KeyEffect.HONOURED, KeyEffect.TRANSLATED, KeyEffect.IGNORED
_CONNECT = "srm-spark runs no Connect workers"
_REST = "srm-spark has no Connect REST server"
_SERVICE = "Belongs to SRM's Service or Client; srm-driver does not read it."
_SHORT = 2**15 - 1
LISTENER_KEY = "driver.metrics.listener"
PARTITIONS_KEY = "driver.metrics.partitions"
SERVICE_TARGETS_KEY = "streams.replication.manager.service.target.cluster"
SERVICE_LISTEN_KEY = "service.listen"
SERVICE_USERS_KEY = "service.users.file"
SERVICE_CERTIFICATE_KEY = "service.tls.certificate"
SERVICE_KEY_KEY = "service.tls.key"
ALERT_WEBHOOK_KEY = "service.alerts.webhook"
ALERT_KINDS_KEY = "service.alerts"
ALERT_RPO_KEY = "service.alerts.rpo.seconds"
ALERT_AFTER_KEY = "service.alerts.after.seconds"
ALERT_REPEAT_KEY = "service.alerts.repeat.seconds"
_DAY_SECONDS = 86_400
SERVICE_ANONYMOUS_KEY = "service.anonymous.role"
SERVICE_AUDIT_KEY = "service.audit.path"
SERVICE_MOVES_KEY = "service.moves.path"
HISTORY_PATH_KEY = "service.history.path"
HISTORY_DAYS_KEY = "service.history.days"
HISTORY_EMBEDDED_KEY = "service.history.embedded"


def _row(name: str, scope: Scope, does: str, kind: ValueKind = ValueKind.TEXT, default: str | None = None) -> Key:
    return Key(name, kind, default, scope, _I, does)


TOP = (
    Key("clusters", ValueKind.LIST, None, Scope.TOP, _H, "The aliases of all clusters."),
    Key(
        "dialect",
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "Whose rules decide where MM2 and SRM disagree; found out from the keys where it is not set.",
        allowed=("mm2", "srm"),
    ),
    Key(
        "config.resolver.class",
        ValueKind.CLASS,
        None,
        Scope.TOP,
        _H,
        "Python class that resolves `${NAME:…}` references.",
    ),
    Key(
        "streams.replication.manager.driver.target.cluster",
        ValueKind.LIST,
        None,
        Scope.TOP,
        _H,
        "Only flows into these clusters run, as with `--clusters` of MM2; empty: all.",
    ),
    Key(
        SERVICE_TARGETS_KEY,
        ValueKind.LIST,
        None,
        Scope.TOP,
        _H,
        "`srm-service` tells of flows into these clusters; empty: of all.",
    ),
    _row("dedicated.mode.enable.internal.rest", Scope.TOP, f"{_REST}.", ValueKind.BOOL, "false"),
    _row("mm.rest.protocol", Scope.TOP, f"{_REST}."),
    Key(
        "metrics.period",
        ValueKind.INT,
        "30",
        Scope.TOP,
        _H,
        "Seconds between two samples of each flow in `srm-metrics-A.internal` on its target (docs/metrics.md).",
        low=1,
        high=3600,
        off=True,
    ),
    Key(
        "metrics.topic.replication.factor",
        ValueKind.INT,
        None,
        Scope.TOP,
        _H,
        "Replication factor of the topics of samples; unset: as `offset.storage.replication.factor`, -1 takes the "
        "broker's default.",
        low=-1,
        high=_SHORT,
    ),
    Key(
        LISTENER_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "`HOST:PORT` at which the driver shows its metrics to Prometheus, under `/metrics` and without a login: on "
        "another address than this machine's own, everybody who reaches it sees names of topics and groups. Unset: "
        "nowhere (docs/metrics.md).",
    ),
    Key(
        PARTITIONS_KEY,
        ValueKind.BOOL,
        "false",
        Scope.TOP,
        _H,
        "Shows Prometheus a series for each partition, too, and not only for each topic.",
        allowed=("true", "false"),
    ),
    _row(
        "metrics.topic.creation.for.possible.flows.enabled",
        Scope.TOP,
        "Metrics topics are made for enabled flows alone.",
    ),
    *(
        _row(f"metrics.jetty.{part}", Scope.TOP, "There is no such server here.")
        for part in (
            "server.port",
            "server.secureport",
            "ssl.enabled",
            "authentication.enabled",
            "auth.username",
            "auth.password",
        )
    ),
    _row("mm.metrics.servlet.enable", Scope.TOP, "There is no such server here."),
)

OWN_SERVICE = (
    Key(
        SERVICE_LISTEN_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "Where `srm-service` listens, `host:port`; by default `127.0.0.1:6670`, with TLS `127.0.0.1:6671`.",
    ),
    Key(
        SERVICE_USERS_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "File of those who may ask `srm-service`, a line `name:hash:roles` each, as `srm-service user NAME` prints it.",
    ),
    Key(
        SERVICE_ANONYMOUS_KEY,
        ValueKind.TEXT,
        "viewer",
        Scope.TOP,
        _H,
        "What everybody may do where `srm-service` has no users and listens on this machine.",
        allowed=("viewer", "operator", "admin"),
    ),
    Key(
        SERVICE_AUDIT_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "File to which `srm-service` appends who changed what, or was refused; without it that stands in its log.",
    ),
    Key(
        SERVICE_MOVES_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "Directory of the state files and statements of moves by `srm-service`; by default where it was started.",
    ),
    Key(
        SERVICE_CERTIFICATE_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "Certificate chain of `srm-service` in PEM; with it and its key it speaks TLS only.",
    ),
    Key(SERVICE_KEY_KEY, ValueKind.TEXT, None, Scope.TOP, _H, "The private key of that certificate, in PEM."),
    Key(
        ALERT_WEBHOOK_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "URL that `srm-service` tells of alerts, in the format of Prometheus' Alertmanager; kept secret.",
    ),
    Key(
        ALERT_KINDS_KEY,
        ValueKind.LIST,
        None,
        Scope.TOP,
        _H,
        "What it is told of; by default everything: " + ", ".join(kind.value for kind in AlertKind) + ".",
    ),
    Key(
        ALERT_RPO_KEY,
        ValueKind.INT,
        "300",
        Scope.TOP,
        _H,
        "Goal in seconds: more data that a failover would lose is an alert.",
        low=0,
        high=30 * _DAY_SECONDS,
    ),
    Key(
        ALERT_AFTER_KEY,
        ValueKind.INT,
        "300",
        Scope.TOP,
        _H,
        "How long something has to be wrong, in seconds; losses and records in quarantine are told at once.",
        low=0,
        high=_DAY_SECONDS,
    ),
    Key(
        ALERT_REPEAT_KEY,
        ValueKind.INT,
        "14400",
        Scope.TOP,
        _H,
        "When it is told again while it lasts, in seconds.",
        low=60,
        high=30 * _DAY_SECONDS,
    ),
    Key(
        HISTORY_PATH_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "Folder in which `srm-service` keeps figures of more than two hours, as Delta tables; unset: nowhere "
        "(docs/service.md).",
    ),
    Key(
        HISTORY_DAYS_KEY,
        ValueKind.INT,
        "30",
        Scope.TOP,
        _H,
        "Days for which these figures are kept.",
        low=1,
        high=3650,
    ),
    Key(
        HISTORY_EMBEDDED_KEY,
        ValueKind.BOOL,
        "true",
        Scope.TOP,
        _H,
        "Whether `srm-service` writes them itself; else `srm-service history` does.",
        allowed=("true", "false"),
    ),
)
"""Keys of `srm-service` that SRM does not know."""

PROGRESS = (
    Key(
        "offset.storage.topic",
        ValueKind.TEXT,
        None,
        Scope.WORKER_PREFIX,
        _H,
        "Progress topic on the target; by default `mm2-offsets.<source>.internal`.",
    ),
    Key(
        "offset.storage.replication.factor",
        ValueKind.INT,
        "3",
        Scope.WORKER_PREFIX,
        _H,
        "Replication factor of the progress topic; -1 takes the broker's default.",
        low=-1,
        high=_SHORT,
    ),
    Key(
        "offset.storage.partitions",
        ValueKind.INT,
        "25",
        Scope.WORKER_PREFIX,
        _H,
        "Partitions of the progress topic; -1 takes the broker's default.",
        low=-1,
        high=100_000,
    ),
)

_WORKER_NAMES = (
    "client.id connector.client.config.override.policy group.id heartbeat.interval.ms "
    "inter.worker.key.generation.algorithm inter.worker.key.size inter.worker.key.ttl.ms "
    "inter.worker.signature.algorithm inter.worker.verification.algorithms offset.flush.interval.ms "
    "offset.flush.timeout.ms plugin.discovery plugin.path rebalance.timeout.ms scheduled.rebalance.max.delay.ms "
    "session.timeout.ms task.shutdown.graceful.timeout.ms topic.creation.enable topic.tracking.allow.reset "
    "topic.tracking.enable worker.sync.timeout.ms worker.unsync.backoff.ms connect.protocol "
    "task.assigned.partitions task.assigned.groups task.index"
)
_STORAGE_NAMES = (
    "config.storage.topic config.storage.replication.factor status.storage.topic "
    "status.storage.replication.factor status.storage.partitions"
)
_REST_NAMES = (
    "listeners rest.advertised.host.name rest.advertised.listener rest.advertised.port rest.extension.classes "
    "admin.listeners access.control.allow.methods access.control.allow.origin response.http.headers.config "
    "ssl.client.auth"
)

WORKER = (
    Key(
        "exactly.once.source.support",
        ValueKind.TEXT,
        "disabled",
        Scope.WORKER,
        _H,
        "`enabled`: records and progress are committed in transactions, so that not even a writer that comes back "
        "doubles anything; `preparing` changes nothing here.",
        allowed=("disabled", "preparing", "enabled"),
    ),
    *(_row(name, Scope.WORKER, f"{_CONNECT}.") for name in _WORKER_NAMES.split()),
    *(
        _row(name, Scope.WORKER_PREFIX, f"{_CONNECT}; progress is kept in `offset.storage.topic`.")
        for name in _STORAGE_NAMES.split()
    ),
    *(_row(name, Scope.TOP, f"{_REST}.") for name in _REST_NAMES.split()),
)

SERVICE = (
    _row(
        "streams.replication.manager.config",
        Scope.SERVICE,
        "Cloudera Manager's field for further keys: write its entries, which `|` separates, as lines of their own.",
    ),
    _row(
        "external_kafka_accounts",
        Scope.SERVICE,
        "Names of Kafka credentials that only Cloudera Manager can read: write what they hold behind their alias, "
        "`A.bootstrap.servers`, `A.security.protocol` and so on.",
    ),
    *(
        _row(name, Scope.SERVICE, _SERVICE)
        for name in (
            "colocated.cluster.alias",
            "streams.replication.manager.service.streams.replication.factor",
            "streams.replication.manager.service.streams.cache.max.bytes.buffering",
            "streams.replication.manager.service.streams.commit.interval.ms",
            "streams.replication.manager.service.streams.application.connection.test.timeout",
            "securestorage.password",
            "ssl_client_truststore_location",
            "ssl_client_truststore_password",
            "kerberos.keytab.location",
            "kerberos.principal.name",
            "kerberos.auth.enable",
            "client_config_root_dir",
        )
    ),
)

IGNORED_PREFIXES = {
    "offset.storage.": f"{_CONNECT}; the progress topic is made with Connect's own settings.",
    "config.storage.": f"{_CONNECT}.",
    "status.storage.": f"{_CONNECT}.",
    "key.converter.": "Records are copied as bytes.",
    "value.converter.": "Records are copied as bytes.",
    "header.converter.": "Records are copied as bytes.",
    "transforms.": "Connect's transforms are Java classes; records are copied unchanged.",
    "predicates.": "Connect's predicates are Java classes; records are copied unchanged.",
    "listeners.https.": f"{_REST}.",
    "admin.listeners.https.": f"{_REST}.",
    "metrics.context.": "Labels of Connect's own metrics.",
    "topic.creation.": "Remote topics are made like their source topics.",
    "streams.replication.manager.service.": _SERVICE,
    "task.": f"{_CONNECT}.",
    "worker.": f"{_CONNECT}.",
}
"""Whole families of keys, behind any prefix a worker or connector property may have."""
