"""Requests that librdkafka has no call for, over the connections of kafka-python: where logs end and how large
they are, which quotas are set, who may do what.

One connection per broker, opened when it is first asked and closed with the block. Nothing here writes, but for
`alter_quotas` and `forget_offsets`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from kafka.admin import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafka.errors import KafkaError, for_code
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeLogDirsRequest,
)
from kafka.protocol.consumer import OffsetDeleteRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from srm_spark.config.render import librdkafka
from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import TopicPartition
from srm_spark.core.quotas import Entity, entity_of
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.login import login_options
from srm_spark.kafka.somebody import Somebody

_T = TypeVar("_T")
_CONSUMER = -1
"""The replica id of a client that is no broker."""
_GROUP = 0
"""A coordinator of what it is."""
_ONE_KEY = 3
"""The newest version of FindCoordinator that names one group."""
_ANY_NAME = 2
"""How a quota's entity is matched: whatever its name is, the default too."""


class Protocol:
    """A client of one cluster. Every call raises ProtocolUnavailable where the cluster does not answer it."""

    def __init__(self, cluster: ClusterSettings, properties: Mapping[str, str], role: str, seconds: float) -> None:
        """`seconds` bounds each call; raises ProtocolUnavailable for a login that kafka-python cannot make."""
        self._where = f"cluster {cluster.alias} ({cluster.bootstrap_servers})"
        self._seconds = seconds
        self._somebody = Somebody(login_options(librdkafka(cluster, properties), role, self._where), self._where)

    def __enter__(self) -> Protocol:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._somebody.close()

    def leader_log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where the leaders' logs end, at or beyond the high watermark (KIP-320, OffsetForLeaderEpoch).

        Partitions without a leader, or whose leader changes or does not answer, are left out. Needs DESCRIBE on the
        topics.
        """
        asked = list(partitions)
        return self._run(lambda: self._leader_log_ends(asked), "ask where the leaders' logs end")

    def smallest_produce_quota(self) -> float | None:
        """Bytes per second of the smallest quota that anybody who writes has, None where there is none (KIP-546).

        Needs DESCRIBE_CONFIGS on the cluster.
        """
        return self._run(self._smallest_produce_quota, "ask for quotas")

    def acls(self, kind: str) -> DescribeAclsResponse:
        """All ACLs of a kind of resource, or the code by which the broker refuses. Needs DESCRIBE on the cluster."""
        return self._run(partial(self._acls, kind), "ask for ACLs")

    def quotas(self, kind: str) -> DescribeClientQuotasResponse:
        """All quotas in which a kind of entity has a part, or the code by which the broker refuses.

        Needs DESCRIBE_CONFIGS on the cluster.
        """
        return self._run(partial(self._quotas, kind), "ask for quotas")

    def alter_quotas(self, changes: Mapping[Entity, Mapping[str, float | None]]) -> dict[Entity, int]:
        """Set quotas, and take back those of None; entity → error code. Needs ALTER_CONFIGS on the cluster."""
        return self._run(partial(self._alter_quotas, changes), "change quotas")

    def forget_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Let a group stand nowhere on these partitions (KIP-496, OffsetDelete); partition → error code.

        Needs DELETE on the group and READ on the topics.
        """
        asked = list(partitions)
        return self._run(lambda: self._forget_offsets(group, asked), f"forget offsets of group {group}")

    def bytes_of(self, topics: Collection[str]) -> dict[TopicPartition, int]:
        """Bytes on disk of each partition at its leader; those without a leader are left out.

        Needs DESCRIBE on the cluster.
        """
        return self._run(lambda: self._bytes_of(topics), "ask for the sizes of logs")

    def _run(self, call: Callable[[], Coroutine[Any, Any, _T]], what: str) -> _T:
        return self._somebody.run(call, what, self._seconds)

    async def _leader_log_ends(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted({p.topic for p in partitions})]
        metadata = await self._somebody.send(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        wanted, by_leader = set(partitions), defaultdict[int, dict[TopicPartition, int]](dict)
        for topic in metadata.topics:
            for of_partition in topic.partitions:
                partition = TopicPartition(topic.name, of_partition.partition_index)
                if partition in wanted and of_partition.leader_id >= 0:
                    by_leader[of_partition.leader_id][partition] = of_partition.leader_epoch
        ends: dict[TopicPartition, int] = {}
        for leader, epochs in by_leader.items():
            with suppress(KafkaError):  # the others answer
                ends.update(await self._ends_at(leader, epochs))
        return ends

    async def _ends_at(self, leader: int, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        asked = defaultdict[str, list[Any]](list)
        for partition, epoch in epochs.items():
            asked[partition.topic].append(
                OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition(
                    partition=partition.partition, current_leader_epoch=epoch, leader_epoch=epoch
                )
            )
        request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(asked.items()))
        answer = await self._somebody.send(request, leader)
        return {
            TopicPartition(topic.topic, of_partition.partition): of_partition.end_offset
            for topic in answer.topics
            for of_partition in topic.partitions
            if of_partition.error_code == 0 and of_partition.end_offset >= 0
        }

    async def _acls(self, kind: str) -> DescribeAclsResponse:
        request = DescribeAclsRequest(
            resource_type_filter=ResourceType[kind],
            resource_name_filter=None,
            pattern_type_filter=ACLResourcePatternType.ANY,
            principal_filter=None,
            host_filter=None,
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ANY,
        )
        answer: DescribeAclsResponse = await self._somebody.send(request)
        _require_final(answer.error_code)
        return answer

    async def _bytes_of(self, names: Collection[str]) -> dict[TopicPartition, int]:
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(names)]
        metadata = await self._somebody.send(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        led = defaultdict[int, dict[str, list[int]]](lambda: defaultdict(list))
        for topic in metadata.topics:
            for of_partition in topic.partitions:
                if of_partition.leader_id >= 0:
                    led[of_partition.leader_id][topic.name].append(of_partition.partition_index)
        found: dict[TopicPartition, int] = {}
        for leader, partitions in led.items():
            asked = [
                DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=numbers)
                for name, numbers in partitions.items()
            ]
            answer = await self._somebody.send(DescribeLogDirsRequest(topics=asked), leader)
            if answer.error_code:
                raise ProtocolUnavailable(f"{self._where}: error {answer.error_code}; allow DESCRIBE on the cluster")
            found |= {
                TopicPartition(topic.name, each.partition_index): each.partition_size
                for log_dir in answer.results
                for topic in log_dir.topics
                for each in topic.partitions
                if not each.is_future_key
            }
        return found

    async def _forget_offsets(self, group: str, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        found = await self._somebody.send(FindCoordinatorRequest(key=group, key_type=_GROUP, max_version=_ONE_KEY))
        _require_final(found.error_code)
        if found.error_code:
            return dict.fromkeys(partitions, found.error_code)
        topics, asked = defaultdict[str, list[Any]](list), OffsetDeleteRequest.OffsetDeleteRequestTopic
        for topic, number in partitions:
            topics[topic].append(asked.OffsetDeleteRequestPartition(partition_index=number))
        request = OffsetDeleteRequest(
            group_id=group, topics=[asked(name=name, partitions=numbers) for name, numbers in topics.items()]
        )
        answer = await self._somebody.send(request, found.node_id)
        _require_final(answer.error_code)
        if answer.error_code:
            return dict.fromkeys(partitions, answer.error_code)
        return {
            TopicPartition(topic.name, one.partition_index): one.error_code
            for topic in answer.topics
            for one in topic.partitions
        }

    async def _quotas(self, kind: str) -> DescribeClientQuotasResponse:
        component = DescribeClientQuotasRequest.ComponentData(entity_type=kind, match_type=_ANY_NAME, match=None)
        request = DescribeClientQuotasRequest(components=[component], strict=False)
        answer: DescribeClientQuotasResponse = await self._somebody.send(request)
        _require_final(answer.error_code)
        return answer

    async def _alter_quotas(self, changes: Mapping[Entity, Mapping[str, float | None]]) -> dict[Entity, int]:
        entry = AlterClientQuotasRequest.EntryData
        entries = [
            entry(
                entity=[entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[
                    entry.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                    for key, value in values.items()
                ],
            )
            for entity, values in changes.items()
        ]
        answer = await self._somebody.send(AlterClientQuotasRequest(entries=entries, validate_only=False))
        return {
            entity_of({part.entity_type: part.entity_name for part in one.entity}): one.error_code
            for one in answer.entries
        }

    async def _smallest_produce_quota(self) -> float | None:
        quotas: list[float] = []
        for kind in ("user", "client-id", "ip"):
            answer = await self._quotas(kind)
            if answer.error_code:
                raise ProtocolUnavailable(f"{self._where}: {answer.error_message or f'error {answer.error_code}'}")
            quotas += [v.value for e in answer.entries or () for v in e.values if v.key == "producer_byte_rate"]
        return min(quotas, default=None)


def _require_final(code: int) -> None:
    """Raises what another try may mend."""
    if code and for_code(code).retriable:
        raise for_code(code)
