"""Groups, ranges and snapshots for the tests of plans."""

from __future__ import annotations

from srm_spark.core.checkpoints import Translation, TranslationStatus
from srm_spark.core.cluster import Committed
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.flow.groups.positions import GroupPosition
from srm_spark.plan.snapshot import ClusterSnapshot, GroupMove, LossEstimate, MoveOutcome, Range

FLOW = Flow("A", "B")
PARTITION, REMOTE = TopicPartition("orders", 0), TopicPartition("A.orders", 0)


def position(
    upstream: int = 10,
    downstream: int | None = 7,
    *,
    seen: int | None = None,
    status: TranslationStatus = TranslationStatus.EXACT,
) -> GroupPosition:
    """Group `g` on `orders`; `seen` is as far as the map knows what it has read."""
    found = Translation(status, upstream if seen is None else seen, downstream)
    return GroupPosition("g", PARTITION, REMOTE, Committed(upstream, "kept"), found, 20)


def copied(replicated_to: int | None = 10, source_end: int | None = 10, *, partition: int = 0) -> Range:
    """One partition of `orders`."""
    remote = TopicPartition("A.orders", partition)
    return Range(TopicPartition("orders", partition), remote, replicated_to, source_end, target_end=7)


def move(
    outcome: MoveOutcome = MoveOutcome.MOVED, *, group: str = "g", before: int | None = None, reason: str = ""
) -> GroupMove:
    """A group on `A.orders` that goes to 7."""
    return GroupMove(group, REMOTE, 10, before, 7, outcome, "exact", reason)


def snapshot(*moves: GroupMove, ranges: tuple[Range, ...] = (copied(),), down: str | None = None) -> ClusterSnapshot:
    """Both sides, with a driver."""
    return ClusterSnapshot(down, "a driver", ranges, LossEstimate(0, 0.0, 1.0), moves or (move(),))
