"""/v3, plan and apply: what would be created and changed on the clusters of a flow, and the doing of it.

A plan is known by its digest, and not remembered: who applies one sends the digest of what he has read, and it is done
only where a plan that is made then is the same. From then on the plan and its report are files, as with `srm-control
apply`: the same request goes on where one was interrupted, and so does the command.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from srm_spark.api.audit import Result
from srm_spark.api.control import Control, Desk, TheDesk
from srm_spark.api.problems import CONTROL_RESPONSES, RequestProblem
from srm_spark.api.roles import Role
from srm_spark.api.v3_acts import Body
from srm_spark.change.apply import Ready, apply_plan, check, is_all_done
from srm_spark.change.document import PlanFile, load_plan, plan_document, plan_file, plans_document, save_plan
from srm_spark.change.look import Rights, make_plan
from srm_spark.change.planning import ChangePlan
from srm_spark.change.report import FlowReport, RunReport, load_report, report_path
from srm_spark.change.steps import step_document
from srm_spark.core.wording import count
from srm_spark.errors import PlanError

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
    with desk.asking("plan changes", Role.OPERATOR):
        ready = _planned(desk, desk.control.means.rights, prune=body.prune)
    return ChangesDocument.of(ready.fresh, prune=body.prune)


@router.post("/apply")
def apply(desk: TheDesk, body: ApplyBody) -> AppliedDocument:
    """Do what a plan says, if it is still true, or go on with what was interrupted or refused. For admins."""
    told: list[str] = []
    with desk.acting("apply a plan", Role.ADMIN, plan=body.plan, prune=body.prune) as outcome:
        if body.confirm != str(desk.flow):
            text = f"write the name of the flow, {desk.flow}, to apply its plan; nothing was changed"
            raise RequestProblem(409, "not confirmed", text, "not-confirmed")
        with _alone(desk.control):
            ready = _planned(desk, lambda _: (), prune=body.prune)
            planned, before = _begun(desk, body, ready.fresh)
            report = _checked(planned, before, ready.fresh)
            is_changed = not is_all_done([ready], before)
            if is_changed:
                report = apply_plan([ready], report, report_path(_path(desk.control, body.plan)), told.append)
        outcome.result, outcome.why = _came_of(report.of(str(desk.flow)), is_changed=is_changed)
    return AppliedDocument.of(desk, report, told, is_changed=is_changed)


def _planned(desk: Desk, rights: Rights, *, prune: bool) -> Ready:
    clusters = desk.control.means.reach(desk.settings)
    heartbeats = desk.control.whole.heartbeats
    return Ready(clusters, make_plan(clusters, prune=prune, rights=rights, heartbeats=heartbeats))


def _begun(desk: Desk, body: ApplyBody, fresh: ChangePlan) -> tuple[PlanFile, RunReport | None]:
    """The plan, and how far an earlier run of it has come. Raises RequestProblem where it is another one by now."""
    path, flow = _path(desk.control, body.plan), str(desk.flow)
    before = load_report(report_path(path), body.plan)
    is_new = before is None or before.of(flow).is_ended
    if is_new and plan_file([fresh], prune=body.prune).id == body.plan:
        save_plan(path, plans_document([fresh], prune=body.prune))
        return load_plan(path), None
    if not path.exists() or before is None or [flow] != [*before.flows]:
        text = "what is to be done is not what this plan says, and nothing was changed: plan again, and read it"
        raise RequestProblem(409, "the plan has changed", text, "plan-changed")
    return load_plan(path), before


def _checked(planned: PlanFile, before: RunReport | None, fresh: ChangePlan) -> RunReport:
    try:
        return check(planned, before, {str(fresh.world.flow): fresh})
    except PlanError as error:
        raise RequestProblem(409, "the plan has changed", str(error), "plan-changed") from error


def _path(control: Control, plan_id: str) -> Path:
    return control.folder / f"plan-{plan_id}.json"


@contextmanager
def _alone(control: Control) -> Iterator[None]:
    if not control.applying.acquire(blocking=False):
        text = "another plan is being applied by this service; wait until it is over"
        raise RequestProblem(409, "another plan", text, "another-plan")
    try:
        yield
    finally:
        control.applying.release()


def _came_of(report: FlowReport, *, is_changed: bool) -> tuple[Result, str]:
    if not is_changed:
        return Result.DECLINED, "nothing is left to do"
    if report.refused:
        return Result.DECLINED, f"{count(len(report.done), 'step')} done, {len(report.refused)} refused"
    return Result.DONE, f"{count(len(report.done), 'step')} done"
