"""The pages of a flow's quarantine: what is in it, a record with its content, and what replays it or forgets it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from srm_spark.api.control import TheDesk
from srm_spark.api.desk_page import PAGE, Offset, desk_page, desk_router, result_page
from srm_spark.api.forms import Form, TheForm
from srm_spark.api.roles import Role
from srm_spark.api.v3_acts import ConfirmBody
from srm_spark.api.v3_looks import QuarantinedDocument, contents_of, quarantine
from srm_spark.api.v3_quarantine import DropBody, ReplayBody, TheDropPlans, drop_planned, dropped, replayed
from srm_spark.core.model import TopicPartition
from srm_spark.core.wording import count

router = desk_router()


@router.get("/quarantine")
def quarantine_page(request: Request, desk: TheDesk, offset: Offset = 0) -> str:
    """What is in quarantine."""
    found = quarantine(desk=desk, search="", offset=offset, limit=PAGE)
    return desk_page(request, desk, "quarantine", "quarantine.html", found=found)


@router.get("/quarantine/record")
def record_page(
    *,
    request: Request,
    desk: TheDesk,
    topic: Annotated[str, Query(max_length=249)],
    partition: Annotated[int, Query(ge=0, lt=2**31)],
    offset: Annotated[int, Query(ge=0, lt=2**63)],
) -> str:
    """A record in quarantine with its content."""
    records = contents_of(desk, TopicPartition(topic, partition), offset)
    return desk_page(request, desk, "quarantine", "record.html", records=records)


@router.post("/quarantine/replay")
def replay_page(request: Request, desk: TheDesk, form: TheForm) -> str:
    """Replay what is in quarantine."""
    is_dry_run = bool(form.text("dry_run"))
    done = replayed(desk, form.body(ReplayBody, topics=_topics(form), dry_run=is_dry_run))
    lines = [] if done.ended_by is None else [f"It ended early: {done.ended_by}"]
    for one in done.records:
        place = _place(one.record)
        if one.refusal is not None:
            lines.append(f"{place} stays: {one.refusal}")
        elif one.target_offset is None:
            lines.append(f"{place} would be written to {one.remote_topic}")
        else:
            lines.append(f"{place} is at offset {one.target_offset} of {one.remote_topic}")
    heading = count(len(done.records), "record") + (" would be replayed, or not" if is_dry_run else " tried")
    return result_page(request, desk, heading, lines, "quarantine")


@router.post("/quarantine/drop/plan")
def plan_drop_page(request: Request, desk: TheDesk, plans: TheDropPlans, form: TheForm) -> str:
    """Which records would be forgotten, with the form that forgets them."""
    plan = drop_planned(desk, plans, form.body(DropBody, topics=_topics(form)))
    lines = [f"{_place(one)}, {one.size:,} bytes: {one.reason}" for one in plan.records]
    values = {"plan": plan, "lines": lines, "reason": form.text("reason"), "may_begin": desk.role >= Role.ADMIN}
    return desk_page(request, desk, "quarantine", "drop.html", **values)


@router.post("/quarantine/drop")
def drop_page(request: Request, desk: TheDesk, plans: TheDropPlans, form: TheForm) -> str:
    """Forget what was planned."""
    confirm = form.fields.get("confirm", "")
    body = form.body(ConfirmBody, plan=form.text("plan"), reason=form.text("reason"), confirm=confirm)
    done = dropped(desk, plans, body)
    heading = f"Forgotten: {count(len(done.records), 'record')}"
    return result_page(request, desk, heading, [_place(one) for one in done.records], "quarantine")


def _topics(form: Form) -> list[str]:
    topic = form.text("topic")
    return [topic] if topic else []


def _place(one: QuarantinedDocument) -> str:
    return f"{one.source_topic}-{one.partition} offset {one.offset}"
