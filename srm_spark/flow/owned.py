"""The lease of a flow for a command: what it changes must not change under a driver, nor a driver's state under it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from srm_spark.errors import LeaseHeld
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.internal_topics import ensure_topic, leases_topic
from srm_spark.kafka.lease import Lease


@contextmanager
def owned(clusters: Clusters) -> Iterator[tuple[Clusters, Lease]]:
    """The flow is ours while the block lasts. Raises LeaseHeld while a driver runs it."""
    flow = clusters.settings.flow
    ensure_topic(clusters.target, leases_topic(clusters.settings))
    lease = clusters.make_lease()
    try:
        owner = lease.other_owner()
        if owner is not None or not lease.acquire():
            why = f"a driver runs it: {owner or 'it was faster'}; stop the flow for this command"
            raise LeaseHeld(f"flow {flow}: {why}")
        yield replace(clusters, require_lease=lease.require), lease
    finally:
        lease.release()
