"""Where consumer groups of the source stand on the target, by the exact offset map.

Where the map has no answer, because MirrorMaker 2 copied those records, offset syncs are asked (see sync_history.py).

A position here is one group on one partition of the source. Topics that flow are translated forward; remote topics of
the target (`B.orders` on A, in the flow A->B) are translated back to what they are copies of, by the map of the reverse
flow, which lies on the source: that is how groups fail back. A topic that flows both ways under one name (Identity with
provenance headers) takes both maps (see srm_spark.core.mutual).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from srm_spark.core.checkpoints import OUTSIDE_THE_MAP, Translation, TranslationStatus, translate, translate_back
from srm_spark.core.filters import is_replicated
from srm_spark.core.model import Checkpoint, TopicPartition
from srm_spark.core.mutual import translate_mutual
from srm_spark.core.offset_files import KeptPosition
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.groups.choice import GroupChoice
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.sync_history import SyncHistory, SyncReader
from srm_spark.kafka.groups import Committed, GroupOffsets, Groups


@dataclass(frozen=True)
class GroupPosition:
    """One group on one partition, on both sides."""

    group: str
    partition: TopicPartition
    """On the source."""
    remote: TopicPartition
    """On the target."""
    committed: Committed
    """What the group committed on the source."""
    translation: Translation
    target_end: int
    """End of the partition on the target; 0 where it does not exist."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """What there is to tell others; None where the position has no counterpart."""
        found = self.translation
        if found.downstream is None:
            return None
        return Checkpoint(self.group, self.remote, found.upstream, found.downstream, self.committed.metadata)


@dataclass(frozen=True)
class Positions:
    """Where all groups of a flow stand."""

    found: tuple[GroupPosition, ...]
    refusals: Mapping[str, str]
    """Group → why the source does not tell where it stands."""
    no_way_back: str | None = None
    """Why groups that read remote topics are not translated back any further; None where they are."""
    no_syncs: str | None = None
    """Why positions that the map does not know are not translated by offset syncs; None where they are."""


@dataclass(frozen=True)
class TargetPosition:
    """Where one position of the source lies on the target."""

    remote: TopicPartition
    translation: Translation
    target_end: int
    """End of the partition on the target; 0 where it does not exist."""


@dataclass(frozen=True)
class TargetPositions:
    """What is known about positions that were asked for."""

    found: Mapping[KeptPosition, TargetPosition]
    no_way_back: str | None
    """Why remote topics are not translated back any further; None where they are."""
    no_syncs: str | None
    """Why positions that the map does not know are not translated by offset syncs; None where they are."""


class Translator:
    """Translates the groups of one flow."""

    def __init__(self, clusters: Clusters, maps: OffsetMaps) -> None:
        """`maps` are the flow's own, on the target."""
        self._clusters = clusters
        self._maps = maps
        settings = clusters.settings
        back = f"mm2-offset-map.{settings.flow.target}.internal"
        self._back = OffsetMaps(clusters.source, back, f"{settings.flow}|offset-map-back", SourceUnavailable)
        self._back_topic = back
        self._has_looked_back = False
        self._syncs = SyncHistory(SyncReader(clusters))
        self._groups = Groups(clusters.source, "DESCRIBE")
        self.choice = GroupChoice(settings.checkpoints, settings.flow.source, self._groups)

    def groups(self) -> list[str]:
        """The groups of the source that the flow takes."""
        return self.choice.taken()

    def positions(self, groups: Iterable[str]) -> Positions:
        """Where these groups stand, now."""
        answers = self._groups.offsets(groups)
        asked = [(group, p, c) for group, answer in answers.items() for p, c in answer.committed.items()]
        places = self.places({(p, c.offset) for _, p, c in asked})
        found = tuple(
            GroupPosition(group, p, place.remote, c, place.translation, place.target_end)
            for group, p, c in asked
            if (place := places.found.get((p, c.offset))) is not None
        )
        return Positions(found, _refusals(answers), places.no_way_back, places.no_syncs)

    def places(self, asked: Collection[KeptPosition]) -> TargetPositions:
        """Where positions on the source lie on the target; those of topics that do not flow are left out."""
        ways = {self._is_back(p.topic) for p, _ in asked}
        if ways != {True}:  # going back takes the map of the reverse flow only
            self._maps.refresh()
        is_mutual = any(self._is_mutual(p.topic) for p, _ in asked)
        no_way_back = self._look_back() if True in ways or is_mutual else None
        remotes = {p: remote for p in {p for p, _ in asked} if (remote := self._remote(p)) is not None}
        ends = self._clusters.target.end_offsets(set(remotes.values()), waits=False)
        with self._maps.lock, self._back.lock:
            found = {
                (p, offset): TargetPosition(
                    remotes[p], self._translate(p, remotes[p], offset, ends), ends.get(remotes[p], 0)
                )
                for p, offset in asked
                if p in remotes
            }
        sampled, no_syncs = self._sampled(found)
        return TargetPositions({**found, **sampled}, no_way_back, no_syncs)

    def _sampled(
        self, found: Mapping[KeptPosition, TargetPosition]
    ) -> tuple[dict[KeptPosition, TargetPosition], str | None]:
        """What offset syncs say of the positions that the map does not know; and why they cannot be read."""
        unknown = {(p, offset): place for (p, offset), place in found.items() if self._may_be_sampled(p, place)}
        if not unknown:
            return {}, None
        with self._maps.lock:
            holes = {p: known.holes() for p, known in self._maps.maps.items() if known.source is not None}
        try:
            self._syncs.refresh(holes)
        except (SourceUnavailable, TargetUnavailable) as error:
            return {}, f"positions that the offset map does not know are not translated by offset syncs: {error}"
        sampled = {}
        for (p, offset), place in unknown.items():
            if (translation := self._syncs.sample(p, offset, place.target_end)) is not None:
                sampled[p, offset] = replace(place, translation=translation)
        return sampled, None

    def _may_be_sampled(self, partition: TopicPartition, place: TargetPosition) -> bool:
        """Whether somebody else may have copied records that the map does not know; reading all syncs is not cheap."""
        known = self._maps.maps.get(partition)
        is_whole = known is not None and known.source is not None and not known.holes()
        is_one_way = not (self._is_back(partition.topic) or self._is_mutual(partition.topic))
        is_unknown = place.translation.standing in OUTSIDE_THE_MAP and place.target_end > 0
        return is_unknown and is_one_way and not is_whole

    def _look_back(self) -> str | None:
        """Take in the map of the reverse flow; why not, where that fails: groups that go forward do not need it."""
        try:
            if self._clusters.source.topic_ids([self._back_topic]):  # without it nothing was ever copied from there
                self._back.refresh()
            self._has_looked_back = True
        except SourceUnavailable as error:
            return f"groups on remote topics are not translated back: {error}"
        return None

    def close(self) -> None:
        """Let go of the connections; the flow's maps are left alone."""
        self._back.close()
        self._syncs.close()
        self._groups.close()

    def _translate(
        self, partition: TopicPartition, remote: TopicPartition, offset: int, ends: Mapping[TopicPartition, int]
    ) -> Translation:
        if self._is_back(partition.topic):
            return translate_back(self._back.maps.get(remote), offset, ends.get(remote))
        if remote not in ends:
            return Translation(TranslationStatus.UNMAPPED, offset)
        if self._is_mutual(partition.topic):
            reverse = self._back.maps.get(remote)
            if reverse is not None:
                return translate_mutual(self._maps.maps.get(partition), reverse, offset, ends[remote])
            if not self._has_looked_back:  # what else there is unread on the target nobody knows
                return Translation(TranslationStatus.UNMAPPED, offset)
        return translate(self._maps.maps.get(partition), offset, ends[remote])

    def _remote(self, partition: TopicPartition) -> TopicPartition | None:
        """The same partition on the target; None where its topic does not flow, in either direction."""
        topic, ends = partition.topic, self._clusters
        flow, policy = ends.settings.flow, ends.policy
        if self._is_back(topic):
            upstream = policy.upstream_topic(topic)
            chosen = upstream is not None and (ends.topics.matches(topic) or ends.topics.matches(upstream))
            return TopicPartition(upstream, partition.partition) if upstream is not None and chosen else None
        if not is_replicated(topic, ends.topics, policy, flow.target, heartbeats_replicated=False):
            return None
        return TopicPartition(policy.format_remote_topic(flow.source, topic), partition.partition)

    def _is_mutual(self, topic: str) -> bool:
        """Whether the topic has the same name on both sides and may flow both ways."""
        settings = self._clusters.settings
        named_alike = self._clusters.policy.format_remote_topic(settings.flow.source, topic) == topic
        return settings.provenance_enabled and named_alike

    def _is_back(self, topic: str) -> bool:
        settings = self._clusters.settings
        return (
            settings.checkpoints.reverse_enabled and self._clusters.policy.topic_source(topic) == settings.flow.target
        )


def _refusals(answers: Mapping[str, GroupOffsets]) -> dict[str, str]:
    return {group: answer.refusal.sentence for group, answer in answers.items() if answer.refusal is not None}
