"""Other positions for partitions of a flow, for a command: where they stand, what a change would do, and its act.

The act says from where to where, and whoever owns the flow carries it out before it copies anything
(`flow/recovery/shifts.py`). So this needs no lease: a driver that starts, or goes on, at the same moment finds another
position than the act names, and declines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from srm_spark.core.acts import Command, CommandKind, Scope, Shift, pause_of, scope_of
from srm_spark.core.goals import Goal, Way, place_of
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.errors import SourceUnavailable
from srm_spark.flow.commanding import Commanding


@dataclass(frozen=True)
class Standing:
    """Where one partition stands."""

    partition: TopicPartition
    position: int | None
    """First source offset that is not replicated; None where nothing is recorded."""
    source: OffsetRange | None
    """From where to where the source has records now; None where it does not say."""
    paused: str | None = None
    """By whom and why it stands still."""
    waiting: int | None = None
    """To where an act sets it that no driver has carried out yet."""

    @property
    def lag(self) -> int | None:
        """Source offsets that are not replicated yet; None where that is not known."""
        if self.source is None or self.position is None:
            return None
        return max(0, self.source.end - self.position)


@dataclass(frozen=True)
class Standings:
    """Of the partitions that were asked for."""

    found: tuple[Standing, ...]
    unknown: str | None = None
    """Why nothing is known of the source; None where it is."""


@dataclass(frozen=True)
class Wanted:
    """Another position of one partition."""

    standing: Standing
    end: int | None = None
    """Where it is to go on; None where that is refused."""
    refusal: str | None = None

    @property
    def again(self) -> int:
        """Source offsets that would be copied again."""
        return 0 if self.end is None else max(0, (self.standing.position or 0) - self.end)

    @property
    def left_out(self) -> int:
        """Source offsets that would not be copied."""
        return 0 if self.end is None else max(0, self.end - (self.standing.position or 0))


class Shifting:
    """Of one flow."""

    def __init__(self, commanding: Commanding) -> None:
        """By what was read of its acts and its progress."""
        self._commanding = commanding
        self._clusters = commanding.clusters

    def standings(self, takes: Callable[[str], bool], number: int | None) -> Standings:
        """Where all recorded partitions of these topics stand, or those of one number. Raises TargetUnavailable."""
        recorded = {p for p in self._commanding.progress.positions if takes(p.topic)}
        try:
            counts = self._clusters.source.topics()
            names = {partition.topic for partition in recorded}
            there = {TopicPartition(name, n) for name in names for n in range(counts.get(name, 0))}
            asked = [p for p in sorted(recorded | there) if number in (None, p.partition)]
            ranges, unknown = self._ranges([p for p in asked if p in there]), None
        except SourceUnavailable as error:
            asked = [p for p in sorted(recorded) if number in (None, p.partition)]
            ranges, unknown = {}, str(error)
        return Standings(tuple(self._standing(p, ranges.get(p)) for p in asked), unknown)

    def wanted(self, found: Sequence[Standing], way: Way, goal: Goal) -> list[Wanted]:
        """What this would make of each of them. Raises SourceUnavailable and TargetUnavailable."""
        since: Mapping[TopicPartition, int] = {}
        if goal.timestamp is not None:
            asked = [standing.partition for standing in found if standing.source is not None]
            since = self._clusters.source.offsets_since(asked, goal.timestamp)
        owner = self._commanding.owner()
        made = []
        for standing in found:
            position, source = standing.position, standing.source
            refusal = self._obstacle(standing, owner)
            if refusal is not None or position is None or source is None:
                made.append(Wanted(standing, refusal=refusal))
                continue
            place = place_of(goal, way, position, source, since.get(standing.partition))
            is_fine = place.refusal is None
            made.append(Wanted(standing, place.offset if is_fine else None, place.refusal))
        return made

    def write(self, chosen: Sequence[Wanted], who: str, why: str) -> str:
        """Write the act for partitions of one topic; its id. Raises TargetUnavailable."""
        (topic,) = {one.standing.partition.topic for one in chosen}
        shifts = tuple(
            Shift(one.standing.partition.partition, one.standing.position, one.end)
            for one in chosen
            if one.standing.position is not None and one.end is not None
        )
        at = int(time.time() * 1000)
        return self._commanding.write(Command(CommandKind.OFFSETS, Scope(topic), at, who, why, shifts))

    def _ranges(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        first = self._clusters.source.first_offsets(partitions, waits=False)
        committed = self._clusters.settings.reads_committed
        ends = self._clusters.source.end_offsets(partitions, waits=False, committed=committed)
        return {p: OffsetRange(first[p], ends[p]) for p in partitions if p in first and p in ends}

    def _standing(self, partition: TopicPartition, source: OffsetRange | None) -> Standing:
        recorded = self._commanding.progress.positions.get(partition)
        pause = pause_of(self._commanding.pauses, scope_of(partition))
        ends = [
            shift.end
            for command in self._commanding.waiting.values()
            if command.scope.topic == partition.topic
            for shift in command.shifts
            if shift.partition == partition.partition
        ]
        return Standing(
            partition,
            None if recorded is None else recorded.next_offset,
            source,
            None if pause is None else pause.held,
            ends[-1] if ends else None,
        )

    def _obstacle(self, standing: Standing, owner: str | None) -> str | None:
        """Why nothing can be changed here now."""
        topic = standing.partition.topic
        if standing.position is None:
            return "no position is recorded: it begins by itself once the flow runs"
        if standing.source is None:
            return "the source does not say what it has of it"
        if owner is None:
            return None
        if standing.paused is None:
            flow = self._clusters.settings.flow
            return f"{owner} runs it: pause it first, by srm-control pause --flow '{flow}' --topic {topic}"
        if not self._commanding.has_taken_pause(scope_of(standing.partition)):
            return f"{owner} runs it, and has not said yet that it took the pause: try again"
        return None
