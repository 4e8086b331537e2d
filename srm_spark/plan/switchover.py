"""Everything that consumes at a site goes on elsewhere: the moves of all its flows, stage by stage beside each other.

```
look at every flow ── one refuses ──> nothing is touched
fence, once ──> drain every flow ── one is not drained ──> no group of any flow is moved
commit every flow ──> let applications write ──> check every flow ──> a statement of each
```

Each flow's move has its own state file, all of which stay until everything is safe. So a switchover that stopped goes
on with what is not done, and one flow of it can be finished, or undone, by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from srm_spark.config.settings import Settings
from srm_spark.core.moments import now
from srm_spark.errors import FlowError, MoveError, SrmError
from srm_spark.flow.clusters import Connect, connect
from srm_spark.plan.fence import run_fence
from srm_spark.plan.move import ALL_GROUPS, Move
from srm_spark.plan.preflight import literals
from srm_spark.plan.snapshot import MoveKind, Plan, SitePlan, SiteStatement, Stage, Statement
from srm_spark.plan.undo import Undo

log = logging.getLogger(__name__)

_Ready = Sequence[tuple[Move, Plan]]
_BEFORE = (Stage.FENCE, Stage.DRAIN)
"""Any group is moved."""


class Switchover:
    """The moves of all flows that begin at one site; use it as a context manager, as `Move`."""

    def __init__(
        self,
        settings: Settings,
        site: str,
        *,
        targets: Collection[str] = (),
        kind: MoveKind = MoveKind.PLANNED_FAILOVER,
        groups: Sequence[str] = ALL_GROUPS,
        fence: str | None = None,
        folder: Path = Path(),
        wait_seconds: float = 300.0,
        tell: Callable[[str], None] = log.info,
        reach: Connect = connect,
    ) -> None:
        """`site` is the alias that is left, `targets` where to alone (empty: wherever its flows go).

        `kind` is a failover, planned or not; `wait_seconds` is for each flow; the rest as of `Move`. Raises MoveError
        where no such flow is enabled, and as `Move`.
        """
        self.site, self._kind, self._fence, self._tell = site, kind, fence, tell
        self._literals = literals(groups)
        with ExitStack() as stack:
            self.moves = [
                stack.enter_context(
                    Move(
                        settings,
                        flow,
                        kind,
                        groups=groups,
                        folder=folder,
                        wait_seconds=wait_seconds,
                        may_be_empty=True,
                        tell=_named(flow, tell),
                        reach=reach,
                    )
                )
                for flow in _flows(settings, site, targets)
            ]
            self._open = stack.pop_all()
        # What ended with a switchover that is over, or of which one flow was finished by itself, is done with.
        live = {move.site for move in self.moves if move.is_begun and not move.has_ended}
        for move in self.moves:
            if move.has_ended and move.site not in live:
                move.renew()
        site_began = next((one for one in live if one is not None), now())
        for move in self.moves:
            move.join(site_began)

    def __enter__(self) -> Switchover:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._open.close()

    def plan(self) -> SitePlan:
        """Look at what is not done; nothing is changed. Raises MoveError where a target does not answer."""
        plans = tuple(map(_planned, self._left))
        # A fence that an earlier move of one flow has run stopped what that flow needed, and no more.
        fences = self._fence is not None and not all(Stage.FENCE in plan.done for plan in plans)
        refusals = [f"{plan.flow}: {why}" for plan in plans for why in plan.refusals]
        seen = {move.group for plan in plans for move in plan.snapshot.moves}
        seen.update(*(move.known_groups for move in self.moves))
        ended = tuple(move.flow for move in self.moves if move.has_ended)
        if not seen and not ended and not any(plan.snapshot.rights for plan in plans):
            text = f"no group stands on a topic of a flow from {self.site}; check --group and the configuration"
            refusals.append(text)
        unseen = tuple(
            f"group {name}: no offset of it on a topic of a flow from {self.site} is known"
            for name in self._literals
            if name not in seen
        )
        return SitePlan(self.site, plans, fences, tuple(refusals), ended, unseen)

    def apply(self, plan: SitePlan) -> SiteStatement:
        """Do what is left to do, unless the plan refuses it; a statement of each flow, which are on disk then.

        What fails of one flow, a cluster that goes away among it, is told in its statement, and keeps the others from
        nothing but groups that have not begun to move. Raises MoveError and SigningFailed where a statement cannot be
        written; the next call goes on where this one stopped.
        """
        ready = list(zip(self._left, plan.plans, strict=True))
        for move, one in ready:
            move.begin(one)
        if plan.refusals:
            waiting = (f"nothing was done: {'; '.join(plan.refusals)}",)
            return SiteStatement(self.site, tuple(move.refused(one.refusals or waiting) for move, one in ready))
        trouble = (self._run_fence() if plan.fences else {}) or self._drain(ready)
        for stage in () if trouble else (stage for stage in plan.stages if stage not in _BEFORE):
            trouble |= _do(stage, [(move, one) for move, one in ready if move not in trouble])
        statements = self._end([move for move, _ in ready], trouble)
        if not any(one.unsafe for one in statements):
            for move in self.moves:
                move.forget()
        return SiteStatement(self.site, statements, plan.unseen)

    def _end(self, moves: Sequence[Move], trouble: Mapping[Move, tuple[str, ...]]) -> tuple[Statement, ...]:
        """The statement of each; one that cannot be written keeps no other from being, and is told then."""
        statements, failures = list[Statement](), list[SrmError]()
        for move in moves:
            try:
                statements.append(move.end(trouble.get(move, ()), is_alone=False))
            except SrmError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return tuple(statements)

    def undo(self, *, commits: bool = True) -> tuple[Undo, ...]:
        """Give up, as `Move.undo`, what is under way of its flows; what fails of one is told of it alone.

        Raises MoveError where nothing is.
        """
        begun = [move for move in self.moves if move.is_begun]
        if not begun:
            raise MoveError(
                f"nothing to undo: no {self._kind.value} of a flow from {self.site} is under way in this folder"
            )
        found = []
        for move in begun:
            try:
                found.append(move.undo(commits=commits))
            except SrmError as error:
                found.append(Undo(self._kind, move.flow, failure=str(error)))
        return tuple(found)

    @property
    def _left(self) -> list[Move]:
        return [move for move in self.moves if not move.has_ended]

    def _run_fence(self) -> dict[Move, tuple[str, ...]]:
        assert self._fence is not None
        for move in self._left:
            move.enter(Stage.FENCE)
        failure = run_fence(self._fence, self._tell)
        if failure is not None:
            return dict.fromkeys(self._left, (f"{failure}; nothing was moved",))
        for move in self._left:
            move.leave(Stage.FENCE)
        return {}

    def _drain(self, ready: _Ready) -> dict[Move, tuple[str, ...]]:
        """Why no group is moved, if so: what one flow has not copied, all wait for."""
        left = _do(Stage.DRAIN, ready)
        if not left:
            return {}
        names = ", ".join(str(move.flow) for move in left)
        waiting = (f"not drained: {names}; no flow of {self.site} goes on before all are",)
        return {**dict.fromkeys(self._left, waiting), **left}


def _planned(move: Move) -> Plan:
    try:
        return move.plan()
    except FlowError as error:
        raise MoveError(
            f"{move.flow} cannot be looked at, so nothing is done; --to names other targets: {error}"
        ) from error


def _do(stage: Stage, ready: _Ready) -> dict[Move, tuple[str, ...]]:
    """One stage of all flows that need it, at the same time: somebody waits for the slowest, not for their sum.

    What is wrong, of those where something is.
    """
    moves = [move for move, plan in ready if stage in plan.stages]
    with ThreadPoolExecutor(max(1, len(moves)), "switchover") as pool:
        answers = zip(moves, pool.map(lambda move: _one(stage, move), moves), strict=True)
        return {move: why for move, why in answers if why}


def _one(stage: Stage, move: Move) -> tuple[str, ...]:
    try:
        return move.do(stage)
    except SrmError as error:
        some = "some of its groups may have been moved: run the same command again, or give it up with --undo"
        return (f"{error}; {some}" if stage is Stage.COMMIT else str(error),)


def _flows(settings: Settings, site: str, targets: Collection[str]) -> list[str]:
    enabled = [one.flow for one in settings.flows]
    found = [str(flow) for flow in enabled if flow.source == site and (not targets or flow.target in targets)]
    missing = sorted(set(targets) - {flow.target for flow in enabled if flow.source == site})
    if found and not missing:
        return found
    which = f"from {site} to {', '.join(missing)}" if missing else f"from {site}"
    known = ", ".join(map(str, enabled)) or "none"
    raise MoveError(f"no flow {which} is enabled in these files; enabled: {known}")


def _named(flow: str, tell: Callable[[str], None]) -> Callable[[str], None]:
    return lambda text: tell(f"{flow}: {text}")
