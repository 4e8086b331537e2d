"""The one rule by which the patterns of a file and the lists of `srm-control` are combined. No I/O.

A topic flows where a pattern of the file or an entry of the allow list matches it, and no exclusion of the file nor
entry of the deny list does. So it is with groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from srm_spark.core.filters import NameFilter, is_name
from srm_spark.core.lists import NO_LISTS, ListKind, Lists
from srm_spark.core.patterns import LINE_ENDS, JavaPatterns, compile_entry

RULES = {
    ListKind.TOPICS: "a topic flows where a pattern of the file or an entry of the allow list matches it, "
    "and no exclusion of the file nor entry of the deny list does",
    ListKind.GROUPS: "a group is taken where a pattern of the file or an entry of the allow list matches it, "
    "and no exclusion of the file nor entry of the deny list does",
    ListKind.REVERSE: "a group's position on a remote topic goes back where the allow list is empty or an entry of it "
    "matches the topic or what it is a copy of, and no entry of the deny list does",
}


class Entries:
    """Entries of one list. Each is a pattern of its own: joined, flags of one would reach the next ones.

    Nothing is compiled of what is a name but for its dots: 10,000 of them would take seconds at each change.
    """

    def __init__(self, entries: Collection[str]) -> None:
        """Raises PatternError for one that cannot be used."""
        self._names = frozenset(filter(is_name, entries))
        self._dotted = DottedNames(name for name in entries if "." in name and name in self._names)
        self._patterns: list[tuple[str, JavaPatterns]] = [
            (entry, compile_entry(entry)) for entry in entries if entry not in self._names
        ]

    def first(self, name: str) -> str | None:
        """An entry that matches the whole name: the name itself, a name with other dots, or the first pattern."""
        if name in self._names:
            return name
        if (dotted := self._dotted.of(name)) is not None:
            return dotted
        return next((entry for entry, pattern in self._patterns if pattern.matches(name)), None)


class DottedNames:
    """Names of which each dot matches any character, as in a pattern; looked up by length and by where dots are."""

    def __init__(self, names: Iterable[str]) -> None:
        self._shapes: dict[int, dict[tuple[int, ...], set[str]]] = {}
        for name in names:
            dots = tuple(at for at, char in enumerate(name) if char == ".")
            self._shapes.setdefault(len(name), {}).setdefault(dots, set()).add(name)

    def of(self, name: str) -> str | None:
        """One that matches the whole name."""
        shapes = self._shapes.get(len(name), {})
        dotted = (_with_dots(name, dots) for dots in shapes)
        return next((found for found, known in zip(dotted, shapes.values(), strict=True) if found in known), None)


def _with_dots(name: str, dots: tuple[int, ...]) -> str:
    chars = list(name)
    for at in dots:
        chars[at] = chars[at] if chars[at] in LINE_ENDS else "."
    return "".join(chars)


@dataclass(frozen=True)
class _Listed:
    """Lists, ready to be matched."""

    lists: Lists
    allow: Entries
    deny: Entries


class ListedFilter(NameFilter):
    """A filter of a file together with its lists, which may be others at any time, from any thread."""

    file: NameFilter
    _listed: _Listed
    _steps_back: bool

    def __init__(self, file: NameFilter, lists: Lists = NO_LISTS, *, steps_back: bool = False) -> None:
        """With `steps_back` the file counts only while the allow list is empty."""
        super().__init__(file.include, file.exclude)
        object.__setattr__(self, "file", file)
        object.__setattr__(self, "_steps_back", steps_back)
        self.take(lists)

    @property
    def lists(self) -> Lists:
        """Those that count now; another object where they were changed."""
        return self._listed.lists

    @property
    def wanted(self) -> tuple[str, ...]:
        """All patterns that take names."""
        return tuple(dict.fromkeys((*self.include, *self.lists.allow)))

    @property
    def is_idle(self) -> bool:
        """Whether nobody has chosen anything; a class of the user's own may take names whatever its patterns."""
        return not self.wanted and type(self.file) is NameFilter

    def take(self, lists: Lists) -> None:
        """These count from now on."""
        object.__setattr__(self, "_listed", _Listed(lists, Entries(lists.allow), Entries(lists.deny)))

    def matches(self, name: str) -> bool:
        """Whether the filter takes a name, by the rule above."""
        listed = self._listed
        if listed.deny.first(name) is not None:
            return False
        if not (self._steps_back and listed.lists.allow) and self.file.matches(name):
            return True
        return listed.allow.first(name) is not None and self.file.excluded_by(name) is None

    def matches_any(self, *names: str) -> bool:
        """The same of a thing of several names: one that is taken, and none on the deny list."""
        return any(map(self.matches, names)) and not any(self.denied_by(name) is not None for name in names)

    def included_by(self, name: str) -> str | None:
        """What of file or allow list matches first."""
        return self.file.included_by(name) or self._listed.allow.first(name)

    def excluded_by(self, name: str) -> str | None:
        """What of file or deny list leaves a name out."""
        return self.file.excluded_by(name) or self.denied_by(name)

    def denied_by(self, name: str) -> str | None:
        """The entry of the deny list that leaves a name out."""
        return self._listed.deny.first(name)

    def idle(self, names: Collection[str]) -> tuple[str, ...]:
        """The patterns of the file and entries of the allow list that match none of the names."""
        entries = [entry for entry in self.lists.allow if entry not in self.include]
        return *self.file.idle(names), *(one for one in entries if not any(map(Entries((one,)).first, names)))


@dataclass(frozen=True)
class Filters:
    """The filters of one flow; each is the same object as long as it runs."""

    topics: ListedFilter
    groups: ListedFilter
    reverse: ListedFilter
    """Remote topics whose readers may go back."""

    def of(self, kind: ListKind) -> ListedFilter:
        """The one that the lists of a kind steer."""
        return {ListKind.TOPICS: self.topics, ListKind.GROUPS: self.groups, ListKind.REVERSE: self.reverse}[kind]

    def take(self, lists: Mapping[ListKind, Lists]) -> set[ListKind]:
        """These lists count from now on; the kinds of which they are others."""
        changed = {kind for kind in ListKind if lists.get(kind, NO_LISTS) != self.of(kind).lists}
        for kind in changed:
            self.of(kind).take(lists.get(kind, NO_LISTS))
        return changed
