"""Consumer groups of one cluster: which there are, who is in them, where they stand; and setting where they stand.

One group that cannot be asked never hides the others: its answer is the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from srm_spark.kafka.cluster import Cluster
from srm_spark.kafka.failures import named
from srm_spark.kafka.offset_fetch import OffsetFetch, OffsetFetchDied, Row
from srm_spark.model import TopicPartition

_AT_ONCE = 100
"""Groups per request."""


@dataclass(frozen=True)
class Committed:
    """What a group committed for one partition."""

    offset: int
    """The next record that it will read."""
    metadata: str = ""


@dataclass(frozen=True)
class GroupOffsets:
    """Where one group stands; `refusal` says why that is not known."""

    committed: Mapping[TopicPartition, Committed]
    refusal: str | None = None


class Groups:
    """Group calls on one cluster."""

    def __init__(self, cluster: Cluster, right: str) -> None:
        """`right` is the operation on groups that the caller's work takes: DESCRIBE, or READ to commit."""
        self._cluster = cluster
        self._right = right
        self._fetch = OffsetFetch(cluster.settings, cluster.properties, f"{cluster.role}|groups")

    def names(self) -> list[str]:
        """Every group of consumers that we may see, of the classic and of the new protocol; see `others`."""
        try:
            found = self._cluster.admin.list_consumer_groups(**self._limits()).result()
        except KafkaException as error:
            raise self._cluster.failure("list the groups", error, "DESCRIBE on the groups") from error
        if found.errors and not found.valid:
            raise self._cluster.failure("list the groups", KafkaException(found.errors[0]), "DESCRIBE on the groups")
        return sorted(group.group_id for group in found.valid)

    def others(self) -> list[str]:
        """Share groups (KIP-932) and streams groups (KIP-1071), which are no consumer groups.

        The client cannot tell the two apart: they are those that its older call lists as dead groups without a
        protocol, and the newer one not at all.
        """
        try:
            found = self._cluster.admin.list_groups(timeout=self._cluster.timeout)
        except KafkaException as error:
            raise self._cluster.failure("list all groups", error, "DESCRIBE on the groups") from error
        unnamed = {str(group.id) for group in found if not group.protocol_type and group.state == "Dead"}
        return sorted(unnamed.difference(self.names())) if unnamed else []

    def offsets(self, groups: Iterable[str]) -> dict[str, GroupOffsets]:
        """Where each group stands; partitions without a committed offset are left out."""
        asked = sorted(groups)
        if not asked:
            return {}
        try:
            answer = self._fetch.ask(asked, self._cluster.timeout)
        except OffsetFetchDied as error:
            raise self._cluster.refused(f"read the offsets of {len(asked)} groups", str(error)) from error
        return {group: self._committed(group, answer[group]) for group in asked}

    def close(self) -> None:
        """Let go of what was started."""
        self._fetch.close()

    def active(self, groups: Collection[str]) -> dict[str, bool | str]:
        """Whether each group has members (or is just changing them); text where that is not known."""
        found: dict[str, bool | str] = {}
        for chunk in _chunks(groups):
            for group, future in self._cluster.admin.describe_consumer_groups(chunk, **self._limits()).items():
                try:
                    state = future.result().state.name
                except KafkaException as error:
                    is_absent = error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND
                    found[group] = False if is_absent else self._refusal(group, named(error.args[0]))
                else:
                    found[group] = state not in ("EMPTY", "DEAD")
        return found

    def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> dict[TopicPartition, str | None]:
        """Set where a group stands; per partition None, or why the broker refused it (a group with members is)."""
        asked = [
            KafkaTopicPartition(p.topic, p.partition, committed.offset, committed.metadata)
            for p, committed in offsets.items()
        ]
        request = ConsumerGroupTopicPartitions(group, asked)
        future = self._cluster.admin.alter_consumer_group_offsets([request], **self._limits())[group]
        try:
            done = future.result()
        except KafkaException as error:
            return dict.fromkeys(offsets, self._refusal(group, named(error.args[0])))
        return {
            TopicPartition(p.topic, p.partition): None if p.error is None else self._refusal(group, named(p.error))
            for p in done.topic_partitions
        }

    def _committed(self, group: str, answer: Sequence[Row] | str) -> GroupOffsets:
        if isinstance(answer, str):
            return GroupOffsets({}, self._refusal(group, answer))
        return GroupOffsets({TopicPartition(topic, number): Committed(at, text) for topic, number, at, text in answer})

    def _refusal(self, group: str, reason: str) -> str:
        if "GROUP_AUTHORIZATION_FAILED" not in reason:
            return reason
        return f"{reason}; allow {self._right} on group {group} to the principal of these credentials"

    def _limits(self) -> dict[str, float]:
        return {"request_timeout": self._cluster.timeout}


def _chunks(groups: Iterable[str]) -> Iterable[list[str]]:
    ordered = iter(sorted(groups))
    while chunk := list(islice(ordered, _AT_ONCE)):
        yield chunk
