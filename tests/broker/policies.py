"""A replication policy of a user's own, for `replication.policy.class = tests.broker.policies:SuffixPolicy`."""

from __future__ import annotations

from srm_spark.policy import DefaultReplicationPolicy


class SuffixPolicy(DefaultReplicationPolicy):
    """`orders_from_A` where the default says `A.orders`."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}_from_{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        return topic.rpartition("_from_")[2] if "_from_" in topic else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition("_from_")[0] or None
