"""Transactions of tasks on brokers that lose requests and answers: everything of one is committed, or nothing is."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

import pytest

from srm_spark.core.codec import decode_progress_detail, partition_for_key
from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import UNKNOWN, OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.record_batch import Author, batches_in
from srm_spark.core.reports import PartitionReport
from srm_spark.core.rows import Run
from srm_spark.core.tail import TailRecord
from srm_spark.errors import LeaseLost, QueryFailed, SourceChanged, TargetUnavailable
from srm_spark.failure import FailureKind
from srm_spark.kafka.batches import writer as writing
from srm_spark.kafka.batches.hand import Hand
from srm_spark.kafka.batches.sink import BatchSink
from srm_spark.kafka.batches.transaction import Transaction, process_id
from srm_spark.kafka.batches.writer import BatchWriter
from srm_spark.kafka.fencing import FencingToken, TokenNote
from srm_spark.kafka.recording import Recording
from srm_spark.kafka.writer import WriteTask
from tests.batch_bytes import NOW, Raw, read
from tests.unit.memory_brokers import (
    BUSY,
    DENIED,
    FENCED,
    INVALID_STATE,
    NOT_COORDINATOR,
    TOO_LARGE,
    UNKNOWN_TOPIC,
    MemoryConnection,
    TransactionBrokers,
    piece,
    produce_answer_bytes,
)

OPTIONS: dict[str, str | int | float | bool] = {"bootstrap.servers": "memory", "message.timeout.ms": 45_000}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
R0, R1 = TopicPartition("A.t", 0), TopicPartition("A.t", 1)
REMOTES = {T0: R0, T1: R1}
PROGRESS = "mm2-offsets.A.internal"
ROUTE = Route("A.t", Limits())
_names = itertools.count()


@pytest.fixture(autouse=True, params=["asked before", "with the first batch"])
def taken_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """When partitions are taken into a transaction: as the target's version of transactions wants it."""
    monkeypatch.setattr(TransactionBrokers, "all_take_in", request.param == "with the first batch")
    return str(request.param)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails in passing is tried again without a pause."""
    monkeypatch.setattr(writing, "RETRY_SECONDS", 0.0)


asked_before = pytest.mark.parametrize("taken_in", ["asked before"], indirect=True)
with_batches = pytest.mark.parametrize("taken_in", ["with the first batch"], indirect=True)


def recording_of() -> Recording:
    """Of a flow that no other test has."""
    fencing = FencingToken(f"srm-A->B-{next(_names)}", PROGRESS, TokenNote("token", 2), OPTIONS, 0.5)
    ranges = {p: OffsetRange(0, 100) for p in REMOTES}
    return Recording(fencing, "C", "A", PROGRESS, ranges, dict.fromkeys(REMOTES, 0), dict.fromkeys(REMOTES, UNKNOWN))


class Task:
    """One task of a pass, in the slot 1."""

    def __init__(self, brokers: TransactionBrokers, recording: Recording, *, is_newest: bool = True) -> None:
        def look_at_token(_: FencingToken, slot: int) -> None:
            brokers.requests.append("token")
            if not is_newest:
                raise LeaseLost(f"slot {slot}: a newer generation of the flow has begun")

        writer = BatchWriter(brokers)  # type: ignore[arg-type] # all of it that a writer uses
        self.transaction = Transaction(recording, 1, OPTIONS, brokers, look_at_token)  # type: ignore[arg-type] # likewise
        self.hand = Hand(writer, OPTIONS, 30.0, self.transaction)
        self.reports = {p: PartitionReport(p, target_end=None) for p in REMOTES}

    def copy(self, partition: TopicPartition, *marks: int) -> None:
        """Whole batches of three records."""
        self.hand.turn()
        lane = self.hand.open(partition, REMOTES[partition])
        for mark in marks:
            self.hand.writer.add(lane.remote, piece(mark))
        for _ in range(1000):
            if self.hand.writer.is_idle:
                break
            for done in self.hand.writer.step(0):
                done.answer().into(self.reports[partition])
        report = self.reports[partition]
        report.failure = report.failure or lane.failure
        report.next_offset = report.intervals[-1].upstream_end if report.intervals else 0

    def write(self, partition: TopicPartition, *values: bytes) -> None:
        """Records that are packed here."""
        sink = BatchSink(self.hand)
        records = [TailRecord(50 + at, NOW, b"k", value) for at, value in enumerate(values)]
        sink.produce(ROUTE, Run.of(partition, records))
        for answer in sink.finish():
            answer.into(self.reports[partition])

    def end(self) -> list[PartitionReport]:
        reports = [report for report in self.reports.values() if report.intervals or report.failure]
        self.hand.end(reports)
        return reports


def committed(brokers: TransactionBrokers, partition: TopicPartition) -> list[Raw]:
    """What readers of committed records see."""
    return [raw for one in brokers.committed if one.partition == partition for _, raw in read(one.batch)]


def in_order(requests: Sequence[str], *wanted: str) -> bool:
    """Whether some come behind each other, whatever is between them."""
    left = iter(requests)
    return all(one in left for one in wanted)


@asked_before
def test_records_and_progress_are_committed_together_each_partition_taken_in_before_its_first_batch() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    task = Task(brokers, recording)
    assert brokers.requests == [], "nothing is begun before the first batch"
    task.copy(T0, 1, 2)
    assert brokers.requests == [
        *("FindCoordinator", "InitProducerId", "token"),
        *("AddPartitionsToTxn", f"batch {R0}", f"batch {R0}"),
    ]
    task.copy(T1, 3)
    assert (brokers.committed, brokers.is_open) == ([], True)
    for report in task.end():
        assert (report.slot, report.writer, report.failure) == (1, process_id(), None)
        assert report.next_sequence is None, "numbers stay with the id"
    assert [len(committed(brokers, remote)) for remote in (R0, R1)] == [6, 3]
    assert (brokers.aborted, brokers.is_open) == ([], False)


@with_batches
def test_a_partition_is_taken_in_with_its_first_batch_and_the_next_transaction_has_another_epoch() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    for mark in (1, 2, 3):
        task = Task(brokers, recording)
        task.copy(T0, mark)
        assert all(report.failure is None for report in task.end())
        recording = replace(recording, writers={1: process_id()})
    found = [one for one in brokers.requests if PROGRESS not in one]
    assert found == [
        *("FindCoordinator", "InitProducerId", "token"),
        *(f"batch {R0}", "EndTxn", f"batch {R0}", "EndTxn", f"batch {R0}", "EndTxn"),
    ]
    assert (brokers.logs[R0].epoch, brokers.logs[R0].next_sequence) == (2, 3)
    assert [raw.timestamp - NOW for raw in committed(brokers, R0)] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


@with_batches
def test_markers_of_the_transaction_before_are_waited_for() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    brokers.codes = {R0: BUSY}
    task = Task(brokers, recording)
    lane = task.hand.open(T0, R0)
    task.hand.writer.add(R0, piece(1))
    task.hand.writer.add(R0, piece(2))
    for _ in range(5):
        assert task.hand.writer.step(0) == []
    assert lane.failure is None
    brokers.codes = {}
    while not task.hand.writer.is_idle:
        for done in task.hand.writer.step(0):
            done.answer().into(task.reports[T0])
    assert all(report.failure is None for report in task.end())
    assert [raw.timestamp - NOW for raw in committed(brokers, R0)] == [1, 1, 1, 2, 2, 2]


@with_batches
@pytest.mark.parametrize(("code", "words"), [(INVALID_STATE, "is over"), (53, "allow WRITE"), (120, "taken into")])
def test_a_transaction_that_lets_a_partition_not_in_comes_to_nothing(code: int, words: str) -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    task = Task(brokers, recording)
    task.copy(T0, 1)
    brokers.codes = {R1: code}
    task.copy(T1, 2)
    good, bad = task.end()
    assert good.failure is not None
    assert bad.failure is not None
    assert good.failure.kind is FailureKind.ROLLED_BACK
    assert words in bad.failure.sentence
    assert (brokers.committed, len(brokers.aborted), brokers.is_open) == ([], 1, False)
    assert brokers.requests[-1] == "EndTxn"
    brokers.codes = {}
    after = Task(brokers, replace(recording, writers={1: process_id()}))
    after.copy(T0, 3)
    assert all(report.failure is None for report in after.end())
    assert [raw.timestamp - NOW for raw in committed(brokers, R0)] == [3, 3, 3]


def test_progress_lies_where_connect_would_put_it() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    brokers.partitions = 7
    task = Task(brokers, recording)
    task.copy(T0, 1)
    task.copy(T1, 2)
    task.end()
    found: dict[bytes | None, Raw] = {}
    for number in range(7):
        for raw in committed(brokers, TopicPartition(PROGRESS, number)):
            assert partition_for_key(raw.key or b"", 7) == number
            found[raw.key] = raw
    assert {key: raw.value for key, raw in found.items()} == {
        b'["C",{"cluster":"A","partition":%d,"topic":"t"}]' % number: b'{"offset":99}' for number in (0, 1)
    }
    for raw in found.values():
        ((name, header),) = raw.headers
        detail = decode_progress_detail(header)
        assert name == b"srm.progress"
        assert detail is not None
        assert detail.intervals == ((0, 0, 3),)


@pytest.mark.parametrize("fate", ["lost", "answer lost", NOT_COORDINATOR, BUSY, 14, 15])
@pytest.mark.parametrize("kind", ["InitProducerId", "AddPartitionsToTxn", "EndTxn"])
def test_what_passes_is_asked_again(kind: str, fate: str | int) -> None:
    brokers, recording = TransactionBrokers(asked=[(kind, fate)] * 3), recording_of()
    if kind == "AddPartitionsToTxn" and brokers.takes_in:
        return  # nobody asks
    task = Task(brokers, recording)
    task.copy(T0, 1, 2)
    (report,) = task.end()
    assert report.failure is None
    assert len(committed(brokers, R0)) == 6
    assert brokers.requests.count(kind) >= 4


@pytest.mark.parametrize("fate", ["lost", "answer lost", "not leader", "appended, timed out", "moved"])
def test_batches_that_come_twice_are_committed_once(fate: str) -> None:
    brokers, recording = TransactionBrokers(["fine", fate, fate]), recording_of()
    task = Task(brokers, recording)
    task.copy(T0, 1, 2, 3)
    (report,) = task.end()
    assert report.failure is None
    assert [raw.timestamp - NOW for raw in committed(brokers, R0)] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_an_answer_about_other_partitions_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is let go, and the batch is sent again."""
    brokers, recording = TransactionBrokers(), recording_of()
    receive, odd = MemoryConnection.receive, [TopicPartition("A.t", 7)]

    def answer(self: MemoryConnection) -> memoryview:
        real = receive(self)
        return produce_answer_bytes([(odd.pop(), 0, 0)]) if odd else real

    monkeypatch.setattr(MemoryConnection, "receive", answer)
    task = Task(brokers, recording)
    task.copy(T0, 1, 2)
    (report,) = task.end()
    assert (odd, report.failure) == ([], None)
    assert [raw.timestamp - NOW for raw in committed(brokers, R0)] == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("when", ["nothing was sent", "nothing was answered"])
def test_what_is_not_answered_for_is_not_committed(when: str) -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    task = Task(brokers, recording)
    task.copy(T0, 1)
    task.hand.writer.add(R0, piece(2))
    if when == "nothing was answered":
        task.hand.writer.send()
    (report,) = task.end()
    assert report.failure is not None
    assert (brokers.committed, brokers.is_open) == ([], False)


def test_a_coordinator_that_never_answers_lets_nobody_begin() -> None:
    brokers = TransactionBrokers(asked=[("InitProducerId", NOT_COORDINATOR)] * 10_000)
    with pytest.raises(TargetUnavailable, match="cannot begin to write in transactions"):
        Task(brokers, recording_of()).copy(T0, 1)


def test_who_has_an_older_token_gives_up_before_it_writes_anything() -> None:
    brokers = TransactionBrokers()
    with pytest.raises(LeaseLost, match="newer generation"):
        Task(brokers, recording_of(), is_newest=False).copy(T0, 1)
    assert in_order(brokers.requests, "InitProducerId", "token"), "the token is looked at afterwards"
    assert "AddPartitionsToTxn" not in brokers.requests


@pytest.mark.parametrize("when", ["before the first batch", "before a batch", "before the progress"])
def test_who_is_overtaken_takes_back_everything_and_leaves_the_newer_one_alone(when: str) -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    task = Task(brokers, recording)
    if when == "before the first batch":
        task.hand.writer.begin(task.transaction, 30.0)
        task.hand.open(T0, R0)
        task.hand.writer.add(R0, piece(0))
        _overtake(brokers)
        task.copy(T0, 1)
    else:
        task.copy(T0, 1)
        _overtake(brokers)
        if when == "before a batch":
            task.copy(T0, 2)
    newer = brokers.author
    (report,) = task.end()
    assert report.failure is not None
    assert (report.intervals, report.records, report.slot) == ([], 0, None)
    assert (brokers.committed, brokers.author) == ([], newer)


@pytest.mark.parametrize("why", ["a batch is refused", "the source is gone"])
def test_who_is_overtaken_does_not_abort_what_the_newer_one_has_open(why: str) -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    old, newer = Task(brokers, recording), Task(brokers, recording)
    old.copy(T0, 1)
    newer.copy(T0, 7)
    if why == "a batch is refused":
        old.copy(T0, 2)
        (report,) = old.end()
        assert report.failure is not None
        assert report.failure.kind is FailureKind.OVERTAKEN
    else:
        with pytest.raises(RuntimeError), old.hand:
            raise RuntimeError(why)
    assert all(report.failure is None for report in newer.end())
    assert [raw.timestamp - NOW for raw in committed(brokers, R0)] == [7, 7, 7]


def test_what_breaks_off_before_anything_is_taken_in_has_nothing_to_abort() -> None:
    brokers = TransactionBrokers()
    brokers.codes = {R0: DENIED}
    task = Task(brokers, recording_of())
    task.copy(T0, 1)
    task.hand.give_up()
    assert brokers.requests.count("InitProducerId") == 1


@asked_before
def test_an_abort_waits_for_a_partition_that_is_just_taken_in() -> None:
    brokers = TransactionBrokers()
    task = Task(brokers, recording_of())
    task.copy(T0, 1)
    brokers.will_answer("AddPartitionsToTxn", BUSY)
    task.hand.give_up()
    assert brokers.requests[-3:] == ["AddPartitionsToTxn", "AddPartitionsToTxn", "InitProducerId"]
    assert (brokers.is_open, len(brokers.aborted)) == (False, 1)


def _overtake(brokers: TransactionBrokers) -> None:
    brokers.ask(type("InitProducerIdRequest", (), {"producer_id": -1, "producer_epoch": -1})())


def test_where_nobody_knows_whether_it_was_committed_the_next_generation_finds_out() -> None:
    brokers, recording = TransactionBrokers(asked=[("EndTxn", FENCED)]), recording_of()
    task = Task(brokers, recording)
    task.copy(T0, 1)
    with pytest.raises(QueryFailed) as caught:
        task.end()
    assert caught.value.failure.kind is FailureKind.NOT_COMMITTED
    after = Task(brokers, replace(recording, writers={1: process_id()}))
    after.copy(T0, 2)
    assert in_order(brokers.requests, "EndTxn", "InitProducerId", "token"), "the id begins anew"


@asked_before
def test_a_failure_aborts_all_of_it_and_the_id_begins_anew() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    brokers.codes = {R1: DENIED}
    task = Task(brokers, recording)
    task.copy(T0, 1)
    task.copy(T1, 2)
    good, bad = task.end()
    assert good.failure is not None
    assert bad.failure is not None
    assert (good.failure.kind, bad.failure.kind) == (FailureKind.ROLLED_BACK, FailureKind.TARGET_DENIED)
    assert (good.intervals, good.rolled_back > 0) == ([], True)
    assert (good.aborted, bad.aborted) == (4, 0), "records and a marker where the partition was taken in"
    assert (brokers.committed, len(brokers.aborted), brokers.is_open) == ([], 1, False)
    brokers.codes = {}
    after = Task(brokers, replace(recording, writers={1: process_id()}))
    after.copy(T0, 3)
    assert brokers.logs[R0].epoch == 2, "one epoch ends what was open, the next one writes"
    assert all(report.failure is None for report in after.end())
    assert [raw.timestamp - NOW for raw in committed(brokers, R0)] == [3, 3, 3]


@asked_before
def test_of_two_partitions_the_one_that_may_be_written_to_is_taken_in() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    brokers.codes = {R1: DENIED}
    task = Task(brokers, recording)
    writer = task.hand.writer
    lanes = [task.hand.open(source, remote) for source, remote in REMOTES.items()]
    for lane in lanes:
        writer.add(lane.remote, piece(1))
    while not writer.is_idle:
        writer.step(0)
    assert (lanes[0].failure, lanes[0].answered) == (None, 1)
    assert lanes[1].failure is not None
    assert lanes[1].failure.kind is FailureKind.TARGET_DENIED


@asked_before
def test_a_topic_that_is_new_to_the_coordinator_is_waited_for() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    brokers.codes = {R0: UNKNOWN_TOPIC}
    task = Task(brokers, recording)
    lane = task.hand.open(T0, R0)
    task.hand.writer.add(R0, piece(1))
    for _ in range(3):
        assert task.hand.writer.step(0) == []
    assert (lane.failure, "batch A.t-0" in brokers.requests) == (None, False)
    brokers.codes = {}
    task.hand.writer.step(0)
    assert "batch A.t-0" in brokers.requests


def test_a_deleted_topic_is_not_waited_for_as_long_as_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "GONE_SECONDS", 0.0)
    brokers, recording = TransactionBrokers(), recording_of()
    brokers.codes, brokers.deleted = {R0: UNKNOWN_TOPIC}, {R0}
    task = Task(brokers, recording)
    lane = task.hand.open(T0, R0)
    task.hand.writer.add(R0, piece(1))
    for _ in range(3):
        task.hand.writer.step(0)
    assert lane.failure is not None
    assert lane.failure.kind is FailureKind.TARGET_CHANGED


@asked_before
def test_an_id_of_this_process_is_used_on_with_the_numbers_behind_the_last() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    for mark in (1, 2, 3):
        task = Task(brokers, recording)
        task.copy(T0, mark)
        task.end()
        recording = replace(recording, writers={1: process_id()})
    assert brokers.requests.count("InitProducerId") == brokers.requests.count("token") == 1
    assert brokers.requests.count("FindCoordinator") == 1
    assert brokers.logs[R0].next_sequence == 9
    assert [raw.timestamp - NOW for raw in committed(brokers, R0)] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("why", ["another process wrote last", "nobody is known to have written", "another token"])
def test_an_id_that_may_be_somebody_else_s_begins_anew(why: str) -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    for mark in (1, 2):
        task = Task(brokers, recording)
        task.copy(T0, mark)
        task.end()
        writers = {"another process wrote last": {1: "other"}, "another token": {1: process_id()}}.get(why, {})
        recording = replace(recording, writers=writers)
        if why == "another token":
            note = recording.fencing.note._replace(token="newer")
            recording = replace(recording, fencing=replace(recording.fencing, note=note))
    assert brokers.requests.count("InitProducerId") == brokers.requests.count("token") == 2
    assert (brokers.logs[R0].epoch, brokers.logs[R0].next_sequence) == (2 if brokers.takes_in else 1, 3)


def test_single_records_go_between_whole_batches_in_the_same_transaction() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    task = Task(brokers, recording)
    task.copy(T0, 1)
    task.write(T0, b"by itself", b"and another")
    task.copy(T0, 2)
    assert brokers.requests.count("InitProducerId") == 1
    assert brokers.requests.count("AddPartitionsToTxn") == (0 if brokers.takes_in else 1)
    task.end()
    assert [raw.value for raw in committed(brokers, R0)] == [*[b"v"] * 3, b"by itself", b"and another", *[b"v"] * 3]
    assert brokers.requests.count("EndTxn") == 1


def test_a_batch_that_the_target_refuses_is_left_out_and_the_transaction_goes_on() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    brokers.refused = {2}
    task = Task(brokers, recording)
    task.copy(T0, 1, 2, 4)
    (lane,) = task.hand.writer.lanes
    assert lane.refusal is not None
    assert lane.refusal.error == TOO_LARGE
    task.write(T0, b"behind it")
    (report,) = task.end()
    assert report.failure is None
    assert [raw.value for raw in committed(brokers, R0)] == [*[b"v"] * 3, b"behind it"]


@pytest.mark.parametrize(
    ("topic", "written_in"),
    [
        (Limits(50_000), "zstd"),
        (Limits(50_000, codec="zstd", keeps_batches=False), "zstd"),
        (Limits(50_000, codec="gzip", keeps_batches=False), "gzip"),
        (Limits(50_000, keeps_batches=False), None),
    ],
    ids=["producer", "the same", "another", "uncompressed"],
)
def test_a_large_record_goes_in_a_codec_in_which_the_target_keeps_it(topic: Limits, written_in: str | None) -> None:
    """What it compresses anew may be too large then, and nobody would know before."""
    brokers, recording = TransactionBrokers(), recording_of()
    task = Task(brokers, recording)
    task.hand.options = {**OPTIONS, "compression.type": "zstd", "compression.level": 19}
    sink, run = BatchSink(task.hand), Run.of(T0, [TailRecord(50, NOW, b"k", bytes(200_000))])
    assert sink.takes(Route("A.t", topic), run) == (written_in is not None)
    for answer in sink.finish():
        answer.into(task.reports[T0])
    assert all(report.failure is None for report in task.end())
    written = [one.batch for one in brokers.committed if one.partition == R0]
    assert [batch.codec for one in written for batch in batches_in(memoryview(one))] == [written_in][: len(written)]
    assert bool(written) == (written_in is not None)


def test_reports_say_whose_remote_partitions_get_a_marker() -> None:
    """Where everything was refused, too; not where nothing was ever sent."""
    brokers, recording = TransactionBrokers(), recording_of()
    brokers.refused = {1}
    task = Task(brokers, recording)
    task.copy(T0, 1)
    reports = list(task.reports.values())
    task.hand.end(reports)
    assert [(report.slot, report.in_transaction) for report in reports] == [(1, True), (1, False)]


@asked_before
def test_what_nobody_has_taken_into_the_transaction_ends_it() -> None:
    """As where its coordinator has aborted it for the time that it took."""
    brokers, recording = TransactionBrokers(), recording_of()
    task = Task(brokers, recording)
    task.copy(T0, 1)
    brokers.added.clear()
    task.copy(T0, 2)
    (report,) = task.end()
    assert report.failure is not None
    assert str(INVALID_STATE) in report.failure.sentence
    assert brokers.committed == []


@pytest.mark.parametrize("partition", [T0, T1], ids=["a batch is refused", "a partition is not taken in"])
def test_a_transaction_that_was_open_for_too_long_may_be_told_as_such(partition: TopicPartition) -> None:
    """Its coordinator aborts it as if another driver had fenced it, and nobody can tell one from the other."""
    brokers = TransactionBrokers()
    task = Task(brokers, recording_of())
    task.copy(T0, 1)
    _overtake(brokers)
    task.copy(partition, 2)
    failure = task.reports[partition].failure
    assert failure is not None
    assert failure.kind is FailureKind.OVERTAKEN
    assert "or the transaction was open for longer than" in failure.sentence


def test_silence_is_told_with_what_is_in_the_way() -> None:
    brokers = TransactionBrokers(asked=[("AddPartitionsToTxn", BUSY)] * 10_000)
    brokers.codes = {R0: BUSY}
    task = Task(brokers, recording_of())
    task.hand.writer.begin(task.transaction, 0.0)
    task.copy(T0, 1)
    failure = task.reports[T0].failure
    assert failure is not None
    assert failure.kind is FailureKind.NOT_ACKNOWLEDGED
    assert "not all in-sync replicas" in failure.sentence


def test_progress_that_is_refused_aborts_the_records() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    task = Task(brokers, recording)
    task.copy(T0, 1)
    brokers.codes = {TopicPartition(PROGRESS, number): DENIED for number in range(5)}
    (report,) = task.end()
    assert report.failure is not None
    assert report.failure.kind is FailureKind.ROLLED_BACK
    assert (brokers.committed, brokers.is_open) == ([], False)


def test_a_task_that_breaks_off_leaves_nothing_open() -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    task = Task(brokers, recording)
    task.copy(T0, 1)
    with pytest.raises(RuntimeError), task.hand:
        raise RuntimeError("the source is gone")
    assert (brokers.is_open, len(brokers.aborted)) == (False, 1)
    assert brokers.author == Author(4, 1)


def test_records_that_break_off_leave_nothing_open_either(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers, recording = TransactionBrokers(), recording_of()
    hand = Task(brokers, recording).hand
    monkeypatch.setattr(WriteTask, "hand", lambda *_: hand)
    monkeypatch.setattr(brokers, "close", lambda: brokers.requests.append("close"))

    class Rows:
        open = frozenset[TopicPartition]()
        holds: Mapping[TopicPartition, PausedPartition] = {}

        def __iter__(self) -> Generator[Run]:
            yield Run.of(T0, [TailRecord(0, NOW, b"k", b"v")])
            raise SourceChanged("the source topic was created anew")

    task = WriteTask(OPTIONS, {"t": ROUTE}, frozenset(), 10**9, 30.0, recording=recording)
    with pytest.raises(SourceChanged):
        task.write_all(Rows(), 1)
    assert f"batch {R0}" in brokers.requests
    assert (brokers.is_open, brokers.requests[-1]) == (False, "close")


def test_a_task_without_anything_to_write_asks_nothing() -> None:
    brokers = TransactionBrokers()
    task = Task(brokers, recording_of())
    assert task.end() == []
    assert brokers.requests == []
