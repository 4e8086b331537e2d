"""Carries out what somebody has said about offsets: only here, by the flow's owner, before a generation starts.

So nobody else writes meanwhile: the lease is ours, no generation runs, and what a dead writer left is recorded. A
driver that starts at the same moment as the act is written may have copied more by the time it comes here: an act
counts only where the partition stands where it stood for whoever wrote it.

```
skip    source  … 40 41 42 43 44 …      40 to 43: progress 43, a gap of the map, a loss (skipped) of 40 to 42
                  │           │         who stands at 41 goes on at the copy of 43
        target  … 7           8  …

rewind  source  … 40 41 42 43           43 to 41: progress 41, the map ends in front of 41
                  │  │  │  │            copied again, 41 lies at 8 and at 11: the newest copy counts,
        target  … 7  8  9  10 11 12 …   who stands at 42 goes on at 12, and whoever reads on from 8 reads both
```
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace

from srm_spark.core.acts import Command, Shift
from srm_spark.core.cluster import ControlRecord
from srm_spark.core.losses import loss_key, loss_value
from srm_spark.core.model import KeptLoss, Loss, LossCause, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.failure import FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.guard import report_loss
from srm_spark.flow.recovery.starts import Origin, Start, Starts
from srm_spark.flow.topics.committer import committer_of
from srm_spark.flow.topics.offset_map import Maps
from srm_spark.flow.topics.progress import state_writer_of
from srm_spark.kafka.fencing import FencingToken

log = logging.getLogger(__name__)


def carry_out(
    clusters: Clusters,
    command: Command,
    starts: Starts,
    maps: Maps,
    *,
    fencing: FencingToken | None,
    losses: Mapping[bytes, KeptLoss],
) -> dict[int, str] | None:
    """Record other positions; partition → why that was not done, or None where one of them cannot be looked at yet.

    What was recorded of this act before a crash is not done twice. Raises LeaseLost, and ProgressFailed where a topic
    refuses a record.
    """
    assert command.scope.topic is not None
    shifts = {TopicPartition(command.scope.topic, shift.partition): shift for shift in command.shifts}
    if not shifts.keys() <= starts.keys():
        return None
    declined: dict[int, str] = {}
    details: dict[TopicPartition, ProgressDetail] = {}
    ends: dict[TopicPartition, int] = {}
    for partition, shift in shifts.items():
        start = starts[partition]
        end, why = max(shift.end, start.source_log.start), _obstacle(shift, start)
        if start.position.next_offset == end:  # since before a crash
            ends[partition] = end
        elif why is not None:
            declined[shift.partition] = why
        else:
            details[partition] = _detail(clusters, partition, start, end)
            ends[partition] = end
    log.info("flow=%s %s%s", clusters.settings.flow, command, f"; not done: {declined}" if declined else "")
    committer_of(clusters, maps, fencing).commit(details)
    _take_back(clusters, fencing, losses, {p: (end, starts[p].logs.topic_id) for p, end in ends.items()})
    return declined


def _obstacle(shift: Shift, start: Start) -> str | None:
    """Why a position is not changed."""
    if start.position.next_offset != shift.start:
        return f"it stands at {start.position.next_offset} by now, and not at {shift.start}"
    if shift.end > start.source_log.end:
        return f"the source ends at {start.source_log.end}"
    is_held = start.paused is not None and start.paused.why.kind is not FailureKind.SOURCE_TRUNCATED
    if is_held or start.origin is Origin.RECREATED:
        return f"it is held: {start.paused.why if start.paused is not None else 'the source topic was created anew'}"
    return None


def _detail(clusters: Clusters, partition: TopicPartition, start: Start, end: int) -> ProgressDetail:
    position, first = start.position, start.source_log.start
    # Of a partition that is held nobody has asked the target: what is recorded of it stays.
    logs = start.logs if start.paused is None else position.logs
    passed = OffsetRange(min(position.next_offset, end), end)
    detail = ProgressDetail(passed, position.target_end, (), logs=logs)
    ranges = (
        (OffsetRange(passed.start, min(first, end)), LossCause.DELETED),
        (OffsetRange(max(passed.start, first), end), LossCause.SKIPPED),
    )
    lost = tuple(Loss(offsets, cause) for offsets, cause in ranges if offsets.start < offsets.end)
    for loss in lost:
        report_loss(clusters.settings.flow, partition, loss)
    return replace(detail, lost=lost)


def _take_back(
    clusters: Clusters,
    fencing: FencingToken | None,
    losses: Mapping[bytes, KeptLoss],
    ends: Mapping[TopicPartition, tuple[int, str | None]],
) -> None:
    """What was skipped and is copied after all is no loss any more."""
    topic = clusters.settings.map_topic
    records = [
        record
        for key, kept in losses.items()
        if kept.loss.cause is LossCause.SKIPPED and kept.partition in ends
        for record in _shortened(topic, key, kept, *ends[kept.partition])
    ]
    if records:
        clusters.require_lease()
        state_writer_of(clusters, fencing).write(records)


def _shortened(topic: str, key: bytes, kept: KeptLoss, end: int, topic_id: str | None) -> Iterator[ControlRecord]:
    offsets = kept.loss.offsets
    if kept.topic_id != topic_id or offsets.end <= end:
        return
    if offsets.start < end:
        left = replace(kept.loss, offsets=OffsetRange(offsets.start, end))
        value = loss_value(left, kept.found_at)
        yield ControlRecord(topic, loss_key(kept.partition, kept.topic_id, left), value, partition=0)
    yield ControlRecord(topic, key, None, partition=0)
