"""What of a wanted change of lists is done, what is declined, and what there is to know about the rest. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from srm_spark.core.filters import NameFilter, is_name, require_usable
from srm_spark.core.listed_filter import ListedFilter
from srm_spark.core.lists import Change, ListKind, Lists
from srm_spark.core.wording import escaped
from srm_spark.errors import PatternError

OPTIONS = ("--add", "--remove", "--add-blacklist", "--remove-blacklist")
LONGEST_ENTRY = 10_000
"""Characters; a name has 249 at most, and an act has to fit into a record."""
_DOES = {ListKind.TOPICS: "flows", ListKind.GROUPS: "is taken", ListKind.REVERSE: "goes back"}
_DOES_NOT = {ListKind.TOPICS: "does not flow", ListKind.GROUPS: "is not taken", ListKind.REVERSE: "does not go back"}


@dataclass(frozen=True)
class FileRules:
    """What a configuration file says of the same names."""

    takes: NameFilter
    include_place: str
    """`file:line: key` of its patterns."""
    exclude_place: str
    """The same of its exclusions."""


@dataclass(frozen=True)
class Decision:
    """What is to be done."""

    change: Change
    """That is written; may be empty."""
    after: Lists
    """The lists behind it."""
    remarks: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    """What is not done, and why."""


def problems_of(change: Change, names: tuple[str, str, str, str] = OPTIONS) -> tuple[str, ...]:
    """Everything that hinders a change, each with the place of its entry; empty where it can be done.

    `names` say where its parts stand: what is added, removed, added to and removed from the deny list.
    """
    add, remove, add_deny, remove_deny = names
    problems = [
        f"{name}, entry {number}: {said}"
        for name, entries in ((add, change.add), (add_deny, change.add_deny))
        for number, entry in enumerate(entries, 1)
        if (said := _problem(entry)) is not None
    ]
    for one, other, both in (
        (add, remove, frozenset(change.add) & frozenset(change.remove)),
        (add_deny, remove_deny, frozenset(change.add_deny) & frozenset(change.remove_deny)),
    ):
        problems += [f"{entry}: both {one} and {other} name it" for entry in sorted(both)]
    return tuple(problems)


def _problem(entry: str) -> str | None:
    if len(entry) > LONGEST_ENTRY:
        return f"{escaped(entry[:20])}… has {len(entry)} characters, {LONGEST_ENTRY} are allowed"
    if not entry.isprintable():
        return f"{escaped(entry)} has characters that cannot be shown: write \\xhh for one in a regex"
    try:
        require_usable(entry)
    except PatternError as error:
        return str(error)
    return None


def decide(kind: ListKind, wanted: Change, lists: Lists, file: FileRules | None) -> Decision:
    """What of `wanted` is done to these lists; without `file` nothing is known of what it says."""
    allow, deny = frozenset(lists.allow), frozenset(lists.deny)
    change = Change(
        tuple(entry for entry in wanted.add if entry not in allow),
        tuple(entry for entry in wanted.remove if entry in allow),
        tuple(entry for entry in wanted.add_deny if entry not in deny),
        tuple(entry for entry in wanted.remove_deny if entry in deny),
    )
    after = change.on(lists)
    teller = _Teller(kind, after, file)
    return Decision(
        change,
        after,
        tuple(_each(teller.of_added, change.add))
        + tuple(f"{entry} is on the allow list already" for entry in wanted.add if entry in allow)
        + tuple(_each(teller.of_removed, change.remove))
        + tuple(_each(teller.of_denied, change.add_deny))
        + tuple(f"{entry} is on the deny list already" for entry in wanted.add_deny if entry in deny)
        + tuple(_each(teller.of_undenied, change.remove_deny)),
        tuple(teller.not_allowed(entry) for entry in wanted.remove if entry not in allow)
        + tuple(teller.not_denied(entry) for entry in wanted.remove_deny if entry not in deny),
    )


def _each(tell: Callable[[str], Iterator[str]], entries: Iterable[str]) -> Iterator[str]:
    return (said for entry in entries for said in tell(entry))


class _Teller:
    """What there is to know about one entry, where the lists are as they are after the change."""

    def __init__(self, kind: ListKind, after: Lists, file: FileRules | None) -> None:
        self._does, self._does_not = _DOES[kind], _DOES_NOT[kind]
        self._file = file
        steps_back = kind is ListKind.REVERSE
        takes = file.takes if file is not None else NameFilter((".*",) if steps_back else ())
        self._filter = ListedFilter(takes, after, steps_back=steps_back)
        self._has_open_list = steps_back and not after.allow

    def of_added(self, entry: str) -> Iterator[str]:
        """To the allow list."""
        if self._file is not None and (pattern := self._in_file(entry)) is not None:
            yield f"{entry}: the file takes it already, by {pattern} ({self._file.include_place})"
        if is_name(entry) and (why := self._left_out(entry)) is not None:
            yield f"{entry} {self._does_not} all the same: {why}"

    def of_removed(self, entry: str) -> Iterator[str]:
        """From the allow list."""
        if is_name(entry) and (why := self._taken(entry)) is not None:
            yield f"{entry} {self._does} all the same: {why}; --add-blacklist {entry} leaves it out"

    def of_denied(self, entry: str) -> Iterator[str]:
        """To the deny list."""
        if self._file is not None and entry in self._file.takes.exclude:
            yield f"{entry}: the file leaves it out already ({self._file.exclude_place})"

    def of_undenied(self, entry: str) -> Iterator[str]:
        """From the deny list."""
        if is_name(entry) and (why := self._left_out(entry)) is not None:
            yield f"{entry} {self._does_not} all the same: {why}"

    def not_allowed(self, entry: str) -> str:
        """Why it cannot be taken off the allow list."""
        if self._file is not None and entry in self._file.takes.include:
            return (
                f"{entry} stands in the file and not on the allow list: --add-blacklist {entry} leaves it out, "
                f"or change the file ({self._file.include_place})"
            )
        if is_name(entry) and (why := self._taken(entry)) is not None:
            return f"{entry} is not on the allow list; it {self._does}: {why}; --add-blacklist {entry} leaves it out"
        return f"{entry} is not on the allow list"

    def not_denied(self, entry: str) -> str:
        """Why it cannot be taken off the deny list."""
        if self._file is not None and entry in self._file.takes.exclude:
            return f"{entry} stands in the file and not on the deny list: change the file ({self._file.exclude_place})"
        if is_name(entry) and (why := self._left_out(entry)) is not None:
            return f"{entry} is not on the deny list; it {self._does_not}: {why}"
        return f"{entry} is not on the deny list"

    def _in_file(self, entry: str) -> str | None:
        """The pattern of the file that is the entry, or matches it where it is a name."""
        takes = self._filter.file
        if entry in takes.include:
            return entry
        return takes.included_by(entry) if is_name(entry) and takes.matches(entry) else None

    def _taken(self, name: str) -> str | None:
        if not self._filter.matches(name):
            return None
        if self._has_open_list:
            return "the allow list is empty, so that all are taken"
        if self._file is not None and (pattern := self._filter.file.included_by(name)) is not None:
            return f"the file has {pattern} ({self._file.include_place})"
        return f"the allow list has {self._filter.included_by(name)}"

    def _left_out(self, name: str) -> str | None:
        if (entry := self._filter.denied_by(name)) is not None:
            return f"the deny list has {entry}"
        if self._file is not None and (pattern := self._filter.file.excluded_by(name)) is not None:
            return f"the file leaves out {pattern} ({self._file.exclude_place})"
        return None
