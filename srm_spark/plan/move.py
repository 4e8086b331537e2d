"""One guided move: the order of its stages, and what is written down before each one."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType

from srm_spark.config.settings import FlowSettings, Settings
from srm_spark.core.checkpoints import GroupPartition
from srm_spark.core.envelope import Predicate, Subject, digest_of
from srm_spark.core.model import Flow
from srm_spark.core.moments import now
from srm_spark.core.wording import count
from srm_spark.errors import MoveError, SourceUnavailable
from srm_spark.files import write_whole
from srm_spark.flow.clusters import Connect, connect
from srm_spark.plan.document import statement_document
from srm_spark.plan.drain import Stillness, behind
from srm_spark.plan.fence import run_fence
from srm_spark.plan.groups import Earlier
from srm_spark.plan.planning import ended, make_plan, next_steps, not_undone, other_than_shown, verdict
from srm_spark.plan.preflight import Preflight
from srm_spark.plan.snapshot import (
    ClusterSnapshot,
    GroupMove,
    MoveKind,
    MoveOutcome,
    Plan,
    Stage,
    Statement,
    Verified,
    few,
    not_copied,
)
from srm_spark.plan.state import EVERY_GROUP, OTHER_PLACE, MoveId, MoveState, load_state, save_state, set_aside
from srm_spark.plan.undo import Undo
from srm_spark.plan.verified import read_verified
from srm_spark.statements import SUFFIX, Seal, seal_of

log = logging.getLogger(__name__)

ALL_GROUPS = (EVERY_GROUP,)
_GIVEN_UP = "the move was given up before it ended"
_GO_ON = "run the same command again: it goes on where this one stopped"
_POLL_SECONDS = 1.0
_MEMBERS_SECONDS = 60.0
"""A consumer that was killed stays a member until its session is over, 45 s by default."""


class Move:
    """A move of consumer groups over one flow; use it as a context manager.

    ```
    with Move(load_settings("srm.properties"), "A->B", Kind.FAILOVER) as move:
        plan = move.plan()          # changes nothing
        statement = move.apply(plan)
    ```
    """

    def __init__(
        self,
        settings: Settings,
        flow: str,
        kind: MoveKind,
        *,
        groups: Sequence[str] = ALL_GROUPS,
        fence: str | None = None,
        state: Path | None = None,
        folder: Path = Path(),
        wait_seconds: float = 300.0,
        verified: Path | None = None,
        may_be_empty: bool = False,
        tell: Callable[[str], None] = log.info,
        reach: Connect = connect,
    ) -> None:
        """`flow` is written `A->B`, and a failback of it moves groups from B to A.

        `fence` is a shell command, `state` where the state file lies (default: in `folder`, which is the working
        directory, named after the flow), `wait_seconds` how long a planned move waits for the last records, `verified`
        a signed statement of what the copies are by content, `may_be_empty` that no group has to be there; `tell`
        gets what happens meanwhile. Where the settings name a key, the statement is signed, too. Raises
        MoveError where the flow is not configured or the state file is another's, and SigningFailed where that key
        cannot be used.
        """
        self._settings = _settings_of(settings, flow, kind)
        self.flow = self._settings.flow
        self._seal = seal_of(settings)
        self._verified = None if verified is None else _verified(verified, self._seal, self._settings)
        self.state_path = state or folder / _state_name(kind, self.flow)
        self._kind = kind
        self._fence = fence
        self._names_groups, self._may_be_empty = tuple(groups) != ALL_GROUPS, may_be_empty
        self._wait_seconds = wait_seconds
        self._tell = tell
        self._has_way_back = any(other.flow == self.flow.reverse for other in settings.flows)
        source, target = self._settings.source.bootstrap_servers, self._settings.target.bootstrap_servers
        self._id = MoveId(kind.value, str(self.flow), source, target, ",".join(groups))
        self._found = load_state(self.state_path, self._id)
        self._state, self._is_saved = self._found or MoveState(self._id, now()), self._found is not None
        self._snapshot: ClusterSnapshot | None = None
        self._has_looked = False
        copies = self.flow if kind.allows_writing else self.flow.reverse
        rights = next((other for other in settings.flows if other.flow == copies), None)
        self._preflight = Preflight(self._settings, groups, rights, reach, may_be_empty=may_be_empty)

    def __enter__(self) -> Move:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._preflight.close()

    @property
    def statement_path(self) -> Path:
        """Where the statement is written as JSON, next to the state file."""
        stamp = self._state.began.replace("-", "").replace(":", "")
        return self.state_path.with_name(f"{self.state_path.stem}-{stamp}.json")

    @property
    def signed_path(self) -> Path | None:
        """Where the signed statement is, beside the other one; None where nothing signs it."""
        return None if self._seal is None else self.statement_path.with_suffix(SUFFIX)

    def plan(self) -> Plan:
        """Look at both clusters; nothing is changed. Raises TargetUnavailable, and MoveError where it has ended."""
        if self.has_ended:
            site = f"a switchover of {self.flow.source} that has not: srm-control switchover goes on with it"
            raise MoveError(f"{self.state_path}: it ended, with {site}. If there is none, move the file away")
        snapshot = self._preflight.look(self._kind, self._state.earlier, is_final=False)
        self._has_looked = True
        return make_plan(
            self._kind,
            self.flow,
            snapshot,
            fenced=self._fence is not None,
            state=self._found,
            names_groups=self._names_groups,
            may_be_empty=self._may_be_empty,
        )

    def apply(self, plan: Plan) -> Statement:
        """Do what is left to do. The statement is on disk when this returns, and so is the state unless all is safe.

        The signed one is there before each stage, and says that the move has not ended: of a move that was killed it is
        what stays. Raises TargetUnavailable, MoveError and SigningFailed; the next call goes on where this one stopped.

        A plan that another `Move` has made is compared with how it is now, and refused where it would be another one.
        """
        plan = plan if self._has_looked else self._made_again(plan)
        self.begin(plan)
        if plan.refusals:
            return self.refused(plan.refusals)
        trouble: tuple[str, ...] = ()
        for stage in plan.stages:
            trouble = self.do(stage)
            if trouble:
                break
        return self.end(trouble)

    def _made_again(self, plan: Plan) -> Plan:
        """By our own connections, which know neither lists nor that a source is gone before they have looked."""
        now = self.plan()
        return replace(now, refusals=other_than_shown(plan, now))

    def begin(self, plan: Plan) -> None:
        """For who takes the stages one by one: `do` each of the plan's, then `end`; or say what `refused` it."""
        self._snapshot = plan.snapshot
        self._state = self._state.knowing(plan.snapshot.moves)

    def refused(self, why: tuple[str, ...]) -> Statement:
        """That nothing was done; nothing is written down."""
        return self._statement(why)

    def do(self, stage: Stage) -> tuple[str, ...]:
        """One stage; why no other one may follow, if so. Raises as `apply`."""
        self.enter(stage)
        does = {
            Stage.FENCE: self._run_fence,
            Stage.DRAIN: self._drain,
            Stage.COMMIT: self._commit,
            Stage.ALLOW: self._allow,
            Stage.WITHDRAW: self._set_rights,
            Stage.CHECK: self._check,
        }
        trouble = does[stage]()
        if not trouble:
            self.leave(stage)
        return trouble

    def enter(self, stage: Stage) -> None:
        """Write down that a stage begins: for one that is done for several moves at once, and then is to `leave`."""
        assert self._snapshot is not None
        if not self._is_saved:
            self._overtake()
        self._tell(stage.value)
        self._save(self._state.entered(stage, self._snapshot.ranges, now()))
        self._sign(self._statement((f"the move has not ended: {stage.value}",), steps=(_GO_ON,)))

    def _overtake(self) -> None:
        """A move that leads back what another one did begins: what is left of that one counts no more."""
        for kind in MoveKind:
            if kind.allows_writing is not self._kind.allows_writing:
                path = self.state_path.with_name(_state_name(kind, self.flow.reverse))
                if (aside := set_aside(path, self._id.groups, self._state.began)) is not None:
                    self._tell(f"the {kind.value} of {self.flow.reverse} had not ended; what is known of it: {aside}")

    def leave(self, stage: Stage) -> None:
        """Write down that a stage is done."""
        self._save(self._state.left(stage, now()))

    def undo(self, *, commits: bool = True) -> Undo:
        """Give up what earlier calls began, or only tell what that would do: groups stand where they stood before.

        Not while such a call runs. The statement says that the move was given up, and the state file is removed once no
        other call could do more. Raises TargetUnavailable, ProgressFailed, SigningFailed, and MoveError where no such
        move is under way.
        """
        if self._found is None:
            raise MoveError(self._nothing_to_undo())
        notes = tuple(not_undone(self.flow, self._state))
        if commits:  # whoever goes on with it has to do all of it again
            self._save(replace(self._state, ended=None, done=()))
        groups = self._preflight.put_back(self._state, commits=commits)
        in_force = self._preflight.withdraw_rights(self._state.allowed) if commits else {}
        withdrawn = tuple(acl for acl in self._state.allowed if acl not in in_force)
        undo = Undo(self._kind, self.flow, groups, withdrawn, in_force, notes)
        if not commits:
            return undo
        self._snapshot = self._preflight.look(self._kind, Earlier(), is_final=False)
        statement = self._statement((_GIVEN_UP, *undo.left), steps=undo.notes)
        self._write(statement)
        if undo.is_over:
            self.forget()
        return replace(undo, statement=statement)

    def end(self, trouble: tuple[str, ...], *, is_alone: bool = True) -> Statement:
        """What it did; `trouble` is why it went no further. Raises MoveError and SigningFailed.

        Where it `is_alone`, and everything is safe, the state file is removed; else it says that this move has ended.
        """
        statement = self._statement(trouble)
        self._write(statement)
        if not statement.unsafe and is_alone:
            self.forget()
        elif not statement.unsafe:
            self._save(replace(self._state, ended=statement.ended))
        return statement

    def forget(self) -> None:
        """Remove the state file: nothing is left to go on with."""
        self._is_saved = False
        self.state_path.unlink(missing_ok=True)

    @property
    def has_ended(self) -> bool:
        """Whether an earlier call has done everything of it, beside others that had not ended."""
        return self._found is not None and self._found.ended is not None

    @property
    def site(self) -> str | None:
        """The move of a whole site that an earlier call made it a part of."""
        return None if self._found is None else self._found.site

    def join(self, site: str) -> None:
        """It is a part of this move of a site from now on."""
        self._state = replace(self._state, site=site)

    def renew(self) -> None:
        """What an earlier call has done is over, and this one begins anew."""
        self._found, self._state, self._is_saved = None, MoveState(self._id, now()), False

    @property
    def is_begun(self) -> bool:
        """Whether an earlier call has left something to go on with, or to give up."""
        return self._found is not None

    @property
    def known_groups(self) -> frozenset[str]:
        """Groups that some call has seen on topics of the flow."""
        return frozenset(group for group, _ in self._state.earlier.before)

    def _nothing_to_undo(self) -> str:
        paths = {kind: self.state_path.with_name(_state_name(kind, self.flow)) for kind in MoveKind}
        others = [f"a {kind.value} is: {path}" for kind, path in paths.items() if kind != self._kind and path.exists()]
        text = f"no {self._kind.value} of {self.flow} is under way: there is no {self.state_path}"
        if others:
            return f"{text}; {'; '.join(others)}"
        return text + ("; one that has ended is led back by failback" if self._kind.allows_writing else "")

    def _write(self, statement: Statement) -> None:
        text = json.dumps(statement_document(statement), indent=2) + "\n"
        write_whole(self.statement_path, text, MoveError, OTHER_PLACE)
        self._sign(statement)

    def _run_fence(self) -> tuple[str, ...]:
        assert self._fence is not None
        failure = run_fence(self._fence, self._tell)
        return (f"{failure}; nothing was moved",) if failure else ()

    def _drain(self) -> tuple[str, ...]:
        """Wait until the source stands still and everything of it is copied."""
        stillness, deadline = Stillness(), time.monotonic() + self._wait_seconds
        told = None
        while True:
            ranges = self._preflight.ranges()
            if stillness.take(time.monotonic(), ranges):
                self._state = replace(self._state, still=stillness.ends)
                return ()
            left = behind(ranges)
            if left != told:
                self._tell(f"{count(left, 'record')} to copy")
                told = left
            if time.monotonic() > deadline:
                return (self._not_drained(left, stillness), *not_copied(ranges))
            time.sleep(_POLL_SECONDS)

    def _not_drained(self, left: int, stillness: Stillness) -> str:
        moving, silent = stillness.moving, few([str(partition) for partition in stillness.silent])
        owner = self._preflight.owner()
        runs = f"{owner} runs the flow" if owner else "nobody runs the flow"
        written = f"the source is still written ({moving})" if moving else "the source stands still"
        unknown = f" and an unknown number of {silent}, which has no leader on the source" if silent else ""
        return (
            f"after {self._wait_seconds:g} s without a copy: {count(left, 'record')}{unknown}; {written} and {runs}; "
            "nothing was moved. Stop the producers, look after the driver, and run the same command again"
        )

    def _commit(self) -> tuple[str, ...]:
        """Set the offsets; a planned move first waits for members to leave the source."""
        deadline = time.monotonic() + min(_MEMBERS_SECONDS, self._wait_seconds)
        moves = self._moves()
        while self._kind.is_planned and _any_wait(moves) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            moves = self._moves()
        # Where they stood, and will stand, before it is no longer so.
        due = _due(moves)
        self._save(self._state.knowing(moves).setting(due))
        groups = {group for group, _ in due}
        done = self._moves(commits=True, only=groups)
        # One that has read on meanwhile is set further than was written down.
        was_set = {(one.group, one.remote): one.after for one in done if one.outcome is MoveOutcome.MOVED}
        self._save(
            self._state.knowing(done).setting({at: to for at, to in was_set.items() if at in due and to is not None})
        )
        assert self._snapshot is not None
        self._snapshot = replace(self._snapshot, moves=done)  # for the statement, should nothing more come
        return ()

    def _allow(self) -> tuple[str, ...]:
        allowed = dict.fromkeys((*self._state.allowed, *self._preflight.missing_rights()))
        self._save(replace(self._state, allowed=tuple(allowed)))
        return self._set_rights()

    def _set_rights(self) -> tuple[str, ...]:
        """What is refused the check tells: groups are moved by now, whoever may write."""
        self._preflight.set_rights()
        return ()

    def _check(self) -> tuple[str, ...]:
        """Look at everything again: what is on the target now is what counts."""
        self._snapshot = self._preflight.look(self._kind, self._state.earlier)
        return verdict(self._kind, self._state, self._snapshot)

    def _moves(self, *, commits: bool = False, only: Collection[str] | None = None) -> tuple[GroupMove, ...]:
        asked = partial(self._preflight.moves, self._kind, self._state.earlier, commits=commits, only=only)
        try:
            return asked()[0]
        except SourceUnavailable as error:
            if self._kind.is_planned:
                raise
            self._preflight.lose_source(error)  # since the plan was made: that is what a failover is for
            return asked()[0]

    def _save(self, state: MoveState) -> None:
        if self._is_saved and not self.state_path.exists():
            raise MoveError(f"{self.state_path} is gone: another call has given this move up; nothing more is done")
        save_state(self.state_path, state)
        self._state, self._is_saved = state, True

    def _statement(self, trouble: tuple[str, ...], steps: tuple[str, ...] | None = None) -> Statement:
        assert self._snapshot is not None
        snapshot = ended(self._snapshot)
        if steps is None:
            steps = next_steps(self._kind, self.flow, snapshot, has_way_back=self._has_way_back, is_safe=not trouble)
        state, goal = self._state, self._settings.rto_goal_seconds if self._kind.allows_writing else None
        return Statement(self._kind, self.flow, state.began, now(), snapshot, trouble, steps, state.phases, goal)

    def _sign(self, statement: Statement) -> None:
        if self._seal is None or self.signed_path is None:
            return
        found = {**statement_document(statement), "verified": None if self._verified is None else vars(self._verified)}
        subject = Subject(f"{self._kind.value} {self.flow} {statement.began}", digest_of(found))
        self._seal.write(self.signed_path, Predicate.MOVE, [subject], found)


def _state_name(kind: MoveKind, flow: Flow) -> str:
    return f"srm-{kind.name.lower()}-{flow.source}-{flow.target}.json"


def _settings_of(settings: Settings, flow: str, kind: MoveKind) -> FlowSettings:
    for one in settings.flows:
        asked = one.flow.reverse if kind is MoveKind.FAILBACK else one.flow
        if str(asked) == flow:
            return one
    enabled = ", ".join(str(one.flow) for one in settings.flows) or "none"
    what = (
        f"a failback of {flow} takes the flow of the other direction" if kind is MoveKind.FAILBACK else f"flow {flow}"
    )
    raise MoveError(f"{what}, which is not enabled in these files; enabled: {enabled}")


def _verified(path: Path, seal: Seal | None, settings: FlowSettings) -> Verified:
    if seal is None:
        raise MoveError("--verified goes into the signed statement, and nothing signs it: set statement.key")
    return read_verified(path, seal, settings)


def _due(moves: Iterable[GroupMove]) -> dict[GroupPartition, int]:
    """Where groups are to be set."""
    due = (move for move in moves if move.outcome is MoveOutcome.MOVES)
    return {(move.group, move.remote): move.after for move in due if move.after is not None}


def _any_wait(moves: Sequence[GroupMove]) -> bool:
    return any(move.outcome is MoveOutcome.STAYS for move in moves)
