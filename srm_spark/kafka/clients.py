"""Makes confluent_kafka clients from the settings of a cluster. Other packages never see a librdkafka option.

A client here never creates a topic by asking for it, and remembers the last error that its background threads met:
refused credentials show up nowhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from srm_spark.config.render import librdkafka
from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import TopicPartition
from srm_spark.errors import ClientRefused
from srm_spark.kafka.tokens import with_tokens

ClientOptions = dict[str, str | int | float | bool]

# librdkafka writes to stderr on its own otherwise; what matters comes back as errors of the calls.
QUIET = logging.getLogger("srm_spark.librdkafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class LastError:
    """Keeps the newest error of one client, to be told when a call times out."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self._followed: LastError | None = None

    def follow(self, other: LastError) -> None:
        """Show what `other` keeps: a client that is shared has one keeper of its own."""
        self._followed = other

    def __call__(self, error: KafkaError) -> None:
        # "all brokers down" follows every real reason and says less
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self.error is None:
            self.error = error

    @property
    def newest(self) -> KafkaError | None:
        """The error that is shown."""
        return self.error if self._followed is None else self._followed.newest

    def __str__(self) -> str:
        newest = self.newest
        return str(newest.str()) if newest else "no error"


def options(cluster: ClusterSettings, extra: Mapping[str, str], role: str) -> ClientOptions:
    """librdkafka options of one client; `role` ends up in the client id, which quotas and broker logs show."""
    rendered: ClientOptions = dict(librdkafka(cluster, extra))
    mine = rendered.pop("client.id", "")
    rendered["client.id"] = f"{mine}|{role}" if mine else role
    return rendered


def kafka_partition(partition: TopicPartition, offset: int = OFFSET_INVALID) -> KafkaTopicPartition:
    """A partition as clients take it."""
    return KafkaTopicPartition(partition.topic, partition.partition, offset)


@contextmanager
def _refusing(cluster: ClusterSettings) -> Iterator[None]:
    """Raises ClientRefused: what one cluster's settings lack is no matter of the others."""
    try:
        yield
    except KafkaException as error:
        kafka_error = error.args[0]
        reason = kafka_error.str() if isinstance(kafka_error, KafkaError) else str(kafka_error)
        raise ClientRefused(
            f"cluster {cluster.alias} ({cluster.bootstrap_servers}): the client library refuses its settings: "
            f"{reason}; srm-control config validate names the line"
        ) from error


def admin_client(cluster: ClusterSettings, extra: Mapping[str, str], role: str, on_error: LastError) -> AdminClient:
    """An admin client."""
    fixed: dict[str, Any] = {**options(cluster, extra, role), "error_cb": on_error}
    with _refusing(cluster):
        return AdminClient(with_tokens(fixed), logger=QUIET)


def control_producer(cluster: ClusterSettings, extra: Mapping[str, str], role: str, on_error: LastError) -> Producer:
    """A producer for control records: few, small, each one acknowledged before it counts."""
    fixed: dict[str, Any] = {
        **options(cluster, extra, role),
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 0,
        # A compacted topic keeps one value per key and partition: all clients must agree on the partition.
        "partitioner": "murmur2_random",
        "allow.auto.create.topics": False,
        "error_cb": on_error,
    }
    with _refusing(cluster):
        return Producer(with_tokens(fixed), logger=QUIET)


def reader(cluster: ClusterSettings, extra: Mapping[str, str], role: str, on_error: LastError) -> Consumer:
    """A consumer that is assigned by hand, commits nothing and reads committed records from the beginning."""
    with _refusing(cluster):
        return reader_by(options(cluster, extra, role), role, on_error)


def reader_by(given: Mapping[str, str | int | float | bool], role: str, on_error: LastError, **more: Any) -> Consumer:
    """The same by options of librdkafka, with `more` of them, `_` for each dot. Raises KafkaException."""
    fixed: dict[str, Any] = {
        "isolation.level": "read_committed",
        **given,
        "group.id": f"srm-reader-{role}",  # librdkafka insists on one; it is never joined
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": False,
        "allow.auto.create.topics": False,
        "error_cb": on_error,
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return Consumer(with_tokens(fixed), logger=QUIET)


def bytes_of(value: str | bytes | None) -> bytes | None:
    """A key or value as a client hands it on."""
    return value.encode() if isinstance(value, str) else value


def member(
    cluster: ClusterSettings, group: str, role: str, on_error: LastError, *, session_ms: int, poll_ms: int
) -> Consumer:
    """A consumer that joins `group`, for what membership means and not for records."""
    fixed: dict[str, Any] = {
        **options(cluster, {}, role),
        "group.id": group,
        "group.protocol": "classic",
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": session_ms // 3,
        "max.poll.interval.ms": poll_ms,
        "partition.assignment.strategy": "cooperative-sticky",
        "enable.auto.commit": False,
        "auto.offset.reset": "latest",
        "fetch.message.max.bytes": 1024,
        "allow.auto.create.topics": False,
        "error_cb": on_error,
    }
    with _refusing(cluster):
        return Consumer(with_tokens(fixed), logger=QUIET)
