"""The values that everything passes around: flows, partitions, intervals, control records. No I/O here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


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
    """(source partition, source offset, target offset) of one record (mirrormaker2.md section 2)."""

    partition: TopicPartition
    upstream: int
    downstream: int


@dataclass(frozen=True)
class Checkpoint:
    """Where a group stands, on both sides; `partition` is the target's (mirrormaker2.md section 2)."""

    group: str
    partition: TopicPartition
    upstream: int
    downstream: int
    metadata: str = ""


@dataclass(frozen=True)
class Heartbeat:
    """Proof that a flow's driver lives; `timestamp` in ms since the epoch (mirrormaker2.md section 2)."""

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


@dataclass(frozen=True)
class Hold:
    """A partition that stands still: the first source offset not replicated, and why."""

    offset: int
    reason: str


@dataclass(frozen=True)
class ProgressDetail:
    """What one commit of progress adds to the plain offset that MirrorMaker 2 knows."""

    source: OffsetRange
    """Source offsets that were read, gaps included."""
    target_end: int | None
    """Where the next record would lie on the target; None while nothing was ever written."""
    intervals: tuple[Interval, ...]
    hold: Hold | None = None
    topic_id: str | None = None
    """Id of the source topic, so that a re-created one is noticed."""
    bytes: int = 0
    """Bytes of keys and values that were written."""
    latency_ms: int | None = None
    """Acknowledgement minus record timestamp, of the last record; None where no record was written."""
    zero_timestamps: int = 0
    """Records with CreateTime 0, which the client library cannot send: they got the time of the copy."""
    lost: tuple[OffsetRange, ...] = ()
    """Parts of `source` that were deleted there before they were replicated."""
