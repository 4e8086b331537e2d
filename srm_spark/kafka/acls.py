"""ACLs of one cluster: which there are, new ones, and those that are taken back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from srm_spark.config.rights import CLUSTER
from srm_spark.core.acls import Acl
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.failures import refusal

if TYPE_CHECKING:
    from srm_spark.kafka.cluster import ClusterClient

_Form = TypeVar("_Form")


def acls_of(cluster: ClusterClient, kinds: Collection[str]) -> set[Acl] | None:
    """All entries about these kinds of resources; None where the cluster has no authorizer.

    Asked for by a request of our own: of a refusal librdkafka (2.16, `rd_kafka_DescribeAclsResponse_parse`) drops the
    code, and shows no entries. Raises SourceUnavailable or TargetUnavailable.
    """
    # Most commands ask for no ACLs, and the second client library takes long to load.
    from kafka.admin import ACLOperation, ACLPermissionType, ACLResourcePatternType  # noqa: PLC0415

    found: set[Acl] = set()
    try:
        with cluster.protocol("acls") as protocol:
            answers = [protocol.acls(kind) for kind in kinds]
    except ProtocolUnavailable as error:
        raise cluster.refused("list the ACLs", str(error)) from error
    for kind, answer in zip(kinds, answers, strict=True):
        if answer.error_code == KafkaError.SECURITY_DISABLED:
            return None
        if answer.error_code:
            failed = KafkaException(KafkaError(answer.error_code))
            raise cluster.failure("list the ACLs", failed, f"DESCRIBE on cluster {CLUSTER}")
        found |= {
            Acl(
                resource.resource_name,
                ACLResourcePatternType(resource.pattern_type).name,
                one.principal,
                one.host,
                ACLOperation(one.operation).name,
                ACLPermissionType(one.permission_type).name,
                kind,
            )
            for resource in answer.resources
            for one in resource.acls
        }
    return found


def add_acls(cluster: ClusterClient, acls: Collection[Acl]) -> dict[Acl, str | None]:
    """Make new entries; per entry None, or why it was refused."""
    asked = {_as(AclBinding, acl): acl for acl in acls}
    answers = cluster.admin.create_acls(list(asked), request_timeout=cluster.timeout)
    return {asked[binding]: _refusal(future) for binding, future in answers.items()}


def remove_acls(cluster: ClusterClient, acls: Collection[Acl]) -> dict[Acl, str | None]:
    """Take entries back; per entry None, or why it was refused."""
    asked = {_as(AclBindingFilter, acl): acl for acl in acls}
    answers = cluster.admin.delete_acls(list(asked), request_timeout=cluster.timeout)
    return {asked[wanted]: _refusal(future) for wanted, future in answers.items()}


def _refusal(future: Future[Any]) -> str | None:
    try:
        future.result()
    except KafkaException as error:
        return refusal(error.args[0], f"ALTER on cluster {CLUSTER}")
    return None


def _as(form: Callable[..., _Form], acl: Acl) -> _Form:
    return form(
        ResourceType[acl.kind],
        acl.name,
        ResourcePatternType[acl.pattern],
        acl.principal,
        acl.host,
        AclOperation[acl.operation],
        AclPermissionType[acl.permission],
    )
