"""What a cluster lets us do, found out by asking only: reached or why not, and which operations are allowed.

Nothing is created and nothing written, so some answers stay unknown: they are None, never a guess.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicCollection, libversion
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation

from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import FlowError
from srm_spark.kafka.clients import LastError, admin_client, options

_CALL_SECONDS = 5.0
_ATTEMPT_SECONDS = 1.0
_CHUNK = 500
"""Topics per call: one request for 10 000 topics would answer with tens of megabytes."""

Operations = frozenset[str]
"""Names as in `kafka-acls`: READ, WRITE, CREATE, DESCRIBE, DESCRIBE_CONFIGS …"""


class Trouble(Enum):
    """Why a cluster cannot be used."""

    NAME = "the host name cannot be resolved"
    REFUSED = "nobody listens there"
    SILENT = "no answer in time"
    CREDENTIALS = "the cluster refuses the credentials"
    TLS = "no TLS connection"
    PROTOCOL = "what answers there does not speak this protocol"


@dataclass(frozen=True)
class Reach:
    """Whether the cluster answered."""

    brokers: int = 0
    trouble: Trouble | None = None
    detail: str = ""
    """What the client said."""


class Access:
    """Asks one cluster, with the credentials of a flow."""

    def __init__(
        self, cluster: ClusterSettings, properties: Mapping[str, str], seconds: float, role: str = "srm-doctor"
    ) -> None:
        """All calls together take about `seconds`, whatever happens."""
        self._last_error = LastError()
        self._deadline = time.monotonic() + seconds
        self._admin: AdminClient = admin_client(cluster, properties, role, self._last_error)
        user = options(cluster, properties, role).get("sasl.username")
        self.principal = f"User:{user or '<principal of these credentials>'}"

    def reach(self) -> Reach:
        """Connect; refused credentials end the wait at once, everything else may still come."""
        reason = ""
        while (left := self._left()) > 0:
            try:
                return Reach(len(self._admin.list_topics(timeout=min(left, _ATTEMPT_SECONDS)).brokers))
            except KafkaException as error:
                reason = str(error.args[0].str())
                if error.args[0].code() == KafkaError._UNSUPPORTED_FEATURE:
                    return Reach(trouble=Trouble.PROTOCOL, detail=reason)
            self._admin.poll(0.1)
            seen = self._last_error.error
            if seen is not None and seen.code() in (KafkaError._AUTHENTICATION, KafkaError._RESOLVE, KafkaError._SSL):
                break
        return Reach(trouble=trouble_of(self._last_error.error), detail=self._seen() or reason)

    def topic_partitions(self) -> dict[str, int]:
        """Every topic that may be described."""
        try:
            topics = self._admin.list_topics(timeout=self._call()).topics
        except KafkaException as error:
            raise FlowError(f"the cluster does not list its topics: {error.args[0].str()}") from error
        return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}

    def on_cluster(self) -> Operations | None:
        """What is allowed on the cluster as a whole; unknown also where it knows no broker (see ClusterClient.ping)."""
        try:
            if not self._admin.list_topics(timeout=self._call()).brokers:
                return None
            future: Any = self._admin.describe_cluster(include_authorized_operations=True, request_timeout=self._call())
            return _names(future.result().authorized_operations)
        except KafkaException:
            return None

    def on_topics(self, names: Collection[str]) -> dict[str, Operations | None]:
        """What is allowed on each topic that exists; a topic that is hidden from us looks like one that does not."""
        operations: dict[str, Operations | None] = {}
        ordered = sorted(names)
        for start in range(0, len(ordered), _CHUNK):
            asked = TopicCollection(ordered[start : start + _CHUNK])
            futures = self._admin.describe_topics(
                asked, include_authorized_operations=True, request_timeout=self._call()
            )
            for name, future in futures.items():
                try:
                    operations[name] = _names(future.result().authorized_operations)
                except KafkaException as error:
                    if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                        operations[name] = frozenset()
                    elif error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        operations[name] = None
        return operations

    def on_group(self, group: str) -> Operations | None:
        """What is allowed on a group; None for one that does not exist yet."""
        futures = self._admin.describe_consumer_groups(
            [group], include_authorized_operations=True, request_timeout=self._call()
        )
        try:
            description = futures[group].result()
        except KafkaException as error:
            is_refused = error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
            return frozenset() if is_refused else None
        # A group that does not exist is described, too, by older brokers, and with nothing that counts.
        return None if description.state == ConsumerGroupState.DEAD else _names(description.authorized_operations)

    def _seen(self) -> str:
        return str(self._last_error) if self._last_error.error is not None else ""

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _call(self) -> float:
        return max(0.5, min(_CALL_SECONDS, self._left()))


def trouble_of(error: KafkaError | None) -> Trouble:
    """What the client's last error means for its user."""
    if error is None:
        return Trouble.SILENT
    for trouble, codes, text in _SIGNS:
        if error.code() in codes or (text and text in error.str()):
            return trouble
    return Trouble.SILENT


_SIGNS: tuple[tuple[Trouble, tuple[int, ...], str], ...] = (
    (Trouble.NAME, (KafkaError._RESOLVE,), ""),
    (Trouble.CREDENTIALS, (KafkaError._AUTHENTICATION,), ""),
    (Trouble.TLS, (KafkaError._SSL,), "SSL handshake"),
    (Trouble.REFUSED, (), "refused"),
    (Trouble.PROTOCOL, (KafkaError._ALL_BROKERS_DOWN,), "Disconnected"),
)
"""Error codes, and words of librdkafka where a code says less than they do; the first that fits counts."""


def librdkafka_version() -> str:
    """Version of the C library inside confluent-kafka."""
    return str(libversion()[0])


def _names(operations: list[AclOperation] | None) -> Operations | None:
    return None if operations is None else frozenset(operation.name for operation in operations)
