"""A driver that dies between its records and what it records of them."""

from __future__ import annotations

from collections.abc import Mapping, Set

from srm_spark.core.model import ProgressDetail, TopicPartition
from srm_spark.flow.topics.committer import Committer

BATCH_COMMITTER = "srm_spark.flow.batch.replicate.Committer"
"""What makes the committer of batches; starts are recorded by another one."""


class DyingCommitter(Committer):
    """Records nothing."""

    def commit(
        self, details: Mapping[TopicPartition, ProgressDetail], committed: Set[TopicPartition] = frozenset()
    ) -> None:
        """Die instead."""
        if details:
            raise RuntimeError(f"killed before {len(details)} partitions are recorded, {len(committed)} committed")
