"""What other lists would make of a flow: what would begin and stop to flow, and how much that is. Writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass

from srm_spark.config.settings import FlowSettings
from srm_spark.core.filters import is_internal, is_replicated
from srm_spark.core.listed_filter import Entries
from srm_spark.core.lists import ListKind, Lists
from srm_spark.core.model import TopicPartition
from srm_spark.core.policy import is_cycle
from srm_spark.errors import ProtocolUnavailable, SourceUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.topics.lists import take_lists
from srm_spark.flow.topics.progress import ProgressTopic
from srm_spark.kafka.protocol import Protocol

_ANY = "orders"
_SECONDS = 15.0
"""Somebody is waiting: a cluster that does not answer in this time counts as down."""
AskBytes = Callable[[FlowSettings, Collection[str]], Mapping[TopicPartition, int]]
"""How many bytes partitions of the source have. Raises ProtocolUnavailable."""


@dataclass(frozen=True)
class Size:
    """What a name stands for; of a group only the name."""

    name: str
    partitions: int | None = None
    records: int | None = None
    """Source offsets that are not copied yet."""
    bytes: int | None = None
    """Of the whole topic at the source's leaders; None where nobody tells."""


@dataclass(frozen=True)
class Effect:
    """What would begin and what would stop."""

    begins: tuple[Size, ...] = ()
    stops: tuple[Size, ...] = ()
    unknown: str | None = None
    """Why that is not known; None where it is."""
    no_bytes: str | None = None
    """Why bytes are not known; None where they are."""


def bytes_on_source(settings: FlowSettings, topics: Collection[str]) -> Mapping[TopicPartition, int]:
    """Ask the source."""
    with Protocol(settings.source, settings.source_admin, f"{settings.flow}|sizes", _SECONDS) as protocol:
        return protocol.bytes_of(topics)


def effect_of(
    settings: FlowSettings,
    kind: ListKind,
    after: Lists,
    reach: Connect = connect,
    ask_bytes: AskBytes = bytes_on_source,
) -> Effect:
    """What these lists would do in the place of those of now. Raises TargetUnavailable."""
    clusters = reach(settings.within(_SECONDS))
    take_lists(clusters)
    try:
        before = _taken(clusters, kind)
        clusters.filters.of(kind).take(after)
        then = _taken(clusters, kind)
        begins = {name: count for name, count in then.items() if name not in before}
        stops = {name: count for name, count in before.items() if name not in then}
        if kind is ListKind.TOPICS and (begins or stops):
            return _sized(clusters, begins, stops, ask_bytes)
    except SourceUnavailable as error:
        return Effect(unknown=str(error))
    return Effect(_plain(begins), _plain(stops))


def may_go_round(settings: FlowSettings, flows: Collection[FlowSettings]) -> str | None:
    """What there is to know where topics keep their names, and the flow of the other direction runs, too."""
    flow = settings.flow
    other = next((one for one in flows if one.flow == flow.reverse), None)
    keeps = other is not None and all(
        one.policy().format_remote_topic(one.flow.source, _ANY) == _ANY for one in (settings, other)
    )
    if other is None or not keeps or (settings.provenance_enabled and other.provenance_enabled):
        return None
    return (
        f"topics keep their names, and {other.flow} runs as well: a topic on the lists of both is held by "
        "foreign.writer.policy, or its records go round; set provenance.header.enabled = true for both"
    )


def matches_of(
    settings: FlowSettings, kind: ListKind, entries: Collection[str], reach: Connect = connect
) -> dict[str, tuple[str, ...]]:
    """What of the source each entry matches now, whatever others say of it. Raises SourceUnavailable."""
    clusters = reach(settings.within(_SECONDS))
    names = _names(clusters, kind)
    return {
        entry: tuple(name for name, also in sorted(names.items()) if any(map(Entries((entry,)).first, also)))
        for entry in entries
    }


def _plain(names: Mapping[str, int | None]) -> tuple[Size, ...]:
    return tuple(Size(name, count) for name, count in sorted(names.items()))


def _names(clusters: Clusters, kind: ListKind) -> dict[str, tuple[str, ...]]:
    """What there is on the source that a list of this kind can speak of → the names that it goes by."""
    policy, flow = clusters.policy, clusters.settings.flow
    if kind is ListKind.GROUPS:
        with closing(clusters.source.groups("DESCRIBE")) as groups:
            return {name: (name,) for name in groups.names()}
    topics = [name for name in clusters.source.topics() if not is_internal(name, policy)]
    if kind is ListKind.TOPICS:
        return {name: (name,) for name in topics if not is_cycle(policy, name, flow.target)}
    remote = [name for name in topics if policy.topic_source(name) == flow.target]
    return {name: (name, upstream) for name in remote if (upstream := policy.upstream_topic(name)) is not None}


def _taken(clusters: Clusters, kind: ListKind) -> dict[str, int | None]:
    """What the filters take now → partitions; None for a group."""
    settings, takes = clusters.settings, clusters.filters.of(kind)
    if kind is ListKind.GROUPS:
        return {name: None for name in _names(clusters, kind) if takes.matches(name)}
    if kind is ListKind.TOPICS:
        replicated, target = settings.topics.heartbeats_replicated, settings.flow.target
        return {
            name: count
            for name, count in clusters.source.topics().items()
            if is_replicated(name, takes, clusters.policy, target, replicated)
        }
    counts = clusters.source.topics() if settings.checkpoints.reverse_enabled else {}
    return {
        name: counts[name]
        for name, also in _names(clusters, kind).items()
        if name in counts and any(map(clusters.topics.matches, also)) and takes.matches_any(*also)
    }


def _sized(
    clusters: Clusters, begins: Mapping[str, int | None], stops: Mapping[str, int | None], ask_bytes: AskBytes
) -> Effect:
    both = {**begins, **stops}
    partitions = [TopicPartition(name, number) for name, count in both.items() for number in range(count or 0)]
    first, ends = (ask(partitions, waits=False) for ask in (clusters.source.first_offsets, clusters.source.end_offsets))
    reached = _progress(clusters)
    records, sizes, no_bytes = Counter[str](), Counter[str](), None
    for partition in ends:
        start = max(first.get(partition, 0), reached.get(partition, 0))
        records[partition.topic] += max(0, ends[partition] - start)
    try:
        for partition, size in ask_bytes(clusters.settings, both).items():
            sizes[partition.topic] += size
    except ProtocolUnavailable as error:
        no_bytes = str(error)

    def sized(names: Mapping[str, int | None]) -> tuple[Size, ...]:
        return tuple(Size(name, count, records[name], sizes.get(name)) for name, count in sorted(names.items()))

    return Effect(sized(begins), sized(stops), no_bytes=no_bytes)


def _progress(clusters: Clusters) -> dict[TopicPartition, int]:
    """Next source offset of each partition that was ever copied."""
    settings = clusters.settings
    if not clusters.target.topic_ids([settings.progress_topic]):
        return {}
    with closing(ProgressTopic(settings, clusters.target)) as progress:
        progress.refresh()
        return {partition: position.next_offset for partition, position in progress.positions.items()}
