"""Carries out what somebody has said about offsets: only here, by the flow's owner, before a generation starts.

So nobody else writes meanwhile: the lease is ours, no generation runs, and what a dead writer left is recorded. A
driver that starts at the same moment as the act is written may have copied more by the time it comes here: an act
counts only where the partition stands where it stood for whoever wrote it.

```
skip    source  … 40 41 42 43 44 …      40 to 43: progress 43, a gap of the map, a loss (skipped) of 40 to 42
                  │           │         who stands at 41 goes on at the copy of 43
        target  … 6           7  …

rewind  source  … 40 41 42 43           43 to 41: progress 41; the map is as it was until 41 is copied again,
                  │  │  │               to 10: from then on the newest copy counts, and of two copies the first
        target  … 7  8  9  10 11 …      is passed over by whoever is translated; who reads on from 8 reads both
```

Skipped back over what the map knows, a rewind is undone: those copies are there, and count again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace

from srm_spark.core.acts import Command, Shift
from srm_spark.core.cluster import ControlRecord
from srm_spark.core.losses import loss_key, loss_value
from srm_spark.core.model import KeptLoss, Loss, LossCause, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.failure import FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.guard import report_loss
from srm_spark.flow.recovery.starts import Origin, Start, Starts
from srm_spark.flow.topics.committer import committer_of
from srm_spark.flow.topics.offset_map import Maps
from srm_spark.flow.topics.progress import progress_of, state_writer_of
from srm_spark.kafka.fencing import FencingToken

log = logging.getLogger(__name__)

_NO_MAP = PartitionMap()


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
    course = _Course(clusters, maps, losses)
    for partition, shift in shifts.items():
        start = starts[partition]
        end, why = max(shift.end, start.source_log.start), _obstacle(shift, start)
        if start.position.next_offset == end:  # since before a crash
            course.ends[partition] = end, start.logs.topic_id
        elif why is not None:
            declined[shift.partition] = why
        else:
            course.go(partition, start, end)
    log.info("flow=%s carried out: %s%s", clusters.settings.flow, command, f"; not: {declined}" if declined else "")
    course.record(fencing)
    return declined


def _obstacle(shift: Shift, start: Start) -> str | None:
    """Why a position is not changed."""
    if start.position.next_offset != shift.start:
        return f"it stands at {start.position.next_offset} by now, and not at {shift.start}"
    if shift.end > start.source_log.end:
        return f"the source ends at {start.source_log.end}"
    if start.origin is Origin.RECREATED:
        return "the source topic was created anew"
    if start.paused is not None and start.paused.why.kind is not FailureKind.SOURCE_TRUNCATED:
        return f"it is held: {start.paused.why}"
    return None


class _Course:
    """What one act comes to."""

    def __init__(self, clusters: Clusters, maps: Maps, losses: Mapping[bytes, KeptLoss]) -> None:
        self._clusters, self._maps = clusters, maps
        self._skipped = {key: kept for key, kept in losses.items() if kept.loss.cause is LossCause.SKIPPED}
        self._mapped: dict[TopicPartition, ProgressDetail] = {}
        self._progress: dict[TopicPartition, ProgressDetail] = {}
        self.ends: dict[TopicPartition, tuple[int, str | None]] = {}
        """Where partitions go on, and the ids of their topics."""

    def go(self, partition: TopicPartition, start: Start, end: int) -> None:
        """Let a partition go on there."""
        position = start.position
        # Of a partition that is held nobody has asked the target: what is recorded of it stays.
        logs = start.logs if start.paused is None else position.logs
        self.ends[partition] = end, start.logs.topic_id
        known = self._known(partition, start)
        if end > position.next_offset:
            copies = known.copies_before(end, 1)
            behind = max(position.next_offset, copies[-1].upstream_end if copies else 0)
            passed = OffsetRange(behind, end)
            lost = tuple(_lost(passed, start.source_log.start))
            for loss in lost:
                report_loss(self._clusters.settings.flow, partition, loss)
            detail = ProgressDetail(passed, position.target_end, (), logs=logs, lost=lost)
            self._progress[partition] = replace(detail, source=OffsetRange(position.next_offset, end))
            if passed.start < end:
                self._mapped[partition] = detail
            return
        at = ProgressDetail(OffsetRange(end, end), position.target_end, (), logs=logs)
        self._progress[partition] = at
        reached = [kept.loss.offsets.start for kept in self._skipped.values() if _reaches(kept, partition, end)]
        cut = max(end, min(reached, default=end))
        if reached and known.source is not None and cut < known.source.end:
            # Skipped over again, the gap would be taken for what is not on the source.
            self._mapped[partition] = replace(at, source=OffsetRange(cut, cut))

    def record(self, fencing: FencingToken | None) -> None:
        """Map, losses, progress; then what was skipped and is copied after all is no loss any more."""
        settings = self._clusters.settings
        if self._mapped:
            committer_of(self._clusters, self._maps, fencing).map(self._mapped)
        taken_back = [
            record
            for key, kept in self._skipped.items()
            if kept.partition in self.ends
            for record in _shortened(settings.map_topic, key, kept, *self.ends[kept.partition])
        ]
        if self._progress or taken_back:
            self._clusters.require_lease()
            writer = state_writer_of(self._clusters, fencing)
            records = [*progress_of(settings, self._progress), *taken_back]
            writer.write(records)

    def _known(self, partition: TopicPartition, start: Start) -> PartitionMap:
        """What the map says of this topic."""
        known = self._maps.get(partition, _NO_MAP)
        return _NO_MAP if known.is_of_another(start.logs.topic_id) else known


def _lost(passed: OffsetRange, first: int) -> Iterator[Loss]:
    """What is not copied of `passed`; the source has records from `first` on."""
    middle = min(max(passed.start, first), passed.end)
    if passed.start < middle:
        yield Loss(OffsetRange(passed.start, middle), LossCause.DELETED)
    if middle < passed.end:
        yield Loss(OffsetRange(middle, passed.end), LossCause.SKIPPED)


def _reaches(kept: KeptLoss, partition: TopicPartition, end: int) -> bool:
    return kept.partition == partition and kept.loss.offsets.end > end


def _shortened(topic: str, key: bytes, kept: KeptLoss, end: int, topic_id: str | None) -> Iterator[ControlRecord]:
    offsets = kept.loss.offsets
    if kept.topic_id != topic_id or offsets.end <= end:
        return
    if offsets.start < end:
        left = replace(kept.loss, offsets=OffsetRange(offsets.start, end))
        value = loss_value(left, kept.found_at)
        yield ControlRecord(topic, loss_key(kept.partition, kept.topic_id, left), value, partition=0)
    yield ControlRecord(topic, key, None, partition=0)
