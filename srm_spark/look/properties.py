"""Why a property of a remote topic is as it is: by the filter of properties, and by what both topics have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from srm_spark.config.settings import FlowSettings
from srm_spark.config.spelling import did_you_mean
from srm_spark.core.cluster import TopicConfig
from srm_spark.core.config_classes import EXCLUDE_KEY, ConfigClass, ConfigClasses
from srm_spark.core.topic_configs import compare_configs
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.look.answer import Answer, Because, Rule, Verdict
from srm_spark.look.flows import hurried
from srm_spark.look.rules import Rules, rules_of

_SWITCH, _DEFAULTS = "sync.topic.configs.enabled", "use.defaults.from"
_OVERRIDES = "target.override.policy"


class _Asked(NamedTuple):
    """What is asked, and the rules that decide."""

    name: str
    """Of the property."""
    clusters: Clusters
    rules: Rules
    classes: ConfigClasses


def explain_property(settings: FlowSettings, name: str, topic: str | None = None, reach: Connect = connect) -> Answer:
    """What becomes of a property of topics; with a `topic` of the source, what both topics have."""
    clusters = reach(hurried(settings))
    subject = f"property {name}" if topic is None else f"property {name} of topic {topic}"

    def found(
        verdict: Verdict, because: Because, why: str, remedy: str | None = None, rule: Rule | None = None
    ) -> Answer:
        return Answer(clusters.settings.flow, subject, verdict, because, why, rule, remedy=remedy)

    try:
        asked = _Asked(name, clusters, rules_of(clusters), clusters.settings.topics.config_classes())
        ruled = _ruled(asked, found)
        if ruled.verdict is Verdict.LEFT_OUT or topic is None:
            return ruled
        return _compared(asked, topic, ruled)
    except SourceUnavailable as error:
        why = f"{clusters.settings.flow.source} does not answer: {error}"
        return found(Verdict.UNKNOWN, Because.SOURCE_DOWN, why, "srm-driver doctor says what is wrong")
    except TargetUnavailable as error:
        why = f"{clusters.settings.flow.target} does not answer: {error}"
        return found(Verdict.UNKNOWN, Because.TARGET_DOWN, why, "srm-driver doctor says what is wrong")


def _ruled(asked: _Asked, found: Callable[..., Answer]) -> Answer:
    """By its name alone."""
    name, rules, topics = asked.name, asked.rules, asked.clusters.settings.topics
    own = topics.config_filter_class
    config_class, key, pattern = classified = asked.classes.classify(name)
    rule = None if pattern is None else Rule(pattern, rules.place(key))
    if config_class is ConfigClass.NEVER:
        move = f"{ConfigClass.USUALLY.key} = {name} moves it"
        if pattern is None:
            answer = found(Verdict.LEFT_OUT, Because.FILTER_CLASS, f"{own} does not take it", move)
            return replace(answer, rule=rules.switch(key, own))
        back = f"set {key} without {pattern}" if key == ConfigClass.NEVER.key else move
        remedy = f"{back}; what a remote topic has is left alone"
        return found(Verdict.LEFT_OUT, Because.EXCLUDED, classified.reason, remedy, rule)
    if topics.configs_seconds is None:
        why = "remote topics get it when they are made, and are not compared afterwards"
        answer = found(Verdict.LEFT_OUT, Because.SWITCHED_OFF, why, f"{_SWITCH} = true")
        return replace(answer, rule=rules.switch(_SWITCH, "false"))
    ruled = f"no pattern of {EXCLUDE_KEY} matches it" if key == EXCLUDE_KEY else f"{own} takes it"
    if pattern is not None:
        default = ", its default, too" if config_class is ConfigClass.ALWAYS else ""
        ruled = f"{key} has {pattern}: it is {config_class.value} copied{default}"
    why = f"{ruled}; it is compared every {topics.configs_seconds:g} s"
    remedy = "add --topic TOPIC to see what both topics have"
    return found(Verdict.FLOWS, Because.INCLUDED, why, remedy, rule or rules.switch(_SWITCH, "true"))


def _compared(asked: _Asked, topic: str, ruled: Answer) -> Answer:
    """By what both topics have."""
    name, clusters, flow = asked.name, asked.clusters, asked.clusters.settings.flow
    remote = clusters.policy.format_remote_topic(flow.source, topic)
    here = clusters.source.configs([topic]).get(topic)
    if here is None:
        why = f"{flow.source} does not show topic {topic}: there is none, or DESCRIBE_CONFIGS on it is not allowed"
        return _left(ruled, Because.NOT_SHOWN, why, f"srm-control explain topic {topic}")
    there = clusters.target.configs([remote]).get(remote)
    facts = {f"{topic} on {flow.source}": _shown(here.get(name))}
    if there is None:
        why = f"{remote} is not on {flow.target}: it gets its properties when it is made"
        answer = _left(ruled, Because.NO_REMOTE_TOPIC, why, f"srm-control explain topic {topic}")
        return replace(answer, verdict=Verdict.WAITS, facts=facts)
    ruled = replace(ruled, facts={**facts, f"{remote} on {flow.target}": _shown(there.get(name))}, remedy=None)
    pair = _Pair(topic, remote, here, there)
    return _never_copied(asked, pair, ruled) or _differing(asked, pair, ruled)


class _Pair(NamedTuple):
    """Both topics, and what they have."""

    topic: str
    remote: str
    here: Mapping[str, TopicConfig]
    there: Mapping[str, TopicConfig]


def _never_copied(asked: _Asked, pair: _Pair, ruled: Answer) -> Answer | None:
    name, flow, config = asked.name, asked.clusters.settings.flow, pair.here.get(asked.name)
    if config is None:
        remedy = did_you_mean(name, pair.here) or "kafka-configs.sh --describe --all lists those of a topic"
        return _left(ruled, Because.NO_PROPERTY, f"{flow.source} knows no property of that name", remedy)
    if config.is_read_only:
        return _left(ruled, Because.READ_ONLY, "nobody may set it", "nothing")
    if config.is_sensitive:
        why = "it is a secret, which brokers do not tell"
        return _left(ruled, Because.SENSITIVE, why, f"set it on {pair.remote} by hand")
    is_always = asked.classes.of(name) is ConfigClass.ALWAYS
    if config.is_static and not is_always:
        why = f"on {flow.source} it comes from the brokers' own file, which says nothing about {flow.target}"
        return _left(ruled, Because.STATIC, why, f"set it on topic {pair.topic}, and it is copied")
    return None


def _differing(asked: _Asked, pair: _Pair, ruled: Answer) -> Answer:
    """By the same comparison as a running flow makes."""
    name, rules, clusters = asked.name, asked.rules, asked.clusters
    settings, flow = clusters.settings, clusters.settings.flow
    topic, remote = pair.topic, pair.remote
    compared = compare_configs(
        {name: pair.here[name]},
        pair.there,
        asked.classes.of,
        copies_defaults=settings.topics.use_defaults_from == "source",
        ours=_ours(clusters, remote),
        resets=settings.topics.resets_overrides,
    )
    if compared.changes:
        seconds = settings.topics.configs_seconds or 0.0
        answer = replace(ruled, why=f"it is to be changed: {compared.changes[0]}", because=Because.DIFFERENT)
        remedy = f"a driver that runs does it within {seconds:g} s; what is refused is in its log"
        return replace(answer, verdict=Verdict.WAITS, waits_for="the next look at the configs", remedy=remedy)
    if name in compared.kept:
        why = f"somebody set it on {remote} to {compared.kept[name]}, and {topic} has its default: that is kept"
        answer = _left(ruled, Because.KEPT, why, f"{_OVERRIDES} = reset takes it back to its default")
        return replace(answer, rule=rules.switch(_OVERRIDES, "keep"))
    if name in compared.ours:
        return replace(ruled, why=f"{remote} has what {topic} has: {compared.ours[name]}")
    why = f"{topic} has its default, and so has {remote} that of {flow.target}"
    answer = _left(
        ruled,
        Because.DEFAULT,
        why,
        f"set it on {topic}; {_DEFAULTS} = source or {ConfigClass.ALWAYS.key} copies defaults, too",
    )
    return replace(answer, rule=rules.switch(_DEFAULTS, settings.topics.use_defaults_from))


def _ours(clusters: Clusters, remote: str) -> dict[str, str]:
    """What the remote topic has from its source, as recorded."""
    settings = clusters.settings
    maps = OffsetMaps(clusters.target, settings.map_topic, f"{settings.flow}|explain-configs", TargetUnavailable)
    with closing(maps):
        if settings.map_topic in clusters.target.topics():
            maps.refresh()
        return dict(maps.made.configs.get(remote, {}))


def _left(ruled: Answer, because: Because, why: str, remedy: str) -> Answer:
    return replace(ruled, verdict=Verdict.LEFT_OUT, because=because, why=why, remedy=remedy)


def _shown(config: TopicConfig | None) -> str:
    if config is None:
        return "not there"
    value = "a secret" if config.is_sensitive else str(config.value)
    if config.is_own:
        return f"{value} (set on the topic)"
    where = (
        "its default" if config.is_default else "in the brokers' own file" if config.is_static else "set for brokers"
    )
    return f"{value} ({where})"
