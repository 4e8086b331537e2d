"""Writes replicated records to the target, inside an executor: Arrow batches in, one report row per partition out.

A record here is one row of `COLUMNS`, a run is a stretch of rows of one source partition within one Arrow batch. No
callback per record: the first and the last record of a run are acknowledged with their target offsets, and
`last - first == count - 1` proves that the run lies there in one piece. What lies between them is
produced by a compiled loop where there is one (`compiled.py`). Only a flow with provenance headers, whose remote topics
others write to as well, has every record acknowledged.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from srm_spark.core.limits import Route, clamp, first_refused, is_too_large_only, will_fit
from srm_spark.core.model import PausedPartition, RefusedPolicy, TopicPartition
from srm_spark.core.provenance import Stamp
from srm_spark.core.reports import PartitionReport, Sent, report_batch
from srm_spark.core.rows import ArrowRows, Rows, Run
from srm_spark.errors import TargetWriteFailed
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.acks import Acks, Callback, EachAck
from srm_spark.kafka.clients import LastError
from srm_spark.kafka.compiled import RowsInLoop, is_used
from srm_spark.kafka.exact import produce_call
from srm_spark.kafka.failures import kind_of, named, remedy
from srm_spark.kafka.producer_pool import ProducerPool
from srm_spark.kafka.producers import codec_of
from srm_spark.kafka.transactions import Recording, SlotTransaction

_FULL_QUEUE_SECONDS = 0.05
_WORTH_A_LOOP = 16
"""Records of a run from which on the compiled loop is faster than it takes to start it."""

_PIECE = 1_000_000
"""Bytes of a transaction after which an acknowledgement is asked for: they tell how far one came that is aborted."""

_UNREADABLE = Failure(
    FailureKind.BROKEN_HEADERS,
    "librdkafka cannot read its headers: they are broken, or more than 100,000; delete it on the source "
    "(kafka-delete-records) or let retention pass it",
)


@dataclass(frozen=True)
class WriteTask:
    """What every task of one micro-batch does; shipped to the executors, so it holds plain values only."""

    options: Mapping[str, str | int | float | bool] = field(repr=False)
    """librdkafka options of the producer."""
    routes: Mapping[str, Route]
    """Source topic → where it goes."""
    held: frozenset[TopicPartition]
    """Partitions that stand still: their rows are passed over."""
    max_bytes: int
    """A task ends early, at the end of an Arrow batch, once it has written so much."""
    timeout: float
    """Seconds without any acknowledgement after which the task gives up."""
    stamp: Stamp | None = None
    """What copies get as a provenance header; None for records as they are."""
    target_ends: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """Where the remote partitions ended before, by source partition: copies that do not follow are looked into."""
    slack: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """See `PartitionReport.slack`."""
    recording: Recording | None = None
    """In the exactly-once mode: how progress is recorded in the records' transaction."""
    in_loop: bool = True
    """Whether a compiled loop produces the records, where it can."""

    def __call__(self, batches: Iterator[pa.RecordBatch], slot: int = 0) -> Iterator[pa.RecordBatch]:
        """Write all rows; yields one batch of report rows. `slot` is the number of the task within its batch."""
        yield self.write_all(ArrowRows(batches), slot)
        settle()

    def write_all(self, rows: Rows, slot: int) -> pa.RecordBatch:
        """Write `rows` until they end, or `max_bytes` are written; the report rows."""
        writing = Writing(self, slot)
        piece = self.max_bytes if self.recording is None else _PIECE
        with _no_collection(), closing(iter(rows)) as runs:
            for whole in runs:
                run = whole
                while run.count:
                    part = run.upto(min(piece, self.max_bytes - writing.bytes))
                    writing.write(part)
                    run = run.slice(part.count, run.count)
                    left = {*rows.open, run.partition} if run.count else rows.open
                    if left and writing.bytes >= self.max_bytes:
                        return report_batch(writing.finish(left))
            return report_batch(writing.finish())


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without Python's search for cycles: thousands of new records at a time start it over and over, for nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@cache
def settle() -> None:
    """Take what a worker process holds after its first task out of every later search for cycles.

    pyspark's worker collects all garbage behind each task, before it takes the next one: a tenth of a second among the
    objects of numpy and pyarrow, twice what a task of a few records takes otherwise.
    """
    gc.freeze()


class Writing:
    """The course of one task: `write` what comes, then `finish`; or take what is `acknowledged` now and then."""

    def __init__(self, task: WriteTask, slot: int) -> None:
        self.bytes = 0
        self._task = task
        self._reports: dict[TopicPartition, PartitionReport] = {}
        self._sent: deque[tuple[PartitionReport, Sent, Acks]] = deque()
        self._last_error = LastError()
        self._in_loop = is_used(task.in_loop)
        recording = task.recording
        options = dict(task.options)
        self._transaction = None if recording is None else SlotTransaction(recording, slot, options, self._last_error)
        self._pool = ProducerPool(options, self._last_error, self._transaction, task.timeout)

    def write(self, run: Run) -> None:
        """Produce the rows of one run, up to the first one that the target would refuse."""
        partition = run.partition
        if partition in self._task.held:
            return
        report = self._reports.get(partition)
        if report is None:
            end, slack = self._task.target_ends.get(partition), self._task.slack.get(partition, 0)
            report = self._reports[partition] = PartitionReport(partition, target_end=end, slack=slack)
        if report.hold is not None:
            return
        next_offset = int(run.offsets[-1]) + 1
        if (index := run.first_unreadable) is not None:
            unreadable, run = int(run.offsets[index]), run.head(index)
        if self._task.stamp is not None:
            run = run.stamp(self._task.stamp)
        route = self._task.routes[partition.topic]
        now_ms = int(time.time() * 1000)
        if route.policy is RefusedPolicy.FIX:
            run = clamp(run, route.limits, now_ms)
        while (found := first_refused(run, route.limits, now_ms)) is not None:
            at, reason = found
            if at:
                self._produce(route, run.head(at), report)
            refused, run = run.slice(at, at + 1), run.slice(at + 1, run.count)
            if not self._try(route, refused, report, now_ms):
                report.hold = PausedPartition(int(refused.offsets[0]), reason)
                report.is_parking = route.policy is RefusedPolicy.PARK
                break
        if run.count and report.hold is None:
            self._produce(route, run, report)
        if index is not None and report.hold is None:
            report.hold = PausedPartition(
                unreadable, _UNREADABLE
            )  # not to be parked: without its headers it is another record
        report.next_offset = report.hold.offset if report.hold else next_offset

    def finish(self, left: Set[TopicPartition] = frozenset()) -> list[PartitionReport]:
        """Wait for the acknowledgements and turn them into reports; of the partitions `left` more may follow."""
        self._pool.drain()
        is_failed = any(acks.error is not None for _, _, acks in self._sent)
        for report, sent, acks in self._sent:
            for part, first, last in acks.ends(sent):
                report.add(part, first, last, acks.at, self._reason(report, acks))
        reports = list(self._reports.values())
        for report in reports:
            report.is_cut, report.is_complete = bool(left), report.partition not in left
        if self._transaction is not None:
            self._transaction.end(reports)
        else:
            self._pool.discard_broken(is_failed)
        return reports

    @property
    def reports(self) -> Mapping[TopicPartition, PartitionReport]:
        """What was taken in, acknowledged or not."""
        return self._reports

    @property
    def is_waiting(self) -> bool:
        """Whether anything was written of which nothing is known yet."""
        return bool(self._sent)

    @property
    def is_unanswered(self) -> bool:
        """Whether the target has yet to answer for anything that was written."""
        return any(len(producer) > 0 for producer in self._pool)

    def acknowledged(self) -> Iterator[tuple[TopicPartition, Sent, int, int, float, Failure | None]]:
        """Take what is known by now of what was written, in order: see `PartitionReport.add`."""
        while self._sent and self._sent[0][2].is_over:
            report, sent, acks = self._sent.popleft()
            self._pool.has_moved()
            for part, first, last in acks.ends(sent):
                yield report.partition, part, first, last, acks.at, self._reason(report, acks)

    def poll(self) -> None:
        """Take acknowledgements; gives up where there was none for too long."""
        for producer in self._pool:
            self._pool.poll(producer, 0)
        self._pool.watch(not self._sent)

    def drain(self) -> None:
        """Wait until everything that was written is acknowledged, or given up."""
        self._pool.drain()

    def discard_broken(self, is_failed: bool) -> None:
        """Forget producers that still wait for something, or all of them after a failure."""
        self._pool.discard_broken(is_failed)

    def _produce(self, route: Route, run: Run, report: PartitionReport, *, is_trial: bool = False) -> Acks:
        producer = self._pool.of(route.limits, is_trial=is_trial)
        acks = Acks() if self._task.stamp is None else EachAck()
        sent = Sent.of(run)
        self._sent.append((report, sent, acks))
        if self._in_loop and run.count >= _WORTH_A_LOOP and run.stamped is None:
            is_produced = self._by_loop(producer, route.remote_topic, run, acks)
        else:
            is_produced = self._one_by_one(producer, route.remote_topic, run, acks, acks.callbacks(run.count))
        if is_produced:
            self.bytes += sent.bytes
            self._pool.poll(producer, 0)
        return acks

    def _try(self, route: Route, run: Run, report: PartitionReport, now_ms: int) -> bool:
        """Write a record that is too large as it is, where the producer compresses; whether the target takes it.

        Only the broker knows. It is asked behind everything that was written, and with nothing else in the same batch;
        in a transaction, which would fail, only where the answer is certain.
        """
        limits, options = route.limits, self._task.options
        if self._transaction is not None:
            codec = codec_of(options)
            if codec is None or not is_too_large_only(run, limits, now_ms) or not will_fit(run, limits, codec):
                return False
            self._produce(route, run, report)
            return True
        if codec_of(options, limits) is None or not is_too_large_only(run, limits, now_ms):
            return False
        self.drain()
        acks = self._produce(route, run, report, is_trial=True)
        self.drain()
        if acks.error is None:
            return True
        if acks.error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
            raise TargetWriteFailed(f"{report.partition} at offset {run.offsets[0]}: {self._reason(report, acks)}")
        self._sent.pop()
        return False

    def _by_loop(self, producer: Producer, topic: str, run: Run, acks: Acks) -> bool:
        """All but the two ends, which are acknowledged, by the compiled loop; False when one is refused for good."""
        last = run.count - 1
        if not self._one_by_one(producer, topic, run.head(1), acks, (acks.on_first,)):
            return False
        at = 1
        with RowsInLoop(producer, topic, run) as rows:
            while at < last:
                at, error = rows.produce(at, last)
                if error is not None and error.code() == KafkaError._QUEUE_FULL:
                    self._wait(producer)
                elif error is not None:
                    acks.error = error
                    return False
        return self._one_by_one(producer, topic, run.slice(last, run.count), acks, (acks.on_last,))

    def _one_by_one(
        self, producer: Producer, topic: str, run: Run, acks: Acks, callbacks: Iterable[Callback | None]
    ) -> bool:
        """Each record by a call of its own; False when one is refused for good."""
        number, columns = run.partition.partition, run.columns()
        produce = produce_call(producer, columns[-1] if run.has_headers else ())
        # This loop is what a small record costs; nothing belongs in it that can be done per run.
        for key, value, timestamp, headers, callback in zip(*columns, callbacks, strict=False):
            try:
                produce(topic, value, key, number, callback, None, timestamp, headers)
            except BufferError:
                late = partial(produce, topic, value, key, number, callback, None, timestamp, headers)
                if not self._produce_late(producer, acks, late):
                    return False
            except KafkaException as error:
                acks.error = error.args[0]
                return False
        return True

    def _produce_late(self, producer: Producer, acks: Acks, produce: Callable[[], None]) -> bool:
        """Produce a record for which the queue had no room; False when that is refused for good."""
        while True:
            self._wait(producer)
            try:
                produce()
            except BufferError:
                continue
            except KafkaException as error:
                acks.error = error.args[0]
                return False
            return True

    def _wait(self, producer: Producer) -> None:
        before = len(producer)
        self._pool.poll(producer, _FULL_QUEUE_SECONDS)
        self._pool.watch(before != len(producer))

    def _reason(self, report: PartitionReport, acks: Acks) -> Failure | None:
        if acks.error is None:
            return None
        seen = self._last_error.newest
        # Without a right to write anywhere the producer gets no id, and its records only say that they were given up.
        no_id = KafkaError.CLUSTER_AUTHORIZATION_FAILED
        cause = seen if seen is not None and seen.code() == no_id else acks.error
        topic = self._task.routes[report.partition.topic].remote_topic
        hint = remedy(cause, f"WRITE on topic {topic}", f"last seen: {self._last_error}")
        return Failure(kind_of(cause), f"{named(cause)}; {hint}")
