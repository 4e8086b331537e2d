"""Whether remote partitions are led as they were when a generation began: only under a new leader a log goes back.

To be asked where somebody else's records lie in front of new copies. They may be meant to be there, or stand where
copies were that an unclean election has cost.
"""

from __future__ import annotations

from collections.abc import Mapping

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster
from srm_spark.core.model import LogIdentity, TopicPartition
from srm_spark.errors import TargetChanged
from srm_spark.flow.clusters import connect


class TargetLeaders:
    """The leaders of one flow's remote partitions. Its client is made when it is asked first: it may travel before."""

    def __init__(self, settings: FlowSettings, target: Cluster | None = None) -> None:
        self._settings = settings
        self._target = target

    def require_same(
        self, remotes: Mapping[TopicPartition, TopicPartition], logs: Mapping[TopicPartition, LogIdentity]
    ) -> None:
        """Raises TargetChanged where a remote partition has another leader epoch than `logs` say of its source's."""
        known = {p: epoch for p in remotes if (epoch := logs[p].remote_epoch) is not None}
        if not known:
            return
        self._target = self._target or connect(self._settings).target
        ends = self._target.log_ends([remotes[partition] for partition in known])
        for partition, epoch in known.items():
            end = ends.get(remotes[partition])
            if end is None or end.epoch != epoch:
                raise TargetChanged(
                    f"flow {self._settings.flow}: {remotes[partition]} has another leader, and in front of the newest "
                    "copies records that are not this flow's: both sides are compared"
                )
