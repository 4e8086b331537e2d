"""Guided moves of consumer groups: planned first, begun by who has read the plan, and watched while they last.

Plans and what moves have told are in memory. The state of a move is in its file, as with `srm-control`: after an end of
this process another plan goes on where it stopped, and so does the command in the same directory. So are statements.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from srm_spark.api.audit import Result
from srm_spark.api.control import Control, Desk
from srm_spark.api.plans import Plans, Shown
from srm_spark.api.problems import RequestProblem, problem_of
from srm_spark.api.roles import Role
from srm_spark.core.model import Flow
from srm_spark.core.wording import some
from srm_spark.errors import SrmError
from srm_spark.flow.slow_patterns import slow_ones
from srm_spark.plan import Move, MoveKind, PastMove, Plan, Statement, last_failover, past_moves

_log = logging.getLogger(__name__)
_MOST_MOVES = 50


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


@dataclass
class Running:
    """A move that was begun; it is over once there is a statement or a failure."""

    id: str
    flow: Flow
    kind: MoveKind
    who: str
    began_at: int
    ended_at: int | None = None
    """When it was over; milliseconds since the epoch, as `began_at`."""
    told: list[str] = field(default_factory=list)
    statement: Statement | None = None
    failure: str | None = None
    failure_kind: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self.statement is not None or self.failure is not None

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it lasts."""
        return None if self.ended_at is None else (self.ended_at - self.began_at) / 1000


class Moves:
    """Safe to use from several threads. Moves of one flow, and of the one back, come one after the other."""

    def __init__(self, control: Control) -> None:
        self._control, self.plans = control, Plans[Planned]()
        self._moves: OrderedDict[str, Running] = OrderedDict()
        self._lock = threading.Lock()

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
            with self._lock:
                self._require_alone(desk.flow)
                self.plans.use(plan_id)
                began_at = int(time.time() * 1000)
                running = Running(secrets.token_urlsafe(8), desk.flow, planned.wanted.kind, desk.caller.who, began_at)
                self._moves[running.id] = running
                self._forget()
            outcome.result, outcome.why = Result.BEGUN, planned.wanted.kind.value
        # Behind the record of its beginning: that of its end comes later.
        name = f"move-{running.id}"
        threading.Thread(target=self._run, args=(desk, planned, running), name=name, daemon=True).start()
        return running

    def of(self, flow: Flow) -> list[Running]:
        """Those of a flow since this process began, the newest first."""
        with self._lock:
            return [one for one in reversed(self._moves.values()) if one.flow == flow]

    def past(self, flow: Flow) -> list[PastMove]:
        """Those of a flow whose statements are kept, of other processes, too, the newest first."""
        return past_moves(self._control.folder, flow)

    def last_failover(self, flow: Flow) -> PastMove | None:
        """The newest one that moved everything; None where there was none, or its statement is gone."""
        return last_failover(self._control.folder, flow)

    def _run(self, desk: Desk, planned: Planned, running: Running) -> None:
        does = planned.wanted.kind.value
        try:
            try:
                with self._move(desk.flow, planned.wanted, running.told.append) as move:
                    statement = move.apply(planned.plan)
            finally:
                running.ended_at = int(time.time() * 1000)
        except SrmError as error:
            problem = problem_of(error)
            running.failure_kind, running.failure = problem.kind, problem.detail
            desk.record(does, Result.FAILED, problem.detail, move=running.id)
        except Exception as error:  # a thread of its own: nobody else would tell
            _log.exception("%s of %s ended", does, desk.flow)
            running.failure = f"an error of the service: {type(error).__name__}; its log says more"
            desk.record(does, Result.FAILED, running.failure, move=running.id)
        else:
            running.statement = statement
            result = Result.DECLINED if statement.unsafe else Result.DONE
            desk.record(does, result, "; ".join(statement.unsafe), move=running.id)

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

    def _require_alone(self, flow: Flow) -> None:
        for one in self._moves.values():
            if not one.is_over and one.flow in (flow, flow.reverse):
                text = f"{one.who} has begun a {one.kind.value} of {one.flow}, which is not over"
                raise RequestProblem(409, "another move", text, "another-move")

    def _forget(self) -> None:
        over: Sequence[str] = [name for name, one in self._moves.items() if one.is_over]
        for name in over[: max(0, len(self._moves) - _MOST_MOVES)]:
            del self._moves[name]


def _require_way_back(desk: Desk, kind: MoveKind, needs: Role) -> None:
    """A failback goes over the flow of the other direction, and takes the same role there."""
    if kind is MoveKind.FAILBACK:
        Desk(desk.control, desk.caller, desk.flow.reverse).require(f"failback of {desk.flow} over it", needs)
