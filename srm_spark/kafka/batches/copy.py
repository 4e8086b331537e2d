"""Copies the ranges of one task: whole batches as far as they go, records one by one where they do not.

A partition changes its way where its log does; its order stays, for one way begins behind what the other one has
finished.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from typing import Any

import pyarrow as pa

from srm_spark.core.limits import Route
from srm_spark.core.model import OffsetRange, Ranges, TopicPartition
from srm_spark.core.reports import PartitionReport, report_batch
from srm_spark.errors import CodecError, ProtocolUnavailable
from srm_spark.kafka.batches.bounds import fetch_bounds
from srm_spark.kafka.batches.brokers import Brokers, Connection
from srm_spark.kafka.batches.hand import Hand
from srm_spark.kafka.batches.reader import BatchReader, PartitionReading
from srm_spark.kafka.batches.refusals import judge
from srm_spark.kafka.batches.sink import BatchSink
from srm_spark.kafka.batches.sorting import form_of
from srm_spark.kafka.batches.source_pool import keep_source, take_source
from srm_spark.kafka.batches.ways import best
from srm_spark.kafka.batches.writer import Acknowledged, Lane
from srm_spark.kafka.fetch import Fetch
from srm_spark.kafka.loop_cache import is_filled
from srm_spark.kafka.ranges import RangeReader
from srm_spark.kafka.writer import WriteTask, freeze_garbage

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.05
_TARGET_AHEAD = 64
"""Batches of a partition that wait for their turn at most; what is behind them stays with the reader."""
Records = Callable[[Ranges, Mapping[TopicPartition, PartitionReport], int], list[PartitionReport]]
"""Copies ranges record by record, behind what the reports say of the same partitions, up to so many bytes."""


@dataclass(frozen=True)
class FetchTask:
    """What every task of one pass does: read its share of the ranges and write it."""

    fetch: Fetch
    write: WriteTask
    shares: Sequence[Mapping[TopicPartition, OffsetRange]]
    """By the number of the task."""

    def __call__(self, batches: Iterator[pa.RecordBatch], slot: int = 0) -> Iterator[pa.RecordBatch]:
        """Yields one batch of report rows; what comes from Spark says nothing. Raises SourceUnavailable."""
        for _ in batches:
            pass
        yield copy_ranges(self.fetch, self.write, self.shares[slot], slot)
        freeze_garbage()


def prepared(batches: Iterator[pa.RecordBatch], slot: int = 0) -> Iterator[pa.RecordBatch]:
    """A task that does nothing but import what a `FetchTask` needs, which takes a second.

    Not the loops, which whole batches do not need; where they were never compiled here, that takes ten.
    """
    del slot
    for _ in batches:
        pass
    if not is_filled():
        best()
    yield from ()


def copy_ranges(
    fetch: Fetch, write: WriteTask, ranges: Mapping[TopicPartition, OffsetRange], slot: int
) -> pa.RecordBatch:
    """Read `ranges` and write them: report rows. Raises SourceUnavailable, and what `WriteTask.hand` raises."""
    if not (fetch.is_whole and write.takes_batches):
        return write.write_all(RangeReader(fetch, ranges), slot)
    whole = Whole(
        source_options=fetch.options,
        target_options=write.options,
        source=fetch.cluster,
        topic_ids=fetch.topic_ids,
        committed=fetch.options["isolation.level"] == "read_committed",
        source_seconds=fetch.timeout,
    )
    with write.hand(slot) as hand:

        def records(
            part: Mapping[TopicPartition, OffsetRange],
            reports: Mapping[TopicPartition, PartitionReport],
            most_bytes: int,
        ) -> list[PartitionReport]:
            """Behind what was copied whole."""
            behind = {p: one.intervals[-1].downstream_end for p in part if (one := reports[p]).intervals}
            task = replace(
                write,
                max_bytes=most_bytes,
                target_ends={**write.target_ends, **behind},
                slack={p: reports[p].slack for p in part},
            )
            return task.copy_all(RangeReader(fetch, part), BatchSink(hand))

        reports = copy_share(
            whole,
            hand,
            ranges={p: offsets for p, offsets in ranges.items() if p not in write.held},
            routes=write.routes,
            ends=write.target_ends,
            slack=write.slack,
            max_bytes=write.max_bytes,
            records=records,
        )
        hand.end(reports)
    return report_batch(reports)


@dataclass(frozen=True)
class Whole:
    """How batches are copied whole; shipped to the executors, so it holds plain values only."""

    source_options: Mapping[str, Any]
    target_options: Mapping[str, Any]
    source: str
    """Alias of the source."""
    topic_ids: Mapping[str, str]
    committed: bool
    """Whether transactions that were aborted are left out."""
    source_seconds: float
    """Without a batch after which the rest is left to the other way."""

    @property
    def rack(self) -> str:
        """Where this reads from, if it can (KIP-392)."""
        return str(self.source_options.get("client.rack", ""))


def copy_share(
    whole: Whole,
    hand: Hand,
    *,
    ranges: Ranges,
    routes: Mapping[str, Route],
    ends: Mapping[TopicPartition, int | None],
    slack: Mapping[TopicPartition, int | None],
    max_bytes: int,
    records: Records,
) -> list[PartitionReport]:
    """Copy `ranges`, at most about `max_bytes`: a report for each partition. Raises what `records` raises."""
    reports: dict[TopicPartition, PartitionReport] = {
        p: PartitionReport(
            p,
            target_end=ends.get(p),
            slack=slack.get(p, 0),
            next_offset=r.start,
            is_complete=False,
        )
        for p, r in ranges.items()
    }
    left = {p: r for p, r in ranges.items() if r.start < r.end}
    for partition in ranges.keys() - left.keys():
        reports[partition].is_complete = True
    while left:
        todo = _whole(whole, hand, ranges=left, routes=routes, reports=reports, max_bytes=max_bytes)
        written = sum(report.bytes for report in reports.values())
        if todo and written < max_bytes:
            several = records(todo, reports, max_bytes - written)
            for later in several:
                _join(reports[later.partition], later, ranges[later.partition].end)
            if not any(later.is_cut for later in several):
                _pass(reports, todo, ranges)
        left = {p: OffsetRange(reports[p].next_offset, ranges[p].end) for p in todo if _goes_on(reports[p], todo[p])}
        if sum(report.bytes for report in reports.values()) >= max_bytes:
            break
    is_cut = any(not report.is_complete for report in reports.values())
    for report in reports.values():
        report.is_cut = is_cut
    return list(reports.values())


def _goes_on(report: PartitionReport, done: OffsetRange) -> bool:
    is_fine = report.failure is None and report.hold is None and not report.is_complete
    return is_fine and report.next_offset >= done.end


def _pass(reports: Mapping[TopicPartition, PartitionReport], done: Ranges, ranges: Ranges) -> None:
    """Ranges that were read to their end are done to their end, though offsets may be missing there."""
    for partition, (_, end) in done.items():
        report = reports[partition]
        if report.failure is None and report.hold is None:
            report.next_offset = max(report.next_offset, end)
            report.is_complete = report.next_offset >= ranges[partition].end


def _join(report: PartitionReport, later: PartitionReport, end: int) -> None:
    report.join(later)
    if later.is_complete and later.failure is None and later.hold is None:
        report.is_complete = report.next_offset >= end
    report.slack = later.slack


def _whole(
    whole: Whole,
    hand: Hand,
    *,
    ranges: Ranges,
    routes: Mapping[str, Route],
    reports: Mapping[TopicPartition, PartitionReport],
    max_bytes: int,
) -> dict[TopicPartition, OffsetRange]:
    """Copy what goes whole: the offsets of each partition that do not, and come next."""
    source = take_source(whole.source_options, whole.source)
    if source is None:
        return dict(ranges)
    copying = _Copying(whole, source, hand, ranges=ranges, routes=routes, reports=reports, max_bytes=max_bytes)
    try:
        stops = copying.run()
    except BaseException:
        source.close()
        raise
    if copying.is_clean:
        keep_source(whole.source_options, source)
    else:
        source.close()
    return stops


class _Copying:
    """The course of one phase of whole batches."""

    def __init__(
        self,
        whole: Whole,
        source: Brokers,
        hand: Hand,
        *,
        ranges: Ranges,
        routes: Mapping[str, Route],
        reports: Mapping[TopicPartition, PartitionReport],
        max_bytes: int,
    ) -> None:
        self._whole, self._hand, self._writer, self._reports = whole, hand, hand.writer, reports
        self._routes = {p: routes[p.topic].remote(p) for p in ranges}
        forms = {p: form_of(routes[p.topic], whole.target_options) for p in ranges}
        self._reader = BatchReader(
            source,
            ranges,
            forms,
            {p.topic: whole.topic_ids[p.topic] for p in ranges if p.topic in whole.topic_ids},
            committed=whole.committed,
            rack=whole.rack,
            seconds=whole.source_seconds,
            bounds=fetch_bounds(whole.source_options),
        )
        self._left_bytes = max_bytes - sum(report.bytes for report in reports.values())
        self.is_clean = True
        """Whether the connections to the source may be used again."""

    def run(self) -> dict[TopicPartition, OffsetRange]:
        """Copy until nothing is left that goes whole."""
        self._hand.turn()
        for partition, remote in self._routes.items():
            self._hand.open(partition, remote)
        while not (self._is_read and self._writer.is_idle):
            self._ask()
            self._hand_over()
            self._send()
            self._receive()
        stops = self._stops()
        self._reader.finish()
        return stops

    @property
    def _is_read(self) -> bool:
        is_taken = self._left_bytes <= 0 or not any(self._may_hand_over(r) for r in self._reader.readings.values())
        return is_taken and (self._reader.is_over or self._left_bytes <= 0)

    def _ask(self) -> None:
        if self._left_bytes <= self._reader.ahead:
            return
        try:
            self._reader.ask(max(self._left_bytes, 1) - self._reader.ahead)
        except (ProtocolUnavailable, OSError) as error:
            log.info("%s: the rest of this pass is read record by record: %s", self._whole.source, error)
            self._reader.give_up()
            self.is_clean = False

    def _may_hand_over(self, reading: PartitionReading) -> bool:
        lane = self._writer.open(reading.partition, self._routes[reading.partition])
        return bool(reading.pieces) and not lane.is_over

    def _has_room(self, lane: Lane) -> bool:
        return self._left_bytes > 0 and len(lane.waiting) < _TARGET_AHEAD and not self._writer.is_full

    def _hand_over(self) -> None:
        """Pieces from the reader to the writer, as far as the task may go."""
        for reading in self._reader.readings.values():
            remote = self._routes[reading.partition]
            lane = self._writer.open(reading.partition, remote)
            if lane.is_over:
                self._let_go(reading)
            while self._has_room(lane) and self._may_hand_over(reading):
                piece = reading.pieces.popleft()
                self._reader.ahead -= piece.batch.size
                self._left_bytes -= piece.batch.size
                self._writer.add(remote, piece)

    def _let_go(self, reading: PartitionReading) -> None:
        """Read no more of what has ended: nobody would take it, and what is full of it never comes to its end."""
        self._reader.ahead -= sum(piece.batch.size for piece in reading.pieces)
        reading.pieces.clear()
        reading.end = min(reading.end, reading.next)

    def _send(self) -> None:
        # While the target is not there, what waits goes on waiting: `check_silence` ends it.
        with suppress(ProtocolUnavailable):
            self._writer.send()

    def _receive(self) -> None:
        fetching, producing = set(self._reader.waiting), set(self._writer.waiting)
        both: list[Any] = [*fetching, *producing]
        ready: list[Any] = [one for one in both if one.has_more] or wait(both, _LOOK_SECONDS)
        for connection in ready:
            if connection in fetching:
                self._fetched(connection)
            else:
                self._produced(connection)
        self._reader.check_silence()
        self._writer.check_silence()

    def _fetched(self, connection: Connection) -> None:
        try:
            self._reader.take(connection)
        except (OSError, CodecError):
            connection.close()
            self._reader.lost(connection)

    def _produced(self, connection: Connection) -> None:
        for done in self._writer.answered(connection):
            self._acknowledged(done)

    def _acknowledged(self, done: Acknowledged) -> None:
        report = self._reports[done.source]
        done.answer().into(report)
        if report.failure is None:
            report.next_offset = done.piece.stretches[-1].end

    def _stops(self) -> dict[TopicPartition, OffsetRange]:
        stops = {}
        for partition, reading in self._reader.readings.items():
            report, lane = self._reports[partition], self._writer.open(partition, self._routes[partition])
            if lane.refused is not None and lane.failure is None:
                report.hold = judge(self._writer, lane)
            if lane.failure is not None and report.failure is None:
                report.failure = lane.failure
            if report.failure is not None:
                continue
            if lane.refused is not None:
                if report.hold is None:
                    batch = lane.refused.piece.batch
                    stops[partition] = OffsetRange(batch.base_offset, batch.end)
            elif not reading.pieces and reading.hold is not None:
                report.hold = reading.hold
            elif not reading.pieces:
                report.next_offset = reading.stop.start if reading.stop is not None else reading.next
                if reading.stop is not None:
                    stops[partition] = reading.stop
                report.is_complete = reading.next >= reading.end and reading.stop is None
            if report.hold is not None:
                report.next_offset, report.is_complete = report.hold.offset, True
        return stops
