"""/v3, where partitions of a flow stand, and how they go on at another place: `srm-control offsets` over HTTP.

Two steps, as with moves: a plan says what would be copied again or left out, and who has read it types the flow's name.
What is done then are acts, which the driver that owns the flow carries out, or declines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field

from srm_spark.api.audit import Result
from srm_spark.api.control import Desk, TheDesk
from srm_spark.api.plans import PLAN_SECONDS, Plans
from srm_spark.api.problems import CONTROL_RESPONSES, RequestProblem
from srm_spark.api.roles import Role
from srm_spark.api.v3 import Limit, Offset, Search
from srm_spark.api.v3_acts import Body, ConfirmBody, Topic
from srm_spark.core.answers import Answer
from srm_spark.core.goals import Goal, Way, goal_of
from srm_spark.core.model import TopicPartition
from srm_spark.core.moments import time_of
from srm_spark.core.wording import count, some
from srm_spark.flow.commanding import Commanding
from srm_spark.flow.shifting import Shifting, Wanted
from srm_spark.flow.standings import Standing, standings

router = APIRouter(
    prefix="/v3/flows/{source}/{target}/offsets", tags=["srm-spark V3, offsets"], responses=CONTROL_RESPONSES
)
_PAGE = 100


class StandingDocument(BaseModel):
    """Where a partition stands. `source` is what the source has; what is not known is null."""

    topic: str
    partition: int
    position: int | None
    source_start: int | None
    source_end: int | None
    lag: int | None
    paused: str | None
    waiting: int | None

    @classmethod
    def of(cls, one: Standing) -> StandingDocument:
        """That of a partition."""
        return cls(
            topic=one.partition.topic,
            partition=one.partition.partition,
            position=one.position,
            source_start=None if one.source is None else one.source.start,
            source_end=None if one.source is None else one.source.end,
            lag=one.lag,
            paused=one.paused,
            waiting=one.waiting,
        )


class StandingsDocument(BaseModel):
    """A page of partitions; `source_down` says why nothing is known of the source."""

    flow: str
    source_down: str | None
    total: int
    offset: int
    partitions: list[StandingDocument]


class ShiftBody(Body):
    """Where partitions are to go on: `to` an offset, `earliest`, `latest` or a time, or `by` so many source offsets."""

    way: Way
    topic: Topic
    partition: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    to: Annotated[str, Field(max_length=100)] | None = None
    by: Annotated[int, Field(ge=1, lt=2**63)] | None = None

    @property
    def goal(self) -> Goal:
        """As the engine knows it. Raises RequestProblem where it is none."""
        try:
            goal = goal_of(self.way, self.to, self.by)
        except ValueError as error:
            raise RequestProblem(400, "no place", str(error), "no-place") from error
        if goal.offset is not None and goal.offset >= 2**63:
            raise RequestProblem(400, "no place", "no offset is that large", "no-place")
        return goal


class ShiftDocument(StandingDocument):
    """What would become of a partition; `declined` says why nothing does. Of what would be copied again the target has
    `records_there`; what is left out is told as lost."""

    to: int | None
    copied_again: int
    records_there: int
    left_out: int
    declined: str | None

    @classmethod
    def planned(cls, one: Wanted) -> ShiftDocument:
        """That of a partition."""
        return cls(
            **StandingDocument.of(one.standing).model_dump(),
            to=None if one.shift is None else one.shift.end,
            copied_again=one.again,
            records_there=one.copied,
            left_out=one.left_out,
            declined=one.refusal,
        )


class ShiftsPlanDocument(BaseModel):
    """A plan. There is something to begin where `is_change`."""

    id: str
    seconds: int
    flow: str
    way: str
    is_change: bool
    partitions: list[ShiftDocument]


class ShiftedDocument(BaseModel):
    """What came of it, of one partition: `carried_out_by` that driver, or `declined`; both null where none has said
    anything yet: one that runs, or starts, carries it out as long as the pause lasts."""

    topic: str
    partition: int
    position: int
    to: int
    carried_out_by: str | None
    declined: str | None
    answered_at: str | None

    @classmethod
    def of(cls, one: Wanted, answer: Answer | None) -> ShiftedDocument:
        """That of an act."""
        assert one.shift is not None
        is_done = answer is not None and answer.declined is None
        return cls(
            topic=one.standing.partition.topic,
            partition=one.standing.partition.partition,
            position=one.shift.start,
            to=one.shift.end,
            carried_out_by=answer.driver if answer is not None and is_done else None,
            declined=None if answer is None else answer.declined,
            answered_at=None if answer is None else time_of(answer.at),
        )


class ShiftsDocument(BaseModel):
    """What came of all that was begun."""

    flow: str
    partitions: list[ShiftedDocument]


@dataclass(frozen=True)
class ShiftPlan:
    """What was shown."""

    way: Way
    every: tuple[Wanted, ...]

    @property
    def chosen(self) -> list[Wanted]:
        """What there is to do."""
        return [one for one in self.every if one.is_change]


def shift_plans_of(request: Request) -> Plans[ShiftPlan]:
    """Those of the application."""
    plans: Plans[ShiftPlan] = request.app.state.shift_plans
    return plans


TheShiftPlans = Annotated[Plans[ShiftPlan], Depends(shift_plans_of)]


@router.get("")
def offsets(
    *,
    desk: TheDesk,
    search: Search = "",
    partition: Annotated[int | None, Query(ge=0, lt=2**31, description="Only this partition of each topic.")] = None,
    offset: Offset = 0,
    limit: Limit = _PAGE,
) -> StandingsDocument:
    """Where partitions stand: their positions, what the source has, and how far they are behind."""
    with desk.asking("offsets"), _commanding(desk) as commanding:
        found = standings(commanding, lambda topic: search in topic, partition)
    return StandingsDocument(
        flow=str(desk.flow),
        source_down=found.unknown,
        total=len(found.found),
        offset=offset,
        partitions=[StandingDocument.of(one) for one in found.found[offset : offset + limit]],
    )


@router.post("/plan")
def plan(desk: TheDesk, plans: TheShiftPlans, body: ShiftBody) -> ShiftsPlanDocument:
    """Look at both clusters, and say what would be copied again or left out; nothing is changed. For operators."""
    return planned(desk, plans, body)


@router.post("")
def begin(desk: TheDesk, plans: TheShiftPlans, body: ConfirmBody) -> ShiftsDocument:
    """Do what was planned, once, by who planned it, within ten minutes; partitions have to be paused. For admins."""
    return begun(desk, plans, body)


def planned(desk: Desk, plans: Plans[ShiftPlan], body: ShiftBody) -> ShiftsPlanDocument:
    """A plan. Raises RequestProblem where nothing is recorded of such a partition."""
    goal = body.goal
    with desk.asking("plan other offsets", Role.OPERATOR), _commanding(desk) as commanding:
        shifting = Shifting(commanding)
        found = shifting.standings(body.topic, body.partition)
        if not found:
            which = body.topic if body.partition is None else str(TopicPartition(body.topic, body.partition))
            text = f"no position of {which} is recorded: it begins by itself once the flow runs"
            raise RequestProblem(404, "no position", text, "no-position")
        made = ShiftPlan(body.way, tuple(shifting.wanted(found, body.way, goal)))
    return ShiftsPlanDocument(
        id=plans.keep(desk, made).id,
        seconds=PLAN_SECONDS,
        flow=str(desk.flow),
        way=body.way.value,
        is_change=bool(made.chosen),
        partitions=[ShiftDocument.planned(one) for one in made.every],
    )


def begun(desk: Desk, plans: Plans[ShiftPlan], body: ConfirmBody) -> ShiftsDocument:
    """What came of a plan. Raises RequestProblem where it is none, changes nothing, or is not true any more."""
    with desk.acting("set offsets", Role.ADMIN, plan=body.plan, reason=body.reason) as outcome:
        made = plans.confirmed(desk, body.plan, body.confirm)
        if not made.chosen:
            raise RequestProblem(409, "refused by its plan", "there is nothing to change", "refused-plan")
        with _commanding(desk) as commanding:
            _require_same(Shifting(commanding), made)
            plans.use(body.plan)
            acts = Shifting(commanding).write(made.chosen, desk.caller.who, body.reason)
            answers = commanding.shifted(acts)
        done = [ShiftedDocument.of(one, answers.get(act)) for one, act in zip(made.chosen, acts, strict=True)]
        outcome.result, outcome.why = _came_of(made.way, done)
    return ShiftsDocument(flow=str(desk.flow), partitions=done)


def _require_same(shifting: Shifting, made: ShiftPlan) -> None:
    """Acts say from where to where: somewhere else a driver would decline them, and nobody is to wait for that."""
    (topic,) = {one.standing.partition.topic for one in made.chosen}
    now = {one.partition: one for one in shifting.standings(topic, None)}
    chosen = [one.standing for one in made.chosen]
    if moved := [str(one.partition) for one in chosen if not _is_same(one, now.get(one.partition))]:
        text = f"{some(moved)} stand elsewhere by now, are not paused any more, or wait for another act"
        raise RequestProblem(409, "the plan has changed", f"{text}: plan again; nothing was changed", "plan-changed")


def _is_same(then: Standing, now: Standing | None) -> bool:
    """Whatever its source has by now."""
    return now is not None and replace(then, source=None) == replace(now, source=None)


def _came_of(way: Way, done: Sequence[ShiftedDocument]) -> tuple[Result, str]:
    declined = [f"{one.topic}-{one.partition}: {one.declined}" for one in done if one.declined is not None]
    carried_out = sum(one.carried_out_by is not None for one in done)
    said = f"{way.value} of {count(len(done), 'partition')}, {carried_out} carried out"
    if declined:
        return Result.DECLINED, f"{said}; {some(declined)}"
    return (Result.DONE if carried_out == len(done) else Result.BEGUN), said


def _commanding(desk: Desk) -> Commanding:
    means = desk.control.means
    return Commanding(desk.settings, means.reach, means.patience)
