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

from srm_spark.core.checkpoints import OUTSIDE_THE_MAP, Translation
from srm_spark.core.cluster import Committed, GroupOffsets
from srm_spark.core.model import Checkpoint, TopicPartition
from srm_spark.core.offset_files import KeptPosition
from srm_spark.core.wording import some
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.groups.choice import GroupChoice
from srm_spark.flow.groups.ways import Ways
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.sync_history import SyncHistory, SyncReader


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
    is_forward: bool = False
    """Translated by the flow's own map alone, where positions do not go down while a log is the same."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """What there is to tell others; None where the position has no counterpart."""
        translation = self.translation
        if translation.downstream is None:
            return None
        return Checkpoint(
            self.group, self.remote, translation.upstream, translation.downstream, self.committed.metadata
        )


@dataclass(frozen=True)
class Positions:
    """Where all groups of a flow stand."""

    known: tuple[GroupPosition, ...]
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

    known: Mapping[KeptPosition, TargetPosition]
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
        self._ways = Ways(clusters, maps)
        self._syncs = SyncHistory(SyncReader(clusters))
        self._groups = clusters.source.groups("DESCRIBE")
        self.choice = GroupChoice(settings.checkpoints, settings.flow.source, self._groups, clusters.filters.groups)

    def groups(self) -> list[str]:
        """The groups of the source that the flow takes."""
        return self.choice.taken()

    def positions(self, groups: Iterable[str]) -> Positions:
        """Where these groups stand, now."""
        answers = self._groups.offsets(groups)
        asked = [(group, p, c) for group, answer in answers.items() for p, c in answer.committed.items()]
        places = self.places({(p, c.offset) for _, p, c in asked})
        translated = tuple(
            GroupPosition(
                group, p, place.remote, c, place.translation, place.target_end, self._ways.is_forward(p.topic)
            )
            for group, p, c in asked
            if (place := places.known.get((p, c.offset))) is not None
        )
        return Positions(translated, self._refusals(answers), places.no_way_back, places.no_syncs)

    def _refusals(self, answers: Mapping[str, GroupOffsets]) -> dict[str, str]:
        told = {group: answer.refusal.sentence for group, answer in answers.items() if answer.refusal is not None}
        for group, answer in answers.items():
            if flowing := [p for p in sorted(answer.unsettled) if self._ways.of(p.topic).remote(p) is not None]:
                told[group] = f"a transaction that may move its offset on {some([*map(str, flowing)])} is open"
        return told

    def places(self, asked: Collection[KeptPosition]) -> TargetPositions:
        """Where positions on the source lie on the target; those of topics that do not flow are left out."""
        partitions = {partition for partition, _ in asked}
        ways = {partition: self._ways.of(partition.topic) for partition in partitions}
        if any(way.needs_forward for way in ways.values()):
            self._maps.refresh()
        reverse = self._ways.reverse
        no_way_back = reverse.refresh() if any(way.needs_reverse for way in ways.values()) else None
        remotes = {p: remote for p, way in ways.items() if (remote := way.remote(p)) is not None}
        ends = self._clusters.target.end_offsets(set(remotes.values()), waits=False)
        with self._maps.lock, reverse.maps.lock:
            places = {
                (p, offset): TargetPosition(
                    remotes[p], ways[p].translate(p, remotes[p], offset, ends.get(remotes[p])), ends.get(remotes[p], 0)
                )
                for p, offset in asked
                if p in remotes
            }
        sampled, no_syncs = self._sampled(places)
        return TargetPositions({**places, **sampled}, no_way_back, no_syncs)

    def _sampled(
        self, places: Mapping[KeptPosition, TargetPosition]
    ) -> tuple[dict[KeptPosition, TargetPosition], str | None]:
        """What offset syncs say of the positions that the map does not know; and why they cannot be read."""
        unknown = {(p, offset): place for (p, offset), place in places.items() if self._may_be_sampled(p, place)}
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
        is_unknown = place.translation.status in OUTSIDE_THE_MAP and place.target_end > 0
        return is_unknown and self._ways.is_forward(partition.topic) and not is_whole

    def close(self) -> None:
        """Let go of the connections; the flow's maps are left alone."""
        self._ways.reverse.maps.close()
        self._syncs.close()
        self._groups.close()
