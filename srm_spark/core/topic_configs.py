"""Which configs of a remote topic must change so that it is as its source topic. Pure.

The rules are MirrorMaker 2's (`MirrorSourceConnector.syncTopicConfigs`) but for one: a config that somebody set on the
remote topic, and that the source has at its default, is kept unless the policy is to reset it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from srm_spark.core.cluster import ConfigChange, TopicConfig
from srm_spark.core.compact_json import compact_json
from srm_spark.core.config_classes import ConfigClass

_VERSION, CONFIGS = 1, "configs"
ClassOf = Callable[[str], ConfigClass]
"""Property → its class."""


def cleanup_policies(value: str | None) -> frozenset[str]:
    """What `cleanup.policy` names; brokers give it back as it was written, with spaces behind its commas."""
    return frozenset(part.strip() for part in (value or "").split(",")) - {""}


class NotTaken(Enum):
    """Why a config of a source topic never comes to its remote topic."""

    SENSITIVE = "it is a secret"
    READ_ONLY = "it is read-only"
    STATIC = "it is in the brokers' own file"
    EXCLUDED = "it is of the class of those that are never taken"


@dataclass(frozen=True)
class ConfigsCompared:
    """What two topics' configs come to."""

    changes: tuple[ConfigChange, ...]
    """To be made on the remote topic."""
    kept: Mapping[str, str]
    """Set there by somebody else, with the value: the source has them at their default."""
    ours: Mapping[str, str]
    """What the remote topic has from its source then; only that is ever taken back."""
    stale: Mapping[str, str] = field(default_factory=dict)
    """Had from its source, which gives it no more by the rules of now; goes by choice only."""


def compare_configs(
    source: Mapping[str, TopicConfig],
    target: Mapping[str, TopicConfig],
    class_of: ClassOf,
    *,
    copies_defaults: bool,
    ours: Mapping[str, str],
    resets: bool,
    prunes: bool = False,
) -> ConfigsCompared:
    """Compare the configs of a source topic with those of its remote topic.

    With `copies_defaults` a remote topic gets the source's defaults, too (`use.defaults.from`). `ours` is what it had
    from its source before; with `resets` everything else goes, too, and with `prunes` what is stale.
    """
    changes: list[ConfigChange] = []
    kept: dict[str, str] = {}
    now: dict[str, str] = {}
    stale: dict[str, str] = {}
    for key in (*source, *sorted(ours.keys() - source.keys())):
        here, there = source.get(key), target.get(key)
        value = there.value if there is not None and there.is_own else None
        if here is None or _not_taken(key, here, class_of) is not None:
            if value is not None and ours.get(key) == value:
                stale[key] = value
            continue
        if here.value is not None and (copies_defaults or not here.is_default or class_of(key) is ConfigClass.ALWAYS):
            now[key] = here.value
            if value != here.value:
                changes.append(ConfigChange(key, here.value))
        elif value is not None and (resets or ours.get(key) == value):
            changes.append(ConfigChange(key, None))
        elif value is not None:
            kept[key] = value
    if prunes:
        changes += [ConfigChange(key, None) for key in stale]
    else:
        now |= stale
    return ConfigsCompared(tuple(changes), kept, now, stale)


def inherited(source: Mapping[str, TopicConfig], class_of: ClassOf, *, copies_defaults: bool) -> Mapping[str, str]:
    """The configs that a remote topic is made with: what it would get if it were there without any."""
    return compare_configs(source, {}, class_of, copies_defaults=copies_defaults, ours={}, resets=False).ours


def not_taken(source: Mapping[str, TopicConfig], class_of: ClassOf) -> Mapping[str, NotTaken]:
    """Configs that are set on the source topic itself and are left alone, with the reason."""
    own = {key: one for key, one in source.items() if one.is_own}
    return {key: why for key, one in own.items() if (why := _not_taken(key, one, class_of)) is not None}


def _not_taken(key: str, here: TopicConfig, class_of: ClassOf) -> NotTaken | None:
    if here.is_sensitive:
        return NotTaken.SENSITIVE
    if here.is_read_only:
        return NotTaken.READ_ONLY
    config_class = class_of(key)
    if config_class is ConfigClass.NEVER:
        return NotTaken.EXCLUDED
    return NotTaken.STATIC if here.is_static and config_class is not ConfigClass.ALWAYS else None


def configs_key(remote: str) -> bytes:
    """Key of what is recorded of a remote topic's configs, compact JSON."""
    return compact_json([CONFIGS, remote])


def configs_value(ours: Mapping[str, str]) -> bytes:
    """Its value: what the remote topic has from its source."""
    return compact_json({"v": _VERSION, "set": dict(sorted(ours.items()))})


def decode_configs(value: bytes | None) -> Mapping[str, str] | None:
    """What a remote topic has from its source; None for anything else, and for a newer version."""
    try:
        document = json.loads(value or b"")
        return dict(document["set"]) if document["v"] == _VERSION else None
    except (KeyError, TypeError, ValueError):
        return None
