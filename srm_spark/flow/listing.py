"""Looks at the lists of a flow and changes them, for whoever asks: `srm-control` or the service.

They lie on the target: no driver has to run, the source may be down, and a driver that runs follows them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

from srm_spark.config.load import Loaded
from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster
from srm_spark.core.list_changes import Decision, FileRules, decide
from srm_spark.core.lists import Act, Change, ListKind, Lists
from srm_spark.errors import PatternError
from srm_spark.flow.clusters import Connect, connect, filters_of, target_of
from srm_spark.flow.list_effects import Effect, effect_of, matches_of, may_go_round
from srm_spark.flow.slow_patterns import slow_ones
from srm_spark.flow.topics.list_writer import ListWriter

_SECONDS = 30.0
"""Somebody is waiting."""


@dataclass(frozen=True)
class ListPlace:
    """Where the lists are, and what is known around them."""

    settings: FlowSettings
    file: FileRules | None
    """What a file says of the same names; None without one."""
    flows: Sequence[FlowSettings]
    """All of the file."""
    producer: Mapping[str, str] = field(default_factory=dict, repr=False)
    consumer: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_enabled: bool = True
    """Whether the flow is enabled in the file; where there is none it is not asked for."""
    reach: Connect = connect
    target: Callable[[FlowSettings, str], Cluster] = target_of

    @contextmanager
    def writer(self) -> Iterator[ListWriter]:
        """What reads and changes them."""
        settings = self.settings.within(_SECONDS)
        target = self.target(settings, "srm-control lists")
        reads = None
        if self.consumer:
            properties = {**settings.target.properties, **self.consumer}
            other = replace(settings, target=replace(settings.target, properties=properties))
            reads = self.target(other, "srm-control")
        lists = ListWriter(
            target,
            settings.flow.source,
            reads=reads,
            producer=self.producer,
            replication_factor=None if self.file is None else settings.control_replication_factor,
        )
        with closing(lists):
            yield lists

    def matches(self, kind: ListKind, entries: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """What of the source each entry matches now. Raises SourceUnavailable."""
        return matches_of(self.settings, kind, entries, self.reach)


@dataclass(frozen=True)
class Listed:
    """What became of a change, or would become of it."""

    decision: Decision
    after: Lists
    """The lists behind it."""
    effect: Effect | None = None
    """What would begin and stop, where it was only tried."""
    warnings: tuple[str, ...] = ()
    """What there is to know about the flow as a whole."""


def change_lists(
    place: ListPlace,
    lists: ListWriter,
    kind: ListKind,
    wanted: Change,
    *,
    before: Lists,
    who: str,
    why: str = "",
    is_dry_run: bool = False,
) -> Listed:
    """Do what of `wanted` can be done to the lists as they are `before`; `who` is user@host.

    Raises PatternError for a pattern that would stop drivers, TargetUnavailable; where a change does not come back in
    time it may count all the same.
    """
    decision = decide(kind, wanted, before, place.file)
    _refuse_slow(decision.change)
    warnings = tuple(_warnings(place, kind, decision.change))
    if decision.change and not is_dry_run:
        state = lists.write(Act(kind, decision.change, int(time.time() * 1000), who, why))
        return Listed(decision, state.of(kind), None, warnings)
    effect = None
    if is_dry_run and place.file is not None:
        effect = effect_of(place.settings, kind, decision.after, place.reach)
    return Listed(decision, decision.after, effect, warnings)


def file_rules(found: Loaded, settings: FlowSettings, kind: ListKind) -> FileRules:
    """What the file says of the same names; of topics that go back it says nothing."""
    takes = filters_of(settings).of(kind).file
    if kind is ListKind.REVERSE:
        return FileRules(takes, "", "")
    connector = found.resolver.connector(settings.flow)

    def place(*names: str) -> str:
        settings_of = [setting for name in names if (setting := connector.get(name)) is not None]
        return f"{settings_of[0].place}: {settings_of[0].key}" if settings_of else f"{names[0]}, by default"

    return FileRules(takes, place(kind.value), place(f"{kind.value}.exclude", f"{kind.value}.blacklist"))


def _warnings(place: ListPlace, kind: ListKind, change: Change) -> Iterator[str]:
    settings = place.settings
    if not place.is_enabled:
        yield f"{settings.flow} is not enabled in these files: its lists count once it is"
    if place.file is None:
        return
    if kind is ListKind.REVERSE and not settings.checkpoints.reverse_enabled:
        yield f"without effect while cloudera.reverse.checkpointing.enabled of {settings.flow} is false"
    if kind is ListKind.TOPICS and change.add and (ring := may_go_round(settings, place.flows)) is not None:
        yield ring


def _refuse_slow(change: Change) -> None:
    for entry in slow_ones((*change.add, *change.add_deny)):
        what = "one match with a long name takes for ever, and drivers would stand still"
        raise PatternError(entry, what, "write no repetition within another one")
