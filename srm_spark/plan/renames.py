"""What a changed replication policy means for a flow: which remote topics get other names, and what each way costs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from srm_spark.core.model import TopicPartition
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.renames import KEY, RECOPY, find_renames
from srm_spark.flow.topics.progress import Position


@dataclass(frozen=True)
class Rename:
    """One source topic whose copies would go to a remote topic of another name."""

    topic: str
    before: str
    """The remote topic that has the copies so far, and keeps them."""
    now: str
    """Where they would go."""
    way: str
    """`stop`, `resume` or `recopy`: what the configuration says."""
    kept: int
    """Target offsets of the old remote topic."""
    to_come: int
    """Source offsets that `resume` copies: those behind the recorded positions."""
    all_there: int
    """Source offsets that `recopy` copies: all that the source still has."""
    there: int | None
    """Target offsets that the new name has already, of whomever; None where there is no such topic."""


def renames_of(
    clusters: Clusters, topics: Collection[str], positions: Mapping[TopicPartition, Position]
) -> tuple[Rename, ...]:
    """What the next start of a flow finds renamed of these source topics; raises where a cluster does not answer."""
    renames = find_renames(clusters, topics, positions)
    return tuple(_plan(clusters, topic, before, positions) for topic, before in sorted(renames.items()))


def _plan(clusters: Clusters, topic: str, before: str, positions: Mapping[TopicPartition, Position]) -> Rename:
    policies, present = clusters.settings.policies, clusters.target.topics()
    now = clusters.policy.format_remote_topic(clusters.settings.flow.source, topic)
    partitions = [TopicPartition(topic, number) for number in range(clusters.source.topics()[topic])]
    first, end = clusters.source.first_offsets(partitions), clusters.source.end_offsets(partitions)
    reached = {p: max(first[p], positions[p].next_offset) if p in positions else first[p] for p in partitions}
    goes_on = RECOPY if policies.defaults.get(KEY) == RECOPY else "resume"
    return Rename(
        topic,
        before,
        now,
        "stop" if policies.stops(KEY, topic) else goes_on,
        kept=_size(clusters, before, present[before]),
        to_come=sum(max(0, end[p] - reached[p]) for p in partitions),
        all_there=sum(end[p] - first[p] for p in partitions),
        there=_size(clusters, now, present[now]) if now in present else None,
    )


def _size(clusters: Clusters, topic: str, count: int) -> int:
    partitions = [TopicPartition(topic, number) for number in range(count)]
    first, end = clusters.target.first_offsets(partitions), clusters.target.end_offsets(partitions)
    return sum(end[p] - first[p] for p in partitions)


def is_open(renames: Iterable[Rename]) -> bool:
    """Whether somebody has to say which way to go."""
    return any(rename.way == "stop" for rename in renames)
