"""From what was found to what will be done, and what its owner does next. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from srm_spark.core.model import Flow
from srm_spark.core.wording import count
from srm_spark.plan.drain import behind, moved
from srm_spark.plan.snapshot import ClusterSnapshot, MoveKind, MoveOutcome, Plan, Stage, WriteRight, few, unsafe
from srm_spark.plan.state import MoveState


def make_plan(
    kind: MoveKind,
    flow: Flow,
    snapshot: ClusterSnapshot,
    *,
    fenced: bool,
    state: MoveState | None,
    names_groups: bool = False,
    may_be_empty: bool = False,
) -> Plan:
    """The stages that are left, or why there are none.

    `fenced`: there is a fence command; `names_groups`: only some groups are to move; `may_be_empty`: it is in order
    that none is there, as of one flow of a whole site.
    """
    stages = [Stage.COMMIT, Stage.CHECK]
    if kind.is_planned:
        stages.insert(0, Stage.DRAIN)
    # Of what a failover made, and somebody took away since, the record goes.
    if _undone(kind, snapshot) or (snapshot.rights and not kind.allows_writing):
        stages.insert(-1, Stage.ALLOW if kind.allows_writing else Stage.WITHDRAW)
    done = () if state is None else state.done
    if fenced and Stage.FENCE not in done:
        stages.insert(0, Stage.FENCE)
    needs_groups = not may_be_empty and (names_groups or not snapshot.rights)
    refusals = tuple(_refusals(kind, flow, snapshot, needs_groups=needs_groups))
    return Plan(kind, flow, snapshot, () if refusals else tuple(stages), done, refusals)


def other_than_shown(shown: Plan, now: Plan) -> tuple[str, ...]:
    """Why somebody has to read the plan anew before it is carried out; positions go on, that is no reason."""
    if now.refusals:
        return now.refusals
    why = []
    if new := {move.group for move in now.snapshot.moves} - {move.group for move in shown.snapshot.moves}:
        why.append(f"groups that it did not show: {few(sorted(new), most=10)}")
    if now.stages != shown.stages:
        why.append(f"other stages: {'; '.join(stage.value for stage in now.stages)}")
    return tuple(f"the plan would be another one now, make it again: {text}" for text in why)


def verdict(kind: MoveKind, state: MoveState, snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """What is not safe behind the last stage."""
    problems = list(unsafe(snapshot))
    late = [move for move in snapshot.moves if move.outcome is MoveOutcome.MOVES]
    problems += [
        f"group {move.group} on {move.remote}: it is not at {move.after}; run the same command again" for move in late
    ]
    word = "is not in force" if kind.allows_writing else "is still in force"
    problems += [f"{one.acl} {word}: {one.refused or 'run the same command again'}" for one in _undone(kind, snapshot)]
    if kind.is_planned:
        if snapshot.source_down is not None:
            problems.append(f"whether the source stood still to the end is not known: {snapshot.source_down}")
        ends = {r.partition: r.source_end for r in snapshot.ranges if r.source_end is not None}
        silent = {r.partition for r in snapshot.ranges} - ends.keys() if snapshot.source_down is None else set()
        still = {partition: end for partition, end in state.still.items() if partition not in silent}
        if silent:
            names = few([str(partition) for partition in sorted(silent)])
            problems.append(f"{names} has no leader on the source, so whether everything is copied is not known")
        if snapshot.source_down is None and ends != still:
            problems.append(f"the source was written after it was drained: {moved(still, ends)}")
        if missing := behind(snapshot.ranges):
            problems.append(f"not copied before the groups moved: {count(missing, 'record')}")
    return tuple(problems)


def _undone(kind: MoveKind, snapshot: ClusterSnapshot) -> list[WriteRight]:
    """Who may not write yet, or may still."""
    return [right for right in snapshot.rights if right.is_in_force is not kind.allows_writing]


def ended(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The snapshot of a move that is over: what has not moved by now stays."""
    moves = (
        replace(move, outcome=MoveOutcome.STAYS, reason=move.reason or "the move ended before it")
        if move.outcome is MoveOutcome.MOVES
        else move
        for move in snapshot.moves
    )
    return replace(snapshot, moves=tuple(moves))


def next_steps(
    kind: MoveKind, flow: Flow, snapshot: ClusterSnapshot, *, has_way_back: bool, is_safe: bool
) -> tuple[str, ...]:
    """What its owner does now. `has_way_back`: the flow of the other direction is configured."""
    gone = [move for move in snapshot.moves if move.outcome in (MoveOutcome.MOVED, MoveOutcome.IN_STEP)]
    steps = []
    if gone:
        groups, topics = _listed(move.group for move in gone), _listed(move.remote.topic for move in gone)
        steps.append(f"start the consumers of {groups} on {flow.target}; their topics there are {topics}")
    if not is_safe:
        steps.append("mend what is not safe and run the same command again; it goes on where it stopped")
    if kind is MoveKind.PLANNED_FAILOVER and gone:
        steps.append(f"let the producers write to {flow.target}")
    if kind is MoveKind.FAILBACK or not gone:
        return tuple(steps)
    if not has_way_back:
        steps.append(
            f"for the way back, enable {flow.reverse} before {flow.source} is used: {flow.reverse}.enabled = true"
        )
    else:
        steps.append(f"when {flow.source} is to take over again: srm-control failback --flow '{flow}'")
    return tuple(steps)


def not_undone(flow: Flow, state: MoveState) -> Iterable[str]:
    """What a move did that giving it up leaves as it is, and who undoes it."""
    if state.has_entered(Stage.FENCE):
        yield f"the fence command has run: start the producers and consumers on {flow.source} again"
    if state.has_entered(Stage.WITHDRAW):
        text = f"srm-control failover --flow '{flow.reverse}' gives it again"
        yield f"who may write remote topics of {flow.reverse} was taken back: {text}"


def _refusals(kind: MoveKind, flow: Flow, snapshot: ClusterSnapshot, *, needs_groups: bool) -> Iterable[str]:
    if kind.is_planned and snapshot.source_down is not None:
        yield f"a planned move needs {flow.source}: {snapshot.source_down}"
    if kind.is_planned and snapshot.owner is None:
        yield f"nobody runs the flow {flow}, and a planned move waits until it is done; start srm-driver"
    # Who may write is no matter of groups; but of groups that are named and not there a name is wrong.
    if not snapshot.moves and needs_groups:
        yield f"no group stands on a topic of the flow {flow}; check --group and the groups of the configuration"


def _listed(names: Iterable[str]) -> str:
    return few(sorted(set(names)), most=10)
