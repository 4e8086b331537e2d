"""What becomes of each group of a move, from the verdicts of group offset sync. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from srm_spark.core.checkpoints import GroupPartition, TranslationStatus
from srm_spark.core.model import Flow
from srm_spark.core.wording import count
from srm_spark.flow.groups.positions import GroupPosition
from srm_spark.flow.groups.sync import Synced, SyncState
from srm_spark.plan.snapshot import GroupMove, MoveKind, MoveOutcome


@dataclass(frozen=True)
class Earlier:
    """What earlier calls of the same move wrote down."""

    before: Mapping[GroupPartition, int | None] = field(default_factory=dict)
    """Where groups stood on the target before anything was touched; None for nowhere."""
    moved: Mapping[GroupPartition, int] = field(default_factory=dict)
    """Where they were set to."""


@dataclass(frozen=True)
class Judge:
    """The rules of one move. `active` are the groups that have members on the source."""

    kind: MoveKind
    flow: Flow
    active: Collection[str] = ()
    earlier: Earlier = field(default_factory=Earlier)
    is_final: bool = True
    """Whether offsets are set now; before that, what still has to happen on the source is no reason to stay."""

    def stuck(self, position: GroupPosition) -> str | None:
        """Why a group must not be moved yet, although it could be; None where it may.

        A planned move loses nothing by waiting: consumers that still read on the source would be read after, and what
        is not on the target yet would be read twice.
        """
        if not (self.kind.is_planned and self.is_final):
            return None
        if position.group in self.active:
            return f"it has members on {self.flow.source}; stop them and run the same command again"
        if unseen := _unseen(position):
            alias = self.flow.target
            what = f"it has read {count(unseen, 'record')} of {position.partition} that {alias} is not known to have"
            return f"{what}; run the same command again"
        return None

    def moves(self, verdicts: Iterable[Synced], stuck: Mapping[str, str]) -> tuple[GroupMove, ...]:
        """What becomes of each group, by group and partition; `stuck` are groups that stay, with the reason."""
        moves = (self._move(one, stuck.get(one.position.group)) for one in verdicts)
        return tuple(sorted(moves, key=lambda move: (move.group, move.remote)))

    def _move(self, one: Synced, stuck: str | None) -> GroupMove:
        position = one.position
        at = (position.group, position.remote)
        outcome, reason = (MoveOutcome.STAYS, stuck) if stuck is not None else self._outcome(one, at)
        return GroupMove(
            group=position.group,
            remote=position.remote,
            upstream=position.committed.offset,
            before=self.earlier.before.get(at, one.before),
            after=position.translation.downstream,
            outcome=outcome,
            translation=str(position.translation),
            reason=reason,
        )

    def _outcome(self, one: Synced, at: GroupPartition) -> tuple[MoveOutcome, str]:
        ours, before = self.earlier.moved.get(at), self.earlier.before.get(at, one.before)
        if one.state in (SyncState.SYNCED, SyncState.DUE):
            return (MoveOutcome.MOVED if one.state is SyncState.SYNCED else MoveOutcome.MOVES), self._note(one.position)
        if one.state is SyncState.IN_STEP:
            return (MoveOutcome.IN_STEP if before == one.before else MoveOutcome.MOVED), self._note(one.position)
        if ours is not None and one.before is not None and one.before >= ours:
            return (
                MoveOutcome.MOVED,
                "" if one.before == ours else f"it was set to {ours} and has read on to {one.before}",
            )
        return MoveOutcome.STAYS, self._refusal(one)

    def _refusal(self, one: Synced) -> str:
        source, target = self.flow.source, self.flow.target
        if one.state is SyncState.ACTIVE:
            return f"it has members on {target}; stop them and run the same command again"
        if one.state is SyncState.AHEAD:
            return (
                f"it is at {one.before} on {target}, and what it has read on {source} ends at "
                f"{one.position.translation.downstream}: it would skip what lies between. If it has not read that on "
                f"{target}, set it back with kafka-consumer-groups --reset-offsets; a move never goes backward"
            )
        if one.state is SyncState.UNTRANSLATED:
            return f"its position on {source} does not translate: {one.detail}"
        return f"{target} refused it: {one.detail}"

    def _note(self, position: GroupPosition) -> str:
        if unseen := _unseen(position):
            return f"it has read {count(unseen, 'record')} on {self.flow.source}, not on {self.flow.target}"
        if position.group in self.active:
            then = "they must be gone first" if self.kind.is_planned else "what they read from now on is read again"
            return f"it has members on {self.flow.source}: {then}"
        return ""


def _unseen(position: GroupPosition) -> int:
    """Records that the group has read and the target does not have, as far as the map knows."""
    translation = position.translation
    return position.committed.offset - translation.upstream if translation.status is TranslationStatus.AHEAD else 0
