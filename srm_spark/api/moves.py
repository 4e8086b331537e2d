"""Guided moves of consumer groups: planned first, begun by who has read the plan, and watched while they last.

Plans and what moves have told are in memory. The state of a move is in its file, as with `srm-control`: after an end of
this process another plan goes on where it stopped, and so does the command in the same directory. So are statements.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from srm_spark.api.audit import Result
from srm_spark.api.begun import Begun, Watched, carry_out
from srm_spark.api.control import Control, Desk
from srm_spark.api.plans import Plans, Shown
from srm_spark.api.problems import RequestProblem
from srm_spark.api.roles import Role
from srm_spark.core.model import Flow
from srm_spark.core.wording import some
from srm_spark.flow.slow_patterns import slow_ones
from srm_spark.look.alerting import Recovery
from srm_spark.plan import Move, MoveKind, PastMove, Plan, Statement, last_failover, past_moves

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wanted:
    """Which move."""

    kind: MoveKind
    groups: tuple[str, ...] = (".*",)
    wait_seconds: float = 300.0


@dataclass(frozen=True)
class Planned:
    """What a move will do."""

    wanted: Wanted
    plan: Plan


@dataclass(kw_only=True)
class Running(Begun):
    """A move that was begun."""

    kind: MoveKind
    statement: Statement | None = None


class Moves:
    """Safe to use from several threads. Moves of one flow, and of the one back, come one after the other."""

    def __init__(self, control: Control) -> None:
        self._control, self.plans, self.watched = control, Plans[Planned](), Watched[Running]()

    def plan(self, desk: Desk, wanted: Wanted) -> Shown[Planned]:
        """Look at both clusters; nothing is changed. Raises RequestProblem, MoveError and TargetUnavailable."""
        if slow := slow_ones(wanted.groups):
            text = f"one match with a long name takes for ever: {some(slow)}"
            raise RequestProblem(400, "no pattern", text, "no-pattern")
        _require_way_back(desk, wanted.kind, Role.OPERATOR)
        with desk.asking(f"plan {wanted.kind.value}", Role.OPERATOR), self._move(desk.flow, wanted, _log.info) as move:
            plan = move.plan()
        return self.plans.keep(desk, Planned(wanted, plan))

    def begin(self, desk: Desk, plan_id: str, typed: str) -> Running:
        """Begin what was planned. Raises RequestProblem as `Plans.confirmed`, and where its plan refuses it."""
        with desk.acting("move groups", Role.ADMIN, plan=plan_id) as outcome:
            planned = self.plans.confirmed(desk, plan_id, typed)
            _require_way_back(desk, planned.wanted.kind, Role.ADMIN)
            if planned.plan.refusals:
                raise RequestProblem(409, "refused by its plan", "; ".join(planned.plan.refusals), "refused-plan")
            running = Running(flow=desk.flow, who=desk.caller.who, kind=planned.wanted.kind)

            def check(others: Iterable[Running]) -> None:
                _require_alone(desk.flow, others)
                self.plans.use(plan_id)

            self.watched.keep(running, check)
            outcome.result, outcome.why = Result.BEGUN, planned.wanted.kind.value
        # Behind the record of its beginning: that of its end comes later.
        self.watched.start(running, partial(self._carry_out, desk, planned, running))
        return running

    def past(self, flow: Flow) -> list[PastMove]:
        """Those of a flow whose statements are kept, of other processes, too, the newest first."""
        return past_moves(self._control.folder, flow)

    def last_failover(self, flow: Flow) -> PastMove | None:
        """The newest one that moved everything; None where there was none, or its statement is gone."""
        return last_failover(self._control.folder, flow)

    def goal(self, flow: Flow) -> int | None:
        """Most seconds that a failover of it should take; None where no goal is set."""
        return self._control.rto_goal(flow)

    def _carry_out(self, desk: Desk, planned: Planned, running: Running) -> None:
        def work() -> tuple[Result, str]:
            with self._move(desk.flow, planned.wanted, running.told.append) as move:
                running.statement = move.apply(planned.plan)
            unsafe = running.statement.unsafe
            return Result.DECLINED if unsafe else Result.DONE, "; ".join(unsafe)

        carry_out(desk, running, planned.wanted.kind.value, work, move=running.id)

    def _move(self, flow: Flow, wanted: Wanted, tell: Callable[[str], None]) -> Move:
        return Move(
            self._control.whole,
            str(flow),
            wanted.kind,
            groups=wanted.groups,
            folder=self._control.folder,
            wait_seconds=wanted.wait_seconds,
            tell=tell,
            reach=self._control.means.reach,
        )


def recovery_of(control: Control, flow: Flow) -> Recovery | None:
    """What the last failover of a flow took, beside its goal; None where there is no goal, or was no failover."""
    goal = control.rto_goal(flow)
    last = None if goal is None else last_failover(control.folder, flow)
    return None if goal is None or last is None else Recovery(last.seconds, goal)


def _require_alone(flow: Flow, moves: Iterable[Running]) -> None:
    for one in moves:
        if not one.is_over and one.flow in (flow, flow.reverse):
            text = f"{one.who} has begun a {one.kind.value} of {one.flow}, which is not over"
            raise RequestProblem(409, "another move", text, "another-move")


def _require_way_back(desk: Desk, kind: MoveKind, needs: Role) -> None:
    """A failback goes over the flow of the other direction, and takes the same role there."""
    if kind is MoveKind.FAILBACK:
        Desk(desk.control, desk.caller, desk.flow.reverse).require(f"failback of {desk.flow} over it", needs)
