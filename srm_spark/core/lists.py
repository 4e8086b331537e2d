"""Allow and deny lists that are changed while flows run: what a change is, its bytes, and what all of them add up to.

A record here is one act: what one command added to and took off both lists of one kind, when, by whom and why. It has a
key of its own, so the compacted topic keeps every act, and the lists are what the acts make of empty ones, in the order
of the log:

```
key   ["act","6f0c…"]
value {"v":1,"kind":"topics","add":["orders"],"at":1700000000000,"who":"ann@host","why":"the shop moves"}
```

So a command of up to 500 kB is atomic, two at once both count, and who did what stays known. A larger one comes in
parts, what narrows first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from srm_spark.core.compact_json import compact_json
from srm_spark.core.filters import require_usable
from srm_spark.core.wording import SHOWN, escaped
from srm_spark.errors import ActNotUnderstood, CodecError, PatternError

VERSION = 1
ACT_BYTES = 500_000
"""Of one act. Clients and brokers refuse records above 1 MB unless they are told otherwise."""
_KIND = "act"
_LAST_MOMENT = 253_402_300_799_999
"""The end of the year 9999: no later one can be written."""
_IN_ORDER = ("remove", "add_deny", "add", "remove_deny")
"""Of the parts of an act: what narrows comes first, so that nothing begins to flow that a later part keeps out."""


class ListKind(Enum):
    """What a pair of lists is about; the value is the command's word."""

    TOPICS = "topics"
    GROUPS = "groups"
    REVERSE = "reverse-checkpointed-topics"


@dataclass(frozen=True)
class Lists:
    """Both lists of one kind; entries are names or Java regexes, as they were added, in that order."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether neither has an entry."""
        return not (self.allow or self.deny)


NO_LISTS = Lists()


@dataclass(frozen=True)
class Change:
    """What is added to and taken off both lists of one kind."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    add_deny: tuple[str, ...] = ()
    remove_deny: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.remove or self.add_deny or self.remove_deny)

    def __str__(self) -> str:
        return self._told(None)

    def short(self) -> str:
        """The same for a line of a log, where a list may be long."""
        return self._told(SHOWN)

    def _told(self, shown: int | None) -> str:
        parts = (("+", self.add), ("-", self.remove), ("deny +", self.add_deny), ("deny -", self.remove_deny))
        return " ".join(f"{sign}{_first(entries, shown)}" for sign, entries in parts if entries)

    def on(self, lists: Lists) -> Lists:
        """What it makes of these lists: what it takes off goes first."""
        return Lists(
            _changed(lists.allow, self.add, self.remove), _changed(lists.deny, self.add_deny, self.remove_deny)
        )


def _first(entries: tuple[str, ...], shown: int | None) -> str:
    more = 0 if shown is None else max(0, len(entries) - shown)
    return escaped(",".join(entries[:shown])) + (f" and {more} more" if more else "")


def _changed(entries: tuple[str, ...], added: tuple[str, ...], removed: tuple[str, ...]) -> tuple[str, ...]:
    gone = frozenset(removed)
    return tuple(dict.fromkeys((*(entry for entry in entries if entry not in gone), *added)))


def change_between(before: Lists, after: Lists) -> Change:
    """What turns the entries of one into those of the other; their order may differ."""
    return Change(
        _without(after.allow, before.allow),
        _without(before.allow, after.allow),
        _without(after.deny, before.deny),
        _without(before.deny, after.deny),
    )


def _without(entries: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    known = frozenset(others)
    return tuple(entry for entry in entries if entry not in known)


@dataclass(frozen=True)
class Act:
    """One command."""

    kind: ListKind
    change: Change
    at: int
    """Milliseconds since the epoch."""
    who: str
    """user@host."""
    why: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.change.short()} by {escaped(self.who)}{in_brackets(self.why)}"


def in_brackets(why: str) -> str:
    """A reason behind what was done; nothing where there is none."""
    return f" ({escaped(why)})" if why else ""


@dataclass
class ListState:
    """What the acts read so far add up to."""

    acts: list[Act] = field(default_factory=list)
    """In the order of the log."""
    lists: dict[ListKind, Lists] = field(default_factory=dict)

    def of(self, kind: ListKind) -> Lists:
        """Both lists of a kind."""
        return self.lists.get(kind, NO_LISTS)

    def take(self, act: Act) -> None:
        """One more act."""
        self.acts.append(act)
        self.lists[act.kind] = act.change.on(self.of(act.kind))

    def origin(self, kind: ListKind, entry: str, *, is_deny: bool) -> Act | None:
        """The newest act that added an entry."""
        added = (
            a
            for a in reversed(self.acts)
            if a.kind is kind and entry in (a.change.add_deny if is_deny else a.change.add)
        )
        return next(added, None)


def act_key(unique: str) -> bytes:
    """Key of an act, compact JSON; `unique` is nobody else's."""
    return compact_json([_KIND, unique])


def encode_act(act: Act) -> bytes:
    """Value of an act, compact JSON; what is empty is left out."""
    entries = {name: list(value) for name, value in vars(act.change).items() if value}
    why = {"why": act.why} if act.why else {}
    return compact_json({"v": VERSION, "kind": act.kind.value, **entries, "at": act.at, "who": act.who, **why})


def decode_act(key: bytes | None, value: bytes | None) -> Act:
    """Read an act.

    Raises ActNotUnderstood for one that only another version can read: without it nobody knows the lists. Raises
    CodecError for what is no act at all.
    """
    document = act_document(key, value)
    try:
        change = Change(*(_entries(document.get(name, [])) for name in ("add", "remove", "add_deny", "remove_deny")))
        kind, at = ListKind(document["kind"]), document["at"]
        who, why = document["who"], document.get("why", "")
    except (KeyError, ValueError) as error:
        raise CodecError(f"no act: {error}") from error
    if not is_moment(at) or not isinstance(who, str) or not isinstance(why, str):
        raise CodecError("no act: a field has a value of another type, or a time that is none")
    for entry in (*change.add, *change.add_deny):
        try:
            require_usable(entry)
        except PatternError as error:
            raise ActNotUnderstood(f"it adds an entry that cannot be used here: {error}") from error
    return Act(kind, change, at, who, why)


def act_document(key: bytes | None, value: bytes | None) -> Mapping[str, Any]:
    """The fields of an act, of whatever kind.

    Raises ActNotUnderstood for one of a newer version, CodecError for what is no act.
    """
    try:
        kind, _ = json.loads(key or b"")
        document = json.loads(value or b"")
    except (TypeError, ValueError, RecursionError) as error:
        raise CodecError(f"no act: {error}") from error
    if kind != _KIND or not isinstance(document, dict):
        raise CodecError("no act: other fields")
    version = document.get("v")
    if type(version) is int and version > VERSION:
        raise ActNotUnderstood(f"it was written by a newer srm-spark (version {version} of its form): upgrade this one")
    if version != VERSION:
        raise CodecError(f"no act: version {version!r}")
    return document


def is_moment(at: object) -> bool:
    """Whether it is milliseconds since the epoch that a date can be made of."""
    return type(at) is int and 0 <= at <= _LAST_MOMENT


def _entries(found: object) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(entry, str) and entry for entry in found):
        raise ValueError(found)
    return tuple(found)


def in_parts(act: Act, limit: int = ACT_BYTES) -> Iterator[Act]:
    """The same as acts that fit into a record each; only one that is too large loses that it is atomic."""
    if len(encode_act(act)) <= limit:
        yield act
        return
    each = [Change(**{name: (entry,)}) for name in _IN_ORDER for entry in getattr(act.change, name)]
    middle = len(each) // 2
    if not middle:
        yield act  # nobody can make it smaller
        return
    for part in (each[:middle], each[middle:]):
        yield from in_parts(replace(act, change=_joined(part)), limit)


def _joined(changes: list[Change]) -> Change:
    return Change(**{name: tuple(entry for one in changes for entry in getattr(one, name)) for name in _IN_ORDER})
