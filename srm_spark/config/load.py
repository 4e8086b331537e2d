"""`load_settings`: files in, `Settings` or one `ConfigError` with every problem out. Touches no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from srm_spark.config import clients, keys
from srm_spark.config.alerts import alert_settings
from srm_spark.config.cross_checks import check_across
from srm_spark.config.levels import Layered
from srm_spark.config.oidc import oidc_settings
from srm_spark.config.placement import Placement
from srm_spark.config.plugins import check_plugins
from srm_spark.config.references import References
from srm_spark.config.resolve import Resolver
from srm_spark.config.schema import Dialect
from srm_spark.config.service import history_settings, service_settings
from srm_spark.config.settings import HeartbeatSettings, ServiceSettings, Settings
from srm_spark.config.signing import signing_settings
from srm_spark.config.sites import advertised_settings, remote_settings
from srm_spark.config.source import Sources, read_sources
from srm_spark.config.spelling import did_you_mean
from srm_spark.config.topology import Topology
from srm_spark.config.values import Report, Values, split_list
from srm_spark.config.written import take_apart
from srm_spark.core.model import Flow
from srm_spark.errors import ConfigError

_SRM_SIGNS = ("workers.", "connectors.", "mm.rest.", "mm.metrics.", "srm.", "cloudera.", "streams.replication.manager.")
_TARGETS = "streams.replication.manager.driver.target.cluster"
_SRM_KEYS = frozenset(
    {"connect.start.task.timeout.ms", "disable.source.topic.auto.creation", "copy.source.offset.in.header.enabled"}
)


@dataclass(frozen=True)
class Loaded:
    """What loading found, usable or not."""

    settings: Settings
    sources: Sources
    resolver: Resolver
    report: Report


def load_settings(
    paths: str | Path | Sequence[str | Path],
    overrides: Mapping[str, str] = {},
    flows: Sequence[str] = (),
    *,
    strict: bool = False,
    into: Sequence[str] = (),
) -> Settings:
    """The settings that `paths`, merged in order, and the `-D` overrides describe; `flows` picks some of the enabled.

    `into` are the only clusters that may be written to; empty: all, or those that the files name.

    Raises `ConfigError` with all problems at once. With `strict` an unknown key is a problem, too.
    """
    several = [paths] if isinstance(paths, str | Path) else paths
    loaded = load([Path(path) for path in several], overrides, flows, strict=strict, into=into)
    if loaded.report.problems:
        raise ConfigError(loaded.report.problems)
    return loaded.settings


def load(
    paths: Sequence[Path],
    overrides: Mapping[str, str] = {},
    flows: Sequence[str] = (),
    *,
    strict: bool = False,
    into: Sequence[str] = (),
    keeps_secrets: bool = False,
) -> Loaded:
    """The same without raising: settings as far as they go, with what was found wrong.

    `keeps_secrets`: Secrets of Kubernetes that a resource names stay references, as `srm-control deploy` needs them.
    """
    sources = read_sources(paths, overrides, keeps_secrets=keeps_secrets)
    report = Report(list(sources.problems), list(sources.warnings))
    dialect = find_dialect(sources, report)
    resolver = Resolver(sources, dialect, report, References(sources, report).expand)
    aliases = _aliases(sources, report)
    Placement(sources, aliases, dialect, report, strict=strict).check()
    chosen, heartbeats = _pairs(resolver, aliases, flows, _targets(resolver, aliases, into))
    _unused_resources(sources, report, aliases, {flow for flow, _ in chosen} if not flows else None)
    clients.check_clusters(sources, report, resolver, aliases)
    settings = tuple(resolver.flow(flow, connector) for flow, connector in chosen)
    for (flow, connector), resolved in zip(chosen, settings, strict=True):
        check_plugins(resolver.values(flow, connector), resolved)
    clients.check_flows(sources, report, resolver, settings)
    Topology(sources, report).check(settings)
    clusters = {alias: resolver.cluster(alias) for alias in aliases}
    check_across(sources, report, settings, clusters, dialect)
    export = resolver.export()
    process = resolver.process()
    service = service_settings(sources, report, aliases, process, resolver.expand)
    service = replace(
        service, history=history_settings(process), alerts=alert_settings(process), oidc=oidc_settings(process)
    )
    service = _with_sites(service, process, aliases)
    signing = signing_settings(process)
    said = {entry.key: entry.shown for entry in sources.entries.values()}
    warnings = tuple(report.warnings)
    whole = Settings(clusters, settings, heartbeats, warnings, dialect.value, export, service, signing, said)
    return Loaded(whole, sources, resolver, report)


def _with_sites(service: ServiceSettings, process: Values, aliases: Sequence[str]) -> ServiceSettings:
    """What other sites are asked for, a service does not read itself."""
    remote = remote_settings(process, aliases, service.targets)
    service = replace(service, advertised=advertised_settings(process), remote=remote)
    if remote is None or service.targets:
        return service
    return replace(service, targets=tuple(alias for alias in aliases if alias not in remote.targets))


def find_dialect(sources: Sources, report: Report) -> Dialect:
    """What `dialect` says, else SRM where a key of SRM's own occurs."""
    if (entry := sources.entries.get("dialect")) is not None:
        for dialect in Dialect:
            if entry.value.strip().lower() == dialect.value:
                return dialect
        report.problem(entry.place, entry.key, f"got {entry.value!r}; allowed mm2, srm")
    clusters = sources.entries.get("clusters")
    names = tuple(f"{alias}." for alias in split_list(clusters.value) if alias) if clusters is not None else ()
    for key in sources.entries:
        if key.startswith(names) and key not in keys.BY_NAME:
            continue  # of a cluster that is called as one of these
        if key.startswith(_SRM_SIGNS) or key in _SRM_KEYS or ("->" in key and ".worker." in key):
            return Dialect.SRM
    return Dialect.MM2


def _aliases(sources: Sources, report: Report) -> list[str]:
    entry = sources.entries.get("clusters")
    if entry is None and sources.problems and not sources.entries:
        return []  # nothing could be read, and that is told
    if entry is None:
        hint = did_you_mean("clusters", sources.entries) or "write `clusters = A, B`"
        report.problem(sources.name, "clusters", "is missing; allowed a comma-separated list of aliases", hint)
        return []
    aliases = split_list(entry.value)
    if not aliases or "" in aliases:
        report.problem(entry.place, entry.key, f"got {entry.value!r}; allowed a comma-separated list of aliases")
    for alias in sorted({alias for alias in aliases if alias and aliases.count(alias) > 1}):
        report.problem(entry.place, entry.key, f"got alias {alias} twice", "give every cluster an alias of its own")
    for alias in dict.fromkeys(aliases):
        if "->" in alias:
            report.problem(entry.place, entry.key, f"got alias {alias!r}; `->` stands between the aliases of a flow")
    if len(set(aliases)) == 1 and aliases[0]:
        report.problem(entry.place, entry.key, f"got one cluster, {aliases[0]}; a flow needs two", "name the other one")
    return [alias for alias in dict.fromkeys(aliases) if alias and "->" not in alias]


def _pairs(
    resolver: Resolver, aliases: Sequence[str], picked: Sequence[str], targets: Sequence[str]
) -> tuple[list[tuple[Flow, Layered]], tuple[HeartbeatSettings, ...]]:
    """The enabled flows that were picked, and the heartbeats of every pair that goes with them."""
    enabled: list[tuple[Flow, Layered]] = []
    heartbeats: list[HeartbeatSettings] = []
    for flow in (Flow(source, target) for source in aliases for target in targets if source != target):
        connector = resolver.connector(flow)
        if is_enabled := resolver.is_enabled(flow, connector):
            enabled.append((flow, connector))
        if (heartbeat := resolver.heartbeat(flow, connector, is_enabled)) is not None:
            heartbeats.append(heartbeat)
    if not enabled and len(aliases) > 1:
        place = resolver.sources.place_of(_TARGETS, "clusters")
        source, target = next(((s, t) for s in aliases for t in targets if s != t), aliases[:2])
        into = f" into {', '.join(targets)}" if len(targets) < len(aliases) else ""
        resolver.report.problem(
            place, "enabled", f"no flow{into} is enabled", f"write {source}->{target}.enabled = true"
        )
    if not picked:
        return enabled, tuple(heartbeats)
    return _picked(resolver.report, enabled, heartbeats, picked)


def _targets(resolver: Resolver, aliases: Sequence[str], into: Sequence[str]) -> Sequence[str]:
    """The clusters that this process may write to."""
    entry = resolver.sources.entries.get(_TARGETS)
    place, key = (entry.place, entry.key) if entry and not into else ("--clusters", ",".join(into))
    wanted = into or ([alias for alias in split_list(entry.value) if alias] if entry else [])
    for alias in wanted:
        if alias not in aliases:
            known, hint = ", ".join(aliases), did_you_mean(alias, aliases)
            resolver.report.problem(place, key, f"got unknown alias {alias}; allowed {known}", hint)
    return [alias for alias in aliases if not wanted or alias in wanted]


def _unused_resources(sources: Sources, report: Report, aliases: Sequence[str], enabled: Set[Flow] | None) -> None:
    """A checkpoint connector whose flow no source connector runs, mostly since its aliases are swapped."""
    for entry in sources.entries.values():
        parts = take_apart(entry.key, aliases)
        if entry.is_resource and parts.flow is not None and enabled is not None and parts.flow not in enabled:
            report.warn(entry.place, entry.key, f"has no effect: no source connector runs {parts.flow}")


def _picked(
    report: Report, enabled: list[tuple[Flow, Layered]], heartbeats: list[HeartbeatSettings], picked: Sequence[str]
) -> tuple[list[tuple[Flow, Layered]], tuple[HeartbeatSettings, ...]]:
    names = [str(flow) for flow, _ in enabled]
    for name in picked:
        if name not in names:
            allowed = ", ".join(names) or "none, no flow is enabled"
            # What the shell leaves of --flow A->B; the rest went into a file named B.
            hint = "quote it: the shell took the >" if name.endswith("-") else did_you_mean(name, names)
            report.problem("--flow", name, f"is not an enabled flow; allowed {allowed}", hint)
    chosen = [(flow, connector) for flow, connector in enabled if str(flow) in picked]
    # The reverse pair's heartbeats are what the flow itself replicates.
    wanted = {flow for flow, _ in chosen} | {flow.reverse for flow, _ in chosen}
    return chosen, tuple(heartbeat for heartbeat in heartbeats if heartbeat.flow in wanted)
