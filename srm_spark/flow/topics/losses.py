"""What a flow has found to be lost, read from the target alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import ControlRecord
from srm_spark.core.losses import loss_key, loss_value, rests
from srm_spark.core.model import KeptLoss, LossCause, ProgressDetail, TopicPartition
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.progress import state_writer_of
from srm_spark.kafka.fencing import FencingToken


def kept_losses(settings: FlowSettings, reach: Connect = connect) -> tuple[KeptLoss, ...]:
    """All losses, in the order in which they were found. Raises TargetUnavailable."""
    target = reach(settings).target
    role = f"{settings.flow}|losses"
    with closing(OffsetMaps(target, settings.map_topic, role, TargetUnavailable)) as maps:
        maps.refresh()
        return tuple(sorted(maps.losses.values(), key=lambda kept: (kept.found_at, kept.partition)))


def retract(
    clusters: Clusters,
    fencing: FencingToken | None,
    kept: Mapping[bytes, KeptLoss],
    found: Mapping[TopicPartition, ProgressDetail],
) -> None:
    """Take back losses of copies that were `found` again; what is still lost of them stays, since when it was.

    Raises LeaseLost, and ProgressFailed where the topic refuses a record.
    """
    topic = clusters.settings.map_topic
    records = [
        record
        for key, loss in kept.items()
        if (detail := found.get(loss.partition)) is not None and detail.topic_id == loss.topic_id
        for record in _retracted(topic, key, loss, detail)
    ]
    if records:
        clusters.require_lease()
        state_writer_of(clusters, fencing).write(records)


def _retracted(topic: str, key: bytes, kept: KeptLoss, found: ProgressDetail) -> Iterator[ControlRecord]:
    left = rests(kept, found.intervals, (LossCause.TARGET,))
    if left is None:
        return
    for part in left:
        loss = replace(part.loss, target=None)
        key_of_part, value = loss_key(kept.partition, kept.topic_id, loss), loss_value(loss, kept.found_at)
        yield ControlRecord(topic, key_of_part, value, partition=0)
    yield ControlRecord(topic, key, None, partition=0)
