"""Remote topics: which source topics flow, and that each has a topic on the target that can take its records.

Follows MirrorMaker 2 (`MirrorSourceConnector`): partitions as on the source, growing with it, never shrinking; the
source's own configs that pass the exclude list; nothing is ever deleted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from srm_spark.config.rights import acl_name
from srm_spark.core.cluster import TopicConfig, TopicSpec
from srm_spark.core.limits import Limits, Route
from srm_spark.core.made_here import MadeTopic, topic_record
from srm_spark.core.topic_configs import cleanup_policies, inherited
from srm_spark.core.wording import count, some
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.chosen import ChosenTopics
from srm_spark.flow.topics.made_here import write_made
from srm_spark.kafka.access import Access

log = logging.getLogger(__name__)

_CODECS = ("gzip", "snappy", "lz4", "zstd")
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Prepared:
    """The target is ready for these topics."""

    routes: Mapping[str, Route]
    """Source topic → remote topic and its limits."""
    held: Mapping[str, str]
    """Source topic → why it cannot flow now."""
    made: Mapping[str, str] = field(default_factory=dict)
    """Remote topic → its source topic, of those that were created."""


class RemoteTopics:
    """Selects source topics and keeps their remote topics in step."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._settings = clusters.settings.topics
        self._config_classes = self._settings.config_classes()
        self._verdicts: dict[str, bool] = {}
        self._lists = clusters.topics.lists
        """By which the verdicts were found."""
        self._limits: dict[str, Limits] = {}
        self._unseen: set[str] = set()
        """Remote topics that somebody keeps from us: nobody waits for them a second time."""
        self._chosen = ChosenTopics(clusters)

    def select(self) -> dict[str, int]:
        """Source topics that flow now, with their partition counts."""
        if (lists := self._clusters.topics.lists) is not self._lists:
            self._lists = lists
            self._verdicts.clear()
        return {name: count for name, count in self._clusters.source.topics().items() if self._is_selected(name)}

    def unseen(self, selected: Collection[str]) -> str | None:
        """What the filter asks for and the source does not show; None where nothing is missing.

        A topic that we may not describe looks exactly like one that does not exist.
        """
        takes, flow = self._clusters.topics, self._clusters.settings.flow
        if takes.is_idle:  # heartbeats flow all the same
            add = f"srm-control topics --source {flow.source} --target {flow.target} --add LIST"
            return f"no pattern of topics and no entry of their list names a topic of {flow.source}: {add}"
        names = [name for pattern in takes.wanted if not (name := acl_name(pattern)).endswith("*")]
        missing = [name for name in names if name not in selected and takes.excluded_by(name) is None]
        if selected and not missing:
            return None
        what = f"topic {some(missing)}" if missing else f"a topic that matches {some(takes.wanted)}"
        return f"{flow.source} does not show {what}: there is none, or READ on it is not allowed"

    def remote_name(self, topic: str) -> str:
        """The topic's name on the target."""
        return self._clusters.policy.format_remote_topic(self._clusters.settings.flow.source, topic)

    def prepare(self, topics: Mapping[str, int], copied: Collection[str] = ()) -> Prepared:
        """Create and grow remote topics; a topic for which that is refused is held, the others go on.

        Of `copied` topics there were remote topics: where one is gone, the policy decides whether it is made anew.
        """
        self._chosen.tell(topics)
        present = self._clusters.target.topics()
        remote = {topic: self.remote_name(topic) for topic in topics}
        missing, small = lacking(topics, remote, present)
        for topic in missing:
            self._limits.pop(remote[topic], None)  # of one that was deleted
        held = self.gone(missing, copied)
        to_make = [topic for topic in missing if topic not in held]
        held |= self._create(to_make, topics)
        grown = self._clusters.target.grow({remote[topic]: topics[topic] for topic in small})
        for topic in small:
            if reason := grown[remote[topic]]:
                have = present[remote[topic]]
                held[topic] = (
                    f"{remote[topic]} on {self._clusters.target.alias} has {count(have, 'partition')}, "
                    f"{topics[topic]} are needed and it cannot grow: {reason}; add partitions to it"
                )
        held |= self._forbidden({topic: name for topic, name in remote.items() if topic not in held})
        flowing = {topic: name for topic, name in remote.items() if topic not in held}
        unseen = self._await_visible({name: topics[topic] for topic, name in flowing.items()})
        unseen |= self._await_limits([name for name in flowing.values() if name not in unseen])
        if unseen and len(unseen) == len(flowing):
            raise TargetUnavailable(next(iter(unseen.values())))
        self._unseen = set(unseen)
        held |= {topic: unseen[name] for topic, name in flowing.items() if name in unseen}
        flowing = {topic: name for topic, name in flowing.items() if topic not in held}
        refused = self._clusters.settings.refused
        return Prepared(
            {topic: Route(name, self._limits[name], refused.of(topic)) for topic, name in flowing.items()},
            held,
            {remote[topic]: topic for topic in to_make if topic in flowing},
        )

    def gone(self, missing: Collection[str], copied: Collection[str]) -> dict[str, str]:
        """Source topics whose remote topic was there and is not made anew → why."""
        policies, alias = self._clusters.settings.policies, self._clusters.target.alias
        return {
            topic: f"{self.remote_name(topic)} is gone on {alias}, with all copies; "
            "set target.changed.policy=resume to create it anew and go on"
            for topic in missing
            if topic in copied and policies.stops("target.changed.policy", topic)
        }

    def spec(self, topic: str, partitions: int, configs: Mapping[str, TopicConfig]) -> TopicSpec:
        """How its remote topic is made, where the source topic has so many partitions and these configs."""
        copies_defaults = self._settings.use_defaults_from == "source"
        values = inherited(configs, self._config_classes.of, copies_defaults=copies_defaults)
        return TopicSpec(self.remote_name(topic), partitions, self._settings.replication_factor, values)

    def changed_limits(self, topics: Collection[str]) -> set[str]:
        """Read the limits of some topics' remote topics again; the topics for which they are others now."""
        names = {topic: self.remote_name(topic) for topic in topics}
        before = {name: self._limits.get(name) for name in names.values()}
        self._learn_limits(list(names.values()))
        return {topic for topic, name in names.items() if self._limits.get(name) != before[name]}

    def _is_selected(self, topic: str) -> bool:
        verdict = self._verdicts.get(topic)
        if verdict is None:
            verdict = self._verdicts[topic] = self._clusters.flows(topic)
        return verdict

    def _create(self, missing: Collection[str], topics: Mapping[str, int]) -> dict[str, str]:
        configs = self._clusters.source.configs(missing) if missing else {}
        specs = [self.spec(topic, topics[topic], configs.get(topic, {})) for topic in missing]
        refused = self._clusters.target.create(specs)
        if created := [name for name, reason in refused.items() if not reason and name not in self._unseen]:
            flow, alias = self._clusters.settings.flow, self._clusters.target.alias
            log.info("flow=%s created %s on %s: %s", flow, count(len(created), "topic"), alias, some(created))
        return {
            topic: f"{self.remote_name(topic)} cannot be created on {self._clusters.target.alias}: {reason}; "
            "create it by hand, or allow CREATE and check replication.factor"
            for topic in missing
            if (reason := refused[self.remote_name(topic)])
        }

    def _forbidden(self, remote: Mapping[str, str]) -> dict[str, str]:
        """Topics that share a transaction with others, and must not: one that is refused fails it without a name."""
        settings = self._clusters.settings
        if not settings.is_exactly_once or not remote:
            return {}
        seconds, role = settings.admin_timeout_seconds, f"{settings.flow}|rights"
        allowed = Access(settings.target, settings.target_admin, seconds, role).on_topics(remote.values())
        return {
            topic: f"{self._clusters.target.alias} forbids to write {name}: allow WRITE on topic {name} to the "
            "principal of these credentials"
            for topic, name in remote.items()
            if (operations := allowed.get(name)) is not None and "WRITE" not in operations
        }

    def _await_visible(self, partitions: Mapping[str, int]) -> dict[str, str]:
        # Creation returns when the controller knows; the broker that answers the producer may learn it later.
        def missing() -> list[str]:
            present = self._clusters.target.topics()
            return [name for name, count in partitions.items() if present.get(name, 0) < count]

        return self._await_none(missing, "was created and does not show", "check the controller, and DESCRIBE on it")

    def _await_limits(self, names: Collection[str]) -> dict[str, str]:
        # The broker that is asked for configs may be another one, which has not heard of the topic yet.
        def unknown() -> list[str]:
            self._learn_limits([name for name in names if name not in self._limits])
            return [name for name in names if name not in self._limits]

        return self._await_none(unknown, "is there, and nobody tells its configs", "was it deleted?")

    def _await_none(self, waiting: Callable[[], list[str]], what: str, hint: str) -> dict[str, str]:
        """Wait until no remote topic is `waiting` any more; those that still are → what is wrong with them."""
        deadline = time.monotonic() + self._clusters.settings.timings.visible_seconds
        while names := waiting():
            if self._unseen.issuperset(names) or time.monotonic() > deadline:
                return {name: f"{name} on {self._clusters.target.alias} {what}; {hint}" for name in names}
            time.sleep(_POLL_SECONDS)
        return {}

    def _learn_limits(self, names: Collection[str]) -> None:
        for name, configs in self._clusters.target.configs(names).items():
            self._limits[name] = limits_of(configs)


def record_made(clusters: Clusters, made: Mapping[str, str]) -> None:
    """Record which remote topics were made here, by their ids; `made`: remote topic → its source topic."""
    ids = sorted(_ids_of(clusters, made).items())
    write_made(clusters, dict(topic_record(name, MadeTopic(made[name], topic_id)) for name, topic_id in ids))


def _ids_of(clusters: Clusters, made: Collection[str]) -> dict[str, str]:
    # The broker that tells ids may hear of a topic later than the one that listed it, and nobody asks again.
    deadline = time.monotonic() + clusters.settings.timings.visible_seconds
    while missing := {*made} - (ids := clusters.target.topic_ids(sorted(made)) if made else {}).keys():
        if time.monotonic() > deadline:
            text = "flow=%s created on %s and not recorded as made here, for nobody tells the id: %s"
            log.warning(text, clusters.settings.flow, clusters.target.alias, some(sorted(missing)))
            break
        time.sleep(_POLL_SECONDS)
    return ids


def lacking(
    topics: Mapping[str, int], remote: Mapping[str, str], present: Mapping[str, int]
) -> tuple[list[str], list[str]]:
    """Source topics whose remote topic is not there, and those whose remote topic has too few partitions."""
    missing = [topic for topic, name in remote.items() if name not in present]
    return missing, [topic for topic, name in remote.items() if present.get(name, topics[topic]) < topics[topic]]


def limits_of(configs: Mapping[str, TopicConfig]) -> Limits:
    """What a topic accepts, from its configs."""

    def number(key: str) -> int | None:
        value = configs[key].value if key in configs else None
        return None if value is None else int(value)

    def text(key: str) -> str:
        return (configs[key].value or "") if key in configs else ""

    # With LogAppendTime the broker overwrites the timestamp and checks nothing.
    is_checked = text("message.timestamp.type") != "LogAppendTime"
    return Limits(
        max_bytes=number("max.message.bytes") or Limits.max_bytes,
        before_ms=number("message.timestamp.before.max.ms") if is_checked else None,
        after_ms=number("message.timestamp.after.max.ms") if is_checked else None,
        needs_key="compact" in cleanup_policies(text("cleanup.policy")),
        codec=codec if (codec := text("compression.type")) in _CODECS else "",
        keeps_batches=text("compression.type") in ("", "producer"),
    )
