"""Says of every key of a file whether it counts where it stands: unknown, misplaced, ignored or not yet used.

MirrorMaker 2 passes over all of these in silence (`MirrorMakerConfig`).
"""

from __future__ import annotations

from collections.abc import Sequence

from srm_spark.config import keys
from srm_spark.config.keys_client import CLIENT_KEYS, SECURITY_KEYS
from srm_spark.config.keys_connector import TRANSFORMS, TRANSFORMS_IGNORE
from srm_spark.config.keys_process import IGNORED_PREFIXES
from srm_spark.config.schema import Dialect, Key, KeyEffect, Scope
from srm_spark.config.source import Entry, Sources
from srm_spark.config.spelling import did_you_mean
from srm_spark.config.values import Report
from srm_spark.config.written import Where, Written, take_apart

_CLIENT_PREFIXES = ("consumer.", "producer.", "admin.")
_SIDES = ("source.", "target.")
_HERE = {
    Where.TOP: (Scope.TOP, Scope.CONNECTOR, Scope.WORKER_PREFIX, Scope.SECURITY, Scope.SERVICE),
    Where.WORKERS: (Scope.WORKER, Scope.WORKER_PREFIX),
    Where.CONNECTORS: (Scope.CONNECTOR, Scope.FLOW, Scope.FLOW_AND_TARGET),
    Where.CLUSTER: (Scope.WORKER, Scope.WORKER_PREFIX, Scope.SECURITY, Scope.FLOW_AND_TARGET),
    Where.FLOW: (Scope.CONNECTOR, Scope.FLOW, Scope.FLOW_AND_TARGET),
}


class Placement:
    """Walks all entries once."""

    def __init__(
        self, sources: Sources, aliases: Sequence[str], dialect: Dialect, report: Report, *, strict: bool
    ) -> None:
        self._sources = sources
        self._aliases = tuple(aliases)
        self._dialect = dialect
        self._report = report
        self._strict = strict

    def check(self) -> None:
        """Reports what is wrong with the place of each key."""
        for entry in self._sources.entries.values():
            written = take_apart(entry.key, self._aliases)
            if written.where is Where.UNKNOWN_FLOW:
                self._unknown_flow(entry, written)
            elif written.where in (Where.WORKERS, Where.CONNECTORS) and self._dialect is Dialect.MM2:
                self._warn(entry, f"ignored: MirrorMaker 2 has no level `{written.where.value}`; set dialect=srm")
            else:
                self._property(entry, written)

    def _warn(self, entry: Entry, message: str) -> None:
        self._report.warn(entry.place, entry.key, message)

    def _unknown_flow(self, entry: Entry, written: Written) -> None:
        flow = written.flow
        if flow is None or not self._aliases:
            return
        if flow.source == flow.target:
            message, hint = "got a flow from a cluster to itself", "name two clusters"
        elif flow.source in self._aliases and flow.target in self._aliases:
            message, hint = "got a flow without a property", f"did you mean {flow}.enabled?"
        else:
            unknown = [alias for alias in (flow.source, flow.target) if alias not in self._aliases]
            message = f"got unknown alias {' and '.join(unknown)}; allowed {', '.join(self._aliases)}"
            guess = did_you_mean(unknown[0], self._aliases)
            hint = guess or f"add {unknown[0]} to clusters, with {unknown[0]}.bootstrap.servers"
        self._report.problem(entry.place, entry.key, message, hint)

    def _property(self, entry: Entry, written: Written) -> None:
        name = written.rest
        if written.where is Where.FLOW and self._dialect is Dialect.SRM and name.startswith("worker."):
            written = Written(Where.WORKERS, name.removeprefix("worker."))
            name = written.rest
        row = keys.BY_NAME.get(name)
        if row is not None and row.scope in _HERE[written.where]:
            self._effect(entry, row)
        elif name.startswith((*_CLIENT_PREFIXES, *(side for side in _SIDES if written.where is not Where.CLUSTER))):
            self._client(entry, written)
        elif row is not None and row.effect is KeyEffect.IGNORED:
            self._warn(entry, f"ignored: {row.does}")
        elif row is not None:
            self._misplaced(entry, written, row)
        elif not self._family(entry, written):
            self._unknown(entry, written)

    def _effect(self, entry: Entry, row: Key) -> None:
        if row.effect is KeyEffect.REFUSED and row.name in TRANSFORMS and entry.value.strip():
            self._transforms(entry, row)
        elif row.effect is KeyEffect.IGNORED:
            self._warn(entry, f"ignored: {row.does}")
        elif row.effect is KeyEffect.CHECKED:
            self._warn(entry, f"checked, but not used yet: {row.does}")

    def _transforms(self, entry: Entry, row: Key) -> None:
        """Copied unchanged, what a MaskField should hide would be there for all to read."""
        ignore = f"{entry.key.removesuffix(row.name)}{TRANSFORMS_IGNORE}"
        said = self._sources.entries.get(ignore) or self._sources.entries.get(TRANSFORMS_IGNORE)
        if said is not None and said.value.strip().lower() == "true":
            self._warn(entry, f"ignored, as {said.key} says: records are copied unchanged")
        else:
            hint = f"remove it, or set {TRANSFORMS_IGNORE} = true where records may be copied unchanged"
            self._report.problem(entry.place, entry.key, f"got {entry.value.strip()}: {row.does}", hint)

    def _family(self, entry: Entry, written: Written) -> bool:
        """Families of keys with free names in them."""
        if written.rest.startswith("config.providers."):
            return True
        reason = next((why for prefix, why in IGNORED_PREFIXES.items() if written.rest.startswith(prefix)), None)
        if reason is not None:
            self._warn(entry, f"ignored: {reason}")
        return reason is not None

    def _misplaced(self, entry: Entry, written: Written, row: Key) -> None:
        right = {
            Scope.TOP: f"`{row.name}`",
            Scope.CONNECTOR: f"`{row.name}` or `A->B.{row.name}`",
            Scope.FLOW: f"`A->B.{row.name}`",
            Scope.FLOW_AND_TARGET: f"`A->B.{row.name}` or `B.{row.name}` with the target's alias",
            Scope.WORKER: f"`B.{row.name}` with the target's alias",
            Scope.WORKER_PREFIX: f"`{row.name}` or `B.{row.name}` with the target's alias",
            Scope.SECURITY: f"`{row.name}` or `A.{row.name}`",
        }.get(row.scope, f"`{row.name}`")
        self._warn(entry, f"has no effect here ({written.where.value}); write {right}")

    def _client(self, entry: Entry, written: Written) -> None:
        """`consumer.x`, `source.consumer.x`, `producer.override.x`, `source.cluster.x` …"""
        side, rest = "", written.rest
        if written.where is not Where.CLUSTER and rest.startswith(_SIDES):
            side, rest = rest[:7], rest[7:]
        client, _, name = rest.partition(".")
        if written.where is Where.TOP:
            right = rest if client != "cluster" else name if name in SECURITY_KEYS else f"consumer.{name}"
            self._warn(entry, f"has no effect at the top level; write `A.{right}` with the cluster's alias")
            return
        if client == "producer" and name.startswith("override.") and written.where is not Where.CLUSTER:
            name = name.removeprefix("override.")
        elif client == "producer" and written.where is Where.FLOW:
            right = f"`A->B.producer.override.{name}`"
            self._warn(entry, f"reaches only the offset-syncs producer; for records write {right}")
        if client == "cluster" and name not in SECURITY_KEYS:
            self._warn(entry, f"has no effect: only bootstrap and security keys count behind `{side}cluster.`")
        elif name not in CLIENT_KEYS:
            self._unknown(entry, Written(written.where, name), "is not a property of a Kafka client")

    def _unknown(self, entry: Entry, written: Written, message: str = "") -> None:
        where = written.where
        if not message and where is Where.CLUSTER and written.rest in CLIENT_KEYS:
            right = f"{written.alias}.consumer.{written.rest}"
            self._warn(entry, f"has no effect here; write `{right}`, or with .producer or .admin")
            return
        known = set(CLIENT_KEYS) if message else {row.name for row in keys.TABLE if row.scope in _HERE[where]}
        if where is Where.TOP:
            known |= {f"{alias}.bootstrap.servers" for alias in self._aliases}
        hint = did_you_mean(written.rest, known)
        message = message or f"unknown key ({where.value})"
        if self._strict:
            self._report.problem(entry.place, entry.key, message, hint)
        else:
            self._warn(entry, f"{message}, ignored" + (f" — {hint}" if hint else ""))
