"""What a guided move finds, plans and states. Frozen values; unknown is None, never 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from srm_spark.core.acls import Acl
from srm_spark.core.model import Flow, OffsetRange, TopicPartition
from srm_spark.core.moments import moment_of
from srm_spark.core.wording import count


class MoveKind(Enum):
    """Which move it is."""

    FAILOVER = "failover"
    """A disaster: the source may be gone, and nobody waits for it."""
    PLANNED_FAILOVER = "planned failover"
    FAILBACK = "failback"
    """A planned move over the flow of the other direction."""

    @property
    def allows_writing(self) -> bool:
        """Whether applications write copies from then on; else the flow alone does again."""
        return self is not MoveKind.FAILBACK

    @property
    def is_planned(self) -> bool:
        """Whether the source is there, and everything on it is copied before groups move."""
        return self is not MoveKind.FAILOVER


class Stage(Enum):
    """What a move does, in this order; the text is what it says of itself."""

    FENCE = "run the fence command, which stops the producers and consumers"
    DRAIN = "wait until everything is copied and nothing new comes"
    COMMIT = "set the offsets of the groups on the target"
    ALLOW = "let those write remote topics on the target who may write their source topics, as is staged"
    WITHDRAW = "take back who may write remote topics since a failover"
    CHECK = "read the offsets back and look at both sides once more"


class MoveOutcome(Enum):
    """What becomes of a group on a partition."""

    MOVES = "moves"
    MOVED = "moved"
    IN_STEP = "is there already"
    STAYS = "not moved"


@dataclass(frozen=True)
class Range:
    """How far one partition of the source has been copied. Offsets are those of the next record."""

    partition: TopicPartition
    remote: TopicPartition
    replicated_to: int | None
    """First offset on the source that is not on the target; None where nothing is recorded."""
    source_end: int | None = None
    """None where the source does not answer."""
    source_start: int = 0
    """The oldest record that is still there."""
    target_end: int | None = None
    """None where the remote partition is not there."""
    hold: str | None = None
    """Why it stands still at `replicated_to`."""
    lost: tuple[OffsetRange, ...] = ()
    """Deleted on the source before it was copied, as far as the newest progress says."""
    quarantined: int = 0
    """Records that are in quarantine instead of on the target."""

    @property
    def missing(self) -> OffsetRange | None:
        """What is on the source and not on the target; None where that is not known."""
        if self.source_end is None:
            return None
        start = self.source_start if self.replicated_to is None else self.replicated_to
        return OffsetRange(min(start, self.source_end), self.source_end)

    @property
    def is_empty(self) -> bool:
        """Whether there was never anything to copy."""
        return not self.source_end and not self.replicated_to


@dataclass(frozen=True)
class LossEstimate:
    """What would be missing on the target if the source were gone now."""

    records: int | None
    """Source offsets that are not copied; None where the source does not answer."""
    seconds: float | None
    """Age of the oldest record that is not copied, 0.0 where all are; None where that is not known."""
    progress_seconds: float | None = None
    """Since the flow recorded progress last."""


@dataclass(frozen=True)
class GroupMove:
    """One group on one partition. Offsets are those of the next record that it reads."""

    group: str
    remote: TopicPartition
    """On the target."""
    upstream: int
    """Where it stands on the source."""
    before: int | None
    """Where it stood on the target before the move; None for nowhere."""
    after: int | None
    """Where it goes on on the target; None where that is not known."""
    outcome: MoveOutcome
    translation: str
    """How well its position translates, or why it does not."""
    reason: str = ""
    """Why it is not moved, or what its owner should know."""


@dataclass(frozen=True)
class WriteRight:
    """An ACL that lets somebody write copies: a failover puts it in force, a failback takes it back."""

    acl: Acl
    is_in_force: bool
    refused: str = ""
    """Why the cluster would not change that."""


@dataclass(frozen=True)
class ClusterSnapshot:
    """What both clusters said at one moment."""

    source_down: str | None
    """Why the source does not answer."""
    owner: str | None
    """The driver that runs the flow; None for nobody."""
    ranges: tuple[Range, ...]
    loss: LossEstimate
    moves: tuple[GroupMove, ...]
    unknown: tuple[str, ...] = ()
    """Groups whose position could not be found out, with the reason; and why it is not known who may write."""
    rights: tuple[WriteRight, ...] = ()
    """Staged, of a failover; made by one, of a failback."""


@dataclass(frozen=True)
class Plan:
    """What a move will do."""

    kind: MoveKind
    flow: Flow
    """Over which the groups move: they consume on its source and go on on its target."""
    snapshot: ClusterSnapshot
    stages: tuple[Stage, ...]
    """What is left to do."""
    done: tuple[Stage, ...] = ()
    """What an earlier call has done, as its state file says."""
    refusals: tuple[str, ...] = ()
    """Why nothing is done at all."""

    @property
    def unsafe(self) -> tuple[str, ...]:
        """What would not be safe."""
        return (*self.refusals, *unsafe(self.snapshot))


@dataclass(frozen=True)
class Phase:
    """One stage as it went; one that a call did not end has another one behind it."""

    stage: Stage
    began: str
    """UTC, ISO 8601."""
    ended: str | None = None
    """None: it goes on, was interrupted, or did not succeed."""


@dataclass(frozen=True)
class Verified:
    """What a signed statement said of the copies, by content, before groups moved."""

    verdict: str
    ended: str
    """UTC, ISO 8601: what came later it does not know."""
    sha256: str
    """Of that statement's payload."""
    part: str | None = None
    """What of the flow was looked at, where that was not everything."""


@dataclass(frozen=True)
class Statement:
    """What a move did."""

    kind: MoveKind
    flow: Flow
    began: str
    """UTC, ISO 8601; the first call's where it took several."""
    ended: str
    snapshot: ClusterSnapshot
    """As it was found at the end."""
    unsafe: tuple[str, ...]
    """What did not become safe, with the reason; empty where everything moved."""
    next_steps: tuple[str, ...]
    phases: tuple[Phase, ...] = ()
    """Of all calls."""
    rto_goal: int | None = None
    """Most seconds that it should have taken; None where no goal was set, or none is: for a failback."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (moment_of(self.ended) - moment_of(self.began)) / 1000


@dataclass(frozen=True)
class SitePlan:
    """What a switchover will do."""

    site: str
    plans: tuple[Plan, ...]
    """Of its flows, in the order of the configuration."""
    fences: bool
    """Whether the fence command is still to run."""
    refusals: tuple[str, ...]
    """Why nothing is done at all."""
    ended: tuple[Flow, ...] = ()
    """Flows of which an earlier call has done everything."""
    unseen: tuple[str, ...] = ()
    """Groups that are named, and that no flow knows."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What is left to do, each for all flows that need it before the next one."""
        if self.refusals:
            return ()
        asked = {stage for plan in self.plans for stage in plan.stages} | ({Stage.FENCE} if self.fences else set())
        return tuple(stage for stage in Stage if stage in asked)

    @property
    def unsafe(self) -> tuple[str, ...]:
        """What would not be safe."""
        of_flows = (f"{plan.flow}: {text}" for plan in self.plans for text in unsafe(plan.snapshot))
        return (*self.refusals, *self.unseen, *of_flows)


@dataclass(frozen=True)
class SiteStatement:
    """What a switchover did."""

    site: str
    statements: tuple[Statement, ...]
    unseen: tuple[str, ...] = ()
    """Groups that were named, and that no flow knew."""

    @property
    def unsafe(self) -> tuple[str, ...]:
        """What did not become safe; empty where everything moved."""
        return (*self.unseen, *(f"{one.flow}: {text}" for one in self.statements for text in one.unsafe))


def unsafe(snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Everything in it that is not safe: groups that stay, positions that are not known, partitions that stand."""
    stays: dict[tuple[str, str], list[str]] = {}
    for move in snapshot.moves:
        if move.outcome is MoveOutcome.STAYS:
            stays.setdefault((move.group, move.reason), []).append(str(move.remote))
    groups = [f"group {group} on {few(partitions)}: {reason}" for (group, reason), partitions in stays.items()]
    quarantined = [
        f"{one.partition}: {count(one.quarantined, 'record')} in quarantine"
        for one in snapshot.ranges
        if one.quarantined
    ]
    return (*groups, *snapshot.unknown, *not_copied(snapshot.ranges), *quarantined)


def few(texts: Sequence[str], most: int = 3) -> str:
    """The first ones, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def not_copied(ranges: Sequence[Range]) -> tuple[str, ...]:
    """Partitions that are not copied any further, with the reason."""
    held = [f"{one.partition} is held at {one.replicated_to}: {one.hold}" for one in ranges if one.hold]
    absent = [
        f"{one.remote} is not there, so nothing of {one.partition} is"
        for one in ranges
        if one.target_end is None and not one.is_empty
    ]
    return (*held, *absent)
