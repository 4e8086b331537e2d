"""A Kafka cluster in memory, behind the port that flows use (`srm_spark.core.cluster.Cluster`).

What it does as a broker does is shown by the same tests that run against real ones: `tests/cluster_contract.py`.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from srm_spark.core.acls import Acl
from srm_spark.core.cluster import (
    Committed,
    ConfigChange,
    ControlRecord,
    GroupOffsets,
    Groups,
    LogEnd,
    ReadRecord,
    TopicConfig,
    TopicSpec,
)
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.pieces import Piece
from srm_spark.core.quotas import Quota
from srm_spark.core.rows import Run
from srm_spark.core.tail import TailRecord
from srm_spark.errors import FlowError
from srm_spark.failure import Failure, FailureKind

T = TypeVar("T")


@dataclass
class MemoryLog:
    """One partition."""

    start: int = 0
    end: int = 0
    epoch: int = 0
    records: dict[int, TailRecord] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)
    """Offsets of records of aborted transactions."""
    ever: dict[int, TailRecord] = field(default_factory=dict)
    """Records that were deleted since, too."""
    open_since: int | None = None
    """Offset of the first record of a transaction that is not ended."""

    def append(self, record: TailRecord) -> int:
        """Offset of the new record; the one that it says itself counts for nothing."""
        self.records[self.end] = self.ever[self.end] = record._replace(offset=self.end)
        self.end += 1
        return self.end - 1

    def mark(self) -> None:
        """An offset without a record, as the end of a transaction takes one."""
        self.end += 1

    def delete_before(self, offset: int) -> None:
        """As kafka-delete-records, or retention."""
        self.start = max(self.start, offset)
        for gone in [at for at in self.records if at < offset]:
            del self.records[gone]

    def cut(self, end: int) -> None:
        """As an unclean election: a new leader whose log ends there."""
        for gone in [at for at in self.records if at >= end]:
            del self.records[gone], self.ever[gone]
        self.end, self.epoch = end, self.epoch + 1

    @property
    def stable_end(self) -> int:
        """Up to where readers of committed records get."""
        return self.end if self.open_since is None else self.open_since

    def read(self, offsets: OffsetRange, *, committed: bool) -> Iterator[TailRecord]:
        """In order."""
        end = min(offsets.end, self.stable_end if committed else self.end)
        for offset in sorted(at for at in self.records if offsets.start <= at < end):
            if not (committed and offset in self.hidden):
                yield self.records[offset]


@dataclass
class MemoryTopic:
    """One topic."""

    partitions: list[MemoryLog]
    configs: dict[str, str]
    topic_id: str = field(default_factory=lambda: uuid.uuid4().hex)


class MemoryGroups(Groups):
    """Consumer groups; who is `live` or `joining`, and whose calls are `refused`, the test says.

    `answer` fails where the cluster is down.
    """

    def __init__(self, answer: Callable[[str], None] = lambda _: None) -> None:
        self._answer = answer
        self.committed: dict[str, dict[TopicPartition, Committed]] = {}
        self.live: dict[str, tuple[str, ...]] = {}
        self.refused: dict[str, Failure] = {}
        self.unsettled: dict[str, set[TopicPartition]] = {}
        """Where open transactions may move a group."""
        self.joining: dict[str, tuple[str, ...]] = {}
        """Group → who joins it right before the next commit."""

    def names(self) -> list[str]:
        """Those that have committed or have members."""
        self._answer("list groups")
        return sorted(self.committed.keys() | self.live.keys())

    def others(self) -> list[str]:
        """None."""
        return []

    def offsets(self, groups: Iterable[str]) -> dict[str, GroupOffsets]:
        """Copies of what is committed."""
        return {
            group: GroupOffsets({}, self.refused[group]) if group in self.refused else self._settled(group)
            for group in groups
        }

    def offsets_at(self, group: str, partitions: Collection[TopicPartition]) -> GroupOffsets:
        """As above; here the others tell of transactions, too."""
        assert partitions
        return self.offsets([group])[group]

    def _settled(self, group: str) -> GroupOffsets:
        unsettled, committed = self.unsettled.get(group, set()), self.committed.get(group, {})
        return GroupOffsets({p: at for p, at in committed.items() if p not in unsettled}, None, frozenset(unsettled))

    def active(self, groups: Collection[str]) -> dict[str, bool | Failure]:
        """Whether there are members."""
        return {group: self.refused.get(group, bool(self.live.get(group))) for group in groups}

    def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> dict[TopicPartition, Failure | None]:
        """Refused where a group has members, as by a coordinator."""
        if group in self.joining:
            self.live[group] = self.joining.pop(group)
        why = self.refused.get(group)
        if why is None and self.live.get(group):
            why = Failure(FailureKind.GROUP_HAS_MEMBERS, "the group has members")
        if why is None:
            self.committed.setdefault(group, {}).update(offsets)
        return dict.fromkeys(offsets, why)

    def forget(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Failure | None]:
        """Refused where a group has members, as by a coordinator."""
        why = self.refused.get(group)
        if why is None and self.live.get(group):
            why = Failure(FailureKind.GROUP_HAS_MEMBERS, "the group has members")
        if why is None:
            for partition in partitions:
                self.committed.get(group, {}).pop(partition, None)
        return dict.fromkeys(partitions, why)

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryCluster:
    """One cluster; `down` makes every call fail with it, `forbidden` those that write to a topic.

    `happens` is called before each answer with what is asked: whatever comes to pass amid a call.
    """

    def __init__(
        self, alias: str, error: type[FlowError], *, reads_committed: bool = False, timeout: float = 5.0
    ) -> None:
        self.alias = alias
        self.bootstrap_servers = f"memory:{alias}"
        self.timeout = timeout
        self.down: str | None = None
        self.its_id = ""
        """Its id, where that is not the usual one."""
        self.forbidden: dict[str, str] = {}
        self.happens: Callable[[str], object] = lambda _: None
        self.held: dict[str, MemoryTopic] = {}
        self.without_leader: set[TopicPartition] = set()
        self.unlisted: set[str] = set()
        """Topics that we may not see."""
        self.limits: dict[Quota, float] = {}
        """Quotas of users."""
        self.entries: set[Acl] | None = None
        """Its ACLs; None without an authorizer."""
        self.group_calls = MemoryGroups(self._answer)
        self._error = error
        self._reads_committed = reads_committed

    # What a test does to it

    def log(self, partition: TopicPartition) -> MemoryLog:
        """One partition."""
        return self.held[partition.topic].partitions[partition.partition]

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        del self.held[topic]

    def place(self, record: ControlRecord) -> TopicPartition:
        """Where a control record goes."""
        count = len(self.held[record.topic].partitions)
        number = zlib.crc32(record.key) % count if record.partition is None else record.partition
        return TopicPartition(record.topic, number)

    # The port

    def beside(self, _: str, __: float) -> MemoryCluster:
        """The same."""
        return self

    def ping(self) -> None:
        """Fails where it is down."""
        self._answer("reach it")

    def refused(self, what: str, reason: str) -> FlowError:
        """The error of the cluster's side."""
        return self._error(f"cluster {self.alias} ({self.bootstrap_servers}): cannot {what}: {reason}")

    def topics(self) -> dict[str, int]:
        """Topic → partitions."""
        self._answer("list topics")
        return {name: len(topic.partitions) for name, topic in self.held.items() if name not in self.unlisted}

    def leaderless(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """As the test says."""
        self._answer("list the leaders")
        return self.without_leader.intersection(partitions)

    def broker_count(self) -> int:
        """One."""
        self._answer("list the brokers")
        return 1

    def cluster_id(self) -> str | None:
        """One that says whose it is."""
        self._answer("ask for its id")
        return self.its_id or f"id-of-{self.alias}"

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        """Of those that exist."""
        self._answer("describe topics")
        return {name: self.held[name].topic_id for name in names if name in self.held}

    def configs(self, names: Collection[str]) -> dict[str, dict[str, TopicConfig]]:
        """Of those that exist; defaults are not listed."""
        self._answer("read configs")
        return {name: _configs(self.held[name]) for name in names if name in self.held}

    def create(self, specs: Iterable[TopicSpec]) -> dict[str, str | None]:
        """Refused where the test says so, or for more copies than the one broker can have."""
        self._answer("create topics")
        found: dict[str, str | None] = {}
        for spec in specs:
            found[spec.name] = self.forbidden.get(spec.name)
            if spec.replication_factor > 1:
                found[spec.name] = "replication factor is larger than available brokers"
            if found[spec.name] is None and spec.name not in self.held:
                logs = [MemoryLog() for _ in range(spec.partitions)]
                self.held[spec.name] = MemoryTopic(logs, dict(spec.configs))
        return found

    def grow(self, partitions: Mapping[str, int]) -> dict[str, str | None]:
        """To so many partitions."""
        self._answer("add partitions")
        for name, count in partitions.items():
            logs = self.held[name].partitions
            logs += [MemoryLog() for _ in range(count - len(logs))]
        return dict.fromkeys(partitions)

    def alter(self, changes: Mapping[str, Sequence[ConfigChange]]) -> dict[str, str | None]:
        """Refused where the test says so."""
        self._answer("change configs")
        found: dict[str, str | None] = {}
        for name, changed in changes.items():
            found[name] = self.forbidden.get(name)
            configs = self.held[name].configs
            for key, value in changed if found[name] is None else ():
                configs.pop(key, None)
                configs |= {} if value is None else {key: value}
        return found

    def acls(self, kinds: Collection[str]) -> set[Acl] | None:
        """Those that the test has put there."""
        self._answer("list the ACLs")
        return None if self.entries is None else {acl for acl in self.entries if acl.kind in kinds}

    def add_acls(self, added: Collection[Acl]) -> dict[Acl, str | None]:
        """Refused for topics of which the test says so."""
        self._answer("add ACLs")
        assert self.entries is not None
        refusals = {acl: self.forbidden.get(acl.name) for acl in added}
        self.entries |= {acl for acl, why in refusals.items() if why is None}
        return refusals

    def remove_acls(self, removed: Collection[Acl]) -> dict[Acl, str | None]:
        """Refused likewise."""
        self._answer("remove ACLs")
        assert self.entries is not None
        refusals = {acl: self.forbidden.get(acl.name) for acl in removed}
        self.entries -= {acl for acl, why in refusals.items() if why is None}
        return refusals

    def quotas(self) -> dict[Quota, float]:
        """Those that the test has put there, and what was altered."""
        self._answer("list the quotas")
        return self.limits.copy()

    def alter_quotas(self, changes: Mapping[Quota, float | None]) -> dict[Quota, str | None]:
        """Refused for users of whom the test says so."""
        self._answer("change quotas")
        refusals = {quota: self.forbidden.get(dict(quota.entity)["user"] or "") for quota in changes}
        for quota, value in changes.items():
            if refusals[quota] is None:
                self.limits.pop(quota, None)
                self.limits |= {} if value is None else {quota: value}
        return refusals

    def first_offsets(self, partitions: Iterable[TopicPartition], *, waits: bool = True) -> dict[TopicPartition, int]:
        """Of those that exist and have a leader."""
        return self._each(self._led(partitions, waits=waits), lambda log: log.start)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, waits: bool = True, committed: bool = False
    ) -> dict[TopicPartition, int]:
        """Of those that exist and have a leader."""
        return self._each(self._led(partitions, waits=waits), lambda log: log.stable_end if committed else log.end)

    def log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        """Of those that exist."""
        return self._each(self._led(partitions, waits=True), lambda log: LogEnd(log.end, log.epoch))

    def offsets_since(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """The first record that is not older."""
        found = self._each(
            partitions,
            lambda log: next((at for at in sorted(log.records) if log.records[at].timestamp >= timestamp), -1),
        )
        return {partition: offset for partition, offset in found.items() if offset >= 0}

    def newest_timestamps(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Of those with records."""
        found = self._each(partitions, lambda log: max((one.timestamp for one in log.records.values()), default=-1))
        return {partition: timestamp for partition, timestamp in found.items() if timestamp >= 0}

    def records(
        self, partition: TopicPartition, offsets: OffsetRange, *, committed: bool | None = None
    ) -> Generator[TailRecord]:
        """In order, as they are when they are asked for."""
        self._answer(f"read {partition}")
        level = self._reads_committed if committed is None else committed
        yield from self.log(partition).read(offsets, committed=level)

    def pieces(
        self, partition: TopicPartition, offsets: OffsetRange, *, committed: bool | None = None
    ) -> Generator[Piece]:
        """Record by record, as where a client library reads."""
        yield from self.records(partition, offsets, committed=committed)

    def first_records(
        self,
        ranges: Mapping[TopicPartition, OffsetRange],
        *,
        committed: bool | None = None,
        seconds: float | None = None,
    ) -> dict[TopicPartition, TailRecord | None]:
        """At once."""
        assert seconds is None or seconds > 0
        return {
            partition: next(self.records(partition, offsets, committed=committed), None)
            for partition, offsets in ranges.items()
        }

    def follow(self, topic: str, partitions: Sequence[int], _: str) -> MemoryReader:
        """From the beginning of each partition."""
        return MemoryReader(self, topic, partitions)

    def writer(
        self,
        role: str,
        error: type[FlowError],
        *,
        properties: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> MemoryWriter:
        """Writes into this cluster's logs."""
        assert properties is None or seconds is None or seconds > 0
        return MemoryWriter(self, role, error)

    def groups(self, _: str) -> MemoryGroups:
        """The one set of groups that it has."""
        return self.group_calls

    def _answer(self, what: str) -> None:
        self.happens(what)
        if self.down is not None:
            raise self.refused(what, self.down)

    def _led(self, partitions: Iterable[TopicPartition], *, waits: bool) -> list[TopicPartition]:
        """Those that have a leader; as if the time of a call were over at once."""
        asked = list(partitions)
        if waits and self.without_leader.intersection(asked):
            raise self.refused("list offsets", "no leader")
        return [partition for partition in asked if partition not in self.without_leader]

    def _each(self, partitions: Iterable[TopicPartition], ask: Callable[[MemoryLog], T]) -> dict[TopicPartition, T]:
        self._answer("list offsets")
        counts = {name: len(topic.partitions) for name, topic in self.held.items()}
        return {p: ask(self.log(p)) for p in partitions if p.partition < counts.get(p.topic, 0)}


class MemoryWriter:
    """Writes one record after the other; those in front of a refused one stay."""

    def __init__(self, cluster: MemoryCluster, role: str, error: type[FlowError]) -> None:
        self._cluster = cluster
        self._role = role
        self._error = error

    def write(self, records: Iterable[ControlRecord]) -> None:
        """In order."""
        for record in records:
            why = self._cluster.down or self._cluster.forbidden.get(record.topic)
            if why is None and record.topic not in self._cluster.held:
                why = "unknown topic"
            if why is not None:
                raise self._error(f"cluster {self._cluster.alias}: {self._role} cannot write: {record.topic}: {why}")
            self._cluster.log(self._cluster.place(record)).append(control_record(record))


class MemoryProducer:
    """Writes in one transaction at a time, as `kafka/transactions.py` and `kafka/replay.py` do."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._written: dict[TopicPartition, list[int]] = {}

    def write(self, partition: TopicPartition, record: TailRecord) -> int:
        """Offset of a record that nobody who reads committed ones sees yet. Raises where the topic is `forbidden`."""
        why = self._cluster.down or self._cluster.forbidden.get(partition.topic)
        if why is not None:
            raise self._cluster.refused(f"write to {partition.topic}", why)
        log = self._cluster.log(partition)
        if log.open_since is None:
            log.open_since = log.end
        offset = log.append(record)
        self._written.setdefault(partition, []).append(offset)
        return offset

    def commit(self) -> None:
        """All of it is there."""
        self._end(is_aborted=False)

    def abort(self) -> None:
        """Nothing of it is."""
        self._end(is_aborted=True)

    def append(self, remote: TopicPartition, run: Run, follow: Callable[[int], Iterable[ControlRecord]]) -> int:
        """One record and what follows from it, in one transaction (`srm_spark.flow.refused.replay.Appender`)."""
        ((key, value, timestamp, headers),) = run.records()
        try:
            offset = self.write(remote, TailRecord(0, timestamp, key, value, tuple(headers or ())))
            for record in follow(offset):
                self.write(self._cluster.place(record), control_record(record))
        except BaseException:
            self.abort()
            raise
        self.commit()
        return offset

    def _end(self, *, is_aborted: bool) -> None:
        for partition, offsets in self._written.items():
            log = self._cluster.log(partition)
            log.open_since = None
            log.mark()
            if is_aborted:
                log.hidden.update(offsets)
        self._written = {}


class MemoryReader:
    """Reads on where it was."""

    def __init__(self, cluster: MemoryCluster, topic: str, partitions: Sequence[int]) -> None:
        self._cluster = cluster
        self._topic = topic
        self._next = dict.fromkeys(partitions, 0)

    @property
    def next_offsets(self) -> Mapping[int, int]:
        """Where each partition is read on."""
        return self._next

    def read(self, ends: Mapping[int, int], _: float) -> Iterator[ReadRecord]:
        """Committed records up to `ends`."""
        for number, end in ends.items():
            partition = TopicPartition(self._topic, number)
            for found in self._cluster.records(partition, OffsetRange(self._next[number], end), committed=True):
                self._next[number] = found.offset + 1
                headers = dict(found.headers)
                yield ReadRecord(number, found.offset, found.key, found.value, headers, found.timestamp)
            self._next[number] = max(self._next[number], end)

    def close(self) -> None:
        """Nothing to let go of."""


def control_record(record: ControlRecord) -> TailRecord:
    """As it lies in a log."""
    timestamp = 0 if record.timestamp is None else record.timestamp
    return TailRecord(0, timestamp, record.key, record.value, tuple(record.headers.items()))


_DEFAULTS = {"retention.ms": "604800000", "segment.bytes": "1073741824"}
"""Some of a broker's."""


def _configs(topic: MemoryTopic) -> dict[str, TopicConfig]:
    return {
        key: TopicConfig(
            value,
            is_default=key not in topic.configs,
            is_static=False,
            is_read_only=False,
            is_sensitive=False,
            is_own=key in topic.configs,
        )
        for key, value in {**_DEFAULTS, **topic.configs}.items()
    }
