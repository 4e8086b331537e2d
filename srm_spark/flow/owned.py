"""The claim of a flow for a command: what it changes must not change under a driver, nor a driver's state under it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from srm_spark.errors import ClaimHeld
from srm_spark.flow.clusters import Clusters
from srm_spark.kafka.claim import Claim


@contextmanager
def owned(clusters: Clusters) -> Iterator[tuple[Clusters, Claim]]:
    """The flow is ours while the block lasts; needs its progress topic. Raises ClaimHeld while a driver runs it."""
    flow = clusters.settings.flow
    claim = Claim(flow, clusters.target, clusters.settings.progress_topic)
    try:
        owner = claim.other_owner()
        if owner is not None or not claim.acquire():
            why = f"a driver runs it: {owner or 'it was faster'}; stop the flow for this command"
            raise ClaimHeld(f"flow {flow}: {why}")
        yield replace(clusters, require_claim=claim.require), claim
    finally:
        claim.release()
