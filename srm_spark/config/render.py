"""Java client properties in the words of librdkafka and of Spark's Kafka source. Opens no socket.

Whatever has no counterpart is handed back with the reason; nothing is dropped in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from srm_spark.config.keys_client import CLIENT_KEYS, ClientKey
from srm_spark.config.sasl import sasl_options, spark_login
from srm_spark.config.settings import ClusterSettings
from srm_spark.config.tls import spark_keystore, tls_options

_SASL = frozenset(name for name in CLIENT_KEYS if name.startswith("sasl."))
_TLS = frozenset(name for name in CLIENT_KEYS if name.startswith("ssl."))
_SPARK_OWN = frozenset(
    {
        "auto.offset.reset",
        "enable.auto.commit",
        "key.deserializer",
        "value.deserializer",
        "interceptor.classes",
        "partition.assignment.strategy",
        "allow.auto.create.topics",
        "bootstrap.servers",
        "group.protocol",
        "group.id",
        "group.instance.id",
        "group.remote.assignor",
        "config.providers",
    }
)
"""What Spark's source refuses, or what srm-spark sets itself."""


_CALL, _REQUEST = "default.api.timeout.ms", "request.timeout.ms"
_REQUEST_MS = 30_000
"""Kafka's default of `request.timeout.ms`."""


@dataclass(frozen=True)
class Rendered:
    """What a client is made of."""

    options: dict[str, str] = field(repr=False)
    unmapped: dict[str, str]
    """Properties with no counterpart, and why that does no harm or what to do."""


def librdkafka(cluster: ClusterSettings, extra: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's configuration for one client of `cluster`; `extra` are Java properties that win over its own."""
    return translate(_together(cluster, extra)).options


def unmapped(cluster: ClusterSettings, extra: Mapping[str, str]) -> dict[str, str]:
    """The Java properties that `librdkafka` leaves out, with the reason."""
    return translate(_together(cluster, extra)).unmapped


def spark_kafka_options(
    cluster: ClusterSettings, consumer: Mapping[str, str], admin_timeout_seconds: float
) -> dict[str, str]:
    """Options of Spark's Kafka source: Java properties behind `kafka.`, topics never created by asking.

    A call waits as long as our own administrative ones: a query whose source is dead cannot be stopped before. Raises
    TlsError where a key in PEM cannot be opened.
    """
    together = spark_keystore(spark_login(_patient(_together(cluster, consumer), int(admin_timeout_seconds * 1000))))
    options = {f"kafka.{name}": value for name, value in together.items() if name not in _SPARK_OWN}
    options["kafka.bootstrap.servers"] = together["bootstrap.servers"]
    options["kafka.allow.auto.create.topics"] = "false"
    return options


def _patient(java: Mapping[str, str], timeout_ms: int) -> dict[str, str]:
    """With the waits of Java's clients, which want `request.timeout.ms` to be the shorter one."""
    call, request = java.get(_CALL, ""), java.get(_REQUEST, "")
    request_ms = int(request) if request.isdigit() else _REQUEST_MS
    call_ms = int(call) if call.isdigit() else max(timeout_ms, request_ms if request else 0)
    return {_REQUEST: str(min(request_ms, call_ms)), _CALL: str(call_ms), **java}


def _together(cluster: ClusterSettings, extra: Mapping[str, str]) -> dict[str, str]:
    return {"bootstrap.servers": cluster.bootstrap_servers, **cluster.properties, **extra}


def translate(java: Mapping[str, str]) -> Rendered:
    """Java client properties in librdkafka's words. Raises TlsError or JaasError where stores cannot be read."""
    options: dict[str, str] = {}
    left: dict[str, str] = {}
    for name, value in java.items():
        row = CLIENT_KEYS.get(name)
        if row is None:
            left[name] = "no such property of a Java client"
        elif name in _SASL or name in _TLS:
            continue
        elif not row.librdkafka:
            left[name] = row.note
        else:
            _simple(row, value, java, options)
    for special, names in ((tls_options, _TLS), (sasl_options, _SASL)):
        mine = {name: value for name, value in java.items() if name in names}
        protocol = java.get("security.protocol", "PLAINTEXT").upper()
        more, reasons = special(protocol, mine)
        options.update(more)
        left.update(reasons)
    return Rendered(options, left)


def _simple(row: ClientKey, value: str, java: Mapping[str, str], options: dict[str, str]) -> None:
    is_level = row.name.startswith("compression.") and row.name.endswith(".level")
    if is_level and row.name.split(".")[1] != java.get("compression.type", "none").lower():
        return
    if row.name == "security.protocol":
        value = value.strip().lower()
    options[row.librdkafka] = _converted(row, value.strip())


def _converted(row: ClientKey, value: str) -> str:
    if row.values and value in row.values:
        return row.values[value]
    if row.divisor == 1 and row.low is None and row.high is None:
        return value
    try:
        number = int(value)
    except ValueError:
        return value
    number //= row.divisor
    if row.low is not None:
        number = max(number, row.low)
    if row.high is not None:
        number = min(number, row.high)
    return str(number)
