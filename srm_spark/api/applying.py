"""Plans of changes that are carried out: whether one is still true, the doing of it, and runs of it that pages watch.

What a run has told is in memory. The plan and its report are files, as with `srm-control apply`: whatever ends this
process, the same plan goes on where it stopped, and so does the command.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from srm_spark.api.audit import Result
from srm_spark.api.begun import MOST_WATCHED, Begun, Watched, carry_out
from srm_spark.api.control import Control, Desk
from srm_spark.api.plans import require_typed
from srm_spark.api.problems import RequestProblem
from srm_spark.api.roles import Role
from srm_spark.change.apply import Ready, apply_plan, check, is_all_done
from srm_spark.change.document import PlanFile, load_plan, plan_file, plans_document, save_plan
from srm_spark.change.look import Rights, make_plan
from srm_spark.change.planning import ChangePlan
from srm_spark.change.report import FlowReport, RunReport, load_report, report_path
from srm_spark.core.wording import count
from srm_spark.errors import PlanError

DOES = "apply a plan"


@dataclass(frozen=True)
class Wanted:
    """Which plan: that with the digest that was read, planned in the same way; and what was typed to confirm it."""

    plan: str
    prune: bool
    confirm: str


@dataclass(kw_only=True)
class Run(Begun):
    """A plan that is carried out."""

    wanted: Wanted
    report: FlowReport | None = None
    is_changed: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether it is over, and all was done."""
        return self.is_over and self.report is not None and not self.report.refused


@dataclass(frozen=True)
class Prepared:
    """A plan that is still true."""

    ready: Ready
    before: RunReport | None
    """Of earlier runs."""
    report: RunReport
    path: Path

    def carry_out(self, tell: Callable[[str], None]) -> tuple[RunReport, bool]:
        """What became of it, earlier runs included, and whether this one has done anything. Raises as `apply_plan`."""
        if is_all_done([self.ready], self.before):
            return self.report, False
        return apply_plan([self.ready], self.report, report_path(self.path), tell), True


def planned(desk: Desk, rights: Rights, *, prune: bool) -> Ready:
    """A plan of now. Raises TargetUnavailable and SourceUnavailable."""
    clusters = desk.control.means.reach(desk.settings)
    heartbeats = desk.control.whole.heartbeats
    return Ready(clusters, make_plan(clusters, prune=prune, rights=rights, heartbeats=heartbeats))


def applied(desk: Desk, wanted: Wanted, tell: Callable[[str], None]) -> tuple[RunReport, bool]:
    """Carry out a plan, and wait for its end. Raises RequestProblem where it is not confirmed, or not true any more."""
    with desk.acting(DOES, Role.ADMIN, plan=wanted.plan, prune=wanted.prune) as outcome:
        require_typed(desk, wanted.confirm, "apply its plan")
        _begin_alone(desk.control)
        try:
            report, is_changed = _prepared(desk, wanted).carry_out(tell)
        finally:
            desk.control.applying.release()
        outcome.result, outcome.why = _came_of(report.of(str(desk.flow)), is_changed=is_changed)
    return report, is_changed


class Runs:
    """Those that go on while pages watch them. Safe to use from several threads."""

    def __init__(self, most: int = MOST_WATCHED) -> None:
        self.watched = Watched[Run](most)

    def begin(self, desk: Desk, wanted: Wanted) -> Run:
        """Begin to carry out a plan. Raises as `applied`."""
        with ExitStack() as unless_begun:
            with desk.acting(DOES, Role.ADMIN, plan=wanted.plan, prune=wanted.prune) as outcome:
                require_typed(desk, wanted.confirm, "apply its plan")
                _begin_alone(desk.control)
                unless_begun.callback(desk.control.applying.release)
                prepared = _prepared(desk, wanted)
                run = Run(flow=desk.flow, who=desk.caller.who, wanted=wanted)
                self.watched.keep(run)
                outcome.result = Result.BEGUN
            # Behind the record of its beginning: that of its end comes later.
            self.watched.start(run, partial(_carry_out, desk, prepared, run))
            unless_begun.pop_all()
        return run


def _carry_out(desk: Desk, prepared: Prepared, run: Run) -> None:
    def work() -> tuple[Result, str]:
        try:
            whole, run.is_changed = prepared.carry_out(run.told.append)
        finally:
            desk.control.applying.release()
        run.report = whole.of(str(desk.flow))
        return _came_of(run.report, is_changed=run.is_changed)

    carry_out(desk, run, DOES, work, plan=run.wanted.plan, prune=run.wanted.prune)


def _begin_alone(control: Control) -> None:
    """From now on no other plan is applied, until somebody lets go of `control.applying`."""
    if not control.applying.acquire(blocking=False):
        text = "another plan is being applied by this service; wait until it is over"
        raise RequestProblem(409, "another plan", text, "another-plan")


def _prepared(desk: Desk, wanted: Wanted) -> Prepared:
    ready = planned(desk, lambda _: (), prune=wanted.prune)
    plan, before = _begun(desk, wanted, ready.fresh)
    return Prepared(ready, before, _checked(plan, before, ready.fresh), _path(desk.control, wanted.plan))


def _begun(desk: Desk, wanted: Wanted, fresh: ChangePlan) -> tuple[PlanFile, RunReport | None]:
    """The plan, and how far an earlier run of it has come. Raises RequestProblem where it is another one by now."""
    path, flow = _path(desk.control, wanted.plan), str(desk.flow)
    before = load_report(report_path(path), wanted.plan)
    is_new = before is None or before.of(flow).is_ended
    if is_new and plan_file([fresh], prune=wanted.prune).id == wanted.plan:
        save_plan(path, plans_document([fresh], prune=wanted.prune))
        return load_plan(path), None
    if not path.exists() or before is None or [flow] != [*before.flows]:
        text = "what is to be done is not what this plan says, and nothing was changed: plan again, and read it"
        raise RequestProblem(409, "the plan has changed", text, "plan-changed")
    return load_plan(path), before


def _checked(plan: PlanFile, before: RunReport | None, fresh: ChangePlan) -> RunReport:
    try:
        return check(plan, before, {str(fresh.world.flow): fresh})
    except PlanError as error:
        raise RequestProblem(409, "the plan has changed", str(error), "plan-changed") from error


def _path(control: Control, plan_id: str) -> Path:
    return control.folder / f"plan-{plan_id}.json"


def _came_of(report: FlowReport, *, is_changed: bool) -> tuple[Result, str]:
    if not is_changed:
        return Result.DECLINED, "nothing is left to do"
    if report.refused:
        return Result.DECLINED, f"{count(len(report.done), 'step')} done, {len(report.refused)} refused"
    return Result.DONE, f"{count(len(report.done), 'step')} done"
