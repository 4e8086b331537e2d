"""/v3, guided moves of consumer groups: a plan, its confirmation, and the stages that follow."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from srm_spark.api.control import TheDesk
from srm_spark.api.moves import Moves, Planned, Running, Wanted
from srm_spark.api.plans import PLAN_SECONDS, Shown
from srm_spark.api.problems import CONTROL_RESPONSES
from srm_spark.api.v3_acts import Body
from srm_spark.core.moments import time_of
from srm_spark.plan import MoveKind, PastMove
from srm_spark.plan.document import plan_document, statement_document

router = APIRouter(
    prefix="/v3/flows/{source}/{target}/moves", tags=["srm-spark V3, moves"], responses=CONTROL_RESPONSES
)
KINDS = {"failover": MoveKind.FAILOVER, "planned-failover": MoveKind.PLANNED_FAILOVER, "failback": MoveKind.FAILBACK}
_WORDS = {kind: word for word, kind in KINDS.items()}
Group = Annotated[str, Field(min_length=1, max_length=10_000)]


class MoveBody(Body):
    """Which move. There is no command of a fence here: whoever may send requests may not run programs."""

    kind: Literal["failover", "planned-failover", "failback"]
    groups: Annotated[tuple[Group, ...], Field(max_length=1000, description="Names or Java regexes; empty: all.")] = ()
    wait_seconds: Annotated[float, Field(ge=0, le=3600, description="For the last records, of a planned move.")] = 300

    @property
    def wanted(self) -> Wanted:
        """As the engine knows it."""
        return Wanted(KINDS[self.kind], self.groups or (".*",), self.wait_seconds)


class BeginBody(Body):
    """What begins a move: the plan that was read, and the name of the flow, written by who wants it."""

    plan: Annotated[str, Field(max_length=100)]
    confirm: Annotated[str, Field(max_length=600, description="The name of the flow, as A->B.")]


class StageDocument(BaseModel):
    """What is done, in this order."""

    stage: str
    does: str


class LossEstimateDocument(BaseModel):
    """What would be missing on the target if the source were gone now; what is not known is null."""

    records: int | None
    seconds: float | None
    progress_seconds: float | None


class GroupMoveDocument(BaseModel):
    """A group on a partition of the target. Offsets are those of the next record."""

    group: str
    topic: str
    partition: int
    on_source: int
    before: int | None
    after: int | None
    outcome: str
    standing: str
    reason: str


class CopiedDocument(BaseModel):
    """How far a partition of the source was copied."""

    topic: str
    partition: int
    remote_topic: str
    replicated_to: int | None
    source_end: int | None
    target_end: int | None
    missing: int | None
    held: str | None
    parked: int
    lost: list[list[int]]


class WriteAclDocument(BaseModel):
    """Who may write copies."""

    acl: dict[str, str]
    in_force: bool
    refused: str | None


class FoundDocument(BaseModel):
    """What both clusters said."""

    move: str
    flow: str
    unsafe: list[str]
    source_down: str | None
    owner: str | None
    loss: LossEstimateDocument
    groups: list[GroupMoveDocument]
    ranges: list[CopiedDocument]
    write_acls: list[WriteAclDocument]


class PlanDocument(FoundDocument):
    """What a move will do; `refusals` say why it does nothing at all."""

    id: str
    seconds: int
    refusals: list[str]
    stages: list[StageDocument]
    done: list[str]

    @classmethod
    def of(cls, shown: Shown[Planned]) -> PlanDocument:
        """That of a plan."""
        found: dict[str, Any] = plan_document(shown.plan.plan)
        return cls(id=shown.id, seconds=PLAN_SECONDS, refusals=list(shown.plan.plan.refusals), **found)


class StatementDocument(FoundDocument):
    """What a move did; `unsafe` is empty where everything moved."""

    began: str
    ended: str
    rto_goal_seconds: int | None
    """Most that it should have taken, by `rto.goal.seconds` as it was then."""
    next_steps: list[str]


class MoveDocument(BaseModel):
    """A move that was begun. `told` is what it has said so far; it is over once there is a statement or a failure."""

    id: str
    kind: str
    flow: str
    who: str
    began_at: str
    seconds: Annotated[float | None, Field(description="How long it took; null while it lasts.")]
    is_over: bool
    told: list[str]
    statement: StatementDocument | None
    failure: str | None
    failure_kind: str | None

    @classmethod
    def of(cls, one: Running) -> MoveDocument:
        """That of a move."""
        found: dict[str, Any] | None = None if one.statement is None else statement_document(one.statement)
        return cls(
            id=one.id,
            kind=_WORDS[one.kind],
            flow=str(one.flow),
            who=one.who,
            began_at=time_of(one.began_at),
            seconds=one.seconds,
            is_over=one.is_over,
            told=list(one.told),
            statement=None if found is None else StatementDocument(**found),
            failure=one.failure,
            failure_kind=one.failure_kind,
        )


class PastMoveDocument(BaseModel):
    """A move that is over, as its statement says. `unsafe` is empty where everything moved."""

    kind: str
    flow: str
    began_at: str
    seconds: float
    rto_goal_seconds: int | None
    """Most that it should have taken; null where its statement names no goal."""
    unsafe: list[str]

    @classmethod
    def of(cls, one: PastMove) -> PastMoveDocument:
        """That of a statement."""
        return cls(
            kind=_WORDS[one.kind],
            flow=one.flow,
            began_at=time_of(one.began),
            seconds=one.seconds,
            rto_goal_seconds=one.goal,
            unsafe=list(one.unsafe),
        )


def moves_of(request: Request) -> Moves:
    """Those of the application."""
    moves: Moves = request.app.state.moves
    return moves


TheMoves = Annotated[Moves, Depends(moves_of)]


@router.post("/plan")
def plan(desk: TheDesk, moves: TheMoves, body: MoveBody) -> PlanDocument:
    """Look at both clusters, and say what a move would do; nothing is changed. For operators."""
    return PlanDocument.of(moves.plan(desk, body.wanted))


@router.post("", status_code=202)
def begin(desk: TheDesk, moves: TheMoves, body: BeginBody) -> MoveDocument:
    """Begin what was planned, once, by who planned it, within ten minutes. For admins."""
    return MoveDocument.of(moves.begin(desk, body.plan, body.confirm))


@router.get("")
def every(desk: TheDesk, moves: TheMoves) -> list[MoveDocument]:
    """Moves of the flow that this process has begun, the newest first."""
    return [MoveDocument.of(one) for one in moves.watched.of(desk.flow)]


@router.get("/past")
def past(desk: TheDesk, moves: TheMoves) -> list[PastMoveDocument]:
    """Moves of the flow whose statements are kept, the newest first: the RTO over time."""
    return [PastMoveDocument.of(one) for one in moves.past(desk.flow)]


@router.get("/{move}")
def one_move(desk: TheDesk, moves: TheMoves, move: str) -> MoveDocument:
    """How far a move is."""
    return MoveDocument.of(moves.watched.one(desk.flow, move, "move"))
