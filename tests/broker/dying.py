"""A driver that dies between its records and what it records of them."""

from __future__ import annotations

from srm_spark.flow.topics.committer import Committer

BATCH_COMMITTER = "srm_spark.flow.batch.replicate.Committer"
"""What makes the committer of batches; starts are recorded by another one."""


class DyingCommitter(Committer):
    """Records nothing."""

    def commit(self, *_: object) -> None:
        """Die instead."""
        raise RuntimeError("killed")
