"""Positions that are kept outside of Kafka, translated from the source of a flow to its target by the exact map.

Only the target has to answer: the map lies there. What goes back (remote topics), or flows both ways under one name,
takes the map on the source, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from srm_spark.config.settings import FlowSettings
from srm_spark.core.checkpoints import TranslationStatus
from srm_spark.core.filters import select
from srm_spark.core.offset_files import SYMBOLS, KeptPosition
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.groups.positions import TargetPosition, Translator
from srm_spark.flow.topics.lists import take_lists
from srm_spark.flow.topics.offset_map import OffsetMaps


@dataclass
class TranslatedPositions:
    """What became of positions on the source."""

    translated: dict[KeptPosition, KeptPosition] = field(default_factory=dict)
    """Position on the source → where the same reader goes on on the target."""
    refusals: dict[KeptPosition, str] = field(default_factory=dict)
    """Why these positions have no counterpart."""
    remarks: dict[KeptPosition, str] = field(default_factory=dict)
    """What there is to know about those that have one."""


def translate_positions(
    settings: FlowSettings, asked: Iterable[KeptPosition], reach: Connect = connect
) -> TranslatedPositions:
    """Translate positions on the source of a flow.

    Raises TargetUnavailable where the target or its map cannot be read; a source that does not answer is a reason why
    remote topics do not go back, and hinders nothing else.
    """
    clusters = reach(settings)
    take_lists(clusters)
    maps = OffsetMaps(clusters.target, settings.map_topic, f"{settings.flow}|positions", TargetUnavailable)
    translator = Translator(clusters, maps)
    positions = list(asked)
    try:
        # The beginning of a partition stands in for what is no number: it shows whether and where the topic flows.
        places = translator.places({(p, max(offset, 0)) for p, offset in positions})
    finally:
        translator.close()
        maps.close()
    done = TranslatedPositions()
    for position in positions:
        partition, offset = position
        place = places.known.get((partition, max(offset, 0)))
        if place is None:
            done.refusals[position] = f"it does not flow {settings.flow}: {_why(clusters, partition.topic)}"
        else:
            _take(done, position, place, places.no_way_back)
    return done


def _take(done: TranslatedPositions, position: KeptPosition, place: TargetPosition, no_way_back: str | None) -> None:
    _, offset = position
    translation = place.translation
    if offset in SYMBOLS:
        if translation.status is TranslationStatus.UNMAPPED:
            done.refusals[position] = _refusal(translation.status, no_way_back)
        else:
            done.translated[position] = place.remote, offset
            done.remarks[position] = f"stays as it is, {SYMBOLS[offset]}: that is no position"
    elif translation.downstream is None:
        done.refusals[position] = _refusal(translation.status, no_way_back)
    else:
        done.translated[position] = place.remote, translation.downstream
        if translation.status is not TranslationStatus.EXACT:
            done.remarks[position] = str(translation)


def _refusal(status: TranslationStatus, no_way_back: str | None) -> str:
    return no_way_back if status is TranslationStatus.UNMAPPED and no_way_back is not None else status.value


def _why(clusters: Clusters, topic: str) -> str:
    settings = clusters.settings
    return str(
        select(topic, clusters.topics, clusters.policy, settings.flow.target, settings.topics.heartbeats_replicated)
    )
