"""Classes of a user's own, for keys such as `replication.policy.class = tests.broker.policies:SuffixPolicy`."""

from __future__ import annotations

from srm_spark.core.filters import NameFilter
from srm_spark.core.policy import DefaultReplicationPolicy


class SuffixPolicy(DefaultReplicationPolicy):
    """`orders_from_A` where the default says `A.orders`."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}_from_{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        return topic.rpartition("_from_")[2] if "_from_" in topic else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition("_from_")[0] or None


class NoSegments(NameFilter):
    """`config.property.filter.class`: what the excludes leave, without anything about segments."""

    def matches(self, name: str) -> bool:
        return super().matches(name) and not name.startswith("segment.")


class Paying(NameFilter):
    """`group.filter.class`: groups whose name says so."""

    def matches(self, name: str) -> bool:
        return name.endswith("-paying")
