"""Where each partition of a generation starts: recorded progress, checked against what the source still has."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from srm_spark.flow.clusters import Ends
from srm_spark.flow.progress import Position, ProgressTopic, ProgressWriter
from srm_spark.kafka.limits import Route
from srm_spark.model import Hold, OffsetRange, ProgressDetail, TopicPartition

log = logging.getLogger(__name__)

SPARK_OVERFLOW_MS = (2**63 - 1) // 1000 + 1
"""Spark counts microseconds in 64 bits: its source throws on a record with this timestamp or a later one."""


@dataclass(frozen=True)
class Starts:
    """Where each partition of a generation starts."""

    positions: Mapping[TopicPartition, Position]
    held: Mapping[TopicPartition, Hold]
    new: Collection[TopicPartition]
    """Partitions without recorded progress."""


def find_starts(ends: Ends, progress: ProgressTopic, topics: Mapping[str, int], ids: Mapping[str, str]) -> Starts:
    """Start positions from recorded progress, checked against what the source still has."""
    partitions = [TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)]
    first, end = ends.source.first_offsets(partitions), ends.source.end_offsets(partitions)
    positions: dict[TopicPartition, Position] = {}
    held: dict[TopicPartition, Hold] = {}
    is_latest = ends.settings.consumer.get("auto.offset.reset", "earliest").strip().lower() == "latest"
    for partition in partitions:
        if partition not in first or partition not in end:
            continue  # deleted since it was listed; the next look at the topics leaves it out
        recorded = progress.positions.get(partition)
        if recorded is None:
            positions[partition] = Position(end[partition] if is_latest else first[partition])
            continue
        checked = _checked(ends, partition, recorded, OffsetRange(first[partition], end[partition]), ids)
        if isinstance(checked, Hold):
            held[partition] = checked
        else:
            positions[partition] = checked
    return Starts(positions, held, [partition for partition in positions if partition not in progress.positions])


def _checked(
    ends: Ends, partition: TopicPartition, recorded: Position, kept: OffsetRange, ids: Mapping[str, str]
) -> Position | Hold:
    flow, topic_id = ends.settings.flow, ids.get(partition.topic)
    if recorded.topic_id is not None and topic_id is not None and recorded.topic_id != topic_id:
        log.warning(
            "flow=%s partition=%s the source topic was created anew: starting at its beginning (offset %s)",
            *(flow, partition, kept.start),
        )
        return Position(kept.start, recorded.target_end)
    if recorded.next_offset < kept.start:
        log.error(
            "flow=%s partition=%s offsets %s to %s are lost: the source deleted them before they were replicated",
            *(flow, partition, recorded.next_offset, kept.start - 1),
        )
        return Position(kept.start, recorded.target_end)
    if recorded.next_offset > kept.end:
        return Hold(
            recorded.next_offset,
            f"the source ends at offset {kept.end}, before the recorded position: replicated records are gone there; "
            f"reset this partition's progress in {ends.settings.progress_topic} to go on from the beginning",
        )
    return recorded


def record_new(ends: Ends, starts: Starts, routes: Mapping[str, Route], ids: Mapping[str, str]) -> None:
    """Record where new partitions start, or `latest` would skip what comes before the first batch of a restart."""
    if not starts.new:
        return
    remote = {p: TopicPartition(routes[p.topic].remote_topic, p.partition) for p in starts.new}
    target_ends = ends.target.end_offsets(remote.values())
    details = {}
    for partition in starts.new:
        start = starts.positions[partition].next_offset
        end = target_ends.get(remote[partition])
        details[partition] = ProgressDetail(OffsetRange(start, start), end, (), topic_id=ids.get(partition.topic))
    ProgressWriter(ends.settings).commit(details)


def unreadable(ends: Ends, positions: Mapping[TopicPartition, Position]) -> dict[TopicPartition, Hold]:
    """The first record of each partition that Spark's source cannot read, where there is one ahead of us."""
    found = ends.source.offsets_since(positions, SPARK_OVERFLOW_MS)
    return {
        partition: Hold(
            offset,
            f"its timestamp is {SPARK_OVERFLOW_MS} ms or later (nanoseconds written as milliseconds?), which Spark's "
            "Kafka source cannot read; delete it on the source (kafka-delete-records) or let retention pass it",
        )
        for partition, offset in found.items()
        if offset >= positions[partition].next_offset
    }
