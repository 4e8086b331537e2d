"""The topics that hold the state of a flow: how each one is made, and what of one that is there would do harm.

A record here counts until a newer one of its key takes its place, however old it is. So a topic that deletes by age
forgets what is true: of a partition at rest, of a record in quarantine. Kafka Connect does not start on such an offsets
topic either. What can be found out again is worth a warning, and what cannot is not begun.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

from srm_spark.config.settings import FlowSettings
from srm_spark.core import advertised, metrics
from srm_spark.core.cluster import Cluster, TopicSpec
from srm_spark.core.model import TopicPartition
from srm_spark.core.wording import count
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters

log = logging.getLogger(__name__)

_COMPACTED = {"cleanup.policy": "compact"}
_STAMPED = {
    **_COMPACTED,
    "message.timestamp.type": "LogAppendTime",
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.1",
}
_SHOWN_SECONDS = 10.0
"""A topic that was created shows on every broker much sooner than that."""
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class InternalTopic:
    """One of them."""

    spec: TopicSpec
    holds: str = ""
    """What is in it, for people; empty where it may be forgotten."""
    is_truth: bool = False
    """Nothing else knows what it holds: no flow runs on one that forgets."""
    needs_partitions: int = 1

    def fault(self, partitions: int, cleanup_policy: str | None) -> Fault | None:
        """What is wrong with one that is there; None where nothing is. A policy of None is unknown."""
        name = self.spec.name
        if partitions < self.needs_partitions:
            remedy = f"kafka-topics.sh --alter --topic {name} --partitions {self.needs_partitions}"
            return Fault(
                f"has {count(partitions, 'partition')}, and {self.needs_partitions} are needed", remedy, is_fatal=True
            )
        if not self.holds or cleanup_policy in (None, "compact"):
            return None
        remedy = f"kafka-configs.sh --alter --topic {name} --add-config cleanup.policy=compact"
        text = f"holds {self.holds} and has cleanup.policy={cleanup_policy}, so it forgets what is old but true"
        return Fault(text, remedy, is_fatal=self.is_truth)


@dataclass(frozen=True)
class Fault:
    """What is wrong with a topic."""

    text: str
    remedy: str
    is_fatal: bool
    """The flow must not run with it."""


def progress_topic(settings: FlowSettings) -> InternalTopic:
    """Where progress is recorded, in Kafka Connect's format."""
    factor = settings.progress_replication_factor
    spec = TopicSpec(settings.progress_topic, settings.progress_partitions, factor, _COMPACTED)
    return InternalTopic(spec, "how far each partition was replicated", is_truth=True)


def map_topic(settings: FlowSettings) -> InternalTopic:
    """Where the offset map lies."""
    spec = TopicSpec(settings.map_topic, 1, settings.progress_replication_factor, _COMPACTED)
    return InternalTopic(spec, "the offset map", is_truth=True)


def control_topic(settings: FlowSettings) -> InternalTopic:
    """Where the allow and deny lists lie."""
    return lists_topic(settings.control_topic, settings.control_replication_factor)


def lists_topic(name: str, replication_factor: int) -> InternalTopic:
    """The same without a file."""
    return InternalTopic(TopicSpec(name, 1, replication_factor, _COMPACTED), "the lists of srm-control", is_truth=True)


def leases_topic(settings: FlowSettings) -> InternalTopic:
    """Where drivers claim the flow. Two records a second: its segments are short, and compacted soon; not so soon that
    who reads misses a claim that others have seen."""
    configs = {
        **_COMPACTED,
        "segment.ms": "600000",
        "min.compaction.lag.ms": "600000",
        "min.cleanable.dirty.ratio": "0.1",
    }
    return InternalTopic(TopicSpec(settings.leases_topic, 1, settings.progress_replication_factor, configs))


def status_topic(settings: FlowSettings) -> InternalTopic:
    """Where drivers say how their flow is. The broker stamps it, so that one clock counts; short segments are compacted
    soon, for whoever asks reads all of it."""
    return InternalTopic(TopicSpec(settings.status_topic, 1, settings.progress_replication_factor, _STAMPED))


def advertisements_topic(replication_factor: int) -> InternalTopic:
    """Where services say how they are reached, in the same way."""
    return InternalTopic(TopicSpec(advertised.TOPIC, 1, replication_factor, _STAMPED))


def metrics_topic(settings: FlowSettings) -> InternalTopic:
    """Where samples of the flow lie. They are worth something for some hours, so that it deletes by age."""
    configs = {"cleanup.policy": "delete", "retention.ms": "10800000", "segment.ms": "1800000"}
    name = metrics.metrics_topic(settings.flow)
    return InternalTopic(TopicSpec(name, 1, settings.metrics_factor, configs))


def meta_topic(settings: FlowSettings) -> InternalTopic:
    """Which topics are copied to where, of all flows into the target. What it holds is written again where it is not
    there any more."""
    return InternalTopic(TopicSpec(metrics.META_TOPIC, 1, settings.metrics_factor, _COMPACTED))


def quarantine_topic(settings: FlowSettings) -> InternalTopic:
    """Where refused records are put aside; its own limit counts, whatever the broker's is."""
    configs = {**_COMPACTED, "max.message.bytes": "1048588"}
    spec = TopicSpec(settings.quarantine_topic, 2, settings.progress_replication_factor, configs)
    return InternalTopic(spec, "records that were refused", is_truth=True, needs_partitions=2)


def syncs_topic(clusters: Clusters) -> InternalTopic:
    """Where MirrorMaker 2's offset syncs lie."""
    spec = TopicSpec(clusters.syncs_topic, 1, clusters.settings.syncs.replication_factor, _COMPACTED)
    return InternalTopic(spec, "offset syncs")


def checkpoints_topic(clusters: Clusters) -> InternalTopic:
    """Where MirrorMaker 2's checkpoints lie."""
    settings = clusters.settings
    name = clusters.policy.checkpoints_topic(settings.flow.source)
    return InternalTopic(TopicSpec(name, 1, settings.checkpoints.replication_factor, _COMPACTED), "checkpoints")


def internal_topics(clusters: Clusters) -> Iterator[tuple[Cluster, InternalTopic]]:
    """All that a flow writes, each with its cluster."""
    settings = clusters.settings
    yield clusters.target, progress_topic(settings)
    yield clusters.target, leases_topic(settings)
    yield clusters.target, map_topic(settings)
    yield clusters.target, control_topic(settings)
    yield clusters.target, status_topic(settings)
    if settings.metrics.seconds is not None:
        yield clusters.target, metrics_topic(settings)
        yield clusters.target, meta_topic(settings)
    if settings.refused.parks:
        yield clusters.target, quarantine_topic(settings)
    if settings.syncs.enabled:
        yield clusters.syncs_cluster, syncs_topic(clusters)
    if settings.checkpoints.emit_enabled:
        yield clusters.target, checkpoints_topic(clusters)


def owned_partitions(clusters: Clusters) -> list[TopicPartition]:
    """On the target: those of the topics that are there which only the flow's owner writes for it."""
    settings = clusters.settings
    names = [settings.progress_topic, settings.map_topic, settings.quarantine_topic]
    names.append(checkpoints_topic(clusters).spec.name)
    counts = clusters.target.topics()
    return [TopicPartition(name, number) for name in names for number in range(counts.get(name, 0))]


def fault_of(cluster: Cluster, topic: InternalTopic, partitions: int) -> Fault | None:
    """What is wrong with a topic of so many partitions that is there, as far as we may see."""
    name = topic.spec.name
    try:
        configs = cluster.configs([name]).get(name, {})
    except (SourceUnavailable, TargetUnavailable) as error:  # DESCRIBE_CONFIGS is no right that a flow needs here
        log.debug("topic %s cannot be examined: %s", name, error)
        configs = {}
    policy = configs["cleanup.policy"].value if "cleanup.policy" in configs else None
    return topic.fault(partitions, policy)


def ensure_topic(cluster: Cluster, topic: InternalTopic) -> None:
    """Create a topic of our own unless it exists.

    Raises where the cluster refuses, and where one is there that would lose what nobody else knows.
    """
    spec = topic.spec
    partitions = cluster.topics().get(spec.name)
    if partitions is not None:
        _examine(cluster, topic, partitions)
        return
    reason = cluster.create([spec])[spec.name]
    if reason:
        raise TargetUnavailable(
            f"cluster {cluster.alias}: topic {spec.name} cannot be created: {reason}; "
            "allow CREATE, or create it by hand (compacted), and check the replication factor"
        )
    deadline = time.monotonic() + _SHOWN_SECONDS
    while spec.name not in cluster.topics() and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)  # the broker that is asked next may not know of it yet


def _examine(cluster: Cluster, topic: InternalTopic, partitions: int) -> None:
    fault = fault_of(cluster, topic, partitions)
    if fault is None:
        return
    name, server = topic.spec.name, cluster.bootstrap_servers
    if fault.is_fatal:
        reason = f"it {fault.text}; {fault.remedy} --bootstrap-server {server}"
        raise cluster.refused(f"keep state in topic {name}", reason)
    text = "cluster %s: topic %s %s; %s --bootstrap-server %s"
    log.warning(text, cluster.alias, name, fault.text, fault.remedy, server)
