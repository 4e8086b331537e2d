"""Whole batches on their way to brokers that fail in every way that passes: each is appended once, in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author, Authorship, Batch
from srm_spark.errors import ProtocolUnavailable
from srm_spark.failure import FailureKind
from srm_spark.kafka.batches import writer as writing
from srm_spark.kafka.batches.writer import BatchWriter
from tests.batch_bytes import NOW
from tests.unit.memory_brokers import TOO_LARGE, Log, MemoryBrokers, MemoryConnection, piece

FATES = st.lists(
    st.sampled_from(["fine"] * 6 + ["lost", "answer lost", "not leader", "appended, timed out", "moved"]), max_size=60
)


def written(brokers: MemoryBrokers) -> BatchWriter:
    made = BatchWriter(brokers)  # type: ignore[arg-type] # all of it that a writer uses
    made.begin(Authorship(Author(1, 0)), 30.0)
    return made


def run(writer: BatchWriter) -> dict[TopicPartition, list[tuple[int, int]]]:
    """Write until nothing is left: mark and offset of what was acknowledged, by partition."""
    done: dict[TopicPartition, list[tuple[int, int]]] = {}
    for _ in range(2000):
        if writer.is_idle:
            return done
        writer.send()
        for connection in list(writer.waiting):
            for one in writer.answered(connection):
                done.setdefault(one.source, []).append((one.piece.batch.max_timestamp - NOW, one.base_offset))
    raise AssertionError("it goes on for ever")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaders are looked for without a pause."""
    monkeypatch.setattr(writing, "RETRY_SECONDS", 0.0)


@given(fates=FATES, counts=st.lists(st.integers(1, 8), min_size=1, max_size=3))
def test_whatever_passes_every_batch_is_appended_once_and_in_order(fates: list[str], counts: list[int]) -> None:
    writing.RETRY_SECONDS = 0.0
    brokers = MemoryBrokers(fates)
    writer = written(brokers)
    partitions = [TopicPartition("t", number) for number in range(len(counts))]
    for partition, count in zip(partitions, counts, strict=True):
        writer.open(partition, partition)
        for mark in range(count):
            writer.add(partition, piece(mark))
    done = run(writer)
    for partition, count in zip(partitions, counts, strict=True):
        assert brokers.logs[partition].batches == list(range(count))
        assert done[partition] == [(mark, 3 * mark) for mark in range(count)]
        assert writer.next_sequence(partition) == 3 * count
    assert writer.bytes == 0
    assert not writer.is_broken


def test_what_the_target_refuses_ends_its_partition_and_the_others_go_on() -> None:
    brokers = MemoryBrokers()
    brokers.refused = {4}
    writer = written(brokers)
    bad, good = TopicPartition("t", 0), TopicPartition("t", 1)
    for partition, marks in ((bad, (1, 2, 4, 5, 6)), (good, (11, 12, 13))):
        writer.open(partition, partition)
        for mark in marks:
            writer.add(partition, piece(mark))
    run(writer)
    assert brokers.logs[bad].batches == [1, 2]
    assert brokers.logs[good].batches == [11, 12, 13]
    lane = writer.open(bad, bad)
    assert lane.refusal is not None
    assert lane.refusal.error == TOO_LARGE
    assert writer.next_sequence(bad) == 6, "its neighbours may go on under the next number"
    assert (writer.bytes, writer.is_broken) == (0, False)


def test_the_first_batch_that_is_refused_counts_whatever_is_said_of_those_behind_it() -> None:
    brokers = MemoryBrokers()
    writer, partition = written(brokers), TopicPartition("t", 0)
    lane = writer.open(partition, partition)
    writer.add(partition, piece(1))
    run(writer)
    brokers.refused, brokers.damaged = {2}, {4}
    for mark in (2, 3, 4, 5):
        writer.add(partition, piece(mark))
    writer.send()
    assert len(lane.flying) == 4, "they are under way together"
    run(writer)
    assert lane.refused is not None
    assert lane.refused.piece.batch.max_timestamp - NOW == 2
    assert [one.piece.batch.max_timestamp - NOW for one in lane.waiting] == [3, 4, 5]
    assert (writer.next_sequence(partition), writer.bytes) == (3, 0)
    assert not writer.is_broken


def test_numbers_are_not_given_anew_while_a_batch_may_still_arrive_that_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(writing, "monotonic", lambda: now[0])
    brokers = MemoryBrokers(["fine", "fine", "answer lost"])
    writer, partition = written(brokers), TopicPartition("t", 0)
    lane = writer.open(partition, partition)
    writer.add(partition, piece(1))
    run(writer)
    brokers.refused = {2}
    for mark in (2, 3):
        writer.add(partition, piece(mark))
    writer.send()
    (connection,) = list(writer.waiting)
    writer.answered(connection)
    assert lane.refused is not None
    now[0] += 29
    writer.lost(connection)
    assert lane.failure is not None
    assert lane.failure.kind is FailureKind.NOT_ACKNOWLEDGED
    assert writer.is_broken


@pytest.mark.parametrize("fate", ["no leader", "not enough replicas", "dead leader"])
def test_a_partition_that_takes_nothing_is_given_up_while_others_are_written(
    fate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(writing, "monotonic", lambda: now[0])
    monkeypatch.setattr(writing, "GONE_SECONDS", 500.0)
    brokers = MemoryBrokers()
    writer = written(brokers)
    stuck, other = TopicPartition("t", 0), TopicPartition("u", 0)
    alive = brokers.connection

    def connection(node: int) -> MemoryConnection:
        if fate == "dead leader" and node == 1:
            raise ProtocolUnavailable("cannot connect to broker 1")
        return alive(node)

    brokers.connection = connection  # type: ignore[method-assign]
    brokers.logs[stuck] = Log(leader=1)
    if fate == "no leader":
        brokers.deleted = {stuck}
    elif fate == "not enough replicas":
        brokers.refused, brokers.refusal = {0}, 19
    lanes = [writer.open(one, one) for one in (stuck, other)]
    writer.add(stuck, piece(0))
    for mark in range(1, 8):
        writer.add(other, piece(mark))
        for _ in range(3):
            writer.send()
            for one in list(writer.waiting):
                writer.answered(one)
        writer.check_silence()
        assert (lanes[0].failure is not None) is (mark > 4), f"after {now[0] - 1000} s"
        now[0] += 10
    assert lanes[0].failure is not None
    assert lanes[0].failure.kind is FailureKind.NOT_ACKNOWLEDGED
    assert lanes[1].failure is None
    assert brokers.logs[other].batches == [1, 2, 3, 4, 5, 6, 7]


def test_what_takes_records_again_is_not_held_against_it_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(writing, "monotonic", lambda: now[0])
    brokers = MemoryBrokers()
    brokers.refused, brokers.refusal = {1}, 19
    writer, partition = written(brokers), TopicPartition("t", 0)
    lane = writer.open(partition, partition)
    writer.add(partition, piece(1))
    writer.send()
    for connection in list(writer.waiting):
        writer.answered(connection)
    now[0] += 20
    brokers.refused = set()
    run(writer)
    now[0] += 20
    writer.add(partition, piece(2))
    writer.check_silence()
    run(writer)
    assert lane.failure is None
    assert brokers.logs[partition].batches == [1, 2]


def test_a_leader_that_is_dead_is_asked_for_anew_until_another_one_leads() -> None:
    brokers, partition = MemoryBrokers(), TopicPartition("t", 0)
    looks: list[int] = []
    alive = brokers.connection

    def connection(node: int) -> MemoryConnection:
        looks.append(node)
        if len(looks) == 3:
            brokers.move()
        if node == 0:
            raise ProtocolUnavailable("cannot connect to broker 0")
        return alive(node)

    brokers.connection = connection  # type: ignore[method-assign]
    writer = written(brokers)
    writer.open(partition, partition)
    writer.add(partition, piece(1))
    assert run(writer) == {partition: [(1, 0)]}
    assert looks == [0, 0, 0, 1]


def test_a_remote_topic_that_was_deleted_is_not_waited_for_like_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "GONE_SECONDS", 0.0)
    brokers, gone, other = MemoryBrokers(), TopicPartition("t", 0), TopicPartition("u", 0)
    brokers.deleted = {gone}
    writer = written(brokers)
    lane = writer.open(gone, gone)
    writer.add(gone, piece(1))
    writer.open(other, other)
    writer.add(other, piece(2))
    assert run(writer) == {other: [(2, 0)]}
    assert lane.failure is not None
    assert lane.failure.kind is FailureKind.TARGET_CHANGED
    assert (writer.bytes, writer.is_broken) == (0, True)


def test_a_remote_topic_that_a_broker_hears_of_late_is_waited_for() -> None:
    brokers, partition = MemoryBrokers(), TopicPartition("t", 0)
    brokers.deleted = {partition}
    writer = written(brokers)
    writer.open(partition, partition)
    writer.add(partition, piece(1))
    for _ in range(3):
        writer.send()
    brokers.deleted = set()
    assert run(writer) == {partition: [(1, 0)]}
    assert not writer.is_broken


def test_a_writer_that_was_overtaken_gives_up() -> None:
    brokers, partition = MemoryBrokers(), TopicPartition("t", 0)
    brokers.logs[partition] = Log(epoch=1)
    writer = written(brokers)
    lane = writer.open(partition, partition)
    writer.add(partition, piece(1))
    run(writer)
    assert lane.failure is not None
    assert lane.failure.kind is FailureKind.OVERTAKEN
    assert writer.is_broken


def test_a_second_attempt_of_a_task_with_other_batches_is_refused() -> None:
    brokers, partition = MemoryBrokers(), TopicPartition("t", 0)
    for marks, kind in (((1, 2), None), ((3,), FailureKind.TARGET_CHANGED)):
        writer = written(brokers)
        lane = writer.open(partition, partition)
        for mark in marks:
            writer.add(partition, piece(mark, 3 + mark))
        run(writer)
        assert (lane.failure and lane.failure.kind) == kind
    assert brokers.logs[partition].batches == [1, 2]


def test_a_pause_without_anything_to_write_is_no_silence_of_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """One partition has ended, the other one has nothing for longer than a target may be silent."""
    now = [1000.0]
    monkeypatch.setattr(writing, "monotonic", lambda: now[0])
    brokers = MemoryBrokers()
    brokers.refused = {4}
    writer = written(brokers)
    for number, mark in ((0, 4), (1, 5)):
        partition = TopicPartition("t", number)
        writer.open(partition, partition)
        writer.add(partition, piece(mark))
    run(writer)
    now[0] += 500
    partition = TopicPartition("t", 1)
    writer.add(partition, piece(6))
    writer.check_silence()
    run(writer)
    assert brokers.logs[partition].batches == [5, 6]


def test_a_target_that_is_silent_for_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(writing, "monotonic", lambda: now[0])
    brokers, partition = MemoryBrokers(["answer lost"]), TopicPartition("t", 0)
    writer = written(brokers)
    lane = writer.open(partition, partition)
    writer.add(partition, piece(1))
    writer.send()
    now[0] += 31
    writer.check_silence()
    assert lane.failure is not None
    assert lane.failure.kind is FailureKind.NOT_ACKNOWLEDGED
    assert writer.is_broken
    assert isinstance(piece(1).batch, Batch)
