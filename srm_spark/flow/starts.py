"""Where each partition of a generation starts: recorded progress, checked against what the source still has."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from srm_spark.flow.clusters import Ends
from srm_spark.flow.guard import report_loss, truncated
from srm_spark.flow.offset_map import Maps
from srm_spark.flow.progress import Position, ProgressTopic, record
from srm_spark.kafka.limits import Route
from srm_spark.kafka.terms import Term
from srm_spark.model import Hold, OffsetRange, ProgressDetail, TopicPartition

log = logging.getLogger(__name__)

SPARK_OVERFLOW_MS = (2**63 - 1) // 1000 + 1
"""Spark counts microseconds in 64 bits: its source throws on a record with this timestamp or a later one."""


@dataclass(frozen=True)
class Starts:
    """Where each partition of a generation starts."""

    positions: dict[TopicPartition, Position] = field(default_factory=dict)
    held: dict[TopicPartition, Hold] = field(default_factory=dict)
    new: set[TopicPartition] = field(default_factory=set)
    """Partitions whose position is not recorded yet."""
    lost: dict[TopicPartition, OffsetRange] = field(default_factory=dict)
    """Deleted on the source before they were replicated."""
    recreated: set[TopicPartition] = field(default_factory=set)
    """Of topics that were created anew: nothing recorded says anything about them."""


def find_starts(ends: Ends, progress: ProgressTopic, topics: Mapping[str, int], ids: Mapping[str, str]) -> Starts:
    """Start positions from recorded progress, checked against what the source still has."""
    partitions = [TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)]
    first, end = ends.source.first_offsets(partitions), ends.source.end_offsets(partitions)
    starts = Starts()
    is_latest = ends.settings.consumer.get("auto.offset.reset", "earliest").strip().lower() == "latest"
    for partition in partitions:
        if partition not in first or partition not in end:
            continue  # deleted since it was listed; the next look at the topics leaves it out
        kept = OffsetRange(first[partition], end[partition])
        recorded = progress.positions.get(partition)
        if recorded is not None:
            topic_id = ids.get(partition.topic, recorded.topic_id)
            is_recreated = recorded.topic_id is not None and recorded.topic_id != topic_id
            (_start_anew if is_recreated else _continue)(ends, starts, partition, recorded, kept)
        else:
            starts.positions[partition] = Position(kept.end if is_latest else kept.start)
            starts.new.add(partition)
    return starts


def _start_anew(ends: Ends, starts: Starts, partition: TopicPartition, recorded: Position, kept: OffsetRange) -> None:
    if ends.settings.policies.stops("source.recreated.policy", partition.topic):
        reason = "the source topic was created anew; set source.recreated.policy=resume to start at its beginning"
        starts.held[partition] = Hold(recorded.next_offset, reason)
        return
    text = "flow=%s partition=%s the source topic was created anew: starting at its beginning (offset %s)"
    log.warning(text, ends.settings.flow, partition, kept.start)
    starts.positions[partition] = Position(kept.start)
    starts.new.add(partition)
    starts.recreated.add(partition)


def _continue(ends: Ends, starts: Starts, partition: TopicPartition, recorded: Position, kept: OffsetRange) -> None:
    settings = ends.settings
    if recorded.next_offset < kept.start:
        if settings.policies.stops("source.truncated.policy", partition.topic):
            starts.held[partition] = truncated(recorded.next_offset, kept.start)
            return
        starts.lost[partition] = OffsetRange(recorded.next_offset, kept.start)
        report_loss(settings.flow, partition, starts.lost[partition])
        starts.positions[partition] = replace(recorded, next_offset=kept.start)
        starts.new.add(partition)
    elif recorded.next_offset > kept.end:
        starts.held[partition] = Hold(
            recorded.next_offset,
            f"the source ends at offset {kept.end}, before the recorded position: replicated records are gone there; "
            f"reset this partition's progress in {settings.progress_topic} to go on from the beginning",
        )
    else:
        starts.positions[partition] = recorded


def record_new(
    ends: Ends, starts: Starts, routes: Mapping[str, Route], ids: Mapping[str, str], maps: Maps, *, term: Term | None
) -> None:
    """Record where partitions start, or `latest` would skip what comes before the first batch of a restart.

    Where the remote partition is empty it is known that nothing in front of the start was ever replicated.
    """
    if not starts.new:
        return
    remote = {p: TopicPartition(routes[p.topic].remote_topic, p.partition) for p in starts.new}
    target_firsts, target_ends = ends.target.first_offsets(remote.values()), ends.target.end_offsets(remote.values())
    details = {}
    for partition in starts.new:
        start, lost = starts.positions[partition].next_offset, starts.lost.get(partition)
        end = target_ends.get(remote[partition])
        is_empty = end is not None and target_firsts.get(remote[partition]) == end
        details[partition] = ProgressDetail(
            source=lost or OffsetRange(0 if is_empty else start, start),
            target_end=end,
            intervals=(),
            topic_id=ids.get(partition.topic),
            lost=(lost,) if lost else (),
        )
    record(ends.settings, maps, details, term)


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
