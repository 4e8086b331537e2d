"""Records on the target what was made here: the one way, for topics, configs, ACLs and quotas (`core/made_here.py`)."""

from __future__ import annotations

from collections.abc import Mapping

from srm_spark.core.cluster import ControlRecord
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.progress import state_writer_of


def write_made(clusters: Clusters, records: Mapping[bytes, bytes]) -> None:
    """Key → value, of what has changed; without any, nobody is asked.

    Outside of any transaction: one that comes late the next look puts right, and what is not recorded is not ours,
    which is safe. Raises LeaseLost, and ProgressFailed where it cannot be recorded.
    """
    if not records:
        return
    clusters.require_lease()
    topic = clusters.settings.map_topic
    state_writer_of(clusters, None).write(
        ControlRecord(topic, key, value, partition=0) for key, value in records.items()
    )
