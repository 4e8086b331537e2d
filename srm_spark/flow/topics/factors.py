"""Replication factors against the number of brokers: only the running clusters tell whether they fit."""

from __future__ import annotations

from collections.abc import Iterator

from srm_spark.flow.clusters import Ends
from srm_spark.kafka.cluster import Cluster


def factors_too_large(ends: Ends) -> list[str]:
    """One line per replication factor that no topic of this flow can have, with the place where it was written.

    Topics that exist already go on as they are, so this is no failure yet.
    """
    brokers = {cluster.alias: cluster.broker_count() for cluster in (ends.source, ends.target)}
    found = []
    for name, factor, cluster in _factors(ends):
        have = brokers[cluster.alias]
        if factor > have:
            place = ends.settings.places.get(name, f"{name} (default)")
            found.append(
                f"{place} = {factor}, but {cluster.alias} has {have} broker{'s' if have > 1 else ''}: "
                f"topics cannot be created with it; write {name} = {have}, or create them by hand"
            )
    return found


def _factors(ends: Ends) -> Iterator[tuple[str, int, Cluster]]:
    settings = ends.settings
    yield "replication.factor", settings.topics.replication_factor, ends.target
    yield "offset.storage.replication.factor", settings.progress_replication_factor, ends.target
    if settings.syncs.enabled:
        yield "offset-syncs.topic.replication.factor", settings.syncs.replication_factor, ends.syncs_cluster
    if settings.checkpoints.emit_enabled:
        yield "checkpoints.topic.replication.factor", settings.checkpoints.replication_factor, ends.target
