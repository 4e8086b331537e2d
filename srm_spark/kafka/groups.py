"""Consumer groups of one cluster: which there are, who is in them, where they stand; and setting where they stand.

One group that cannot be asked never hides the others: its answer is the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from srm_spark.core.cluster import Committed, GroupOffsets
from srm_spark.core.model import TopicPartition
from srm_spark.errors import ProtocolUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.failures import is_denied, named
from srm_spark.kafka.group_calls import GroupCalls, GroupCallsDied
from srm_spark.kafka.group_server import UNSETTLED, Described, OffsetRow

if TYPE_CHECKING:
    from srm_spark.kafka.cluster import ClusterClient

_EVERY = "every broker"
_SUBSCRIBED = 86
"""GROUP_SUBSCRIBED_TO_TOPIC, which librdkafka has no name for."""


class GroupsClient:
    """Group calls on one cluster."""

    def __init__(self, cluster: ClusterClient, right: str) -> None:
        """`right` is the operation on groups that the caller's work takes: DESCRIBE, or READ to commit."""
        self._cluster = cluster
        self._right = right
        self._calls = GroupCalls(cluster.settings, cluster.properties, f"{cluster.role}|groups")

    def names(self) -> list[str]:
        """Every group of consumers that we may see, of the classic and of the new protocol; see `others`.

        A broker that does not answer is waited for, and raises: the groups that it coordinates would be missing, and
        nobody could tell them from groups that do not exist.
        """
        found: Any = self._cluster.ask([_EVERY], _list, again=_lacks)[_EVERY]
        error = _obstacle(found)
        if error is not None:
            raise self._cluster.failure("list the groups of every broker", error, "DESCRIBE on the groups")
        return sorted(group.group_id for group in found.valid)

    def others(self) -> list[str]:
        """Share groups (KIP-932) and streams groups (KIP-1071), which are no consumer groups.

        The client cannot tell the two apart: they are those that its older call lists as dead groups without a
        protocol, and the newer one not at all.
        """
        try:
            listed = self._cluster.admin.list_groups(timeout=self._cluster.timeout)
        except KafkaException as error:
            raise self._cluster.failure("list all groups", error, "DESCRIBE on the groups") from error
        unnamed = {str(group.id) for group in listed if not group.protocol_type and group.state == "Dead"}
        return sorted(unnamed.difference(self.names())) if unnamed else []

    def offsets(self, groups: Iterable[str]) -> dict[str, GroupOffsets]:
        """See `Groups`."""
        return self._offsets(sorted(groups))

    def offsets_at(self, group: str, partitions: Collection[TopicPartition]) -> GroupOffsets:
        """See `Groups`."""
        return self._offsets([group], partitions)[group]

    def _offsets(self, asked: Sequence[str], at: Collection[TopicPartition] = ()) -> dict[str, GroupOffsets]:
        if not asked:
            return {}
        try:
            answer = self._calls.offsets(asked, self._cluster.timeout, at)
        except GroupCallsDied as error:
            raise self._cluster.refused(f"read the offsets of {len(asked)} groups", str(error)) from error
        return {group: self._committed(group, answer[group]) for group in asked}

    def close(self) -> None:
        """Let go of what was started."""
        self._calls.close()

    def active(self, groups: Collection[str]) -> dict[str, bool | Failure]:
        """Whether each group has members (or is just changing them); a failure where that is not known."""
        return {
            group: described.state not in ("EMPTY", "DEAD") if isinstance(described, Described) else described
            for group, described in self._describe(groups).items()
        }

    def describe(self, group: str) -> Described:
        """One group and its members; raises where the coordinator does not say."""
        described = self._describe([group])[group]
        if isinstance(described, Failure):
            raise self._cluster.refused(f"describe the group {group}", described.sentence)
        return described

    def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> dict[TopicPartition, Failure | None]:
        """Set where a group stands; per partition None, or why the broker refused it (a group with members is)."""
        rows = [(*partition, committed.offset, committed.metadata) for partition, committed in offsets.items()]
        try:
            answer = self._calls.commit(group, rows, self._cluster.timeout)
        except GroupCallsDied as error:
            return dict.fromkeys(offsets, Failure(FailureKind.GROUP_UNANSWERED, str(error)))
        return {
            TopicPartition(topic, number): None if why is None else self._refusal(group, why)
            for (topic, number), why in answer.items()
        }

    def forget(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Failure | None]:
        """Let a group stand nowhere; per partition None, or why the broker refused it (a group with members is)."""
        try:
            with self._cluster.protocol("groups") as protocol:
                codes = protocol.forget_offsets(group, partitions)
        except ProtocolUnavailable as error:
            return dict.fromkeys(partitions, Failure(FailureKind.GROUP_UNANSWERED, str(error)))
        return {partition: _forgotten(group, codes.get(partition)) for partition in partitions}

    def _describe(self, groups: Collection[str]) -> dict[str, Described | Failure]:
        asked = sorted(groups)
        if not asked:
            return {}
        try:
            answer = self._calls.describe(asked, self._cluster.timeout)
        except GroupCallsDied as error:
            return dict.fromkeys(asked, Failure(FailureKind.GROUP_UNANSWERED, str(error)))
        return {group: self._refusal(group, why) if isinstance(why, Failure) else why for group, why in answer.items()}

    def _committed(self, group: str, answer: Sequence[OffsetRow] | Failure) -> GroupOffsets:
        if isinstance(answer, Failure):
            return GroupOffsets({}, self._refusal(group, answer))
        places = {TopicPartition(topic, number): Committed(at, text) for topic, number, at, text in answer}
        unsettled = frozenset(place for place, committed in places.items() if committed.offset == UNSETTLED)
        return GroupOffsets({p: committed for p, committed in places.items() if p not in unsettled}, None, unsettled)

    def _refusal(self, group: str, failure: Failure) -> Failure:
        if failure.kind is not FailureKind.GROUP_DENIED:
            return failure
        hint = f"allow {self._right} on group {group} to the principal of these credentials"
        return replace(failure, sentence=f"{failure}; {hint}")


def _forgotten(group: str, code: int | None) -> Failure | None:
    """What a coordinator's answer to OffsetDelete means."""
    if code == 0:
        return None
    error = KafkaError(KafkaError.UNKNOWN if code is None else code)
    if error.code() in (KafkaError.NON_EMPTY_GROUP, _SUBSCRIBED):
        return Failure(FailureKind.GROUP_HAS_MEMBERS, named(error))
    if is_denied(error):
        hint = f"allow DELETE on group {group} and READ on its topics to the principal of these credentials"
        return Failure(FailureKind.GROUP_DENIED, f"{named(error)}; {hint}")
    return Failure(FailureKind.GROUP_UNANSWERED, named(error))


def _list(admin: AdminClient, every: list[str], limit: dict[str, float]) -> dict[str, Future[Any]]:
    return dict.fromkeys(every, admin.list_consumer_groups(**limit))


def _obstacle(answer: Any) -> KafkaException | None:
    """Why some groups may be missing in a list of them; None where all are there."""
    if isinstance(answer, KafkaException):
        return answer
    return KafkaException(answer.errors[0]) if answer.errors else None


def _lacks(answer: object) -> bool:
    """Whether a list lacks groups that another try may bring."""
    error = _obstacle(answer)
    return error is not None and not is_denied(error.args[0])
