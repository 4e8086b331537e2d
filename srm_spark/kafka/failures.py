"""What an error of Kafka means to its user: which right is missing, and which errors pass by themselves."""

from __future__ import annotations

from confluent_kafka import KafkaError

from srm_spark.failure import FailureKind

_DENIED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)

_KINDS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: FailureKind.TARGET_DENIED,
    KafkaError._PURGE_QUEUE: FailureKind.PRODUCER_FAILED,
    KafkaError._FATAL: FailureKind.PRODUCER_FAILED,
    KafkaError._GAPLESS_GUARANTEE: FailureKind.PRODUCER_FAILED,
}


class UnfitName(KafkaError):
    """A header's name that the client library would write as another one: the record was not handed to it."""

    def __init__(self, reason: str) -> None:
        super().__init__(KafkaError._INVALID_ARG, reason)


def kind_of(error: KafkaError) -> FailureKind:
    """What became of a record that was not acknowledged because of it."""
    if isinstance(error, UnfitName):
        return FailureKind.HEADER_NAME
    return _KINDS.get(error.code(), FailureKind.WRITE_REFUSED)


def is_denied(error: KafkaError) -> bool:
    """Whether the cluster knows us and does not let us."""
    return error.code() in _DENIED


def is_passing(error: KafkaError) -> bool:
    """Whether one that only reads may go on after it.

    Its group is a name that librdkafka insists on: nobody joins it, so being refused there does no harm.
    """
    harmless = (KafkaError._TRANSPORT, KafkaError.GROUP_AUTHORIZATION_FAILED)
    return error.retriable() or error.code() in harmless


def remedy(error: KafkaError, right: str, otherwise: str) -> str:
    """What to do: grant `right` (an operation on a resource) where it was refused, else what `otherwise` says."""
    return f"allow {right} to the principal of these credentials" if is_denied(error) else otherwise


def refusal(error: KafkaError, right: str) -> str:
    """Why something was refused, and what to do where `right` is missing."""
    return "; ".join(filter(None, (error.str().rstrip("."), remedy(error, right, ""))))


def named(error: KafkaError) -> str:
    """Code and words of an error."""
    return f"{error.name()}: {error.str()}"
