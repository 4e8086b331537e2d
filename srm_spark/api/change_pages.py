"""The pages of plan and apply: what would be changed on the clusters of a flow, the doing of it, and its end."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import RedirectResponse

from srm_spark.api.control import TheDesk
from srm_spark.api.desk_page import desk_page, desk_router
from srm_spark.api.forms import TheForm
from srm_spark.api.pages import flow_path
from srm_spark.api.roles import Role
from srm_spark.api.root import rooted
from srm_spark.api.v3_changes import ApplyBody, TheRuns, changes_planned
from srm_spark.change.document import plan_file
from srm_spark.change.sections import change_sections, done_sections, other_sections, owner_line
from srm_spark.core.moments import time_of

router = desk_router()


@router.get("/changes")
def changes_page(request: Request, desk: TheDesk, runs: TheRuns) -> str:
    """Plans that were carried out, and the form of another one."""
    begun = [(one, time_of(one.began_at)) for one in runs.watched.of(desk.flow)]
    return desk_page(request, desk, "changes", "changes.html", runs=begun)


@router.post("/changes/plan")
def plan_page(request: Request, desk: TheDesk, form: TheForm) -> str:
    """What would be done in which stage, what would not and why, with the form that does it."""
    prune = bool(form.text("prune"))
    plan = changes_planned(desk, prune=prune)
    values = {
        "id": plan_file([plan], prune=prune).id,
        "prune": prune,
        "many": len(plan.steps),
        "owner": owner_line(plan),
        "changes": list(change_sections(plan)),
        "others": list(other_sections(plan)),
        "may_begin": desk.role >= Role.ADMIN,
    }
    return desk_page(request, desk, "changes", "change_plan.html", **values)


@router.post("/changes", response_class=RedirectResponse)
def begin(desk: TheDesk, runs: TheRuns, form: TheForm) -> RedirectResponse:
    """Do what was planned, or go on with it."""
    confirm = form.fields.get("confirm", "")
    body = form.body(ApplyBody, plan=form.text("plan"), prune=form.text("prune") or False, confirm=confirm)
    return RedirectResponse(rooted(f"{flow_path(desk.flow)}/changes/{runs.begin(desk, body.wanted).id}"), 303)


@router.get("/changes/{run}")
def run_page(request: Request, desk: TheDesk, runs: TheRuns, run: str) -> str:
    """How far it is, and what came of it."""
    one = runs.watched.one(desk.flow, run, "run of a plan")
    values = {
        "run": one,
        "is_over": one.is_over,
        "done": [] if one.report is None else list(done_sections(one.report)),
        "may_begin": desk.role >= Role.ADMIN,
    }
    return desk_page(request, desk, "changes", "change_run.html", **values)
