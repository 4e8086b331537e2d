"""What the product needs of a Kafka cluster: the port between flows and clients (`kafka/` implements it).

A flow knows its clusters by these names alone, so that its rules can be tried on clusters in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from srm_spark.core.acls import Acl
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.quotas import Quota
from srm_spark.core.record_batch import Author, Fenced
from srm_spark.core.tail import TailRecord
from srm_spark.errors import FlowError
from srm_spark.failure import Failure

if TYPE_CHECKING:
    from srm_spark.core.pieces import Piece  # loads pyarrow, and every command starts with this


@dataclass(frozen=True)
class TopicSpec:
    """A topic to create."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(frozen=True)
class TopicConfig:
    """One config of a topic as the broker reports it."""

    value: str | None
    is_default: bool
    """Nobody set it, neither on the topic nor on the brokers."""
    is_static: bool
    """Comes from the broker's own file."""
    is_read_only: bool
    is_sensitive: bool
    is_own: bool = False
    """Set on the topic itself."""


class ConfigChange(NamedTuple):
    """One config of a topic that is to change."""

    key: str
    value: str | None
    """None takes it back to the cluster's default."""

    def __str__(self) -> str:
        return f"{self.key} back to its default" if self.value is None else f"{self.key}={self.value}"


class LogEnd(NamedTuple):
    """Where a partition ends, and under which leader."""

    offset: int
    """Of the next record."""
    epoch: int | None
    """The leader's; None where the cluster does not say."""


class ControlRecord(NamedTuple):
    """One record of a control topic; `partition` None lets the key decide."""

    topic: str
    key: bytes
    value: bytes | None
    """None deletes what the key stands for."""
    headers: Mapping[str, bytes] = {}
    partition: int | None = None
    timestamp: int | None = None


class ReadRecord(NamedTuple):
    """One record as it was read."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes | None]
    timestamp: int | None = None
    """Milliseconds since the epoch, by the clock that the topic goes by; None where there is none."""


class Writer(Protocol):
    """Writes control records."""

    def write(self, records: Iterable[ControlRecord]) -> None:
        """Write records in order; returns when each one is on the cluster for good."""


class Fence(Protocol):
    """The producer id of one flow on its target.

    Every call may raise FenceUnavailable, where the cluster gives none, and ProtocolUnavailable.
    """

    def begin(self, tell: Callable[[str], None]) -> Author:
        """A new epoch, where nothing of an older author is under way; `tell` takes what is waited for, for people."""

    def fence(self, partitions: Iterable[TopicPartition], tell: Callable[[str], None]) -> Fenced:
        """A new epoch, of which all partitions have heard: older authors are refused there; `tell` as above.

        Raises LeaseLost where somebody else does the same.
        """

    def keep_alive(self, author: Author, partitions: Iterable[TopicPartition]) -> None:
        """Let the cluster know that the id is in use, by a marker in each partition that is there."""

    def write(self, author: Author, records: Sequence[ControlRecord], seconds: float) -> None:
        """Write control records as this author, each partition's in order; returns when all are there for good.

        One thread at a time. What is not acknowledged in so many seconds comes in front of what is written next.
        Raises LeaseLost where there is a newer author, NotWritten.
        """

    def plain(self) -> Author:
        """An id of its own, where there is none for the flow."""

    def close(self) -> None:
        """Let go of what was started."""


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
    refusal: Failure | None = None
    unsettled: frozenset[TopicPartition] = frozenset()
    """Where an open transaction may move it (KIP-447): it may stand there already, which is not the same as nowhere."""


class Reader(Protocol):
    """Follows one topic from its beginning."""

    @property
    def next_offsets(self) -> Mapping[int, int]:
        """Where each partition is read on."""

    def read(self, ends: Mapping[int, int], timeout: float) -> Iterator[ReadRecord]:
        """Records up to `ends` (partition → next offset); raises when they do not come in `timeout` seconds."""

    def close(self) -> None:
        """Let go of the connections."""


class Groups(Protocol):
    """Consumer groups of one cluster."""

    def names(self) -> list[str]:
        """Every group of consumers that we may see, of the classic and of the new protocol."""

    def others(self) -> list[str]:
        """Share groups (KIP-932) and streams groups (KIP-1071), which are no consumer groups."""

    def offsets(self, groups: Iterable[str]) -> dict[str, GroupOffsets]:
        """Where each group stands; partitions without a committed offset are left out.

        So are those where the first one of all is in a transaction that is open: see `offsets_at`.
        """

    def offsets_at(self, group: str, partitions: Collection[TopicPartition]) -> GroupOffsets:
        """Where a group stands on these: a coordinator tells of an open transaction that has the first offset of a
        partition only to who names it.
        """

    def active(self, groups: Collection[str]) -> dict[str, bool | Failure]:
        """Whether each group has members (or is just changing them); a failure where that is not known."""

    def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> dict[TopicPartition, Failure | None]:
        """Set where a group stands; per partition None, or why it was refused (a group with members is)."""

    def forget(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Failure | None]:
        """Let a group stand nowhere; per partition None, or why it was refused (a group with members is)."""

    def close(self) -> None:
        """Let go of what was started."""


class Cluster(Protocol):
    """One cluster. Every call may raise the error of the cluster's side (SourceUnavailable, TargetUnavailable)."""

    timeout: float
    """Seconds that one call may take."""

    @property
    def alias(self) -> str:
        """The cluster's alias."""

    @property
    def bootstrap_servers(self) -> str:
        """Its address, for people."""

    def beside(self, role: str, timeout: float) -> Cluster:
        """The same cluster by a client of its own, whose calls take `timeout` seconds at most."""

    def ping(self) -> None:
        """Ask for a sign of life."""

    def refused(self, what: str, reason: str) -> FlowError:
        """The error to raise for what the cluster does not let us do."""

    def topics(self) -> dict[str, int]:
        """Every topic that we may see, with its partition count."""

    def leaderless(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Those of them that exist and have no leader."""

    def broker_count(self) -> int:
        """How many brokers the cluster has now."""

    def cluster_id(self) -> str | None:
        """Kafka's own id of the cluster; None where it has none."""

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        """Topic → its id; those that are gone, or have none, are left out."""

    def configs(self, names: Collection[str]) -> dict[str, dict[str, TopicConfig]]:
        """Topic → its configs; topics that are gone are left out."""

    def create(self, specs: Iterable[TopicSpec]) -> dict[str, str | None]:
        """Create topics; per topic None (also where it is there already), or why it was refused."""

    def grow(self, partitions: Mapping[str, int]) -> dict[str, str | None]:
        """Add partitions; per topic None, or why it was refused."""

    def alter(self, changes: Mapping[str, Sequence[ConfigChange]]) -> dict[str, str | None]:
        """Change configs of topics and leave all others as they are; per topic None, or why it was refused."""

    def acls(self, kinds: Collection[str]) -> set[Acl] | None:
        """All ACLs of these kinds of resources (TOPIC, GROUP); None where the cluster has no authorizer."""

    def add_acls(self, added: Collection[Acl]) -> dict[Acl, str | None]:
        """Make ACLs; per ACL None, or why it was refused. One that exists already is fine."""

    def remove_acls(self, removed: Collection[Acl]) -> dict[Acl, str | None]:
        """Take ACLs back; per ACL None, or why it was refused. One that is gone already is fine."""

    def quotas(self) -> dict[Quota, float]:
        """All quotas of users."""

    def alter_quotas(self, changes: Mapping[Quota, float | None]) -> dict[Quota, str | None]:
        """Set quotas, and take back those of None; per quota None, or why it was refused."""

    def first_offsets(self, partitions: Iterable[TopicPartition], *, waits: bool = True) -> dict[TopicPartition, int]:
        """Offset of the oldest record still there, or of the next one; `waits` as for `end_offsets`."""

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, waits: bool = True, committed: bool = False
    ) -> dict[TopicPartition, int]:
        """Offset of the next record; partitions that are gone are left out.

        One without a leader is waited for, and raises where it gets none; without `waits` it is left out, too. With
        `committed` it ends before the first transaction that is still open.
        """

    def log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        """Ends with the leader epoch at that moment; partitions that are gone are left out."""

    def offsets_since(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """Offset of the first record not older than `timestamp` (ms); partitions without one are left out."""

    def newest_timestamps(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Highest timestamp (ms) in each partition (KIP-734); empty ones are left out."""

    def records(
        self, partition: TopicPartition, offsets: OffsetRange, *, committed: bool | None = None
    ) -> Generator[TailRecord]:
        """The records in `offsets`; ends behind the last one even if markers or compacted offsets follow it.

        `committed` says whether records of open and aborted transactions are left out; None as the flow reads.
        """

    def pieces(
        self, partition: TopicPartition, offsets: OffsetRange, *, committed: bool | None = None
    ) -> Generator[Piece]:
        """The same to be compared, as batches that nobody has looked into where that can be."""

    def first_records(
        self,
        ranges: Mapping[TopicPartition, OffsetRange],
        *,
        committed: bool | None = None,
        seconds: float | None = None,
    ) -> dict[TopicPartition, TailRecord | None]:
        """The first record in each range, of many partitions at once; None where the range holds no record.

        Partitions that did not answer within `seconds` (None: the time of a call) are left out.
        """

    def follow(self, topic: str, partitions: Sequence[int], role: str) -> Reader:
        """Read a control topic from its beginning on."""

    def writer(
        self,
        role: str,
        error: type[FlowError],
        *,
        properties: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Writer:
        """Writes control records; raises `error` where one is not acknowledged in `seconds` (None: a call's time)."""

    def groups(self, right: str) -> Groups:
        """Its consumer groups; `right` is the operation on them that the caller's work takes."""
