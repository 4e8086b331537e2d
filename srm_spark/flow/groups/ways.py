"""The three ways of a position to the other side: forward with a flow, back over the reverse one, and both at once.

| topic of the source | way | by |
|---|---|---|
| flows to the target | `Forward` | the flow's map |
| came from the target (`B.orders` on A) | `Back` | the map of the reverse flow, read the other way round |
| has the same name on both sides, and may flow both ways | `Mutual` | both maps: what there is unread on either side |
"""

from __future__ import annotations

from typing import Protocol

from srm_spark.core.checkpoints import Translation, TranslationStatus, translate, translate_back
from srm_spark.core.filters import is_replicated
from srm_spark.core.model import TopicPartition
from srm_spark.core.mutual import translate_mutual
from srm_spark.errors import SourceUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.offset_map import OffsetMaps


class ReverseMap:
    """The map of the flow of the other direction, on the source."""

    def __init__(self, clusters: Clusters, maps: OffsetMaps | None = None) -> None:
        """Without `maps` a reader is made."""
        settings = clusters.settings
        self._source = clusters.source
        self._topic = f"mm2-offset-map.{settings.flow.target}.internal"
        role = f"{settings.flow}|offset-map-back"
        self.maps = maps or OffsetMaps(clusters.source, self._topic, role, SourceUnavailable)
        self.has_been_read = False

    def refresh(self) -> str | None:
        """Take it in; why not, where that fails: groups that go forward do not need it."""
        try:
            if self._source.topic_ids([self._topic]):  # without it nothing was ever copied from there
                self.maps.refresh()
            self.has_been_read = True
        except SourceUnavailable as error:
            return f"groups on remote topics are not translated back: {error}"
        return None


class Way(Protocol):
    """Where a source partition lies on the target, and an offset of it."""

    needs_forward: bool
    """Whether the flow's own map is asked."""
    needs_reverse: bool
    """Whether the map of the reverse flow is asked."""

    def remote(self, partition: TopicPartition) -> TopicPartition | None:
        """The same partition on the target; None where its topic does not flow."""
        ...

    def translate(self, partition: TopicPartition, remote: TopicPartition, offset: int, end: int | None) -> Translation:
        """Where a reader of `offset` goes on; `end` is the target's, None where the partition is not there."""
        ...


class Forward:
    """With the flow."""

    needs_forward, needs_reverse = True, False

    def __init__(self, clusters: Clusters, maps: OffsetMaps) -> None:
        self._clusters = clusters
        self._maps = maps

    def remote(self, partition: TopicPartition) -> TopicPartition | None:
        clusters, flow = self._clusters, self._clusters.settings.flow
        if not is_replicated(
            partition.topic, clusters.topics, clusters.policy, flow.target, heartbeats_replicated=False
        ):
            return None
        return TopicPartition(clusters.policy.format_remote_topic(flow.source, partition.topic), partition.partition)

    def translate(self, partition: TopicPartition, _: TopicPartition, offset: int, end: int | None) -> Translation:
        if end is None:
            return Translation(TranslationStatus.UNMAPPED, offset)
        return translate(self._maps.maps.get(partition), offset, end)


class Back:
    """Over the reverse flow."""

    needs_forward, needs_reverse = False, True

    def __init__(self, clusters: Clusters, reverse: ReverseMap) -> None:
        self._clusters = clusters
        self._reverse = reverse

    def remote(self, partition: TopicPartition) -> TopicPartition | None:
        filters, upstream = self._clusters.filters, self._clusters.policy.upstream_topic(partition.topic)
        if upstream is None or not any(map(filters.topics.matches, (partition.topic, upstream))):
            return None
        if not filters.reverse.matches_any(partition.topic, upstream):
            return None
        return TopicPartition(upstream, partition.partition)

    def translate(self, _: TopicPartition, remote: TopicPartition, offset: int, end: int | None) -> Translation:
        return translate_back(self._reverse.maps.maps.get(remote), offset, end)


class Mutual(Forward):
    """Both ways under one name."""

    needs_reverse = True

    def __init__(self, clusters: Clusters, maps: OffsetMaps, reverse: ReverseMap) -> None:
        super().__init__(clusters, maps)
        self._reverse = reverse

    def translate(self, partition: TopicPartition, remote: TopicPartition, offset: int, end: int | None) -> Translation:
        known = self._reverse.maps.maps.get(remote)
        if end is not None and known is not None:
            return translate_mutual(self._maps.maps.get(partition), known, offset, end)
        if not self._reverse.has_been_read:  # what else there is unread on the target nobody knows
            return Translation(TranslationStatus.UNMAPPED, offset)
        return super().translate(partition, remote, offset, end)


class Ways:
    """The way of each topic."""

    def __init__(self, clusters: Clusters, maps: OffsetMaps, reverse: ReverseMap | None = None) -> None:
        """`maps` are the flow's own."""
        self.reverse = reverse or ReverseMap(clusters)
        self._clusters = clusters
        self._forward, self._back = Forward(clusters, maps), Back(clusters, self.reverse)
        self._mutual = Mutual(clusters, maps, self.reverse)

    def of(self, topic: str) -> Way:
        """The way of this topic of the source."""
        settings, policy = self._clusters.settings, self._clusters.policy
        if settings.checkpoints.reverse_enabled and policy.topic_source(topic) == settings.flow.target:
            return self._back
        is_named_alike = policy.format_remote_topic(settings.flow.source, topic) == topic
        return self._mutual if settings.provenance_enabled and is_named_alike else self._forward

    def is_forward(self, topic: str) -> bool:
        """Whether nobody else than this flow, or MirrorMaker 2 in its place, makes its copies."""
        return self.of(topic) is self._forward
