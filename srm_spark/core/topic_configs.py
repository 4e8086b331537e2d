"""Which configs of a remote topic must change so that it is as its source topic. Pure.

The rules are MirrorMaker 2's (`MirrorSourceConnector.syncTopicConfigs`) but for one: a config that somebody set on the
remote topic, and that the source has at its default, is kept unless the policy is to reset it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from srm_spark.core.cluster import ConfigChange, TopicConfig
from srm_spark.core.compact_json import compact_json

_VERSION, _KIND = 1, "configs"


class NotTaken(Enum):
    """Why a config of a source topic never comes to its remote topic."""

    SENSITIVE = "it is a secret"
    READ_ONLY = "it is read-only"
    STATIC = "it is in the brokers' own file"
    EXCLUDED = "config.properties.exclude or a filter class leaves it out"


@dataclass(frozen=True)
class ConfigsCompared:
    """What two topics' configs come to."""

    changes: tuple[ConfigChange, ...]
    """To be made on the remote topic."""
    kept: Mapping[str, str]
    """Set there by somebody else, with the value: the source has them at their default."""
    ours: Mapping[str, str]
    """What the remote topic has from its source then; only that is ever taken back."""


def compare_configs(
    source: Mapping[str, TopicConfig],
    target: Mapping[str, TopicConfig],
    takes: Callable[[str], bool],
    *,
    copies_defaults: bool,
    ours: Mapping[str, str],
    resets: bool,
) -> ConfigsCompared:
    """Compare the configs of a source topic with those of its remote topic.

    `takes` is the filter of properties. With `copies_defaults` a remote topic gets the source's defaults, too
    (`use.defaults.from`). `ours` is what it had from its source before; with `resets` everything else goes, too.
    """
    changes: list[ConfigChange] = []
    kept: dict[str, str] = {}
    now: dict[str, str] = {}
    for key, here in source.items():
        if _not_taken(key, here, takes) is not None:
            continue
        there = target.get(key)
        value = there.value if there is not None and there.is_own else None
        if here.value is not None and (copies_defaults or not here.is_default):
            now[key] = here.value
            if value != here.value:
                changes.append(ConfigChange(key, here.value))
        elif value is not None and (resets or ours.get(key) == value):
            changes.append(ConfigChange(key, None))
        elif value is not None:
            kept[key] = value
    return ConfigsCompared(tuple(changes), kept, now)


def inherited(
    source: Mapping[str, TopicConfig], takes: Callable[[str], bool], *, copies_defaults: bool
) -> Mapping[str, str]:
    """The configs that a remote topic is made with: what it would get if it were there without any."""
    return compare_configs(source, {}, takes, copies_defaults=copies_defaults, ours={}, resets=False).ours


def not_taken(source: Mapping[str, TopicConfig], takes: Callable[[str], bool]) -> Mapping[str, NotTaken]:
    """Configs that are set on the source topic itself and are left alone, with the reason."""
    own = {key: one for key, one in source.items() if one.is_own}
    return {key: why for key, one in own.items() if (why := _not_taken(key, one, takes)) is not None}


def _not_taken(key: str, here: TopicConfig, takes: Callable[[str], bool]) -> NotTaken | None:
    if here.is_sensitive:
        return NotTaken.SENSITIVE
    if here.is_read_only:
        return NotTaken.READ_ONLY
    if here.is_static:
        return NotTaken.STATIC
    return None if takes(key) else NotTaken.EXCLUDED


def configs_key(remote: str) -> bytes:
    """Key of what is recorded of a remote topic's configs, compact JSON."""
    return compact_json([_KIND, remote])


def configs_value(ours: Mapping[str, str]) -> bytes:
    """Its value: what the remote topic has from its source."""
    return compact_json({"v": _VERSION, "set": dict(sorted(ours.items()))})


def decode_configs(key: bytes | None, value: bytes | None) -> tuple[str, Mapping[str, str]] | None:
    """The remote topic and what it has from its source; None for anything else, and for a newer version."""
    try:
        kind, remote = json.loads(key or b"")
        if kind != _KIND:
            return None
        document = json.loads(value or b"")
        return (str(remote), dict(document["set"])) if document["v"] == _VERSION else None
    except (KeyError, TypeError, ValueError):
        return None
