"""Other positions for partitions of a flow, for a command: what a change would do, and its act.

A partition is paused first, also where no driver runs: one may start at any time. The act says from where to where, and
the driver that owns the flow carries it out before it copies anything (`flow/recovery/shifts.py`), or declines.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from srm_spark.core.acts import Command, CommandKind, Shift, scope_of
from srm_spark.core.goals import Goal, Way, place_of
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.commanding import Commanding
from srm_spark.flow.recovery.shifts import off_course
from srm_spark.flow.standings import Standing, standings
from srm_spark.flow.topics.offset_map import OffsetMaps


@dataclass(frozen=True)
class Wanted:
    """Another position of one partition."""

    standing: Standing
    shift: Shift | None = None
    """None where that is refused."""
    refusal: str | None = None
    copied: int = 0
    """Copies that the target has already of what a rewind copies, second ones too, as the offset map says."""
    is_amid: bool = False
    """Whether it is just being copied again."""

    @property
    def again(self) -> int:
        """Source offsets that would be copied again."""
        return 0 if self.shift is None else max(0, self.shift.start - self.shift.end)

    @property
    def left_out(self) -> int:
        """Source offsets that would not be copied."""
        return 0 if self.shift is None else max(0, self.shift.end - self.shift.start)

    @property
    def is_change(self) -> bool:
        """Whether it would go on elsewhere."""
        return bool(self.again or self.left_out)


class Shifting:
    """Of one flow."""

    def __init__(self, commanding: Commanding) -> None:
        """By what was read of its acts and its progress."""
        self._commanding = commanding
        self._clusters = commanding.clusters

    def standings(self, topic: str, partition: int | None) -> tuple[Standing, ...]:
        """Where the partitions of a topic stand, or one of them; empty where nothing is recorded.

        Raises TargetUnavailable, and SourceUnavailable: without the source it is not known what can be done.
        """
        found = standings(self._commanding, lambda one: one == topic, partition)
        if found.unknown is not None:
            raise SourceUnavailable(f"the source does not answer: {found.unknown}")
        return found.found

    def wanted(self, found: Sequence[Standing], way: Way, goal: Goal) -> list[Wanted]:
        """What this would make of each of them. Raises SourceUnavailable and TargetUnavailable."""
        since: Mapping[TopicPartition, int] = {}
        if goal.timestamp is not None:
            asked = [standing.partition for standing in found if standing.source is not None]
            since = self._clusters.source.offsets_since(asked, goal.timestamp)
        ids = self._clusters.source.topic_ids({standing.partition.topic for standing in found})
        maps = self._maps()
        made = []
        for one in found:
            partition, topic_id = one.partition, ids.get(one.partition.topic)
            position = self._commanding.progress.positions.get(partition)
            refusal = self._obstacle(one, topic_id)
            if refusal is not None or position is None or one.source is None or topic_id is None:
                made.append(Wanted(one, refusal=refusal))
                continue
            place = place_of(goal, way, position.next_offset, one.source, since.get(partition))
            shift, known = Shift(position.next_offset, place.offset, topic_id), maps.get(partition, PartitionMap())
            refusal = place.refusal
            if refusal is None and shift.end != shift.start:
                refusal = off_course(shift, position, one.source, known)
            if refusal is not None:
                made.append(Wanted(one, refusal=refusal))
                continue
            copied = _copied(known, shift) + (0 if known.again is None else _copied(known.again, shift))
            made.append(Wanted(one, shift, None, copied, known.again is not None))
        return made

    def write(self, chosen: Sequence[Wanted], who: str, why: str) -> list[str]:
        """Write the acts; their ids. Raises TargetUnavailable."""
        at, kind = int(time.time() * 1000), CommandKind.OFFSETS
        return self._commanding.write(
            *(Command(kind, scope_of(one.standing.partition), at, who, why, one.shift) for one in chosen)
        )

    def _maps(self) -> Mapping[TopicPartition, PartitionMap]:
        settings, target = self._clusters.settings, self._clusters.target
        if not target.topic_ids([settings.map_topic]):
            return {}
        with closing(OffsetMaps(target, settings.map_topic, f"{settings.flow}|offsets", TargetUnavailable)) as maps:
            maps.refresh()
            return dict(maps.maps)

    def _obstacle(self, standing: Standing, topic_id: str | None) -> str | None:
        """Why nothing can be changed here now."""
        if standing.position is None:
            return "no position is recorded: it begins by itself once the flow runs"
        if standing.source is None or topic_id is None:
            return "the source does not say what it has of it"
        if standing.paused is None:
            flow, topic = self._clusters.settings.flow, standing.partition.topic
            return f"it is not paused: first srm-control pause --flow '{flow}' --topic {topic}"
        if standing.waiting is not None:
            return f"an act waits that sets it to {standing.waiting}: it ends when a driver takes it, or with the pause"
        return None


def _copied(known: PartitionMap, shift: Shift) -> int:
    return sum(one.count for one in known.copies_within(OffsetRange(shift.end, shift.start)))
