"""What has to happen when a running driver gets another configuration: pure comparison of old and new settings.

A flow is the unit: it goes on untouched, starts again, comes or goes. Some settings say where a flow's progress and its
remote topics are; those never change under a running driver, because records would be copied twice or to other topics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from srm_spark.config.settings import FlowSettings, HeartbeatSettings, Settings
from srm_spark.core.model import Flow

_RENAMES = "remote topics would get other names"
FIXED: Mapping[str, str] = {
    "connector_name": "progress is found under the connector's name, all records would be copied again",
    "progress_topic": "progress is found in that topic, all records would be copied again",
    "topics.policy_class": _RENAMES,
    "topics.separator": _RENAMES,
    "topics.internal_separator": "the offset-syncs topic would get another name",
}
"""Settings that only a new driver process takes, and why."""
_LATE = "it did not end in time, and ends with what it waits for; read the configuration once more then"


@dataclass(frozen=True)
class Restart:
    """A flow that starts again with other settings."""

    settings: FlowSettings
    changed: tuple[str, ...]
    """Names of the settings that differ; never their values."""


@dataclass(frozen=True)
class Changes:
    """What to do, and what runs afterwards."""

    settings: Settings
    started: tuple[FlowSettings, ...] = ()
    stopped: tuple[Flow, ...] = ()
    restarted: tuple[Restart, ...] = ()
    unchanged: tuple[Flow, ...] = ()
    refused: Mapping[Flow, str] = field(default_factory=dict)
    """Flows that go on with their old settings, and why."""
    heartbeats_started: tuple[HeartbeatSettings, ...] = ()
    heartbeats_stopped: tuple[Flow, ...] = ()

    def put_off(self, late: Collection[Flow], old: Settings) -> Changes:
        """The same where these flows have not ended: the next comparison finds them changed again, and goes on."""
        waiting = {one.settings.flow for one in self.restarted} & set(late)
        before = {settings.flow: settings for settings in old.flows}
        flows = tuple(before[one.flow] if one.flow in waiting else one for one in self.settings.flows)
        return replace(
            self,
            settings=replace(self.settings, flows=flows),
            restarted=tuple(one for one in self.restarted if one.settings.flow not in waiting),
            refused={**self.refused, **dict.fromkeys(sorted(waiting, key=str), _LATE)},
        )

    def describe(self) -> Iterator[str]:
        """One line per flow that is not as before."""
        yield from (f"flow={settings.flow} starts" for settings in self.started)
        yield from (f"flow={flow} stops" for flow in self.stopped)
        yield from (f"flow={r.settings.flow} starts again: changed {', '.join(r.changed)}" for r in self.restarted)
        yield from (f"flow={flow} keeps its old settings: {reason}" for flow, reason in self.refused.items())
        if not (self.started or self.stopped or self.restarted or self.refused):
            yield "no flow changed"


def compare(old: Settings, new: Settings) -> Changes:
    """What turns a driver that runs `old` into one that runs `new`."""
    before = {settings.flow: settings for settings in old.flows}
    after = {settings.flow: settings for settings in new.flows}
    refused: dict[Flow, str] = {}
    restarted: list[Restart] = []
    for flow in before.keys() & after.keys():
        changed = tuple(differences(before[flow], after[flow]))
        if fixed := [name for name in changed if name in FIXED]:
            refused[flow] = f"{fixed[0]} changed: {FIXED[fixed[0]]}; stop the driver and start it again"
        elif changed:
            restarted.append(Restart(after[flow], changed))
    kept = tuple(before[flow] if flow in refused else settings for flow, settings in after.items())
    again = {restart.settings.flow for restart in restarted}
    beats_before, beats_after = _beats(old), _beats(new)
    return Changes(
        settings=replace(new, flows=kept),
        started=tuple(settings for flow, settings in after.items() if flow not in before),
        stopped=tuple(flow for flow in before if flow not in after),
        restarted=tuple(restarted),
        unchanged=tuple(flow for flow in before if flow in after and flow not in again and flow not in refused),
        refused=refused,
        heartbeats_started=tuple(beat[0] for flow, beat in beats_after.items() if beats_before.get(flow) != beat),
        heartbeats_stopped=tuple(flow for flow, beat in beats_before.items() if beats_after.get(flow) != beat),
    )


def differences(old: Any, new: Any, prefix: str = "") -> Iterator[str]:
    """Dotted names of the fields in which two settings objects differ; of mappings the keys, never a value."""
    for each in fields(old):
        if not each.compare:
            continue
        before, after = getattr(old, each.name), getattr(new, each.name)
        name = f"{prefix}{each.name}"
        if before == after:
            continue
        if is_dataclass(before) and type(before) is type(after):
            yield from differences(before, after, f"{name}.")
        elif isinstance(before, Mapping) and isinstance(after, Mapping):
            keys = sorted({*before, *after}, key=str)
            yield from (f"{name}[{key}]" for key in keys if before.get(key) != after.get(key))
        else:
            yield name


def _beats(settings: Settings) -> dict[Flow, tuple[HeartbeatSettings, object]]:
    return {beat.flow: (beat, settings.clusters[beat.flow.target]) for beat in settings.heartbeats}
