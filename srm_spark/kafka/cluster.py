"""One Kafka cluster as an administrator sees it: topics, ids, configs, offsets.

A failure is raised as the error class of the cluster's side (`SourceUnavailable` or `TargetUnavailable`) and says
which cluster, at which address, what was asked, and what the client's threads last complained about.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo, OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.acls import Acl
from srm_spark.core.cluster import ConfigChange, Groups, LogEnd, TopicConfig, TopicSpec
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.quotas import Quota
from srm_spark.core.tail import TailRecord
from srm_spark.errors import FlowError
from srm_spark.kafka import acls, quotas
from srm_spark.kafka.clients import LastError, admin_client
from srm_spark.kafka.control import ControlReader, ControlWriter
from srm_spark.kafka.failures import refusal, remedy
from srm_spark.kafka.groups import GroupsClient
from srm_spark.kafka.records import first_records, read_range

if TYPE_CHECKING:
    from srm_spark.core.pieces import Piece
    from srm_spark.kafka.protocol import Protocol

_K = TypeVar("_K")
_T = TypeVar("_T")
_LEADERLESS = (KafkaError.LEADER_NOT_AVAILABLE, KafkaError._NOENT)
"""The second where it is so of all that were asked for, or where no topic of theirs exists; an admin client stays with
that for minutes, whatever has happened since."""
_MOVING = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.OFFSET_NOT_AVAILABLE,
    *_LEADERLESS,
)
"""A partition that was just created or moves to another broker answers so for a while, one of 1000 new ones for half a
minute. The third where a new leader does not know yet up to where its followers have everything (KIP-207)."""
_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)
_STALE = (KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH)
"""An admin client that listed offsets before a partition's leader changed goes on with the old epoch for minutes."""
_AWAY = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN)
_ANY_TOPIC = TopicCollection(["__consumer_offsets"])
"""Whether it exists does not matter."""
_RETRY_SECONDS = 0.2
_LONGEST_RETRY_SECONDS = 2.0
_FIRST_TRY_SECONDS = 5.0
_MISSED_BY_ONE = 3
"""Pings after which another client is tried; a new one needs time to connect and log in."""
_CHUNK = 500
"""Topics per describe call: one request for 10 000 topics would answer with tens of megabytes."""
_PARTITIONS_AT_ONCE = 2500
"""A KRaft controller refuses a request that changes more than 10 000 records, and a topic's configs count, too."""


def _is_silent(answer: object) -> bool:
    return isinstance(answer, KafkaException) and answer.args[0].code() == KafkaError._TIMED_OUT


class ClusterClient:
    """Admin calls on one cluster."""

    def __init__(
        self,
        settings: ClusterSettings,
        error: type[FlowError],
        *,
        properties: Mapping[str, str] | None = None,
        reads: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        role: str = "srm-admin",
    ) -> None:
        self.settings = settings
        self.properties = properties or {}
        self._reads = reads or {}
        self.timeout = timeout
        self.role = role
        self._error = error
        self._last_error = LastError()
        self._make_admin = partial(admin_client, settings, properties or {}, role, self._last_error)
        self._admin: AdminClient = self._make_admin()
        self._missed = 0
        """How often no broker answered a ping."""

    @property
    def alias(self) -> str:
        """The cluster's alias."""
        return self.settings.alias

    @property
    def bootstrap_servers(self) -> str:
        """Its address."""
        return self.settings.bootstrap_servers

    @property
    def admin(self) -> AdminClient:
        """The client, for the other modules of this package."""
        return self._admin

    def beside(self, role: str, timeout: float) -> ClusterClient:
        """The same cluster by a client of its own, whose calls take `timeout` seconds at most."""
        return ClusterClient(
            self.settings, self._error, properties=self.properties, reads=self._reads, timeout=timeout, role=role
        )

    def protocol(self, part: str) -> Protocol:
        """For requests that the client has no call for, of a part of this role. Raises ProtocolUnavailable.

        Loaded when it is asked for: most commands need none of them, and a second client library takes long to load.
        """
        from srm_spark.kafka.protocol import Protocol  # noqa: PLC0415

        return Protocol(self.settings, self.properties, f"{self.role}|{part}", self.timeout)

    def ping(self) -> None:
        """Ask for a sign of life. Raises where no broker answers in time; one that refuses the call has answered.

        Asks for a topic: librdkafka ends the process by an assertion (2.16, `rd_kafka_admin_response_parse`) where the
        answer to "describe the cluster" names no broker, as that of a broker does which the controller has fenced.
        """
        try:
            for answer in self._admin.describe_topics(_ANY_TOPIC, request_timeout=self.timeout).values():
                answer.result()
        except KafkaException as error:
            if error.args[0].code() in _AWAY:
                failure = self.failure("reach it", error)
                self._missed += 1
                if self._missed % _MISSED_BY_ONE == 0:  # it may wait for a broker that is dead, though others answer
                    self.renew()
                raise failure from error

    def topics(self) -> dict[str, int]:
        """Every topic that we may see, with its partition count."""
        try:
            metadata = self._admin.list_topics(timeout=self.timeout)
        except KafkaException as error:
            raise self.failure("list the topics", error) from error
        return {name: len(topic.partitions) for name, topic in metadata.topics.items() if topic.error is None}

    def leaderless(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Those of them that exist and have no leader."""
        try:
            metadata = self._admin.list_topics(timeout=self.timeout)
        except KafkaException as error:
            raise self.failure("list the leaders", error) from error
        topics = metadata.topics
        found = {p: topics[p.topic].partitions.get(p.partition) for p in partitions if p.topic in topics}
        return {partition for partition, known in found.items() if known is not None and known.leader < 0}

    def broker_count(self) -> int:
        """How many brokers the cluster has."""
        try:
            return len(self._admin.list_topics(timeout=self.timeout).brokers)
        except KafkaException as error:
            raise self.failure("list the brokers", error) from error

    def cluster_id(self) -> str | None:
        """Kafka's own id of the cluster; None where it has none."""
        try:
            found = self._admin.list_topics(timeout=self.timeout).cluster_id
        except KafkaException as error:
            raise self.failure("ask for its id", error) from error
        return None if found is None else str(found)

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        """Ids of the topics that exist; a re-created topic has another one."""
        ids: dict[str, str] = {}
        for chunk in _chunks(names):
            answers = self.ask(
                chunk, lambda admin, names, limit: admin.describe_topics(TopicCollection(names), **limit)
            )
            for name, answer in answers.items():
                if not isinstance(answer, KafkaException):
                    ids[name] = str(answer.topic_id)
                elif answer.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self.failure(f"describe topic {name}", answer, f"DESCRIBE on topic {name}") from answer
        return ids

    def configs(self, names: Collection[str]) -> dict[str, dict[str, TopicConfig]]:
        """All configs of the topics that exist."""
        configs: dict[str, dict[str, TopicConfig]] = {}
        for chunk in _chunks(names):
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in chunk]
            answers = self.ask(resources, lambda admin, asked, limit: admin.describe_configs(asked, **limit))
            for resource, answer in answers.items():
                if not isinstance(answer, KafkaException):
                    configs[resource.name] = {key: _config(entry) for key, entry in answer.items()}
                elif answer.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    what, right = f"read the configs of topic {resource.name}", "DESCRIBE_CONFIGS on topic"
                    raise self.failure(what, answer, f"{right} {resource.name}") from answer
        return configs

    def create(self, specs: Iterable[TopicSpec]) -> dict[str, str | None]:
        """Create topics; per topic None, or why it was refused. One that exists already is fine."""
        refusals: dict[str, str | None] = {}
        fine = KafkaError.TOPIC_ALREADY_EXISTS
        for part in _in_parts(specs, lambda spec: spec.partitions):
            new = [NewTopic(s.name, s.partitions, s.replication_factor, config=dict(s.configs)) for s in part]
            futures = self._admin.create_topics(new, **self._limits())
            refusals |= {
                name: self._refusal(future, fine, f"CREATE on topic {name}") for name, future in futures.items()
            }
        return refusals

    def grow(self, partitions: Mapping[str, int]) -> dict[str, str | None]:
        """Raise partition counts; per topic None, or why it was refused."""
        refusals: dict[str, str | None] = {}
        for part in _in_parts(partitions.items(), lambda wanted: wanted[1]):
            new = [NewPartitions(name, count) for name, count in part]
            futures = self._admin.create_partitions(new, **self._limits())
            refusals |= {
                name: self._refusal(future, None, f"ALTER on topic {name}") for name, future in futures.items()
            }
        return refusals

    def alter(self, changes: Mapping[str, Sequence[ConfigChange]]) -> dict[str, str | None]:
        """Change configs of topics and leave all others (KIP-339); per topic None, or why it was refused."""
        refusals: dict[str, str | None] = {}
        for chunk in _chunks(changes):
            asked = [
                ConfigResource(ResourceType.TOPIC, name, incremental_configs=_entries(changes[name])) for name in chunk
            ]
            for resource, future in self._admin.incremental_alter_configs(asked, **self._limits()).items():
                refusals[resource.name] = self._refusal(future, None, f"ALTER_CONFIGS on topic {resource.name}")
        return refusals

    def acls(self, kinds: Collection[str]) -> set[Acl] | None:
        """All ACLs of these kinds of resources; None where the cluster has no authorizer."""
        return acls.acls_of(self, kinds)

    def add_acls(self, added: Collection[Acl]) -> dict[Acl, str | None]:
        """Make ACLs; per ACL None, or why it was refused."""
        return acls.add_acls(self, added)

    def remove_acls(self, removed: Collection[Acl]) -> dict[Acl, str | None]:
        """Take ACLs back; per ACL None, or why it was refused."""
        return acls.remove_acls(self, removed)

    def quotas(self) -> dict[Quota, float]:
        """All quotas of users."""
        return quotas.quotas_of(self)

    def alter_quotas(self, changes: Mapping[Quota, float | None]) -> dict[Quota, str | None]:
        """Set quotas, and take back those of None; per quota None, or why it was refused."""
        return quotas.alter_quotas(self, changes)

    def first_offsets(self, partitions: Iterable[TopicPartition], *, waits: bool = True) -> dict[TopicPartition, int]:
        """Offset of the oldest record still there, or of the next one; `waits` as for `end_offsets`."""
        return self._offsets(partitions, OffsetSpec.earliest(), waits=waits)  # type: ignore[no-untyped-call]

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, waits: bool = True, committed: bool = False
    ) -> dict[TopicPartition, int]:
        """Offset of the next record; partitions that are gone are left out.

        One without a leader, or that moves, is waited for, and raises where it gets none; without `waits` it is left
        out, too. With `committed` it ends before the first transaction that is still open.
        """
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        return self._offsets(partitions, latest, waits=waits, committed=committed)

    def log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        """Ends with the leader epoch at that moment; partitions that are gone are left out."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        listed = self._listed(partitions, latest, waits=True)
        return {partition: LogEnd(info.offset, info.leader_epoch) for partition, info in listed.items()}

    def offsets_since(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """Offset of the first record not older than `timestamp` (ms); partitions without one are left out."""
        offsets = self._offsets(partitions, OffsetSpec.for_timestamp(timestamp))
        return {partition: offset for partition, offset in offsets.items() if offset >= 0}

    def newest_timestamps(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Highest timestamp (ms) in each partition (KIP-734); empty ones are left out."""
        listed = self._listed(partitions, OffsetSpec.max_timestamp(), waits=False)  # type: ignore[no-untyped-call]
        return {partition: info.timestamp for partition, info in listed.items() if info.timestamp >= 0}

    def records(
        self, partition: TopicPartition, offsets: OffsetRange, *, committed: bool | None = None
    ) -> Generator[TailRecord]:
        """The records in `offsets`, with the settings of the flow's consumer; see `core.cluster`."""
        return read_range(self.settings, self._reading(committed), partition, offsets, self._error)

    def pieces(
        self, partition: TopicPartition, offsets: OffsetRange, *, committed: bool | None = None
    ) -> Generator[Piece]:
        """The same to be compared; see `core.cluster`."""
        from srm_spark.kafka.pieces import read_pieces  # noqa: PLC0415 - loads pyarrow and compiled loops

        return read_pieces(self.settings, self._reading(committed), partition, offsets, self._error, role=self.role)

    def first_records(
        self,
        ranges: Mapping[TopicPartition, OffsetRange],
        *,
        committed: bool | None = None,
        seconds: float | None = None,
    ) -> dict[TopicPartition, TailRecord | None]:
        """The first record in each range; see `core.cluster`."""
        wait = self.timeout if seconds is None else seconds
        return first_records(self.settings, self._reading(committed), ranges, self._error, wait)

    def follow(self, topic: str, partitions: Sequence[int], role: str) -> ControlReader:
        """Read a control topic from its beginning on."""
        return ControlReader(self.settings, topic, partitions, role, self._error)

    def writer(
        self,
        role: str,
        error: type[FlowError],
        *,
        properties: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> ControlWriter:
        """Writes control records; see `core.cluster`."""
        return ControlWriter(self.settings, properties or {}, role, error, self.timeout if seconds is None else seconds)

    def groups(self, right: str) -> Groups:
        """Its consumer groups; see `core.cluster`."""
        return GroupsClient(self, right)

    def failure(self, what: str, error: KafkaException, right: str = "") -> FlowError:
        """The error to raise for a failed call: cluster, address, call, reason, remedy; `right` is what it needs."""
        self._admin.poll(0)  # an admin client hands over what its threads met only when it is asked
        kafka_error: KafkaError = error.args[0]
        reason = kafka_error.str()
        if kafka_error.code() in _AWAY:
            reason = f"{reason}; last seen: {self._last_error}"
        otherwise = (
            f"check {self.alias}.bootstrap.servers, {self.alias}.security.protocol and the credentials, "
            "or run srm-driver doctor"
        )
        hint = remedy(kafka_error, right, otherwise) if right else otherwise
        return self._error(f"cluster {self.alias} ({self.settings.bootstrap_servers}): cannot {what}: {reason}; {hint}")

    def refused(self, what: str, reason: str) -> FlowError:
        """The error to raise where no client's error says why."""
        return self._error(f"cluster {self.alias} ({self.settings.bootstrap_servers}): cannot {what}: {reason}")

    def _reading(self, committed: bool | None) -> dict[str, str]:
        if committed is None:
            return dict(self._reads)
        return {**self._reads, "isolation.level": "read_committed" if committed else "read_uncommitted"}

    def _limits(self) -> dict[str, float]:
        return {"request_timeout": self.timeout}

    def _offsets(
        self,
        partitions: Iterable[TopicPartition],
        spec: OffsetSpec,
        *,
        waits: bool = True,
        committed: bool = False,
    ) -> dict[TopicPartition, int]:
        listed = self._listed(partitions, spec, waits=waits, committed=committed)
        return {partition: info.offset for partition, info in listed.items()}

    def _listed(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec, *, waits: bool, committed: bool = False
    ) -> dict[TopicPartition, ListOffsetsResultInfo]:
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        asked = [KafkaTopicPartition(p.topic, p.partition) for p in partitions]
        listed: dict[TopicPartition, ListOffsetsResultInfo] = {}
        topics, pause = cache(self.topics), _RETRY_SECONDS
        begun = time.monotonic()
        deadline, last = begun + (self.timeout if waits else 0.0), begun + self.timeout
        while asked:
            late: list[KafkaTopicPartition] = []
            is_stale = False
            answers = self.ask(
                asked,
                lambda admin, left, limit: admin.list_offsets(
                    dict.fromkeys(left, spec), isolation_level=level, **limit
                ),
            )
            for kafka, answer in answers.items():
                if not isinstance(answer, KafkaException):
                    listed[TopicPartition(kafka.topic, kafka.partition)] = answer
                    continue
                code = answer.args[0].code()
                is_stale = is_stale or code in (*_STALE, KafkaError._NOENT)
                now = time.monotonic()
                if (code in _STALE and now < last) or (code in _MOVING and now < deadline):
                    late.append(kafka)
                elif (code in _MOVING and not waits) or (code in _LEADERLESS and kafka.topic not in topics()):
                    continue
                elif code not in _GONE:
                    what, right = f"list offsets of {kafka.topic}-{kafka.partition}", "DESCRIBE on topic"
                    raise self.failure(what, answer, f"{right} {kafka.topic}") from answer
            asked = late
            if is_stale:
                self.renew()  # by one that knows no leader yet
            if asked:
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_RETRY_SECONDS)
        return listed

    def ask(
        self,
        asked: Sequence[_K],
        call: Callable[[AdminClient, list[_K], dict[str, float]], Mapping[_K, Future[_T]]],
        *,
        again: Callable[[_T | KafkaException], bool] = _is_silent,
    ) -> dict[_K, _T | KafkaException]:
        """What each one was answered. Who must be asked `again` is, by a new client and with more time.

        That is who is silent in the time of a try: a client whose broker was restarted may keep a request to itself
        until its time is up, however long that is.
        """
        answers: dict[_K, _T | KafkaException] = {}
        left, seconds, last = list(asked), _FIRST_TRY_SECONDS, time.monotonic() + self.timeout
        while left:
            admin = self._admin  # held on to: its end would end the futures
            for one, future in call(admin, left, {"request_timeout": min(seconds, self.timeout)}).items():
                answer = _answer(future)
                answers[one] = answer
            left = [one for one in left if again(answers[one])] if time.monotonic() < last else []
            if left:
                time.sleep(_RETRY_SECONDS)
                self.renew()
            seconds = min(2 * seconds, max(1.0, last - time.monotonic()))
        return answers

    def renew(self) -> None:
        """Go on with a new client."""
        self._admin.poll(0)  # what its threads met last
        self._admin = self._make_admin()

    def _refusal(self, future: Future[Any], fine: int | None, right: str) -> str | None:
        try:
            future.result()
        except KafkaException as error:
            kafka_error: KafkaError = error.args[0]
            if kafka_error.code() == fine:
                return None
            if kafka_error.code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT):
                raise self.failure("change topics", error) from error
            return refusal(kafka_error, right)
        return None


def _answer(future: Future[_T]) -> _T | KafkaException:
    """What came, or why nothing did.

    Where a leader did not answer "list offsets", librdkafka (2.16, `rd_kafka_ListOffsets_response_merge`) calls it a
    success, with the offset that it had put there before. Taken for an end, all copies of the partition would be lost.
    """
    try:
        answer = future.result()
    except KafkaException as error:
        return error
    if isinstance(answer, ListOffsetsResultInfo) and answer.offset == OFFSET_INVALID:
        return KafkaException(KafkaError(KafkaError._TIMED_OUT, "the partition's leader did not answer"))
    return answer


def _config(entry: ConfigEntry) -> TopicConfig:
    source = ConfigSource(entry.source)
    return TopicConfig(
        value=entry.value,
        is_default=source == ConfigSource.DEFAULT_CONFIG,
        is_static=source == ConfigSource.STATIC_BROKER_CONFIG,
        is_read_only=bool(entry.is_read_only),
        is_sensitive=bool(entry.is_sensitive),
        is_own=source == ConfigSource.DYNAMIC_TOPIC_CONFIG,
    )


def _entries(changes: Iterable[ConfigChange]) -> list[ConfigEntry]:
    operations = {True: AlterConfigOpType.DELETE, False: AlterConfigOpType.SET}
    return [
        ConfigEntry(change.key, change.value, incremental_operation=operations[change.value is None])
        for change in changes
    ]


def _in_parts(items: Iterable[_T], partitions: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Cut into parts that a controller takes in one request; a part is one topic at least."""
    part: list[_T] = []
    size = 0
    for one in items:
        count = max(1, partitions(one))
        if part and size + count > _PARTITIONS_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(one)
        size += count
    if part:
        yield part


def _chunks(names: Collection[str]) -> Iterable[list[str]]:
    ordered = sorted(names)
    return (ordered[start : start + _CHUNK] for start in range(0, len(ordered), _CHUNK))
