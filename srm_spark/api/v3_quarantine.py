"""/v3, what is done with records in quarantine: replay them, or forget them for good, as `srm-control quarantine`.

To forget takes two steps, as with moves: a plan says which records that are, and who has read it types the flow's name.
Records that are put aside afterwards are no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from srm_spark.api.audit import Result
from srm_spark.api.control import Desk, TheDesk
from srm_spark.api.plans import PLAN_SECONDS, Plans
from srm_spark.api.problems import CONTROL_RESPONSES, RequestProblem
from srm_spark.api.roles import Role
from srm_spark.api.v3_acts import MOST_ENTRIES, Body, ConfirmBody, Topic
from srm_spark.api.v3_looks import EVERY, QuarantinedDocument
from srm_spark.core.filters import NameFilter, is_name
from srm_spark.core.quarantine import QuarantinedRecord
from srm_spark.core.wording import count, some
from srm_spark.errors import FlowError
from srm_spark.flow.refused.replay import Replayed, drop_from_quarantine, list_quarantine, replay

router = APIRouter(
    prefix="/v3/flows/{source}/{target}/quarantine", tags=["srm-spark V3, changes"], responses=CONTROL_RESPONSES
)
Topics = Annotated[
    tuple[Topic, ...], Field(max_length=MOST_ENTRIES, description="By their names on the source; empty: all.")
]


class ReplayBody(Body):
    """A replay of records in quarantine."""

    topics: Topics = ()
    dry_run: bool = False


class ReplayedDocument(BaseModel):
    """What became of one record. `refusal` says why it stays in quarantine."""

    record: QuarantinedDocument
    remote_topic: str
    target_offset: int | None
    refusal: str | None

    @classmethod
    def of(cls, one: Replayed) -> ReplayedDocument:
        """That of a record."""
        return cls(
            record=QuarantinedDocument.of(one.entry),
            remote_topic=one.remote.topic,
            target_offset=one.downstream,
            refusal=one.refusal,
        )


class ReplaysDocument(BaseModel):
    """What became of a replay. `ended_by` is an error that ended it: what was replayed before stays so."""

    flow: str
    is_dry_run: bool
    records: list[ReplayedDocument]
    ended_by: str | None


class DropBody(Body):
    """Whose records quarantine is to forget."""

    topics: Topics = ()


class DropPlanDocument(BaseModel):
    """Which records would be forgotten. There is something to begin where there are any."""

    id: str
    seconds: int
    flow: str
    records: list[QuarantinedDocument]


class DroppedDocument(BaseModel):
    """Which records were forgotten: they will not be on the target."""

    flow: str
    records: list[QuarantinedDocument]


@dataclass(frozen=True)
class DropPlan:
    """What was shown."""

    topics: NameFilter
    entries: tuple[QuarantinedRecord, ...]


def drop_plans_of(request: Request) -> Plans[DropPlan]:
    """Those of the application."""
    plans: Plans[DropPlan] = request.app.state.drop_plans
    return plans


TheDropPlans = Annotated[Plans[DropPlan], Depends(drop_plans_of)]


@router.post("/replay")
def replay_records(desk: TheDesk, body: ReplayBody) -> ReplaysDocument:
    """Write records in quarantine to their remote topics, each once, and take them out. The flow must be stopped."""
    return replayed(desk, body)


@router.post("/drop/plan")
def plan_drop(desk: TheDesk, plans: TheDropPlans, body: DropBody) -> DropPlanDocument:
    """Say which records would be forgotten; nothing is changed. For operators."""
    return drop_planned(desk, plans, body)


@router.post("/drop")
def drop(desk: TheDesk, plans: TheDropPlans, body: ConfirmBody) -> DroppedDocument:
    """Forget for good what was planned, once, by who planned it, within ten minutes. The flow may run. For admins."""
    return dropped(desk, plans, body)


def replayed(desk: Desk, body: ReplayBody) -> ReplaysDocument:
    """Replay. Raises LeaseHeld while a driver runs the flow."""
    topics = _chosen(body.topics)
    settings, means = desk.control.settings(desk.flow), desk.control.means.replay
    found = replay(settings, topics, is_dry_run=body.dry_run, means=means)
    does, done, ended_by = "replay quarantine", list[Replayed](), None
    if body.dry_run:
        with desk.asking(does, Role.OPERATOR):
            done += found
    else:
        with desk.acting(does, Role.OPERATOR, topics=some(body.topics) or "all") as outcome:
            try:
                for one in found:
                    done.append(one)
            except FlowError as error:
                if not done:
                    raise
                ended_by = str(error)  # what was replayed before it stays so, and has to be told
            written = sum(one.downstream is not None for one in done)
            if written:
                outcome.why = f"{written} written"
            else:
                outcome.declined("the target still refuses them" if done else "nothing is in quarantine")
            if ended_by is not None:
                outcome.result, outcome.why = Result.FAILED, f"{written} written; {ended_by}"
    records = [ReplayedDocument.of(one) for one in done]
    return ReplaysDocument(flow=str(desk.flow), is_dry_run=body.dry_run, records=records, ended_by=ended_by)


def drop_planned(desk: Desk, plans: Plans[DropPlan], body: DropBody) -> DropPlanDocument:
    """A plan. Raises RequestProblem where a topic has no name, TargetUnavailable."""
    topics = _chosen(body.topics)
    with desk.asking("plan to forget quarantine", Role.OPERATOR):
        entries = list_quarantine(desk.settings, topics, desk.control.means.reach)
    shown = plans.keep(desk, DropPlan(topics, entries))
    records = [QuarantinedDocument.of(one) for one in entries]
    return DropPlanDocument(id=shown.id, seconds=PLAN_SECONDS, flow=str(desk.flow), records=records)


def dropped(desk: Desk, plans: Plans[DropPlan], body: ConfirmBody) -> DroppedDocument:
    """Forget. Raises RequestProblem as `Plans.confirmed`, and where the plan has nothing, or not the same any more."""
    with desk.acting("forget quarantine", Role.ADMIN, plan=body.plan, reason=body.reason) as outcome:
        made = plans.confirmed(desk, body.plan, body.confirm)
        if not made.entries:
            raise RequestProblem(409, "refused by its plan", "there is nothing to forget", "refused-plan")
        reach = desk.control.means.reach
        there = set(list_quarantine(desk.settings, made.topics, reach))
        if gone := [one for one in made.entries if one not in there]:
            text = f"{count(len(gone), 'record')} of it ({some(_places(gone))}) are not in quarantine as they were: "
            text += "plan again; nothing was changed"
            raise RequestProblem(409, "the plan has changed", text, "plan-changed")
        plans.use(body.plan)
        drop_from_quarantine(desk.settings, made.entries, reach)
        outcome.why = f"{count(len(made.entries), 'record')} forgotten: {some(_places(made.entries))}"
    return DroppedDocument(flow=str(desk.flow), records=[QuarantinedDocument.of(one) for one in made.entries])


def _places(entries: Sequence[QuarantinedRecord]) -> list[str]:
    return [f"{one.place.partition} offset {one.place.offset}" for one in entries]


def _chosen(topics: Sequence[str]) -> NameFilter:
    """Raises RequestProblem for what is no name of a topic."""
    if strange := [topic for topic in topics if not is_name(topic)]:
        raise RequestProblem(400, "no topic", f"no names of topics: {some(strange)}", "no-topic")
    return NameFilter(tuple(map(re.escape, topics))) if topics else EVERY
