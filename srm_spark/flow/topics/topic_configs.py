"""Keeps the configs of remote topics as those of their source topics, by the rules of `core/topic_configs.py`."""

from __future__ import annotations

import functools
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import ConfigChange, TopicConfig
from srm_spark.core.config_classes import ConfigClasses
from srm_spark.core.losing_configs import LosingConfig, losing_configs
from srm_spark.core.news import News
from srm_spark.core.topic_configs import ConfigsCompared, compare_configs, configs_key, configs_value
from srm_spark.core.wording import some
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.made_here import write_made
from srm_spark.flow.topics.offset_map import OffsetMaps

log = logging.getLogger(__name__)

Remotes = Callable[[], Mapping[str, str]]
"""Source topic → remote topic, of those that flow now."""
Pair = tuple[Mapping[str, TopicConfig], Mapping[str, TopicConfig]]
"""The configs of a source topic, and those of its remote topic."""


class TopicConfigs:
    """Of one run of a flow; `look` is a periodic task."""

    def __init__(self, clusters: Clusters, maps: OffsetMaps, remotes: Remotes) -> None:
        self._clusters = clusters
        self._maps = maps
        self._remotes = remotes
        self._classes = clusters.settings.topics.config_classes()
        self._refused, self._kept, self._losing, self._failed = News(), News(), News(), News()

    def look(self) -> None:
        """Compare all of them, change what differs, and record what remote topics have from their sources."""
        text = "flow=%s topic configs are not compared (sync.topic.configs.enabled): %s"
        flow = self._clusters.settings.flow
        with self._failed.failing(lambda error: log.warning(text, flow, error)):
            self._sync()

    def _sync(self) -> None:
        pairs = self._pairs()
        compared = self._compare(pairs)
        self._tell_kept(compared)
        self._tell_losing(pairs, compared)
        refused = self._alter({remote: each.changes for remote, each in compared.items() if each.changes})
        with self._maps.lock:
            before = dict(self._maps.made.configs)
        ours = {remote: each.ours for remote, each in compared.items() if remote not in refused}
        record_configs(self._clusters, before, ours)

    def _alter(self, changes: Mapping[str, Sequence[ConfigChange]]) -> Mapping[str, str]:
        """Change what differs; remote topic → why that was refused."""
        flow, alias = self._clusters.settings.flow, self._clusters.target.alias
        if not changes:
            self._refused.changes({})
            return {}
        self._clusters.require_lease()
        answers = self._clusters.target.alter(changes)
        refused = {remote: why for remote, why in answers.items() if why}
        for remote, why in self._refused.changes(refused).items():
            log.warning("flow=%s the configs of %s on %s cannot be changed: %s", flow, remote, alias, why)
        for remote in sorted(changes.keys() - refused.keys()):
            text = "flow=%s as on the source now: %s on %s has %s"
            log.info(text, flow, remote, alias, ", ".join(map(str, changes[remote])))
        return refused

    def _tell_kept(self, compared: Mapping[str, ConfigsCompared]) -> None:
        kept = {remote: tuple(sorted(each.kept.items())) for remote, each in compared.items() if each.kept}
        for remote, configs in self._kept.changes(kept).items():
            log.info(
                "flow=%s %s on %s keeps %s, which the source has at its default: target.override.policy = reset takes "
                "it back",
                self._clusters.settings.flow,
                remote,
                self._clusters.target.alias,
                ", ".join(f"{key}={value}" for key, value in configs),
            )

    def _tell_losing(self, pairs: Mapping[str, Pair], compared: Mapping[str, ConfigsCompared]) -> None:
        """Warn before records are lost; what changes now is looked at as it will be."""
        losing = {remote: losing_after(*pair, compared[remote].changes) for remote, pair in pairs.items()}
        alike = defaultdict[tuple[LosingConfig, ...], list[str]](list)
        for remote, found in self._losing.changes({remote: found for remote, found in losing.items() if found}).items():
            alike[found].append(remote)
        for found, remotes in alike.items():
            flow, alias = self._clusters.settings.flow, self._clusters.target.alias
            log.warning("flow=%s on %s: %s (%s)", flow, alias, "; ".join(map(str, found)), some(remotes))

    def _pairs(self) -> dict[str, Pair]:
        """Remote topic → what is in force on both sides; only where both topics are there."""
        remotes = self._remotes()
        source, target = self._clusters.source.configs(remotes), self._clusters.target.configs(set(remotes.values()))
        return {
            remote: (source[topic], target[remote])
            for topic, remote in remotes.items()
            if topic in source and remote in target
        }

    def _compare(self, pairs: Mapping[str, Pair]) -> dict[str, ConfigsCompared]:
        """Remote topic → what is to be done."""
        with self._maps.lock:
            self._maps.refresh()
            ours = dict(self._maps.made.configs)
        return compare_pairs(self._clusters.settings, self._classes, pairs, ours)


def compare_pairs(
    settings: FlowSettings,
    classes: ConfigClasses,
    pairs: Mapping[str, Pair],
    ours: Mapping[str, Mapping[str, str]],
    *,
    prunes: bool = False,
) -> dict[str, ConfigsCompared]:
    """Remote topic → what is to be done; `ours` is what each had from its source before."""
    class_of = functools.cache(classes.of)  # by the name alone, and all topics have the same ones
    return {
        remote: compare_configs(
            source,
            target,
            class_of,
            copies_defaults=settings.topics.use_defaults_from == "source",
            ours=ours.get(remote, {}),
            resets=settings.topics.resets_overrides,
            prunes=prunes,
        )
        for remote, (source, target) in pairs.items()
    }


def losing_after(
    source: Mapping[str, TopicConfig], target: Mapping[str, TopicConfig], changes: Sequence[ConfigChange]
) -> tuple[LosingConfig, ...]:
    """What is lost by the configs of a remote topic as they are after these changes."""
    here = {key: one.value for key, one in source.items()}
    there = {key: one.value for key, one in target.items()} | {change.key: change.value for change in changes}
    return losing_configs(here, there)


def record_configs(
    clusters: Clusters, before: Mapping[str, Mapping[str, str]], ours: Mapping[str, Mapping[str, str]]
) -> None:
    """Record what remote topics have from their sources now, where that is another than `before`."""
    news = {remote: values for remote, values in ours.items() if values != before.get(remote, {})}
    write_made(clusters, {configs_key(remote): configs_value(values) for remote, values in news.items()})
