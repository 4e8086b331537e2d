"""The values that everything passes around: flows, partitions, intervals, control records. No I/O here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from srm_spark.failure import Failure


@dataclass(frozen=True, order=True)
class Flow:
    """An ordered pair of cluster aliases, written `A->B`."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"

    @property
    def reverse(self) -> Flow:
        """The flow of the other direction."""
        return Flow(self.target, self.source)


class TopicPartition(NamedTuple):
    """A partition of a topic; of the source's unless the name says otherwise. Printed `orders-3`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetRange(NamedTuple):
    """Offsets `start` (included) to `end` (excluded)."""

    start: int
    end: int


Ranges = Mapping[TopicPartition, OffsetRange]
"""Which offsets of which partitions."""


class Interval(NamedTuple):
    """`count` consecutive source offsets from `upstream` that lie at consecutive target offsets from `downstream`.

    ```
    source  … 40 41 42 43 …        Interval(upstream=40, downstream=7, count=4)
              │  │  │  │           40→7  41→8  42→9  43→10
    target  … 7  8  9  10 …
    ```
    """

    upstream: int
    downstream: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which makes no sense on an interval

    @property
    def upstream_end(self) -> int:
        """First source offset behind the interval."""
        return self.upstream + self.count

    @property
    def downstream_end(self) -> int:
        """First target offset behind the interval."""
        return self.downstream + self.count


@dataclass(frozen=True)
class OffsetSync:
    """(source partition, source offset, target offset) of one record (`OffsetSync` of MirrorMaker 2)."""

    partition: TopicPartition
    upstream: int
    downstream: int


@dataclass(frozen=True)
class Checkpoint:
    """Where a group stands, on both sides; `partition` is the target's (`Checkpoint` of MirrorMaker 2)."""

    group: str
    partition: TopicPartition
    upstream: int
    downstream: int
    metadata: str = ""


@dataclass(frozen=True)
class Heartbeat:
    """Proof that a flow's driver lives; `timestamp` in ms since the epoch (`Heartbeat` of MirrorMaker 2)."""

    source: str
    target: str
    timestamp: int


@dataclass(frozen=True)
class Provenance:
    """Where a copied record was first written, and the clusters that it came through on its way."""

    alias: str
    partition: TopicPartition
    offset: int
    via: tuple[str, ...] = ()
    """Aliases of the clusters behind the first one from which it was copied on, in order."""

    @property
    def last(self) -> str:
        """Alias of the cluster from which this copy was made."""
        return self.via[-1] if self.via else self.alias

    def has_been_on(self, alias: str) -> bool:
        """Whether the record lies on that cluster already."""
        return alias == self.alias or alias in self.via


class RefusedPolicy(Enum):
    """What becomes of a record that the target would refuse, or that Spark's source cannot read."""

    HOLD = "hold"
    """Its partition waits."""
    PARK = "park"
    """It goes into quarantine, and its partition goes on."""
    FIX = "fix"
    """It is changed as far as it must be, where that is possible; else its partition waits."""


@dataclass(frozen=True)
class PausedPartition:
    """A partition that stands still: the first source offset not replicated, and why."""

    offset: int
    why: Failure


class LogIdentity(NamedTuple):
    """Which logs progress speaks of: ids of both topics, leader epochs of both partitions. None is unknown.

    Another id is another topic of the same name; under another epoch a log may have lost its newest records.
    """

    topic_id: str | None = None
    epoch: int | None = None
    remote_id: str | None = None
    remote_epoch: int | None = None


UNKNOWN = LogIdentity()


class LossCause(Enum):
    """What became of the records of a loss."""

    DELETED = "deleted"
    """The source deleted them before they were replicated."""
    DIVERGED = "diverged"
    """The target holds copies, but the source has none or other records at these offsets now."""
    TARGET = "target"
    """They were replicated, and their copies are gone on the target."""
    SKIPPED = "skipped"
    """Somebody has set the flow's position behind them."""


@dataclass(frozen=True)
class Loss:
    """Source offsets that one side no longer has, or never got."""

    offsets: OffsetRange
    cause: LossCause = LossCause.DELETED
    target: OffsetRange | None = None
    """Where the copies lie, or lay; None where there were none."""

    def __str__(self) -> str:
        return f"{self.offsets.start} to {self.offsets.end - 1}"


@dataclass(frozen=True)
class KeptLoss:
    """A loss as it is kept for ever."""

    partition: TopicPartition
    loss: Loss
    topic_id: str | None
    """Of the source topic at that time."""
    found_at: int
    """Milliseconds since the epoch."""


@dataclass(frozen=True)
class ProgressDetail:
    """What one commit of progress adds to the plain offset that MirrorMaker 2 knows."""

    source: OffsetRange
    """Source offsets that were read, gaps included."""
    target_end: int | None
    """Where the next record would lie on the target; None while nothing was ever written."""
    intervals: Sequence[Interval]
    hold: PausedPartition | None = None
    logs: LogIdentity = UNKNOWN
    """Of which topics and epochs this is true, so that other ones are noticed."""
    bytes: int = 0
    """Bytes that were written: of batches as they travelled; of keys and values where librdkafka writes."""
    latency_ms: int | None = None
    """Acknowledgement minus record timestamp, of the last record; None where no record was written."""
    zero_timestamps: int = 0
    """Records with CreateTime 0, which the client library cannot send: they got the time of the copy."""
    lost: tuple[Loss, ...] = ()
    """What was found to be lost when this was committed."""
    whole: int = 0
    """Records that were copied in the batches that they came in."""
    merged: int = 0
    """Records that were packed anew with their neighbours; all others were looked at one by one."""

    @property
    def topic_id(self) -> str | None:
        """Id of the source topic."""
        return self.logs.topic_id
