"""Why a property of a flow has its value: every setting that claims it, the winner first. Printed elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from srm_spark.config import keys, levels
from srm_spark.config.keys_client import CLIENT_KEYS, SECURITY_KEYS
from srm_spark.config.levels import Layered, Setting
from srm_spark.config.load import Loaded
from srm_spark.config.schema import Dialect, Key, KeyEffect, Scope
from srm_spark.config.spelling import did_you_mean
from srm_spark.core.listed_filter import RULES
from srm_spark.core.lists import ListKind
from srm_spark.core.model import Flow
from srm_spark.errors import ConfigError, Problem

_OF_WORKER = (Scope.WORKER, Scope.WORKER_PREFIX)
_OF_CONNECTOR = (Scope.CONNECTOR, Scope.FLOW, Scope.FLOW_AND_TARGET)


@dataclass(frozen=True)
class Candidate:
    """One setting that wants to decide a property; secrets are masked."""

    level: str
    key: str
    """As written; empty for a default."""
    place: str
    value: str


@dataclass(frozen=True)
class Explanation:
    """What decides one property of one flow."""

    flow: Flow
    name: str
    won: Candidate
    lost: tuple[Candidate, ...]
    """The strongest first."""
    does: str = ""
    """What srm-spark does with the property."""
    rule: str = ""
    """How it is combined with lists that are kept elsewhere, and how to see these; empty where it is not."""


def explain(loaded: Loaded, flow: Flow, name: str) -> Explanation:
    """Which level decided `name` for `flow`; `name` is a property such as `topics`, `producer.linger.ms`,
    `consumer.fetch.min.bytes`, `source.cluster.security.protocol` or `offset.storage.topic`."""
    stack, row = _stack(loaded, flow, name)
    candidates = [_claim(setting) for setting in reversed(stack)]
    for entry in reversed(loaded.sources.lost):
        if any(entry.key == setting.key for setting in stack):
            candidates.append(Candidate("replaced by a later line", entry.key, entry.place, entry.shown))
    candidates.extend(_default(loaded, row))
    if not candidates and row is None:
        known = {*(key.name for key in keys.TABLE), *(f"consumer.{key}" for key in CLIENT_KEYS)}
        if name in known:
            return Explanation(flow, name, Candidate("not set, the client's default", "", "", ""), ())
        raise ConfigError([Problem(loaded.sources.name, name, "no such property", did_you_mean(name, known))])
    if not candidates:
        candidates.append(Candidate("default", "", "", ""))
    does = row.does if row else ""
    return Explanation(flow, name, candidates[0], tuple(candidates[1:]), does, _rule(flow, name))


def _rule(flow: Flow, name: str) -> str:
    names = {f"{kind.value}{end}": kind for kind in ListKind for end in ("", ".exclude", ".blacklist")}
    kind = names.get(name)
    if kind is None:
        return ""
    shows = f"srm-control {kind.value} --source {flow.source} --target {flow.target} --list"
    return f"{RULES[kind]}; the lists: {shows}"


def resolved(loaded: Loaded, flow: Flow) -> Iterator[Explanation]:
    """Every property that counts for a flow: all that srm-spark uses, and all that the file sets for its clients."""
    for row in keys.TABLE:
        used = row.effect in (KeyEffect.HONOURED, KeyEffect.CHECKED)
        if used and row.scope in (*_OF_CONNECTOR, *_OF_WORKER) and row.default is not None:
            yield explain(loaded, flow, row.name)
    connector, worker = loaded.resolver.connector(flow), loaded.resolver.worker(flow)
    dialect = loaded.resolver.dialect
    for side in ("source", "target"):
        for name in sorted(connector.below(f"{side}.cluster.").only(SECURITY_KEYS).names()):
            yield explain(loaded, flow, f"{side}.cluster.{name}")
    common = {name for name in SECURITY_KEYS if name in CLIENT_KEYS}
    consumer = levels.client_props(connector, "source", "consumer", dialect)
    producer = levels.record_producer_props(worker, connector, dialect)
    for prefix, props in (("consumer", consumer), ("producer", producer)):
        for name in sorted(set(props.names()) - common):
            yield explain(loaded, flow, f"{prefix}.{name}")


def _claim(setting: Setting) -> Candidate:
    return Candidate(setting.level.label, setting.key, setting.place, setting.shown)


def _default(loaded: Loaded, row: Key | None) -> list[Candidate]:
    value = None if row is None else row.default_for(loaded.resolver.dialect)
    return [] if value is None else [Candidate("default", "", "", value)]


def _stack(loaded: Loaded, flow: Flow, name: str) -> tuple[tuple[Setting, ...], Key | None]:
    connector, worker = loaded.resolver.connector(flow), loaded.resolver.worker(flow)
    dialect = loaded.resolver.dialect
    row = keys.BY_NAME.get(name)
    if row is not None and row.scope in _OF_WORKER:
        return worker.stack(name), row
    if row is not None and row.scope in _OF_CONNECTOR:
        return connector.stack(name), row
    return _client(connector, worker, name, dialect).stack(name), row


def _client(connector: Layered, worker: Layered, name: str, dialect: Dialect) -> Layered:
    """The properties of the client that `name` begins with, with that beginning put back."""
    prefixed = Layered()
    layers = Layered()
    prefix = ""
    if name.startswith("producer."):
        prefix, layers = "producer.", levels.record_producer_props(worker, connector, dialect)
    elif name.startswith("consumer."):
        prefix, layers = "consumer.", levels.client_props(connector, "source", "consumer", dialect)
    for side in ("source", "target"):
        if name.startswith(f"{side}.cluster."):
            prefix, layers = f"{side}.cluster.", connector.below(f"{side}.cluster.").only(SECURITY_KEYS)
        for client in levels.CLIENTS:
            if name.startswith(f"{side}.{client}."):
                prefix, layers = f"{side}.{client}.", levels.client_props(connector, side, client, dialect)
    for each in layers.names():
        prefixed.put(prefix + each, *layers.stack(each))
    return prefixed
