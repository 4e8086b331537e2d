"""Records that are packed here on their way to the target, in batches under an author of our own, and batches that are
ready between them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import PausedPartition, TopicPartition
from srm_spark.core.reports import PartitionReport, Sent
from srm_spark.core.rows import Run
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.batches.codecs import NONE
from srm_spark.kafka.batches.hand import Hand, failure_of
from srm_spark.kafka.batches.packer import Packed, Packing
from srm_spark.kafka.batches.packing import pack
from srm_spark.kafka.batches.refusals import judge
from srm_spark.kafka.batches.sorting import Pieces
from srm_spark.kafka.producers import codec_of, level_of
from srm_spark.kafka.sinks import Answer

_STEP_SECONDS = 0.1


@dataclass(frozen=True)
class Refused:
    """A batch that the target has refused, and what was to come behind it in its partition."""

    hold: PausedPartition | None
    """Where the partition waits, where it is damaged."""
    batch: Packed
    behind: Pieces


class BatchSink:
    """The batches of one task."""

    def __init__(self, hand: Hand) -> None:
        """What `hand` has written before is answered."""
        hand.turn()
        self._hand, self._writer, self._options = hand, hand.writer, hand.options
        self._answers: deque[Answer] = deque()
        self._told: set[TopicPartition] = set()
        """Remote partitions of whose failure was told."""

    def produce(self, route: Route, run: Run) -> None:
        """Pack the records of a run, and send them as their turn comes."""
        self._send(route, run, self._packed(route.limits, run, codec_of(self._options, route.limits) or NONE))

    def copy(self, route: Route, several: Pieces) -> None:
        """Let batches wait for their turn; with the next `poll` they go."""
        lane = self._hand.open(several.partition, route.remote(several.partition))
        for piece in several.batches:
            self._writer.add(lane.remote, piece)
        self._make_room()

    def refused(self) -> Iterator[Refused]:
        """Take back batches that the target does not take as they are; one of which nobody knows fails its lane."""
        for lane in [one for one in self._writer.lanes if one.may_be_opened and not one.flying]:
            hold = judge(self._writer, lane)
            if lane.failure is None:
                batch, *behind = self._writer.take_back(lane)
                yield Refused(hold, batch, Pieces(lane.source, behind))

    def takes(self, route: Route, run: Run) -> bool:
        """Whether a record that is too large as it is fits once it is compressed; it is written then.

        A broker that compresses anew may find it too large after all, so it goes in the topic's codec where that has
        one.
        """
        codec, limits = codec_of(self._options, route.limits), route.limits
        if codec is None or not (limits.keeps_batches or limits.codec):
            return False
        packing = self._packed(limits, run, codec if limits.keeps_batches else limits.codec)
        if packing.stop is None:
            self._send(route, run, packing)
        return packing.stop is None

    @property
    def is_waiting(self) -> bool:
        """Whether anything was written of which nothing is known yet."""
        is_open = any(lane.may_be_opened for lane in self._writer.lanes)
        return bool(self._answers) or is_open or not self._writer.is_idle

    @property
    def is_unanswered(self) -> bool:
        """Whether the target has yet to answer for anything that was written."""
        return not self._writer.is_idle

    def acknowledged(self) -> Iterator[Answer]:
        """Take what is known by now of what was written, in order."""
        self._tell_failures()
        while self._answers:
            yield self._answers.popleft()

    def poll(self) -> None:
        """Send what may go now, and take the answers that are there."""
        self._step(0)

    def drain(self) -> None:
        """Wait until everything that was written is answered, or given up."""
        while not self._writer.is_idle:
            self._step(_STEP_SECONDS)

    def finish(self) -> Iterator[Answer]:
        """The same, and take what is known of it."""
        self.drain()
        yield from self.acknowledged()

    def end(self, reports: Sequence[PartitionReport], *, is_failed: bool) -> None:
        """Let the hand end its task."""
        self._hand.end(reports, is_failed=is_failed)

    def give_up(self) -> None:
        """Let the hand give up."""
        self._hand.give_up()

    def _packed(self, limits: Limits, run: Run, codec: str) -> Packing:
        size = min(limits.batch_bytes, int(self._options.get("batch.size", limits.batch_bytes)))
        return pack(
            run,
            codec=codec,
            level=level_of(self._options) if codec == codec_of(self._options, limits) else None,
            max_bytes=limits.max_bytes,
            target_bytes=size,
        )

    def _send(self, route: Route, run: Run, packing: Packing) -> None:
        lane = self._hand.open(run.partition, route.remote(run.partition))
        for piece in packing.pieces:
            self._writer.add(lane.remote, piece)
        if packing.stop is not None:  # nothing of the partition may be written behind it
            self.drain()
            self._writer.end_lane(lane, Failure(FailureKind.TOO_LARGE, packing.stop.sentence))
        self.poll()
        self._make_room()

    def _make_room(self) -> None:
        while self._writer.is_full and not self._writer.is_idle:
            self._step(_STEP_SECONDS)

    def _step(self, seconds: float) -> None:
        self._answers.extend(done.answer() for done in self._writer.step(seconds))

    def _tell_failures(self) -> None:
        for lane in self._writer.lanes:
            failure = None if lane.may_be_opened else failure_of(lane)
            if failure is not None and not lane.flying and lane.remote not in self._told:
                self._told.add(lane.remote)
                self._answers.append(Answer(lane.source, Sent((), 0, 0, 0, -1), -1, -1, time.time(), failure))
