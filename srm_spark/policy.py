"""The names for a replication policy of your own: `replication.policy.class = package.module:Class`."""

from srm_spark.core.policy import DefaultReplicationPolicy

__all__ = ["DefaultReplicationPolicy"]
