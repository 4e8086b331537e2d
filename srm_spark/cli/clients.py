"""The clients of a target as SRM's options say: over a file, or on a host that has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import click

from srm_spark.cli.options import pairs, several, shown_key, unknown_flow
from srm_spark.config.keys_client import CLIENT_KEYS, SECURITY_KEYS
from srm_spark.config.load import Loaded, load
from srm_spark.config.settings import FlowSettings
from srm_spark.config.spelling import did_you_mean
from srm_spark.errors import ConfigError

_HERE = "nobody:1"
"""Stands in for the source where no file says where it is: nothing asks it."""

CLIENTS = several(
    click.option("--bootstrap-servers", metavar="H:P,…", help="The target, instead of what a file says."),
    click.option("--props", multiple=True, metavar="K=V", help="Property of every client of the target; repeatable."),
    click.option("--producer-props", multiple=True, metavar="K=V", help="The same, of what writes the lists."),
    click.option("--consumer-props", multiple=True, metavar="K=V", help="The same, of what reads them."),
)


@dataclass(frozen=True)
class ClientOptions:
    """What of them was written."""

    bootstrap_servers: str | None
    props: Sequence[str] = field(repr=False)
    """These may hold passwords, as all that follow may."""
    producer_props: Sequence[str] = field(default=(), repr=False)
    consumer_props: Sequence[str] = field(default=(), repr=False)

    @cached_property
    def every(self) -> dict[str, str]:
        """Of all clients; a cluster's own properties, too. Raises UsageError."""
        found = _pairs("--props", self.props)
        return found if self.bootstrap_servers is None else {**found, "bootstrap.servers": self.bootstrap_servers}

    @cached_property
    def producer(self) -> dict[str, str]:
        """Of what writes. Raises UsageError."""
        return {**self._shared, **_pairs("--producer-props", self.producer_props)}

    @cached_property
    def consumer(self) -> dict[str, str]:
        """Of what reads. Raises UsageError."""
        return {**self._shared, **_pairs("--consumer-props", self.consumer_props)}

    @property
    def _shared(self) -> dict[str, str]:
        return {key: value for key, value in self.every.items() if key not in SECURITY_KEYS}

    def overrides(self, target: str) -> dict[str, str]:
        """The same as keys of a configuration. Raises UsageError."""
        keys = {f"{target}.{key}": value for key, value in self.every.items() if key in SECURITY_KEYS}
        for client, given in (("admin", self._shared), ("producer", self.producer), ("consumer", self.consumer)):
            keys |= {f"{target}.{client}.{key}": value for key, value in given.items()}
        return keys


@dataclass(frozen=True)
class FlowPlace:
    """A flow whose target is reached by such options."""

    settings: FlowSettings
    loaded: Loaded
    is_enabled: bool
    """Whether the files enable it. Without a file nobody asks."""


def place_of(
    files: Sequence[Path], defines: Sequence[str], source: str, target: str, given: ClientOptions
) -> FlowPlace:
    """The flow between two clusters of the files, enabled or not, or the one that options alone describe.

    Raises UsageError, and ConfigError with everything that is wrong.
    """
    if not files and "bootstrap.servers" not in given.every:
        raise click.UsageError("write --config FILE, or --bootstrap-servers H:P of the target")
    name, overrides = f"{source}->{target}", given.overrides(target)
    if not files:
        clusters = {"clusters": f"{source},{target}", f"{source}.bootstrap.servers": _HERE}
        overrides = {"dialect": "srm", **clusters, f"{name}.enabled": "true", **overrides}
    overrides = {**pairs(defines), **overrides}
    found = load(files, overrides)
    is_enabled = name in {str(one.flow) for one in found.settings.flows}
    if not is_enabled and source != target and {source, target} <= found.settings.clusters.keys():
        found = load(files, {**overrides, f"{name}.enabled": "true"})
    if found.report.problems:
        raise ConfigError(found.report.problems)
    flows = {str(one.flow): one for one in found.settings.flows}
    if name not in flows:
        raise unknown_flow(name, flows)
    return FlowPlace(flows[name], found, is_enabled)


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    values = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{option} {shown_key(text)}: write K=V")
        if key.strip() not in CLIENT_KEYS:
            known = did_you_mean(key.strip(), CLIENT_KEYS)
            what = f"{option} {shown_key(text)}: no property of a Kafka client"
            raise click.UsageError(what + (f" — {known}" if known else ""))
        values[key.strip()] = value
    return values
