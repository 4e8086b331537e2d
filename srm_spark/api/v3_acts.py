"""/v3, what changes something while flows run: pauses, lists. The same acts as those of `srm-control`."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from srm_spark.api.audit import Result
from srm_spark.api.control import Desk, TheDesk
from srm_spark.api.problems import CONTROL_RESPONSES, RequestProblem
from srm_spark.api.roles import Role
from srm_spark.core.acts import Command, CommandKind, Scope
from srm_spark.core.list_changes import problems_of
from srm_spark.core.lists import Change, ListKind, ListState
from srm_spark.core.moments import time_of
from srm_spark.core.wording import some
from srm_spark.flow.commanding import Commanded, Commanding
from srm_spark.flow.list_effects import Effect
from srm_spark.flow.listing import Listed, change_lists

router = APIRouter(prefix="/v3/flows/{source}/{target}", tags=["srm-spark V3, changes"], responses=CONTROL_RESPONSES)
MOST_ENTRIES = 1000
CHANGES = ("add", "remove", "add_deny", "remove_deny")


def _shown(reason: str) -> str:
    if not reason.isprintable():
        raise ValueError("it has characters that cannot be shown")
    return reason


Reason = Annotated[str, Field(max_length=1000, description="Why; it is kept with the act."), AfterValidator(_shown)]
Entries = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=MOST_ENTRIES)]
Topic = Annotated[str, Field(min_length=1, max_length=249, description="A topic, by its name on the source.")]


class Body(BaseModel):
    """What a request has in it; a field that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class ConfirmBody(Body):
    """What begins it: the plan that was read, and the name of the flow, written by who wants it."""

    plan: Annotated[str, Field(max_length=100)]
    confirm: Annotated[str, Field(max_length=600, description="The name of the flow, as A->B.")]
    reason: Reason = ""


class ScopeBody(Body):
    """Of the whole flow, of a topic, or of one of its partitions."""

    topic: Topic | None = None
    partition: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    reason: Reason = ""

    @model_validator(mode="after")
    def _has_topic(self) -> ScopeBody:
        if self.partition is not None and self.topic is None:
            raise ValueError("partition goes with topic")
        return self


class RestartBody(Body):
    """A restart of a flow."""

    reason: Reason = ""


class CommandDocument(BaseModel):
    """What became of a command. `declined` says why it was not done; `taken_by` is the driver that does it, null where
    none has said so yet: one that runs, or starts, takes it later."""

    flow: str
    command: str
    topic: str | None
    partition: int | None
    is_changed: bool
    remarks: list[str]
    declined: str | None
    taken_by: str | None

    @classmethod
    def of(cls, desk: Desk, command: Command, done: Commanded) -> CommandDocument:
        """That of a command."""
        return cls(
            flow=str(desk.flow),
            command=command.kind.value,
            topic=command.scope.topic,
            partition=command.scope.partition,
            is_changed=done.decision.is_due,
            remarks=list(done.decision.remarks),
            declined=done.decision.declined,
            taken_by=None if done.answer is None else done.answer.driver,
        )


class PauseDocument(BaseModel):
    """A pause in force."""

    topic: str | None
    partition: int | None
    who: str
    why: str
    held: str


class PausesDocument(BaseModel):
    """All pauses of a flow."""

    flow: str
    pauses: list[PauseDocument]


class EntryDocument(BaseModel):
    """An entry of a list, with who added it."""

    entry: str
    at: str | None
    who: str | None
    why: str | None

    @classmethod
    def of(cls, state: ListState, kind: ListKind, entry: str, *, is_deny: bool) -> EntryDocument:
        """That of an entry."""
        act = state.origin(kind, entry, is_deny=is_deny)
        if act is None:
            return cls(entry=entry, at=None, who=None, why=None)
        return cls(entry=entry, at=time_of(act.at), who=act.who, why=act.why)


class ListsDocument(BaseModel):
    """Both lists of a kind. `include` and `exclude` are what the file says of the same names."""

    flow: str
    kind: str
    allow: list[EntryDocument]
    deny: list[EntryDocument]
    include: list[str]
    exclude: list[str]
    remarks: list[str]


class ChangeBody(Body):
    """What is added to and taken off both lists: names or Java regexes."""

    add: Entries = []
    remove: Entries = []
    add_deny: Entries = []
    remove_deny: Entries = []
    reason: Reason = ""
    dry_run: bool = Field(False, description="Only say what would begin and stop.")

    @property
    def change(self) -> Change:
        """As the engine knows it."""
        return Change(*(tuple(dict.fromkeys(getattr(self, name))) for name in CHANGES))


class SizeDocument(BaseModel):
    """What a name stands for; of a group only the name. Bytes are of the whole topic."""

    name: str
    partitions: int | None
    records: int | None
    bytes: int | None


class EffectDocument(BaseModel):
    """What would begin and stop; `unknown` says why that is not known."""

    begins: list[SizeDocument]
    stops: list[SizeDocument]
    unknown: str | None
    no_bytes: str | None

    @classmethod
    def of(cls, effect: Effect) -> EffectDocument:
        """That."""
        return cls.model_validate(asdict(effect))


class ChangedDocument(BaseModel):
    """What became of a change of lists. `declined` are entries that were not changed, and why."""

    flow: str
    kind: str
    is_changed: bool
    said: str
    remarks: list[str]
    declined: list[str]
    allow: list[str]
    deny: list[str]
    effect: EffectDocument | None

    @classmethod
    def of(cls, desk: Desk, kind: ListKind, done: Listed, *, is_dry_run: bool) -> ChangedDocument:
        """That of a change."""
        return cls(
            flow=str(desk.flow),
            kind=kind.value,
            is_changed=bool(done.decision.change) and not is_dry_run,
            said=str(done.decision.change),
            remarks=[*done.decision.remarks, *done.warnings],
            declined=list(done.decision.declined),
            allow=list(done.after.allow),
            deny=list(done.after.deny),
            effect=None if done.effect is None else EffectDocument.of(done.effect),
        )


@router.get("/pauses")
def pauses(desk: TheDesk) -> PausesDocument:
    """What is paused now, by whom and why."""
    return PausesDocument(
        flow=str(desk.flow),
        pauses=[
            PauseDocument(topic=one.scope.topic, partition=one.scope.partition, who=one.who, why=one.why, held=one.held)
            for one in pauses_of(desk)
        ],
    )


@router.post("/pause")
def pause(desk: TheDesk, body: ScopeBody) -> CommandDocument:
    """Let a flow, a topic or a partition stand still until it is resumed, whatever driver runs it."""
    return commanded(desk, CommandKind.PAUSE, Scope(body.topic, body.partition), body.reason)


@router.post("/resume")
def resume(desk: TheDesk, body: ScopeBody) -> CommandDocument:
    """End a pause: what was paused goes on where it stood."""
    return commanded(desk, CommandKind.RESUME, Scope(body.topic, body.partition), body.reason)


@router.post("/restart")
def restart(desk: TheDesk, body: RestartBody) -> CommandDocument:
    """Let a running driver begin the run of a flow anew, with new connections."""
    return commanded(desk, CommandKind.RESTART, Scope(), body.reason)


@router.get("/lists/{kind}")
def lists(desk: TheDesk, kind: ListKind) -> ListsDocument:
    """Both lists, with who added what."""
    return lists_of(desk, kind)


@router.post("/lists/{kind}")
def change(desk: TheDesk, kind: ListKind, body: ChangeBody) -> ChangedDocument:
    """Change both lists, while drivers run."""
    return changed(desk, kind, body)


def pauses_of(desk: Desk) -> tuple[Command, ...]:
    """Those in force, the widest first."""
    with desk.asking("pauses"), Commanding(desk.settings, desk.control.means.reach) as commanding:
        found = commanding.pauses
    return tuple(found[scope] for scope in sorted(found, key=lambda one: (one.topic or "", one.partition or 0)))


def commanded(desk: Desk, kind: CommandKind, scope: Scope, reason: str) -> CommandDocument:
    """Pause, resume or restart."""
    means = desk.control.means
    command = Command(kind, scope, int(time.time() * 1000), desk.caller.who, reason)
    with desk.acting(kind.value, Role.OPERATOR, scope=str(scope), reason=reason) as outcome:
        with Commanding(desk.settings, means.reach, means.patience) as commanding:
            done = commanding.command(command)
        if done.decision.declined is not None:
            outcome.declined(done.decision.declined)
    return CommandDocument.of(desk, command, done)


def lists_of(desk: Desk, kind: ListKind) -> ListsDocument:
    """Both lists of a kind."""
    with desk.asking("lists"):
        place = desk.control.lists(desk.flow, kind)
        with place.writer() as writer:
            state, remarks = writer.state(), writer.remarks()
    assert place.file is not None
    found, takes = state.of(kind), place.file.takes
    is_of_file = kind is not ListKind.REVERSE
    return ListsDocument(
        flow=str(desk.flow),
        kind=kind.value,
        allow=[EntryDocument.of(state, kind, entry, is_deny=False) for entry in found.allow],
        deny=[EntryDocument.of(state, kind, entry, is_deny=True) for entry in found.deny],
        include=list(takes.include) if is_of_file else [],
        exclude=list(takes.exclude) if is_of_file else [],
        remarks=list(remarks),
    )


def changed(desk: Desk, kind: ListKind, body: ChangeBody) -> ChangedDocument:
    """Change lists. Raises RequestProblem with everything that is wrong with it, PatternError for a slow pattern."""
    wanted = body.change
    if not wanted:
        raise RequestProblem(400, "no change", "name entries in add, remove, add_deny or remove_deny", "no-change")
    if problems := problems_of(wanted, CHANGES):
        raise RequestProblem(400, "no list", "; ".join(problems), "no-pattern")
    does = f"change lists of {kind.value}"
    about: dict[str, Any] = {name: some(entries) for name in CHANGES if (entries := getattr(wanted, name))}
    if body.dry_run:
        with desk.asking(does, Role.OPERATOR):
            done = _change(desk, kind, body)
    else:
        with desk.acting(does, Role.OPERATOR, **about, reason=body.reason) as outcome:
            done = _change(desk, kind, body)
            if done.decision.declined:
                outcome.declined("; ".join(done.decision.declined))
            if done.decision.change:
                outcome.result = Result.DONE
    return ChangedDocument.of(desk, kind, done, is_dry_run=body.dry_run)


def _change(desk: Desk, kind: ListKind, body: ChangeBody) -> Listed:
    place = desk.control.lists(desk.flow, kind)
    with place.writer() as writer:
        return change_lists(
            place,
            writer,
            kind,
            body.change,
            before=writer.state().of(kind),
            who=desk.caller.who,
            why=body.reason,
            is_dry_run=body.dry_run,
        )
