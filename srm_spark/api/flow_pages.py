"""The pages of one flow beside its figures: lists, groups, losses, explanations, events, offsets, moves; and what
their forms do. They ask clusters, and so are made anew when somebody loads them, and not all the time."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import RedirectResponse

from srm_spark.api.control import Desk, TheDesk
from srm_spark.api.desk_page import PAGE, Offset, desk_page, desk_router, result_page
from srm_spark.api.forms import Form, TheForm
from srm_spark.api.pages import flow_path
from srm_spark.api.problems import RequestProblem
from srm_spark.api.roles import Role
from srm_spark.api.root import rooted
from srm_spark.api.v3_acts import (
    CHANGES,
    ChangeBody,
    CommandDocument,
    ConfirmBody,
    ScopeBody,
    changed,
    commanded,
    lists_of,
    pauses_of,
)
from srm_spark.api.v3_looks import (
    EventDocument,
    Subject,
    events_of,
    explained,
    group_positions,
    losses,
)
from srm_spark.api.v3_moves import MoveBody, MoveDocument, PastMoveDocument, PlanDocument, TheMoves
from srm_spark.api.v3_offsets import (
    ShiftBody,
    ShiftDocument,
    ShiftedDocument,
    TheShiftPlans,
    begun,
    offsets,
    planned,
)
from srm_spark.api.wording import in_seconds, stamp
from srm_spark.core.acts import CommandKind, Scope
from srm_spark.core.filters import split_list
from srm_spark.core.goals import Way
from srm_spark.core.lists import ListKind
from srm_spark.core.wording import count
from srm_spark.errors import PatternError

router = desk_router()
_GROUP_COLUMNS = ("Group", "Partition", "On the source at", "Lag", "Goes on at", "Committed there", "Lag there", "Sync")
_LOSS_COLUMNS = ("Found", "Partition", "Cause", "Source offsets", "Target offsets")
_OFFSET_COLUMNS = ("Partition", "Goes on at", "Source begins", "Source ends", "Lag", "Held")
_MOVE_COLUMNS = ("Began", "Move", "Took", "Outcome")
_DONE = {
    CommandKind.PAUSE: ("Paused", "copies nothing more of it"),
    CommandKind.RESUME: ("Resumed", "goes on where it stood"),
}
_LATER = (
    "No driver has said yet that it took it: one that runs takes it when its batch is over, and it counts for whoever "
    "starts."
)


@router.post("/pause")
def pause(request: Request, desk: TheDesk, form: TheForm) -> str:
    """Let it stand still."""
    return _commanded(request, desk, form, CommandKind.PAUSE)


@router.post("/resume")
def resume(request: Request, desk: TheDesk, form: TheForm) -> str:
    """Let it go on."""
    return _commanded(request, desk, form, CommandKind.RESUME)


def _commanded(request: Request, desk: Desk, form: Form, kind: CommandKind) -> str:
    body = form.body(ScopeBody, topic=form.text("topic"), reason=form.text("reason"))
    scope = Scope(body.topic)
    done = commanded(desk, kind, scope, body.reason)
    heading, lines = _told(done, kind, scope)
    return result_page(request, desk, heading, [*done.remarks, *lines])


def _told(done: CommandDocument, kind: CommandKind, scope: Scope) -> tuple[str, list[str]]:
    heading, does = _DONE[kind]
    if done.declined is not None:
        return "Not done", [done.declined]
    if not done.is_changed:
        return "Nothing was changed", []
    return f"{heading}: {scope}", [_LATER if done.taken_by is None else f"{done.taken_by} {does}."]


@router.get("/lists")
def lists_first(request: Request, desk: TheDesk) -> str:
    """Those of topics."""
    return lists(request, desk, ListKind.TOPICS)


@router.get("/lists/{kind}")
def lists(request: Request, desk: TheDesk, kind: ListKind) -> str:
    """Both lists of a kind."""
    return desk_page(request, desk, "lists", "lists.html", lists=lists_of(desk, kind), kinds=list(ListKind))


@router.post("/lists/{kind}")
def change(request: Request, desk: TheDesk, kind: ListKind, form: TheForm) -> str:
    """Add to a list, or take off it: `entry` is one as it stands there, `entries` are some with commas between them."""
    try:
        entries = [form.fields["entry"]] if "entry" in form.fields else list(split_list(form.text("entries")))
    except PatternError as error:
        raise RequestProblem(400, "no list", str(error), "no-pattern") from error
    is_dry_run = bool(form.text("dry_run"))
    if (name := form.text("change")) not in CHANGES:
        raise RequestProblem(400, "no change", f"change: got {name!r}; allowed {', '.join(CHANGES)}", "no-change")
    body = form.body(ChangeBody, **{name: entries}, reason=form.text("reason"), dry_run=is_dry_run)
    done = changed(desk, kind, body)
    lines = [*done.remarks, *(f"Not done: {why}" for why in done.declined)]
    if (effect := done.effect) is not None:
        lines += [] if effect.unknown is None else [f"What would begin and stop is not known: {effect.unknown}"]
        for word, sizes in (("Begins", effect.begins), ("Stops", effect.stops)):
            lines += [_sized(word, one.name, one.partitions, one.records) for one in sizes]
    if is_dry_run:
        heading = f"Would change: {done.said}" if done.said else "Nothing would change"
    else:
        heading = f"Changed: {done.said}" if done.is_changed else "Nothing was changed"
    return result_page(request, desk, heading, lines, f"lists/{kind.value}")


def _sized(word: str, name: str, partitions: int | None, records: int | None) -> str:
    parts = [f"{word}: {name}"]
    parts += [] if partitions is None else [count(partitions, "partition")]
    return ", ".join(parts if records is None else [*parts, f"{count(records, 'record')} to copy"])


@router.get("/groups")
def groups(request: Request, desk: TheDesk, offset: Offset = 0) -> str:
    """Where groups stand, and what keeps them."""
    found = group_positions(desk=desk, search="", offset=offset, limit=PAGE)
    rows = [
        (
            one.group,
            f"{one.remote_topic}-{one.partition}",
            one.on_source,
            one.source_lag,
            one.goes_on_at,
            one.on_target,
            one.target_lag,
            one.sync or one.translation,
        )
        for one in found.positions
    ]
    not_taken = [(one.group, one.why) for one in found.not_taken]
    values = {"found": found, "rows": rows, "columns": _GROUP_COLUMNS, "not_taken": not_taken}
    return desk_page(request, desk, "groups", "groups.html", **values)


@router.get("/losses")
def losses_page(request: Request, desk: TheDesk, offset: Offset = 0) -> str:
    """What was lost."""
    found = losses(desk=desk, offset=offset, limit=PAGE)
    rows = [
        (
            stamp(one.found_at),
            f"{one.source_topic}-{one.partition}",
            one.cause,
            f"{one.source.start} to {one.source.end - 1}",
            None if one.target is None else f"{one.target.start} to {one.target.end - 1}",
        )
        for one in found.losses
    ]
    return desk_page(request, desk, "losses", "losses.html", found=found, rows=rows, columns=_LOSS_COLUMNS)


@router.get("/explain")
def explain_page(
    request: Request,
    desk: TheDesk,
    subject: Subject = Subject.TOPIC,
    name: Annotated[str, Query(max_length=10_000)] = "",
) -> str:
    """Why something flows, or does not."""
    answers = explained(desk, subject, name) if name else ()
    values = {"answers": answers, "subject": subject, "name": name, "subjects": list(Subject)}
    return desk_page(request, desk, "explain", "explain.html", **values)


@router.get("/events")
def events_page(request: Request, desk: TheDesk, offset: Offset = 0) -> str:
    """What was done, and what is paused."""
    pauses = [(str(one.scope), one.held) for one in pauses_of(desk)]
    found = events_of(desk)
    shown = [EventDocument.of(one) for one in found[offset : offset + PAGE]]
    rows = [(stamp(one.at), one.who, one.said, one.why, _outcome(one)) for one in shown]
    return desk_page(request, desk, "events", "events.html", pauses=pauses, rows=rows, total=len(found), offset=offset)


def _outcome(one: EventDocument) -> str | None:
    if one.declined is not None:
        return f"not done: {one.declined}"
    if one.answered_by is not None:
        return f"carried out by {one.answered_by}"
    return "waits for a driver" if one.is_waiting else None


@router.get("/offsets")
def offsets_page(
    request: Request, desk: TheDesk, search: Annotated[str, Query(max_length=249)] = "", offset: Offset = 0
) -> str:
    """Where partitions stand, and the form of other places."""
    found = offsets(desk=desk, search=search, offset=offset, limit=PAGE)
    rows = [
        (
            f"{one.topic}-{one.partition}",
            one.position,
            one.source_start,
            one.source_end,
            one.lag,
            "; ".join(filter(None, (one.paused, None if one.waiting is None else f"to go on at {one.waiting}"))),
        )
        for one in found.partitions
    ]
    values = {"found": found, "rows": rows, "columns": _OFFSET_COLUMNS, "search": search, "ways": list(Way)}
    return desk_page(request, desk, "offsets", "offsets.html", **values)


@router.post("/offsets/plan")
def plan_offsets_page(request: Request, desk: TheDesk, plans: TheShiftPlans, form: TheForm) -> str:
    """What would be copied again or left out, with the form that begins it."""
    fields = {name: form.text(name) for name in ("way", "topic", "partition", "to", "by")}
    plan = planned(desk, plans, form.body(ShiftBody, **fields))
    values = {"plan": plan, "lines": [_would(one) for one in plan.partitions], "reason": form.text("reason")}
    return desk_page(request, desk, "offsets", "shift.html", **values, may_begin=desk.role >= Role.ADMIN)


@router.post("/offsets")
def begin_offsets(request: Request, desk: TheDesk, plans: TheShiftPlans, form: TheForm) -> str:
    """Do what was planned."""
    confirm = form.fields.get("confirm", "")
    body = form.body(ConfirmBody, plan=form.text("plan"), reason=form.text("reason"), confirm=confirm)
    done = begun(desk, plans, body)
    return result_page(request, desk, "Asked for", [_became(one) for one in done.partitions], "offsets")


def _would(one: ShiftDocument) -> str:
    where = f"{one.topic}-{one.partition}"
    if one.declined is not None:
        return f"{where}: not possible: {one.declined}"
    if one.copied_again:
        again = f"{count(one.copied_again, 'offset')} copied again"
        return f"{where}: from {one.position} back to {one.to}: {again}; the target has {one.records_there} of them now"
    if one.left_out:
        return f"{where}: from {one.position} ahead to {one.to}: {count(one.left_out, 'offset')} left out, told as lost"
    return f"{where}: it stands at {one.position} already"


def _became(one: ShiftedDocument) -> str:
    where = f"{one.topic}-{one.partition}"
    if one.declined is not None:
        return f"{where}: not done: {one.declined}"
    if one.carried_out_by is not None:
        return f"{where}: goes on at {one.to} once it is resumed, says {one.carried_out_by}"
    return f"{where}: no driver has said yet what came of it: one that runs, or starts, does it while the pause lasts"


@router.get("/moves")
def moves_page(request: Request, desk: TheDesk, moves: TheMoves) -> str:
    """Moves that were begun, the form of another one, and what those took that are over."""
    begun = [MoveDocument.of(one) for one in moves.watched.of(desk.flow)]
    rows = [
        (stamp(one.began_at), one.kind, _took(one), "; ".join(one.unsafe) or "everything moved")
        for one in map(PastMoveDocument.of, moves.past(desk.flow))
    ]
    return desk_page(request, desk, "moves", "moves.html", moves=begun, rows=rows, columns=_MOVE_COLUMNS)


def _took(one: PastMoveDocument) -> str:
    took, goal = in_seconds(one.seconds), one.rto_goal_seconds
    return took if goal is None or one.seconds <= goal else f"{took}, longer than the goal of {in_seconds(goal)}"


@router.post("/moves/plan")
def plan_page(request: Request, desk: TheDesk, moves: TheMoves, form: TheForm) -> str:
    """What a move would do, with the form that begins it."""
    try:
        groups = split_list(form.text("groups"))
    except PatternError as error:
        raise RequestProblem(400, "no list", str(error), "no-pattern") from error
    body = form.body(MoveBody, kind=form.text("kind"), groups=groups, wait_seconds=form.text("wait"))
    plan = PlanDocument.of(moves.plan(desk, body.wanted))
    return desk_page(request, desk, "moves", "plan.html", plan=plan, may_move=desk.role >= Role.ADMIN)


@router.post("/moves", response_class=RedirectResponse)
def begin(desk: TheDesk, moves: TheMoves, form: TheForm) -> RedirectResponse:
    """Begin what was planned."""
    running = moves.begin(desk, form.text("plan"), form.fields.get("confirm", ""))
    return RedirectResponse(rooted(f"{flow_path(desk.flow)}/moves/{running.id}"), 303)


@router.get("/moves/{move}")
def move_page(request: Request, desk: TheDesk, moves: TheMoves, move: str) -> str:
    """How far a move is."""
    found = moves.watched.one(desk.flow, move, "move")
    return desk_page(request, desk, "moves", "move.html", move=MoveDocument.of(found))
