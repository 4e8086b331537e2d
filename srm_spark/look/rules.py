"""Which rule of a flow decides about a name: a pattern of a file with its line, an entry of a list with its author."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from srm_spark.core.filter_plugins import GROUPS, TOPICS, FilterKey, is_kafkas_own
from srm_spark.core.listed_filter import Entries
from srm_spark.core.lists import ListKind, ListState
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.lists import ActLog
from srm_spark.look.answer import Because, Rule


class _Keys(NamedTuple):
    include: str
    exclude: str
    own: FilterKey


_KEYS: Mapping[ListKind, _Keys] = {
    ListKind.TOPICS: _Keys("topics", "topics.exclude", TOPICS),
    ListKind.GROUPS: _Keys("groups", "groups.exclude", GROUPS),
}


@dataclass(frozen=True)
class Decision:
    """What the filter says of a name."""

    is_taken: bool
    because: Because
    why: str
    rule: Rule | None
    remedy: str | None = None


class Rules:
    """The rules of one flow as they are now."""

    def __init__(self, clusters: Clusters, lists: ListState) -> None:
        """The filters of `clusters` are as the `lists` say."""
        self._clusters, self._lists = clusters, lists
        settings = clusters.settings
        self._classes = {
            ListKind.TOPICS: settings.topics.filter_class,
            ListKind.GROUPS: settings.checkpoints.filter_class,
        }

    def place(self, key: str) -> str:
        """Where a property of the flow was written."""
        return self._clusters.settings.places.get(key, f"default of {key}")

    def switch(self, key: str, value: str) -> Rule:
        """A property that decides by its value."""
        return Rule(f"{key} = {value}", self.place(key))

    def decide(self, kind: ListKind, name: str) -> Decision:
        """Whether the flow takes a name, and by which rule."""
        steps = (self._denied, self._by_class, self._by_file, self._listed)
        found = (step(kind, name) for step in steps)
        return next((decision for decision in found if decision is not None), self._unmatched(kind, name))

    def _denied(self, kind: ListKind, name: str) -> Decision | None:
        entry = self._clusters.filters.of(kind).denied_by(name)
        if entry is None:
            return None
        why, rule = f"the deny list of {kind.value} has {entry}", self._entry(kind, entry, is_deny=True)
        return Decision(False, Because.DENIED, why, rule, f"{self._command(kind)} --remove-blacklist '{entry}'")

    def _by_class(self, kind: ListKind, name: str) -> Decision | None:
        """By a filter of the user's own, of which no pattern tells anything."""
        key, own = _KEYS[kind].own, self._classes[kind]
        if is_kafkas_own(key, own):
            return None
        takes, rule = self._clusters.filters.of(kind), self.switch(key.key, own)
        if takes.file.matches(name):
            return Decision(True, Because.FILTER_CLASS, f"{own} takes it", rule)
        if takes.matches(name):
            return self._listed(kind, name)
        remedy = f"change the rule in {own}, or {self._command(kind)} --add '{name}'"
        return Decision(False, Because.FILTER_CLASS, f"{own} does not take it", rule, remedy)

    def _by_file(self, kind: ListKind, name: str) -> Decision | None:
        file, keys = self._clusters.filters.of(kind).file, _KEYS[kind]
        if (pattern := file.excluded_by(name)) is not None:
            rule = Rule(pattern, self.place(keys.exclude))
            remedy = f"set {keys.exclude} without {pattern}; no allow list reaches what a file excludes"
            return Decision(False, Because.EXCLUDED, f"{keys.exclude} has {pattern}", rule, remedy)
        if (pattern := file.included_by(name)) is not None:
            rule = Rule(pattern, self.place(keys.include))
            return Decision(True, Because.INCLUDED, f"{keys.include} has {pattern}", rule)
        return None

    def _listed(self, kind: ListKind, name: str) -> Decision | None:
        entry = Entries(self._clusters.filters.of(kind).lists.allow).first(name)
        if entry is None:
            return None
        why, rule = f"the allow list of {kind.value} has {entry}", self._entry(kind, entry, is_deny=False)
        return Decision(True, Because.INCLUDED, why, rule)

    def _unmatched(self, kind: ListKind, name: str) -> Decision:
        include, what = _KEYS[kind].include, kind.value.removesuffix("s")
        patterns = ", ".join(self._clusters.filters.of(kind).file.include) or "no pattern"
        why = f"no pattern of {include} matches the {what}, nor an entry of the allow list"
        remedy = f"{self._command(kind)} --add '{name}', or add it to {include}"
        return Decision(False, Because.NOT_INCLUDED, why, Rule(patterns, self.place(include)), remedy)

    def _command(self, kind: ListKind) -> str:
        flow = self._clusters.settings.flow
        return f"srm-control {kind.value} --source {flow.source} --target {flow.target}"

    def _entry(self, kind: ListKind, entry: str, *, is_deny: bool) -> Rule:
        topic = self._clusters.settings.control_topic
        place = f"the {'deny' if is_deny else 'allow'} list of {kind.value} in topic {topic}"
        act = self._lists.origin(kind, entry, is_deny=is_deny)
        return Rule(entry, place) if act is None else Rule(entry, place, act.who, act.at, act.why or None)


def rules_of(clusters: Clusters) -> Rules:
    """Read the lists; where nobody ever changed one there is no topic. Raises TargetUnavailable."""
    settings = clusters.settings
    with closing(ActLog(clusters.target, settings.control_topic, f"{settings.flow}|explain")) as acts:
        if acts.is_there:
            acts.refresh()
    clusters.filters.take(acts.state.lists)
    return Rules(clusters, acts.state)
