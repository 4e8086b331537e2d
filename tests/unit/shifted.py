"""A flow of one partition whose position is set by acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from srm_spark.core.cluster import ControlRecord, Writer
from srm_spark.core.codec import progress_records
from srm_spark.core.model import LossCause, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.run import FlowRun
from srm_spark.flow.topics.losses import kept_losses
from tests.unit.commanded import Commanded, P

REMOTE = TopicPartition("A.t", 0)


class Shifted(Commanded):
    """A flow of one partition whose records are `t0`, `t1` …"""

    def copied_to(self, count: int) -> None:
        """So many records are written and copied."""
        self.write(*names(*range(self.flow.log.end, count)))
        self.copied()

    def done(self, start: int, end: int) -> str:
        """A shift that a driver carries out when it starts, in a pause; nothing is copied meanwhile."""
        self.pause("t")
        act = self.shift(start, end)
        with self.run() as run:
            run.begin()
        self.resume("t")
        return act

    def copy_part(self, count: int) -> None:
        """A run that copies so many records."""
        with self.run() as run:
            run.begin()
            copy_some(run, self, count)

    def die(self, count: int) -> None:
        """A run that copies up to so many records, and dies before it has recorded them."""
        with self.run() as run:
            run.begin()
            starts = self.generation.assignment.starts
            at = starts[P].next_offset if P in starts else self.flow.log.end
            for offset in range(at, min(at + count, self.flow.log.end)):
                self.flow.target.log(REMOTE).append(self.flow.log.records[offset])
            self.generation.ends_cleanly = False
            run.lists.look()

    def recorded_by_mirrormaker(self, next_offset: int) -> None:
        """MirrorMaker 2 has copied up to there, and commits."""
        settings, target = self.flow.settings, self.flow.target
        detail = ProgressDetail(OffsetRange(next_offset, next_offset), None, ())
        writer = target.writer("mirrormaker", TargetUnavailable)
        for key, value, _ in progress_records(settings.connector_name, settings.flow.source, P, detail):
            writer.write([ControlRecord(settings.progress_topic, key, value)])

    def shift_by(self, make: Callable[..., Writer | None]) -> None:
        """From now on positions are set by what this makes."""
        self.flow.clusters = replace(self.flow.clusters, make_shift_writer=make)

    @property
    def map(self) -> PartitionMap:
        recorded = Recorded(self.flow.clusters)
        recorded.refresh()
        return recorded.maps.maps.get(P, PartitionMap())

    @property
    def places(self) -> list[int | None]:
        """Where whoever stands at each source offset goes on."""
        return [self.map.downstream(offset) for offset in range(self.flow.log.end + 1)]

    @property
    def kept(self) -> list[tuple[LossCause, tuple[int, int]]]:
        found = kept_losses(self.flow.settings, self.flow.reach)
        return [(one.loss.cause, tuple(one.loss.offsets)) for one in found]  # type: ignore[misc]

    @property
    def position(self) -> int:
        return self.progress().positions[P].next_offset

    def declined(self, act: str) -> str | None:
        """Why it was not done; KeyError while nobody has said anything."""
        return self.progress().answers.shifted[act].declined


def names(*numbers: int) -> list[bytes]:
    return [f"t{number}".encode() for number in numbers]


def copy_some(run: FlowRun, world: Shifted, count: int) -> None:
    """A batch of so many records."""
    generation = world.generation
    start = generation.copied_to.get(P, generation.assignment.starts[P].next_offset)
    end, world.flow.log.end = world.flow.log.end, start + count
    try:
        generation.copy()
    finally:
        world.flow.log.end = end
    run.tick()
