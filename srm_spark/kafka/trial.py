"""Whether librdkafka takes what a configuration makes of its clients: each one is made once, without an address.

That is the only complete list of what it refuses: ranges, combinations, and what it was built without. Nothing is
reached by it: a client that knows no broker opens no connection, and one that gets tokens by OIDC gets no address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from srm_spark.config.sasl import TOKEN_FUNCTION, TOKEN_OPTIONS
from srm_spark.config.settings import ClusterSettings, FlowSettings
from srm_spark.kafka.clients import QUIET, ClientOptions, options
from srm_spark.kafka.fetch import fetch_options
from srm_spark.kafka.producers import delivery_timeout, record_options

_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_NOWHERE = "nowhere:"
"""No address that anything could be asked for at."""
Make = Callable[[ClientOptions], object]


@dataclass(frozen=True)
class Refusal:
    """A client that cannot be made."""

    reason: str
    """In librdkafka's words."""
    names: tuple[str, ...]
    """Java properties without any one of which it could be made; empty where no single one is to blame."""


def refusal(client: str, settings: FlowSettings, cluster: ClusterSettings, extra: Mapping[str, str]) -> Refusal | None:
    """Why librdkafka does not make this client of a flow; None where it does.

    `client` is `consumer`, `producer` (of the records) or `admin`, `extra` what it has beyond the cluster's own
    properties. Raises JaasError and TlsError where a login or a store cannot be read.
    """
    make = _MAKERS[client](settings)
    reason = _try(make, cluster, extra)
    if reason is None:
        return None
    messages = []
    for name in {**cluster.properties, **extra}:
        own = {key: value for key, value in cluster.properties.items() if key != name}
        rest = {key: value for key, value in extra.items() if key != name}
        if _try(make, ClusterSettings(cluster.alias, cluster.bootstrap_servers, own), rest) is None:
            messages.append(name)
    return Refusal(reason, tuple(messages))


def _try(make: Make, cluster: ClusterSettings, extra: Mapping[str, str]) -> str | None:
    rendered = options(cluster, extra, "trial")
    del rendered["bootstrap.servers"]
    rendered = {name: value for name, value in rendered.items() if name not in (TOKEN_FUNCTION, TOKEN_OPTIONS)}
    if _ENDPOINT in rendered:
        rendered[_ENDPOINT] = _NOWHERE
    try:
        make(rendered)
    except KafkaException as error:
        kafka_error = error.args[0]
        return str(kafka_error.str() if isinstance(kafka_error, KafkaError) else kafka_error).strip()
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def _consumer(_: FlowSettings) -> Make:
    return lambda accepted: Consumer(fetch_options(accepted), logger=QUIET)


def _producer(settings: FlowSettings) -> Make:
    def make(accepted: ClientOptions) -> object:
        return Producer(record_options(accepted, delivery_timeout(settings.producer)), logger=QUIET)

    return make


def _admin(_: FlowSettings) -> Make:
    return lambda accepted: AdminClient(accepted, logger=QUIET)


_MAKERS: Mapping[str, Callable[[FlowSettings], Make]] = {"consumer": _consumer, "producer": _producer, "admin": _admin}
