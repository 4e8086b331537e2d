"""The state file of a move: written before each stage, so that the next call goes on where this one stopped.

It says what was found and where the groups stood on the target before, so that a move can be undone by hand. It holds
addresses, names and offsets, no secret: neither the fence command nor its output is written down.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from srm_spark.core.acls import Acl
from srm_spark.core.checkpoints import GroupPartition
from srm_spark.core.model import TopicPartition
from srm_spark.errors import MoveError
from srm_spark.files import write_whole
from srm_spark.plan.groups import Earlier
from srm_spark.plan.snapshot import GroupMove, MoveOutcome, Phase, Range, Stage

_FORMAT = 1
EVERY_GROUP = ".*"
"""A pattern that takes all."""
OTHER_PLACE = "--state, or --folder"
"""The options that name another file, or place of it: of the commands for one flow, and for a site."""


@dataclass(frozen=True)
class MoveId:
    """Which move a state file belongs to."""

    kind: str
    flow: str
    source: str
    """Bootstrap servers."""
    target: str
    groups: str
    """As they were asked for, joined by commas."""


@dataclass(frozen=True)
class MoveState:
    """Everything that the next call has to know."""

    id: MoveId
    began: str
    """UTC, ISO 8601."""
    stage: Stage | None = None
    """In progress."""
    done: tuple[Stage, ...] = ()
    still: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Ends of the source when everything was copied and nothing new came."""
    ranges: tuple[Range, ...] = ()
    """How far each partition was copied, at the newest look."""
    earlier: Earlier = field(default_factory=Earlier)
    phases: tuple[Phase, ...] = ()
    """Every stage that was entered, in order, by all calls."""
    set_to: Mapping[GroupPartition, tuple[int, ...]] = field(default_factory=dict)
    """Where calls of this move have set groups themselves, or were about to when they were killed; the newest last."""
    allowed: tuple[Acl, ...] = ()
    """What they have put in force, or were about to."""
    ended: str | None = None
    """When everything of it was safe; it stays for as long as moves of other flows of the site are not."""
    site: str | None = None
    """The move of a whole site that it is a part of: when that began."""

    def has_entered(self, stage: Stage) -> bool:
        """Whether some call has begun it."""
        return stage in self.done or stage is self.stage or any(one.stage is stage for one in self.phases)

    def entered(self, stage: Stage, ranges: tuple[Range, ...], now: str) -> MoveState:
        """On the way into a stage; `now` is UTC, ISO 8601."""
        return replace(self, stage=stage, ranges=ranges, phases=(*self.phases, Phase(stage, now)))

    def left(self, stage: Stage, now: str) -> MoveState:
        """With one more stage done."""
        done = (*(one for one in self.done if one is not stage), stage)
        phases = (*self.phases[:-1], *(replace(one, ended=now) for one in self.phases[-1:]))
        return replace(self, stage=None, done=done, phases=phases)

    def setting(self, offsets: Mapping[GroupPartition, int]) -> MoveState:
        """With where groups are about to be set, or were."""
        found = dict(self.set_to)
        for at, offset in offsets.items():
            found[at] = (*(one for one in found.get(at, ()) if one != offset), offset)
        return replace(self, set_to=found)

    def knowing(self, moves: Iterable[GroupMove]) -> MoveState:
        """With where groups stood before they were touched, and where those that moved were set to."""
        before, moved = dict(self.earlier.before), dict(self.earlier.moved)
        for move in moves:
            at = (move.group, move.remote)
            # Of a group that stays, nowhere may mean that the target does not say where; a later look will.
            if move.before is not None or move.outcome is not MoveOutcome.STAYS:
                before.setdefault(at, move.before)
            if move.outcome is MoveOutcome.MOVED and move.after is not None:
                moved[at] = max(move.after, moved.get(at, 0))
        return replace(self, earlier=Earlier(before, moved))


def load_state(path: Path, wanted: MoveId) -> MoveState | None:
    """What an earlier call wrote; None where there is no file. Raises MoveError where it belongs to another move."""
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text())
        if document["format"] != _FORMAT:
            raise MoveError(
                f"{path}: format {document['format']}, expected {_FORMAT}; finish it with the version it is of"
            )
        state = _state(document)
    except (ValueError, KeyError, TypeError) as error:
        remedy = f"move it away, or name another one with {OTHER_PLACE}"
        raise MoveError(
            f"{path}: this is no state file of a move ({type(error).__name__}: {error}); {remedy}"
        ) from None
    differences = [
        f"{what}: {theirs!r} there, {ours!r} asked for"
        for what in MoveId.__dataclass_fields__
        if (theirs := getattr(state.id, what)) != (ours := getattr(wanted, what))
    ]
    if differences:
        text = f"finish that move, move the file away, or name another one with {OTHER_PLACE}"
        raise MoveError(f"{path}: it belongs to another move ({'; '.join(differences)}); {text}")
    return state


def set_aside(path: Path, groups: str, began: str) -> Path | None:
    """Rename the file of a move that one of these groups, the other way round, overtakes; None where it does not.

    What that move has done, and where groups stood then, says nothing of the next one. Raises MoveError where it
    cannot be renamed.
    """
    try:
        theirs = json.loads(path.read_text())["id"]["groups"]
    except (OSError, ValueError, KeyError, TypeError):
        return None  # there is none, or whoever needs it says what is wrong with it
    if groups not in (theirs, EVERY_GROUP):
        return None
    aside = path.with_name(f"{path.name}.until-{began.replace(':', '')}")
    try:
        return path.rename(aside)
    except OSError as error:
        raise MoveError(f"{path}: it was overtaken, and cannot be renamed to {aside.name}: {error}") from None


def save_state(path: Path, state: MoveState) -> None:
    """Write it in one step: a reader sees the old file or the new one. Raises MoveError."""
    write_whole(path, json.dumps(_document(state), indent=2) + "\n", MoveError, OTHER_PLACE)


def _document(state: MoveState) -> dict[str, object]:
    moved = state.earlier.moved
    return {
        "format": _FORMAT,
        "id": vars(state.id),
        "began": state.began,
        "stage": None if state.stage is None else state.stage.name,
        "done": [stage.name for stage in state.done],
        "phases": [[one.stage.name, one.began, one.ended] for one in state.phases],
        "set_to": [[group, *remote, list(offsets)] for (group, remote), offsets in state.set_to.items()],
        "allowed": [list(acl) for acl in state.allowed],
        "ended": state.ended,
        "site": state.site,
        "still": [{"topic": p.topic, "partition": p.partition, "end": end} for p, end in state.still.items()],
        "groups": [
            {
                "group": group,
                "topic": remote.topic,
                "partition": remote.partition,
                "before": before,
                "moved_to": moved.get((group, remote)),
            }
            for (group, remote), before in state.earlier.before.items()
        ],
        "found": [
            {
                "topic": one.partition.topic,
                "partition": one.partition.partition,
                "remote_topic": one.remote.topic,
                "replicated_to": one.replicated_to,
                "source_end": one.source_end,
                "target_end": one.target_end,
            }
            for one in state.ranges
        ],
    }


def _state(document: Mapping[str, Any]) -> MoveState:
    groups: dict[GroupPartition, Mapping[str, Any]] = {
        (str(row["group"]), TopicPartition(str(row["topic"]), int(row["partition"]))): row for row in document["groups"]
    }
    before = {at: None if row["before"] is None else int(row["before"]) for at, row in groups.items()}
    moved = {at: int(row["moved_to"]) for at, row in groups.items() if row["moved_to"] is not None}
    return MoveState(
        id=MoveId(**document["id"]),
        began=str(document["began"]),
        stage=None if document["stage"] is None else Stage[document["stage"]],
        done=tuple(Stage[name] for name in document["done"]),
        still={TopicPartition(str(row["topic"]), int(row["partition"])): int(row["end"]) for row in document["still"]},
        earlier=Earlier(before, moved),
        # A move that an older version began has none.
        phases=tuple(Phase(Stage[name], str(began), ended) for name, began, ended in document.get("phases", ())),
        set_to={
            (str(group), TopicPartition(str(topic), int(number))): tuple(map(int, offsets))
            for group, topic, number, offsets in document["set_to"]
        }
        if "set_to" in document  # an older version does not tell what it has set from what it has found
        else {at: (offset,) for at, offset in moved.items() if before[at] != offset},
        allowed=tuple(Acl(*map(str, acl)) for acl in document.get("allowed", ())),
        ended=document.get("ended"),
        site=document.get("site"),
    )
