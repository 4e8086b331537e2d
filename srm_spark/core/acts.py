"""What is done to a flow besides its lists: paused, restarted, set to other offsets, led away from a host. No I/O.

A record here is one act of the same log as the lists' (`core/lists.py`), of another kind:

```
key   ["act","6f0c…"]
value {"v":1,"kind":"pause","topic":"orders","partition":3,"at":1700000000000,"who":"ann@host","why":"maintenance"}
value {"v":1,"kind":"drain","host":"h1","at":1700000000000,"who":"ann@host","why":"new kernel"}
value {"v":1,"kind":"offsets","topic":"orders","partition":3,"shift":[100,50,"Xy…"],"at":1700000000000,"who":"ann@host"}
```

Other offsets are set of a partition that is paused, and such an act ends with the pause: so whoever reads the log knows
whether it still counts, and no driver finds it later. What came of it a driver answers.

What drivers answer lies in the progress topic (`core/answers.py`): a flow has no right to write here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from srm_spark.core.compact_json import compact_json
from srm_spark.core.lists import VERSION, Act, act_document, decode_act, encode_act, in_brackets, is_moment
from srm_spark.core.model import TopicPartition
from srm_spark.core.wording import escaped
from srm_spark.errors import CodecError


class CommandKind(Enum):
    """What is done; the value is the command's word."""

    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"
    OFFSETS = "offsets"
    DRAIN = "drain"
    """The drivers of a host give the flow away, and take it only where nobody else does."""
    RETURN = "return"
    """The end of that."""


OF_HOSTS = (CommandKind.DRAIN, CommandKind.RETURN)


@dataclass(frozen=True)
class Scope:
    """What an act is about: a partition, a whole topic of the source, or all of the flow."""

    topic: str | None = None
    partition: int | None = None

    def __str__(self) -> str:
        if self.topic is None:
            return "the flow"
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"

    def around(self) -> Iterator[Scope]:
        """It and what it lies in, the widest first."""
        yield Scope()
        if self.topic is not None:
            yield Scope(self.topic)
        if self.partition is not None:
            yield self


class Shift(NamedTuple):
    """Another position of a partition: it counts only where the same topic stands at `start` indeed."""

    start: int
    end: int
    topic_id: str
    """Of the source topic."""


@dataclass(frozen=True)
class Command:
    """One act that is no change of a list."""

    kind: CommandKind
    scope: Scope
    at: int
    """Milliseconds since the epoch."""
    who: str
    """user@host."""
    why: str = ""
    shift: Shift | None = None
    """Of an act on offsets."""
    host: str = ""
    """Of one that is about the drivers of a host."""

    @property
    def said(self) -> str:
        """What was done, without who and why."""
        if self.host:
            return escaped(f"{self.kind.value} {self.host}")
        if self.shift is not None:
            return escaped(f"{self.kind.value} {self.scope} {self.shift.start} to {self.shift.end}")
        return escaped(f"{self.kind.value} {self.scope}")

    @property
    def held(self) -> str:
        """Why something stands still, where this is a pause."""
        return f"paused by {escaped(self.who)}" + (f": {escaped(self.why)}" if self.why else "")

    def __str__(self) -> str:
        return f"{self.said} by {escaped(self.who)}{in_brackets(self.why)}"


AnyAct = Act | Command
_KINDS = {kind.value: kind for kind in CommandKind}


@dataclass
class CommandState:
    """What all of these acts add up to."""

    pauses: dict[Scope, Command] = field(default_factory=dict)
    """In force."""
    restarts: dict[str, Command] = field(default_factory=dict)
    """Id → act, all of that kind."""
    shifts: dict[str, Command] = field(default_factory=dict)
    """Id → act on offsets whose partition has been paused since before; what came of it is not known here."""
    drained: dict[str, Command] = field(default_factory=dict)
    """Host → act, in force."""

    def take(self, act_id: str, command: Command) -> None:
        """One more."""
        if command.kind is CommandKind.PAUSE:
            self.pauses[command.scope] = command
        elif command.kind is CommandKind.RESUME:
            self.pauses.pop(command.scope, None)
            self.shifts = {act: shift for act, shift in self.shifts.items() if pause_of(self.pauses, shift.scope)}
        elif command.kind is CommandKind.RESTART:
            self.restarts[act_id] = command
        elif command.kind is CommandKind.DRAIN:
            self.drained[command.host] = command
        elif command.kind is CommandKind.RETURN:
            self.drained.pop(command.host, None)
        elif pause_of(self.pauses, command.scope):
            self.shifts[act_id] = command


def pause_of(pauses: Mapping[Scope, Command], scope: Scope) -> Command | None:
    """What holds all of `scope`: the widest pause; None where nothing does."""
    return next((pauses[each] for each in scope.around() if each in pauses), None)


def scope_of(partition: TopicPartition) -> Scope:
    """A partition as what an act is about."""
    return Scope(partition.topic, partition.partition)


def encode(act: AnyAct) -> bytes:
    """Value of an act, compact JSON; what is empty is left out."""
    if isinstance(act, Act):
        return encode_act(act)
    scope = {name: value for name, value in vars(act.scope).items() if value is not None}
    why = {"why": act.why} if act.why else {}
    shift = {"shift": act.shift} if act.shift is not None else {}
    host = {"host": act.host} if act.host else {}
    document = {"v": VERSION, "kind": act.kind.value, **scope, **host, **shift, "at": act.at, "who": act.who, **why}
    return compact_json(document)


def decode(key: bytes | None, value: bytes | None) -> AnyAct:
    """Read an act of any kind. Raises ActNotUnderstood and CodecError as `decode_act` does."""
    document = act_document(key, value)
    kind = document.get("kind")
    if isinstance(kind, str) and kind in _KINDS:
        return _command(_KINDS[kind], document)
    return decode_act(key, value)


def act_id(key: bytes | None) -> str:
    """The unique part of an act's key."""
    return str(json.loads(key or b"")[1])


def _command(kind: CommandKind, document: Mapping[str, Any]) -> Command:
    try:
        scope = Scope(document.get("topic"), document.get("partition"))
        at, who, why = document["at"], document["who"], document.get("why", "")
        if not is_moment(at) or not isinstance(who, str) or not isinstance(why, str) or not _is_sound(scope):
            raise ValueError("a field has a value of another type")
        shift = _shift(document["shift"], scope) if kind is CommandKind.OFFSETS else None
        host = document["host"] if kind in OF_HOSTS else ""
        if not isinstance(host, str) or bool(host) != (kind in OF_HOSTS):
            raise ValueError(f"{host!r} is no host")
    except (KeyError, TypeError, ValueError) as error:
        raise CodecError(f"no act: {error}") from error
    return Command(kind, scope, at, who, why, shift, host)


def _shift(found: object, scope: Scope) -> Shift:
    if not isinstance(found, list) or len(found) != len(Shift._fields) or scope.partition is None:
        raise ValueError(f"{found!r} says not from where to where, and of which partition")
    start, end, topic_id = found
    if not isinstance(topic_id, str):
        raise ValueError(f"{topic_id!r} is no id of a topic")
    return Shift(_number(start), _number(end), topic_id)


def _is_sound(scope: Scope) -> bool:
    if scope.topic is None:
        return scope.partition is None
    return isinstance(scope.topic, str) and (scope.partition is None or _number(scope.partition) >= 0)


def _number(found: object) -> int:
    if type(found) is not int or found < 0:
        raise ValueError(f"{found!r} is no number")
    return found
