"""Replication factors against the number of brokers: only the running clusters tell whether they fit."""

from __future__ import annotations

from collections.abc import Iterator

from srm_spark.core.cluster import Cluster
from srm_spark.flow.clusters import Clusters


def factors_too_large(clusters: Clusters) -> list[str]:
    """One line per replication factor that no topic of this flow can have, with the place where it was written.

    Topics that exist already go on as they are, so this is no failure yet.
    """
    brokers = {cluster.alias: cluster.broker_count() for cluster in (clusters.source, clusters.target)}
    problems = []
    for name, factor, cluster in _factors(clusters):
        have = brokers[cluster.alias]
        if factor > have:
            place = clusters.settings.places.get(name, f"{name} (default)")
            problems.append(
                f"{place} = {factor}, but {cluster.alias} has {have} broker{'s' if have > 1 else ''}: "
                f"topics cannot be created with it; write {name} = {have}, or create them by hand"
            )
    return problems


def _factors(clusters: Clusters) -> Iterator[tuple[str, int, Cluster]]:
    settings = clusters.settings
    yield "replication.factor", settings.topics.replication_factor, clusters.target
    yield "offset.storage.replication.factor", settings.progress_replication_factor, clusters.target
    name, factor = "control.topic.replication.factor", settings.control_replication_factor
    if name in settings.places:  # else it is that of the progress topic
        yield name, factor, clusters.target
    if settings.syncs.enabled:
        yield "offset-syncs.topic.replication.factor", settings.syncs.replication_factor, clusters.syncs_cluster
    if settings.checkpoints.emit_enabled:
        yield "checkpoints.topic.replication.factor", settings.checkpoints.replication_factor, clusters.target
