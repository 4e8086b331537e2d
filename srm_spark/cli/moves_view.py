"""Guided moves as text for people: what was found, what will be or was done, what is not safe, what comes next."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from srm_spark.core.model import Flow
from srm_spark.core.wording import count
from srm_spark.plan import PutBack, Undo
from srm_spark.plan.snapshot import (
    ClusterSnapshot,
    GroupMove,
    LossEstimate,
    MoveKind,
    MoveOutcome,
    Plan,
    Range,
    SitePlan,
    SiteStatement,
    Statement,
    WriteRight,
)

_WIDTH = 160
_UNKNOWN = "unknown"


def plan_text(plan: Plan) -> str:
    """Everything that should be known before a move."""
    steps = [f"{number}. {stage.value}" for number, stage in enumerate(plan.stages, 1)]
    done = [f"done by an earlier call: {stage.value}" for stage in plan.done if stage not in plan.stages]
    parts = [
        *_found(f"{plan.kind.value} of {_route(plan.kind, plan.flow)}", plan.flow, plan.snapshot),
        *_rights(plan.kind, plan.snapshot.rights),
        *_section("not safe", plan.unsafe),
        *_section("what will be done", [*done, *steps]),
    ]
    return "\n".join(parts)


def statement_text(statement: Statement) -> str:
    """What a move did, to be kept."""
    times = f"began {statement.began}, ended {statement.ended}"
    parts = [
        *_found(
            f"{statement.kind.value} of {_route(statement.kind, statement.flow)}, {times}",
            statement.flow,
            statement.snapshot,
        ),
        *_took(statement),
        *_section("how far each partition was copied", _ranges(statement.snapshot.ranges)),
        *_rights(statement.kind, statement.snapshot.rights),
        *_section("not safe", statement.unsafe or ["nothing"]),
        *_section("next", statement.next_steps),
    ]
    return "\n".join(parts)


def site_plan_text(plan: SitePlan) -> str:
    """Everything that should be known before a site is left."""
    flows = [
        line
        for one in plan.plans
        for line in (*_found(str(one.flow), one.flow, one.snapshot), *_rights(one.kind, one.snapshot.rights), "")
    ]
    steps = [f"{number}. {stage.value}" for number, stage in enumerate(plan.stages, 1)]
    done = {f"done by an earlier call, {one.flow}: {stage.value}": None for one in plan.plans for stage in one.done}
    ended = [f"done by an earlier call: all of {flow}" for flow in plan.ended]
    parts = [
        f"switchover of {plan.site}, {count(len(plan.plans), 'flow')}",
        "",
        *flows,
        *_section("not safe", plan.unsafe),
        *_section("what will be done, each for all flows before the next", [*ended, *done, *steps]),
    ]
    return "\n".join(parts)


def site_text(statement: SiteStatement) -> str:
    """What a switchover did, to be kept."""
    each = [f"{statement_text(one)}\n" for one in statement.statements]
    return "\n".join([*each, *_section(f"not safe of {statement.site}", statement.unsafe or ["nothing"])])


def undo_text(undos: Sequence[Undo], *, is_done: bool) -> str:
    """What became of moves that were given up, or would."""
    lines: list[str] = []
    for undo in undos:
        lines.append(f"undo of a {undo.kind.value} of {_route(undo.kind, undo.flow)}")
        lines += [f"  group {one.group} on {one.remote}: {_back(one, is_done=is_done)}" for one in undo.groups]
        lines += [] if undo.groups or undo.failure else ["  no group was moved"]
        verb = "may no longer write" if is_done else "would no longer write"
        lines += [f"  who {verb} remote topics: {acl}" for acl in undo.withdrawn]
        lines += [f"  left: {acl} is in force still: {why}" for acl, why in undo.in_force.items()]
        lines += [] if undo.failure is None else [f"  left: {undo.failure}"]
        lines += [f"  {note}" for note in undo.notes]
    return "\n".join(lines)


def _back(one: PutBack, *, is_done: bool) -> str:
    if one.left:
        return f"left: {one.left}"
    where = "nowhere" if one.before is None else f"at {one.before}"
    return f"{'stands' if is_done else 'would stand'} {where} again; the move had set it to {one.moved}"


def _took(statement: Statement) -> Iterable[str]:
    goal = statement.rto_goal
    if goal is None:
        return
    seconds, is_late = f"{statement.seconds:.0f} s", statement.seconds > goal
    if statement.unsafe:
        yield f"  has taken {seconds} so far; the goal is {goal} s"
    else:
        yield f"  took {seconds}, {'longer than' if is_late else 'within'} the goal of {goal} s"


def _route(kind: MoveKind, flow: Flow) -> str:
    return f"{flow.reverse}, over {flow}" if kind is MoveKind.FAILBACK else str(flow)


def _found(title: str, flow: Flow, snapshot: ClusterSnapshot) -> Iterable[str]:
    yield title
    yield f"  source {flow.source}: " + (f"gone: {snapshot.source_down}" if snapshot.source_down else "answers")
    yield f"  driver: {snapshot.owner or 'nobody'} runs the flow"
    yield f"  not on {flow.target}: {_loss(snapshot.loss, flow)}"
    yield f"  groups: {_counts(snapshot.moves)}"
    if snapshot.moves:
        yield ""
        yield _table(snapshot.moves, flow)


def _loss(loss: LossEstimate, flow: Flow) -> str:
    recorded = "never" if loss.progress_seconds is None else f"{loss.progress_seconds:.0f} s ago"
    if loss.records is None:
        return (
            f"{_UNKNOWN}, since {flow.source} cannot be asked. Progress was recorded last {recorded}: nothing that "
            f"{flow.source} got since then is on {flow.target}, nor what was on its way at that time"
        )
    if not loss.records:
        return "nothing, 0 records"
    age = f"{_UNKNOWN} age" if loss.seconds is None else f"up to {loss.seconds:.0f} s old"
    return f"{count(loss.records, 'record')}, {age}; progress was recorded last {recorded}"


def _counts(moves: Sequence[GroupMove]) -> str:
    if not moves:
        return "none"
    counts = Counter(move.outcome for move in moves)
    verdicts = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in MoveOutcome if counts[outcome])
    return f"{len({move.group for move in moves})}, on {count(len(moves), 'partition')}: {verdicts}"


def _table(moves: Sequence[GroupMove], flow: Flow) -> str:
    table = Table("group", "topic", box=None)
    for title in ("partition", f"on {flow.source} at", f"was on {flow.target} at", "goes on at"):
        table.add_column(title, justify="right")
    table.add_column("outcome")
    table.add_column("why")
    for move in moves:
        numbers = (move.remote.partition, move.upstream, move.before, move.after)
        cells = ["-" if number is None else str(number) for number in numbers]
        table.add_row(move.group, move.remote.topic, *cells, move.outcome.value, move.reason or move.translation)
    text = io.StringIO()
    Console(file=text, width=_WIDTH, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def _ranges(ranges: Sequence[Range]) -> Iterable[str]:
    for one in ranges:
        to, missing = one.replicated_to, one.missing
        copied = f"up to {to - 1}" if to else "nothing" if to == 0 else _UNKNOWN
        gap = _UNKNOWN if missing is None else count(missing.end - missing.start, "record")
        line = f"{one.partition} -> {one.remote}: {copied}; not copied: {gap}"
        held = f"; held: {one.hold}" if one.hold else ""
        lost = "".join(f"; lost before: {start} to {end - 1}" for start, end in one.lost)
        quarantined = f"; in quarantine: {count(one.quarantined, 'record')}" if one.quarantined else ""
        yield line + held + quarantined + lost


def _rights(kind: MoveKind, rights: Sequence[WriteRight]) -> list[str]:
    other = "staged" if kind.allows_writing else "taken away by somebody"
    lines = (f"{one.acl}: {'in force' if one.is_in_force else other}" for one in rights)
    return _section("who may write remote topics, whichever groups move", lines)


def _section(title: str, lines: Iterable[str]) -> list[str]:
    shown = [f"  {line}" for line in lines]
    return ["", title, *shown] if shown else []
