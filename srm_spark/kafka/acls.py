"""ACLs of topics on one cluster: which there are, and new ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from kafka.admin import ACLOperation, ACLPermissionType, ACLResourcePatternType

from srm_spark.config.rights import CLUSTER
from srm_spark.core.acls import Acl
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.failures import remedy
from srm_spark.kafka.protocol import Protocol

if TYPE_CHECKING:
    from srm_spark.kafka.cluster import ClusterClient


def topic_acls(cluster: ClusterClient) -> set[Acl] | None:
    """All entries about topics; None where the cluster has no authorizer.

    Asked for by a request of our own: of a refusal librdkafka (2.16, `rd_kafka_DescribeAclsResponse_parse`) drops the
    code, and shows no entries. Raises SourceUnavailable or TargetUnavailable.
    """
    try:
        with Protocol(cluster.settings, cluster.properties, f"{cluster.role}|acls", cluster.timeout) as protocol:
            answer = protocol.topic_acls()
    except ProtocolUnavailable as error:
        raise cluster.refused("list the ACLs", str(error)) from error
    if answer.error_code == KafkaError.SECURITY_DISABLED:
        return None
    if answer.error_code:
        refusal = KafkaException(KafkaError(answer.error_code))
        raise cluster.failure("list the ACLs", refusal, f"DESCRIBE on cluster {CLUSTER}")
    return {
        Acl(
            resource.resource_name,
            ACLResourcePatternType(resource.pattern_type).name,
            one.principal,
            one.host,
            ACLOperation(one.operation).name,
            ACLPermissionType(one.permission_type).name,
        )
        for resource in answer.resources
        for one in resource.acls
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
            hint = remedy(why, f"ALTER on cluster {CLUSTER}", "")
            refusals[asked[binding]] = "; ".join(filter(None, (why.str().rstrip("."), hint)))
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
