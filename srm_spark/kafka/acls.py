"""ACLs of topics on one cluster: which there are, and new ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from srm_spark.core.acls import Acl
from srm_spark.kafka.failures import remedy

if TYPE_CHECKING:
    from srm_spark.kafka.cluster import ClusterClient

_ANY: Any = None
_EVERY = AclBindingFilter(
    ResourceType.TOPIC, _ANY, ResourcePatternType.ANY, _ANY, _ANY, AclOperation.ANY, AclPermissionType.ANY
)


def topic_acls(cluster: ClusterClient) -> set[Acl] | None:
    """All entries about topics; None where the cluster has no authorizer.

    Raises SourceUnavailable or TargetUnavailable.
    """
    try:
        found = cluster.admin.describe_acls(_EVERY, request_timeout=cluster.timeout).result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.SECURITY_DISABLED:
            return None
        raise cluster.failure("list the ACLs", error, "DESCRIBE on the cluster") from error
    return {
        Acl(
            one.name,
            one.resource_pattern_type.name,
            one.principal,
            one.host,
            one.operation.name,
            one.permission_type.name,
        )
        for one in found
    }


def add_acls(cluster: ClusterClient, acls: Collection[Acl]) -> dict[Acl, str | None]:
    """Make new entries; per entry None, or why it was refused."""
    asked = {_binding(acl): acl for acl in acls}
    refusals: dict[Acl, str | None] = {}
    for binding, future in cluster.admin.create_acls(list(asked), request_timeout=cluster.timeout).items():
        try:
            future.result()
            refusals[asked[binding]] = None
        except KafkaException as error:
            why: KafkaError = error.args[0]
            refusals[asked[binding]] = f"{why.str().rstrip('.')}; {remedy(why, 'ALTER on the cluster', '')}".rstrip(
                "; "
            )
    return refusals


def _binding(acl: Acl) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        acl.topic,
        ResourcePatternType[acl.pattern],
        acl.principal,
        acl.host,
        AclOperation[acl.operation],
        AclPermissionType[acl.permission],
    )
