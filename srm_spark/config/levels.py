"""Which level of a file sets what: MirrorMaker 2's dedicated-mode rules, and SRM's five levels on top.

A `Layered` keeps, for each property of a worker or connector, every setting that claims it, the winner last. The names
and the order follow MirrorMaker 2 (`MirrorMakerConfig`) so exactly that its own class can be the judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from srm_spark.config import keys
from srm_spark.config.keys_client import SECURITY_KEYS
from srm_spark.config.schema import Dialect, Scope
from srm_spark.config.secrets import mask
from srm_spark.config.source import Entry
from srm_spark.core.model import Flow

WORKER_PREFIXES = (
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    "replication.policy",
)
SRM_WORKER_PREFIXES = (*WORKER_PREFIXES, "listeners.https")
CLIENTS = ("producer", "consumer", "admin")


class Level(IntEnum):
    """The levels of SRM's configuration reference, the more specific the higher."""

    DEFAULT = 0
    GLOBAL = 1
    ALL_WORKERS = 2
    ALL_CONNECTORS = 3
    CLUSTER = 4
    REPLICATION = 5

    @property
    def label(self) -> str:
        """The level in words."""
        words = ("default", "global", "workers.", "connectors.", "cluster", "replication")
        return words[self.value]


@dataclass(frozen=True)
class Setting:
    """A value that claims a property, and where it comes from."""

    value: str = field(repr=False)
    level: Level
    key: str
    """The key as written in the file."""
    place: str

    @property
    def shown(self) -> str:
        """The value with secrets masked."""
        return mask(self.key, self.value)


def written(entry: Entry, level: Level) -> Setting:
    """The setting that an entry of the file makes."""
    return Setting(entry.value, level, entry.key, entry.place)


class Layered:
    """Properties with everything that claims them, losers first."""

    def __init__(self) -> None:
        self._stacks: dict[str, list[Setting]] = {}

    def put(self, name: str, *settings: Setting) -> None:
        """Lets `settings` win over all former ones."""
        self._stacks.setdefault(name, []).extend(settings)

    def put_if_absent(self, name: str, *settings: Setting) -> None:
        """Lets `settings` lose against all former ones."""
        self._stacks[name] = [*settings, *self._stacks.get(name, [])]

    def get(self, name: str) -> Setting | None:
        """The winner."""
        stack = self._stacks.get(name)
        return stack[-1] if stack else None

    def value(self, name: str, default: str | None = None) -> str | None:
        """The winner's value."""
        setting = self.get(name)
        return default if setting is None else setting.value

    def stack(self, name: str) -> tuple[Setting, ...]:
        """Everything that claims `name`, the winner last."""
        return tuple(self._stacks.get(name, ()))

    def names(self) -> list[str]:
        """All properties."""
        return list(self._stacks)

    def values(self) -> dict[str, str]:
        """All properties with their winners' values."""
        return {name: stack[-1].value for name, stack in self._stacks.items()}

    def below(self, prefix: str) -> Layered:
        """The properties that begin with `prefix`, without it."""
        kept = Layered()
        for name, stack in self._stacks.items():
            if name.startswith(prefix) and len(name) > len(prefix):
                kept.put(name[len(prefix) :], *stack)
        return kept

    def only(self, names: Iterable[str]) -> Layered:
        """The properties called `names`."""
        kept = Layered()
        for name in names:
            if name in self._stacks:
                kept.put(name, *self._stacks[name])
        return kept

    def over(self, *others: Layered, by_level: bool) -> Layered:
        """This and `others`; the later wins, or with `by_level` the more specific level and then the later."""
        merged = Layered()
        for layered in (self, *others):
            for name, stack in layered._stacks.items():
                merged.put(name, *stack)
        if by_level:
            for stack in merged._stacks.values():
                stack.sort(key=lambda setting: setting.level)
        return merged


def _stripped(entries: Mapping[str, Entry], prefix: str, level: Level) -> Layered:
    stripped = Layered()
    for key, entry in entries.items():
        if key.startswith(prefix) and len(key) > len(prefix):
            stripped.put(key[len(prefix) :], written(entry, level))
    return stripped


def cluster_props(entries: Mapping[str, Entry], alias: str) -> Layered:
    """What a file says about one cluster; security keys reach all its clients, its own before the top level's."""
    props = _stripped(entries, f"{alias}.", Level.CLUSTER)
    for name in sorted(SECURITY_KEYS):
        if stack := props.stack(name):
            for client in CLIENTS:
                props.put_if_absent(f"{client}.{name}", *stack)
    for name in sorted(SECURITY_KEYS):
        if (entry := entries.get(name)) is not None:
            for target in (*(f"{client}.{name}" for client in CLIENTS), name):
                props.put_if_absent(target, written(entry, Level.GLOBAL))
    return props


def process_props(entries: Mapping[str, Entry]) -> Layered:
    """What a file says about the process itself."""
    props = Layered()
    for key, entry in entries.items():
        if key in keys.BY_NAME and keys.find(key).scope is Scope.TOP:
            props.put(key, written(entry, Level.GLOBAL))
    return props


def worker_props(entries: Mapping[str, Entry], flow: Flow, dialect: Dialect) -> Layered:
    """The settings of the Connect worker that MM2 would start for `flow`; progress and record producer live there."""
    props = cluster_props(entries, flow.target)
    prefixes = SRM_WORKER_PREFIXES if dialect is Dialect.SRM else WORKER_PREFIXES
    fallback = Layered()
    for key, entry in entries.items():
        if key.startswith(prefixes):
            fallback.put(key, written(entry, Level.GLOBAL))
    if dialect is Dialect.MM2:
        return props.over(fallback, by_level=False)
    # Here SRM and MM2 disagree: MM2 lets the top level win over the cluster's, SRM the cluster's over the top level.
    every = _stripped(entries, "workers.", Level.ALL_WORKERS)
    own = _stripped(entries, f"{flow}.worker.", Level.REPLICATION)
    return fallback.over(every, props, own, by_level=True)


def connector_props(entries: Mapping[str, Entry], flow: Flow, dialect: Dialect) -> Layered:
    """The settings of the three connectors that MM2 would start for `flow`."""
    props = Layered()
    known = keys.connector_names(dialect)
    for key, entry in entries.items():
        if key in known or key.startswith(("config.providers", "replication.policy")):
            props.put(key, written(entry, Level.GLOBAL))
    if dialect is Dialect.SRM:
        props = props.over(_stripped(entries, "connectors.", Level.ALL_CONNECTORS), by_level=False)
    for side, alias in (("source", flow.source), ("target", flow.target)):
        cluster = cluster_props(entries, alias)
        for name in cluster.names():
            middle = "" if name.startswith(("consumer", "producer", "admin")) else "cluster."
            props.put(f"{side}.{middle}{name}", *cluster.stack(name))
    own = _stripped(entries, f"{flow}.", Level.REPLICATION)
    for name in own.names():
        if dialect is Dialect.MM2 or not name.startswith("worker."):
            props.put(name, *own.stack(name))
    return props


def client_props(connector: Layered, side: str, client: str, dialect: Dialect) -> Layered:
    """What reaches one client: `source.cluster.` (security only), `consumer.`, `source.consumer.`, the later wins.

    Here SRM and MM2 disagree: `A->B.consumer.x` loses against `A.consumer.x` in MM2, and wins in SRM.
    """
    shared = connector.below(f"{side}.cluster.").only(sorted(SECURITY_KEYS))
    props = shared.over(
        connector.below(f"{client}."), connector.below(f"{side}.{client}."), by_level=dialect is Dialect.SRM
    )
    # `consumer.poll.timeout.ms` is a property of the connector that only looks like one of its consumer.
    return props.only(name for name in props.names() if name != "poll.timeout.ms")


def record_producer_props(worker: Layered, connector: Layered, dialect: Dialect) -> Layered:
    """What reaches the producer of the records: only `B.producer.` and `A->B.producer.override.`."""
    shared = worker.only(sorted(SECURITY_KEYS))
    override = connector.below("producer.override.")
    return shared.over(worker.below("producer."), override, by_level=dialect is Dialect.SRM)
