"""/v3, plan and apply: what would be created and changed on the clusters of a flow, and the doing of it.

A plan is known by its digest, and not remembered: who applies one sends the digest of what he has read, and it is done
only where a plan that is made then is the same. From then on the plan and its report are files, as with `srm-control
apply`: the same request goes on where one was interrupted, and so does the command.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from srm_spark.api.applying import Runs, Wanted, applied, planned
from srm_spark.api.control import Desk, TheDesk
from srm_spark.api.problems import CONTROL_RESPONSES
from srm_spark.api.roles import Role
from srm_spark.api.v3_acts import Body
from srm_spark.change.document import plan_document, plan_file
from srm_spark.change.planning import ChangePlan
from srm_spark.change.report import RunReport
from srm_spark.change.steps import step_document

router = APIRouter(
    prefix="/v3/flows/{source}/{target}", tags=["srm-spark V3, plan and apply"], responses=CONTROL_RESPONSES
)
Prune = Annotated[bool, Field(description="Take back what was made here and whose source is gone.")]


class PlanChangesBody(Body):
    """What a plan is to have."""

    prune: Prune = False


class ApplyBody(Body):
    """Which plan: that with the digest that was read, planned in the same way; and the name of the flow, written."""

    plan: Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="The id of the plan.")]
    prune: Prune = False
    confirm: Annotated[str, Field(max_length=600, description="The name of the flow, as A->B.")]

    @property
    def wanted(self) -> Wanted:
        """As it is known here."""
        return Wanted(self.plan, self.prune, self.confirm)


class ChangesDocument(BaseModel):
    """What would be done and why, what would not, and what is lost; as `srm-control plan -o json` has it."""

    id: str
    prune: bool
    flow: str
    hash: str
    owner: str | None
    """The driver that runs the flow, and does all of this by itself but for what only `prune` removes."""
    steps: list[dict[str, Any]]
    kept: list[dict[str, Any]]
    losing_configs: dict[str, list[dict[str, Any]]]
    losses: list[dict[str, Any]]
    groups: dict[str, Any]
    skipped: dict[str, Any]
    staged_acls: list[dict[str, Any]]
    renames: list[dict[str, Any]]
    rights: list[dict[str, Any]]
    internal_topics: list[dict[str, Any]]
    warnings: list[str]
    unknown: list[str]

    @classmethod
    def of(cls, plan: ChangePlan, *, prune: bool) -> ChangesDocument:
        """That of a plan; what it was made from is in its hash."""
        found: dict[str, Any] = {name: value for name, value in plan_document(plan).items() if name != "made_from"}
        return cls(id=plan_file([plan], prune=prune).id, prune=prune, **found)


class RefusedDocument(BaseModel):
    """A step that a cluster refused."""

    step: dict[str, Any]
    why: str


class AppliedDocument(BaseModel):
    """What became of a plan, earlier runs of it included; `told` is of this one."""

    id: str
    flow: str
    is_changed: bool
    done: list[dict[str, Any]]
    refused: list[RefusedDocument]
    told: list[str]

    @classmethod
    def of(cls, desk: Desk, report: RunReport, told: list[str], *, is_changed: bool) -> AppliedDocument:
        """That of a report."""
        found = report.of(str(desk.flow))
        return cls(
            id=report.plan,
            flow=str(desk.flow),
            is_changed=is_changed,
            done=[step_document(one) for one in found.done],
            refused=[RefusedDocument(step=step_document(one), why=why) for one, why in found.refused.items()],
            told=told,
        )


@router.post("/plan")
def plan(desk: TheDesk, body: PlanChangesBody) -> ChangesDocument:
    """Look at both clusters, and say what would be created and changed; nothing is. For operators."""
    return ChangesDocument.of(changes_planned(desk, prune=body.prune), prune=body.prune)


@router.post("/apply")
def apply(desk: TheDesk, body: ApplyBody) -> AppliedDocument:
    """Do what a plan says, if it is still true, or go on with what was interrupted or refused. For admins."""
    told: list[str] = []
    report, is_changed = applied(desk, body.wanted, told.append)
    return AppliedDocument.of(desk, report, told, is_changed=is_changed)


def changes_planned(desk: Desk, *, prune: bool) -> ChangePlan:
    """A plan of now. Raises RequestProblem where he may not have one, TargetUnavailable and SourceUnavailable."""
    with desk.asking("plan changes", Role.OPERATOR):
        return planned(desk, desk.control.means.rights, prune=prune).fresh


def runs_of(request: Request) -> Runs:
    """Those of the application."""
    runs: Runs = request.app.state.runs
    return runs


TheRuns = Annotated[Runs, Depends(runs_of)]
