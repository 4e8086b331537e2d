"""Gives a move up that has not ended: groups go back to where they stood on the target before it.

Where a group stands elsewhere by now, its consumers or the flow's sync went on: it is left, and told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from srm_spark.core.acls import Acl
from srm_spark.core.cluster import Committed, Groups
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.groups.sync import UNSETTLED
from srm_spark.plan.snapshot import MoveKind, Statement
from srm_spark.plan.state import MoveState


@dataclass(frozen=True)
class PutBack:
    """One group on one partition of the target. Offsets are those of the next record that it reads."""

    group: str
    remote: TopicPartition
    moved: int
    """Where the move had set it to."""
    before: int | None
    """Where it stood before; None for nowhere."""
    left: str = ""
    """Why it is not there again; empty where it is."""
    is_final: bool = True
    """Whether another call would say the same."""


@dataclass(frozen=True)
class Undo:
    """What became of a move that was given up, or with nothing changed would."""

    kind: MoveKind
    flow: Flow
    groups: tuple[PutBack, ...] = ()
    withdrawn: tuple[Acl, ...] = ()
    """What the move let applications do, and may not be done any more."""
    in_force: Mapping[Acl, str] = field(default_factory=dict)
    """What of that may be done still, and why."""
    notes: tuple[str, ...] = ()
    """What cannot be undone here, and who does it."""
    failure: str | None = None
    """Why it is not known what became of the rest."""
    statement: Statement | None = None
    """What is on disk of it; None where nothing was changed."""

    @property
    def left(self) -> tuple[str, ...]:
        """What is not as it was before the move."""
        return (
            *(f"group {one.group} on {one.remote}: {one.left}" for one in self.groups if one.left),
            *(f"{acl} is in force still: {why}" for acl, why in self.in_force.items()),
            *(() if self.failure is None else (self.failure,)),
        )

    @property
    def is_over(self) -> bool:
        """Whether another call would change nothing any more."""
        return all(one.is_final for one in self.groups) and not self.in_force and self.failure is None


def put_back(groups: Groups, state: MoveState, *, commits: bool) -> tuple[PutBack, ...]:
    """Set groups back that stand where the move has set them, or only tell which; one verdict for each it has set.

    One that was killed may have been about to: of these, what stands where it stood is as it should be.

    Raises TargetUnavailable.
    """
    mine: dict[str, list[PutBack]] = {}
    for (group, remote), moved in sorted(state.set_to.items()):
        mine.setdefault(group, []).append(PutBack(group, remote, moved[-1], state.earlier.before.get((group, remote))))
    now, active = groups.offsets(mine), groups.active(mine)
    found: list[PutBack] = []
    for group, every in mine.items():
        refusal = now[group].refusal
        if refusal is not None:
            found += _left(every, refusal.sentence)
            continue
        stands, unsettled = now[group].committed, now[group].unsettled
        found += _left((row for row in every if row.remote in unsettled), UNSETTLED.sentence)
        rows = [row for row in every if row.remote not in unsettled]
        due = [row for row in rows if _is_due(row, _stands(stands, row.remote), state)]
        found += [_elsewhere(row, _stands(stands, row.remote)) for row in rows if row not in due]
        why = active[group]
        if due and why is not False:
            found += _left(due, _MEMBERS if why is True else why.sentence)
        elif due:
            found += _set(groups, group, due, stands) if commits else due
    return tuple(sorted(found, key=lambda one: (one.group, one.remote)))


_MEMBERS = "it has members; stop them and run the same command again"


def _set(
    groups: Groups, group: str, due: Iterable[PutBack], stands: Mapping[TopicPartition, Committed]
) -> Iterator[PutBack]:
    rows = {row.remote: row for row in due}
    back = {remote: row.before for remote, row in rows.items() if row.before is not None}
    nowhere = rows.keys() - back.keys()
    answers: dict[TopicPartition, Failure | None] = {}
    if back:
        offsets = {remote: Committed(offset, stands[remote].metadata) for remote, offset in back.items()}
        answers |= groups.commit(group, offsets)
    if nowhere:
        answers |= groups.forget(group, sorted(nowhere))
    for remote, row in rows.items():
        why = answers.get(remote)
        if why is None:
            yield row
        else:
            yield from _left([row], _MEMBERS if why.kind is FailureKind.GROUP_HAS_MEMBERS else why.sentence)


def _is_due(row: PutBack, stands: int | None, state: MoveState) -> bool:
    return stands != row.before and stands in state.set_to[row.group, row.remote]


def _stands(committed: Mapping[TopicPartition, Committed], remote: TopicPartition) -> int | None:
    at = committed.get(remote)
    return None if at is None else at.offset


def _left(rows: Iterable[PutBack], why: str) -> Iterator[PutBack]:
    return (replace(row, left=why, is_final=False) for row in rows)


def _elsewhere(row: PutBack, stands: int | None) -> PutBack:
    if stands == row.before:
        return row
    at = "nowhere" if stands is None else f"at {stands}"
    why = f"the move has set it to {row.moved}, and it is {at} now: its consumers, or the flow's sync, went on"
    return replace(row, left=why)
