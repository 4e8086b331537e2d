"""Quotas of one cluster: which there are, and changes of them. librdkafka has no call for either (KIP-546)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from srm_spark.config.rights import CLUSTER
from srm_spark.core.quotas import Entity, Quota, entity_of
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.failures import refusal

if TYPE_CHECKING:
    from srm_spark.kafka.cluster import ClusterClient


def quotas_of(cluster: ClusterClient) -> dict[Quota, float]:
    """All quotas of users. Raises SourceUnavailable or TargetUnavailable."""
    try:
        with cluster.protocol("quotas") as protocol:
            answer = protocol.quotas("user")
    except ProtocolUnavailable as error:
        raise cluster.refused("list the quotas", str(error)) from error
    if answer.error_code:
        failed = KafkaException(KafkaError(answer.error_code))
        raise cluster.failure("list the quotas", failed, f"DESCRIBE_CONFIGS on cluster {CLUSTER}")
    return {
        Quota(entity_of({part.entity_type: part.entity_name for part in entry.entity}), one.key): one.value
        for entry in answer.entries or ()
        for one in entry.values
    }


def alter_quotas(cluster: ClusterClient, changes: Mapping[Quota, float | None]) -> dict[Quota, str | None]:
    """Set quotas, or take them back where a value is None; per quota None, or why it was refused."""
    asked = defaultdict[Entity, dict[str, float | None]](dict)
    for quota, value in changes.items():
        asked[quota.entity][quota.key] = value
    try:
        with cluster.protocol("quotas") as protocol:
            codes = protocol.alter_quotas(asked)
    except ProtocolUnavailable as error:
        raise cluster.refused("change quotas", str(error)) from error
    return {quota: _refusal(codes.get(quota.entity)) for quota in changes}


def _refusal(code: int | None) -> str | None:
    if code == 0:
        return None
    error = KafkaError(KafkaError.UNKNOWN if code is None else code)
    return refusal(error, f"ALTER_CONFIGS on cluster {CLUSTER}")
