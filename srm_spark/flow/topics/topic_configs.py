"""Keeps the configs of remote topics as those of their source topics, by the rules of `core/topic_configs.py`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from srm_spark.core.cluster import ConfigChange, ControlRecord
from srm_spark.core.filter_plugins import CONFIG_PROPERTIES, load_filter
from srm_spark.core.news import News
from srm_spark.core.topic_configs import ConfigsCompared, compare_configs, configs_key, configs_value
from srm_spark.errors import FlowError
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.progress import state_writer_of

log = logging.getLogger(__name__)

Remotes = Callable[[], Mapping[str, str]]
"""Source topic → remote topic, of those that flow now."""


class TopicConfigs:
    """Of one run of a flow; `look` is a periodic task."""

    def __init__(self, clusters: Clusters, maps: OffsetMaps, remotes: Remotes) -> None:
        topics = clusters.settings.topics
        self._clusters = clusters
        self._maps = maps
        self._remotes = remotes
        self._filter = load_filter(CONFIG_PROPERTIES, topics.config_filter_class, (".*",), topics.config_exclude)
        self._refused, self._kept, self._failed = News(), News(), News()

    def look(self) -> None:
        """Compare all of them, change what differs, and record what remote topics have from their sources."""
        try:
            self._sync()
            self._failed.is_new("failure", None)
        except FlowError as error:
            if self._failed.is_new("failure", str(error)):
                text = "flow=%s topic configs are not compared (sync.topic.configs.enabled): %s"
                log.warning(text, self._clusters.settings.flow, error)

    def _sync(self) -> None:
        compared = self._compared()
        self._tell_kept(compared)
        refused = self._alter({remote: each.changes for remote, each in compared.items() if each.changes})
        with self._maps.lock:
            before = dict(self._maps.configs)
        topic = self._clusters.settings.map_topic
        news = [
            ControlRecord(topic, configs_key(remote), configs_value(each.ours), partition=0)
            for remote, each in compared.items()
            if remote not in refused and each.ours != before.get(remote, {})
        ]
        if news:
            self._clusters.require_lease()
            # Outside of any transaction: one that comes late is put right by the next look.
            state_writer_of(self._clusters, None).write(news)

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

    def _compared(self) -> dict[str, ConfigsCompared]:
        """Remote topic → what is to be done; only where both topics are there."""
        settings, remotes = self._clusters.settings, self._remotes()
        source, target = self._clusters.source.configs(remotes), self._clusters.target.configs(set(remotes.values()))
        with self._maps.lock:
            self._maps.refresh()
            ours = dict(self._maps.configs)
        return {
            remote: compare_configs(
                source[topic],
                target[remote],
                self._filter.matches,
                copies_defaults=settings.topics.use_defaults_from == "source",
                ours=ours.get(remote, {}),
                resets=settings.topics.resets_overrides,
            )
            for topic, remote in remotes.items()
            if topic in source and remote in target
        }
