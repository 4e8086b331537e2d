"""What only several flows together show: two flows into one topic, records or quotas that go round for ever, aliases.

Patterns cannot be compared in general, so each claim rests on a witness: the name of a topic that both would take.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from srm_spark.config.keys_connector import PROVENANCE_KEY, QUOTAS_KEY
from srm_spark.config.rights import acl_name
from srm_spark.config.settings import FlowSettings
from srm_spark.config.source import Sources
from srm_spark.config.values import Report
from srm_spark.core.filter_plugins import TOPICS, load_filter
from srm_spark.core.filters import NameFilter, is_internal
from srm_spark.core.model import Flow
from srm_spark.core.policy import IdentityReplicationPolicy, ReplicationPolicy, is_cycle
from srm_spark.errors import PatternError, PluginError

_EXAMPLE = "orders"
_REWRITES = (
    (re.compile(r"\\([.\-_])"), r"\1"),
    (re.compile(r"\(\?[a-z:<!=]*"), "("),
    (re.compile(r"\(([^()|]*)(?:\|[^()]*)?\)[*+?]?"), r"\1"),
    (re.compile(r"\[\^[^\]]*\](?:[*+?]|\{[^}]*\})?"), "x"),
    (re.compile(r"\[\\?(.)[^\]]*\](?:[*+?]|\{[^}]*\})?"), r"\1"),
    (re.compile(r"\\[dw](?:[*+?]|\{[^}]*\})?"), "1"),
    (re.compile(r"\.(?:[*+?]|\{[^}]*\})"), "x"),
    (re.compile(r"[\^$]"), ""),
)


@dataclass(frozen=True)
class _Route:
    """What a flow does to a name."""

    settings: FlowSettings
    policy: ReplicationPolicy
    takes: NameFilter

    @property
    def flow(self) -> Flow:
        return self.settings.flow

    def names(self, topic: str) -> bool:
        """Whether the topic itself is listed, not only a pattern that matches it."""
        return any(acl_name(pattern) == topic for pattern in self.settings.topics.include)

    def remote(self, topic: str) -> str | None:
        """The remote name; None for a topic that does not flow."""
        if not self.takes.matches(topic) or is_internal(topic, self.policy):
            return None
        if is_cycle(self.policy, topic, self.flow.target):
            return None
        return self.policy.format_remote_topic(self.flow.source, topic)


class Topology:
    """Checks all enabled flows together."""

    def __init__(self, sources: Sources, report: Report) -> None:
        self._sources = sources
        self._report = report

    def check(self, flows: Sequence[FlowSettings]) -> None:
        """Reports what does not go together."""
        routes = [route for settings in flows if (route := self._route(settings)) is not None]
        for route in routes:
            self._aliases(route)
        witnesses = sorted(_witnesses(routes))
        self._same_topic(routes, witnesses)
        self._loops(routes, witnesses)
        self._quotas([settings.flow for settings in flows if settings.acls.quotas_seconds is not None])

    def _place(self, flow: Flow, name: str) -> tuple[str, str]:
        """Where `name` was said for a flow."""
        for key in (f"{flow}.{name}", f"connectors.{name}", name, f"{flow}.enabled"):
            if (entry := self._sources.entries.get(key)) is not None:
                return entry.place, entry.key
        return self._sources.name, name

    def _route(self, settings: FlowSettings) -> _Route | None:
        policy, takes = self._policy(settings), self._filter(settings)
        return _Route(settings, policy, takes) if policy is not None and takes is not None else None

    def _policy(self, settings: FlowSettings) -> ReplicationPolicy | None:
        topics = settings.topics
        try:
            return settings.policy()
        except PluginError as error:
            place, key = self._place(settings.flow, error.key)
            self._report.problem(place, key, f"got {topics.policy_class}: {error.message}", error.hint)
            return None

    def _filter(self, settings: FlowSettings) -> NameFilter | None:
        topics = settings.topics
        try:
            return load_filter(TOPICS, topics.filter_class, topics.include, topics.exclude)
        except (PluginError, PatternError):
            return None  # reported where they are written

    def _aliases(self, route: _Route) -> None:
        separator = getattr(route.policy, "separator", None)
        if not isinstance(separator, str) or not separator:
            return
        for alias in (route.flow.source, route.flow.target):
            if separator in alias:
                place = self._sources.place_of("clusters")
                message = f"got alias {alias!r}, which contains the separator {separator!r} of {route.flow}"
                if isinstance(route.policy, IdentityReplicationPolicy):
                    self._report.warn(place, "clusters", f"{message}: its heartbeats will not be recognised")
                else:
                    hint = "remote topics would not be recognised; rename it or set replication.policy.separator"
                    self._report.problem(place, "clusters", message, hint)

    def _same_topic(self, routes: Sequence[_Route], witnesses: Iterable[str]) -> None:
        """A topic that two flows name is a problem; where only patterns meet, the sources may have different topics."""
        reported: set[frozenset[Flow]] = set()
        for is_sure, topic in itertools.product((True, False), witnesses):
            writers: dict[tuple[str, str], _Route] = {}
            for route in routes:
                remote = route.remote(topic)
                if remote is None or (is_sure and not route.names(topic)):
                    continue
                other = writers.setdefault((route.flow.target, remote), route)
                pair = frozenset((route.flow, other.flow))
                if other is not route and pair not in reported:
                    reported.add(pair)
                    self._report_same(other, route, topic, remote, is_sure=is_sure)

    def _report_same(self, first: _Route, second: _Route, topic: str, remote: str, *, is_sure: bool) -> None:
        place, key = self._place(second.flow, "topics")
        other, _ = self._place(first.flow, "topics")
        flows = f"flows {first.flow} ({other}) and {second.flow}"
        to = f"{remote} on {second.flow.target}"
        remedy = "give the flows topics that do not overlap, or use DefaultReplicationPolicy"
        is_held = any(route.settings.policies.stops("foreign.writer.policy", topic) for route in (first, second))
        if not is_held:
            self._report.warn(place, key, f"{flows} may mix their records, for instance in {to}")
        elif is_sure:
            hint = f"{remedy}; where their records are to be mixed, set foreign.writer.policy = resume"
            self._report.problem(place, key, f"got {flows} that both write to {to}", hint)
        else:
            case = f"if both sources have one topic, for instance {topic}, {flows} both write to {to}"
            self._report.warn(
                place, key, f"{case}, and it is held where they meet; {remedy}, or set foreign.writer.policy = resume"
            )

    def _loops(self, routes: Sequence[_Route], witnesses: Iterable[str]) -> None:
        """A ring is fine where all of its flows recognise copies by their provenance."""
        reported: set[frozenset[str]] = set()
        for topic in witnesses:
            keeping = [route for route in routes if route.remote(topic) == topic]
            starts = [route.flow for route in keeping if not route.settings.provenance_enabled]
            for flow, ring in _rings([route.flow for route in keeping], starts):
                if frozenset(ring) not in reported:
                    reported.add(frozenset(ring))
                    self._report_ring(flow, ring, topic)

    def _report_ring(self, flow: Flow, ring: Sequence[str], topic: str) -> None:
        place, key = self._place(flow, "topics")
        self._report.problem(
            place,
            key,
            f"got a ring {'->'.join(ring)} that keeps names: a record of topic {topic} would go round for ever",
            f"set {PROVENANCE_KEY} = true for all of its flows, give them topics that do not overlap, or use "
            "DefaultReplicationPolicy",
        )

    def _quotas(self, flows: Sequence[Flow]) -> None:
        """In a ring each copy is the source of the next one: a quota that is taken back comes back from there."""
        for flow, ring in _rings(flows, flows):
            names = [str(Flow(*pair)) for pair in itertools.pairwise(ring)]
            place, key = self._place(flow, QUOTAS_KEY)
            self._report.problem(
                place,
                key,
                f"got true for {' and '.join(names)}: a quota that is deleted would come back from its copy",
                f"leave one of them out, for instance {names[-1]}.{QUOTAS_KEY} = false",
            )


def _rings(flows: Iterable[Flow], starts: Iterable[Flow]) -> Iterator[tuple[Flow, list[str]]]:
    """Rings of `flows` that a flow of `starts` is in: the first such flow, and the aliases from its source back to it.

    Of rings through the same clusters one is found.
    """
    edges: dict[str, list[str]] = {}
    for flow in sorted(flows):
        edges.setdefault(flow.source, []).append(flow.target)
    found: set[frozenset[str]] = set()
    for flow in sorted(starts):
        way = _way(edges, flow.target, flow.source)
        if way and frozenset(way) not in found:
            found.add(frozenset(way))
            yield flow, [flow.source, *way]


def _way(edges: Mapping[str, Sequence[str]], start: str, end: str) -> list[str]:
    """Aliases from `start` to `end`, both included; empty if there is no way."""
    ways, seen = [[start]], {start}
    for way in ways:  # grows: the shortest one is found first
        if way[-1] == end:
            return way
        further = [alias for alias in edges.get(way[-1], ()) if alias not in seen]
        seen.update(further)
        ways.extend([*way, alias] for alias in further)
    return []


def _witnesses(routes: Iterable[_Route]) -> set[str]:
    """Names that stand for the patterns: each literal, and an example of each simple expression."""
    names = {_EXAMPLE}
    for route in routes:
        for pattern in route.settings.topics.include:
            names.update(_examples(pattern))
    return names


def _examples(pattern: str) -> Iterator[str]:
    for part in pattern.split("|") if "(" not in pattern else [pattern]:
        text = part
        for expression, replacement in _REWRITES:
            text = expression.sub(replacement, text)
        if text and re.fullmatch(r"[\w.\-]+", text):
            yield text
