"""Carries out what somebody has said about offsets: only here, by the flow's owner, before a generation starts.

So nobody writes the partition meanwhile: it is paused, no generation runs, and what a dead writer left is recorded.
Map, losses, position and answer go in one transaction, which the next start of any driver ends before it reads
anything: each act is carried out once or not at all, and its answer is true.

```
skip    source  … 40 41 42 43 44 …      40 to 43: progress 43, a gap of the map, a loss (skipped) of 40 to 42
                  │           │         who stands at 41 goes on at the copy of 43
        target  … 6           7  …

rewind  source  … 40 41 42 43           43 to 41: progress 41; the first copies count until 42 is copied again, then
                  │  │  │               the second ones: whoever stands at 41 is then at 10, and passes over 8 and 9
        target  … 7  8  9  10 11 …
```

Nothing is skipped of what is being copied again: nobody knows whether the first copies still are what they were.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from srm_spark.core.acts import Command, Shift, pause_of
from srm_spark.core.answers import Answer, shifted_record
from srm_spark.core.cluster import ControlRecord, Writer
from srm_spark.core.model import Loss, LossCause, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.errors import ProtocolUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.guard import report_loss
from srm_spark.flow.recovery.starts import Origin, Start, Starts
from srm_spark.flow.topics.commands import FlowCommands, driver_name
from srm_spark.flow.topics.offset_map import Maps, MapWriter, OffsetMaps
from srm_spark.flow.topics.progress import Position, ProgressTopic, ProgressWriter, state_writer_of
from srm_spark.kafka.fencing import FencingToken

log = logging.getLogger(__name__)

_NO_MAP = PartitionMap()
_ANEW = "its progress was lost, or speaks of another topic: what was done of it nobody knows"
_NOT_FENCED = (
    "this target gives the flow no producer id, so that a driver which hangs could set the position once more; see "
    "docs/delivery.md"
)


@dataclass
class _Records:
    """What goes in one transaction."""

    records: list[ControlRecord] = field(default_factory=list)

    def write(self, records: Iterable[ControlRecord]) -> None:
        self.records += records


class Shifts:
    """Acts on the offsets of one flow, as its owner carries them out."""

    def __init__(self, clusters: Clusters, progress: ProgressTopic, maps: OffsetMaps, commands: FlowCommands) -> None:
        self._clusters, self._progress, self._maps, self._commands = clusters, progress, maps, commands

    def writer(self, fencing: FencingToken | None, *, are_fenced: bool) -> Writer | None:
        """What positions are set by: see `Clusters.make_shift_writer`. Nothing is asked of the target yet."""
        return self._clusters.make_shift_writer(fencing, are_fenced, self._clusters.require_lease)

    def let_go(self, starts: Starts, writer: Writer | None) -> None:
        """Decline what is said of partitions whose progress is lost, before it is recorded anew.

        Raises as `carry_out`.
        """
        anew = [act for act, p, _ in self._due() if p in starts and starts[p].origin is not Origin.PROGRESS]
        if anew:
            self._write([self._answer(act, _ANEW) for act in anew], writer)

    def carry_out(
        self, starts: Starts, absent: Callable[[TopicPartition], str], writer: Writer | None
    ) -> set[TopicPartition]:
        """Set other positions, or decline that; the partitions of which something was said.

        `absent` says why a partition does not start. One whose position was recorded just now, with what is lost of it,
        is among them and has its turn next. Everything that was read of them is old then, and so is the epoch of the
        flow's producer id. Raises LeaseLost, and ProgressFailed where the target does not take it.
        """
        due: dict[TopicPartition, tuple[str, Command]] = {}
        for act, partition, command in self._due():
            due.setdefault(partition, (act, command))  # one after the other
        if not due:
            return set()
        self._refresh()
        maps, together = self._maps.maps, _Records()
        for partition, (act, command) in due.items():
            shift, start = command.shift, starts.get(partition)
            assert shift is not None
            if start is not None and start.paused is None and not start.is_recorded:
                continue  # in a transaction, which may not be there for readers yet
            why = absent(partition) if start is None else _obstacle(shift, start, maps.get(partition, _NO_MAP))
            if why is None and writer is None:
                why = _NOT_FENCED
            if why is None and start is not None:
                _Course(self._clusters, maps, together).go(partition, start, shift.end)
            together.write([self._answer(act, why)])
            done = "carried out" if why is None else f"not carried out, since {why}"
            log.info("flow=%s %s: %s", self._clusters.settings.flow, command, done)
        if together.records:
            self._write(together.records, writer)
        return set(due)

    def _due(self) -> list[tuple[str, TopicPartition, Command]]:
        """What nobody has answered yet; an act ends with the pause of its partition."""
        pauses, shifts = self._commands.in_force
        return [
            (act, TopicPartition(command.scope.topic, command.scope.partition), command)
            for act, command in shifts.items()
            if act not in self._progress.answers.shifted
            and pause_of(pauses, command.scope) is not None
            and command.scope.topic is not None
            and command.scope.partition is not None
        ]

    def _answer(self, act: str, declined: str | None) -> ControlRecord:
        settings = self._clusters.settings
        answer = Answer(act, driver_name(), int(time.time() * 1000), declined)
        return ControlRecord(settings.progress_topic, *shifted_record(settings.flow, answer))

    def _write(self, records: list[ControlRecord], writer: Writer | None) -> None:
        self._clusters.require_lease()
        (writer or state_writer_of(self._clusters, None)).write(records)  # without a writer there are answers only
        if writer is not None:
            self._renew()
        self._refresh()

    def _renew(self) -> None:
        """The flow's producer id was taken over for the transaction: what is written next has a newer epoch."""
        try:
            self._clusters.current.renew()
        except ProtocolUnavailable as error:
            raise TargetUnavailable(str(error)) from error

    def _refresh(self) -> None:
        self._progress.refresh()
        self._maps.refresh()


def _obstacle(shift: Shift, start: Start, known: PartitionMap) -> str | None:
    """Why a position is not set."""
    if start.paused is not None:
        return f"it is held: {start.paused.why}"
    if start.logs.topic_id != shift.topic_id:
        return "the source topic was created anew since, or its id is not known"
    if start.origin is not Origin.PROGRESS:
        return _ANEW
    return off_course(shift, start.position, start.source_log, known)


def off_course(shift: Shift, position: Position, source: OffsetRange, known: PartitionMap) -> str | None:
    """Why a partition does not go from where it stands to where it is to, by what the source has and the map knows."""
    stands, end = position.next_offset, shift.end
    if stands != shift.start:
        return f"it stands at {stands} by now, and not at {shift.start}"
    if end == stands:
        return f"it stands at {end} already"
    if not source.start <= end <= source.end:
        return f"the source has offsets {source.start} to {source.end} now, and not {end}"
    if position.target_end is None or known.next_offset != stands or known.is_of_another(shift.topic_id):
        return "the offset map does not reach where it stands: let the flow copy something first"
    if end > stands and known.copied_before is not None:
        return f"offsets up to {known.copied_before - 1} are being copied again: nothing is skipped before that is done"
    return None


class _Course:
    """What one act comes to."""

    def __init__(self, clusters: Clusters, maps: Maps, together: _Records) -> None:
        self._settings, self._together = clusters.settings, together
        self._map = MapWriter(clusters.settings, maps, together)

    def go(self, partition: TopicPartition, start: Start, end: int) -> None:
        """Let a partition go on at `end`."""
        position, target_end = start.position.next_offset, start.position.target_end
        assert target_end is not None
        if end > position:
            loss = Loss(OffsetRange(position, end), LossCause.SKIPPED)
            report_loss(self._settings.flow, partition, loss)
            detail = ProgressDetail(OffsetRange(position, end), target_end, (), logs=start.logs, lost=(loss,))
            self._map.write({partition: detail})
        else:
            detail = ProgressDetail(OffsetRange(end, end), target_end, (), logs=start.logs)
            self._map.rewind(partition, end, target_end)
        ProgressWriter(self._settings, self._together).commit({partition: detail})
