"""What an owner of a flow still writes into its control topics when another one has taken over: nothing of it is taken.

Partitions remember the newest epoch of a producer id, as brokers do.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from srm_spark.core.acts import Command, CommandKind, Shift, scope_of
from srm_spark.core.cluster import ControlRecord, Writer
from srm_spark.core.last_run import LastRun
from srm_spark.core.model import Interval, LogIdentity, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.core.record_batch import Author, Fenced
from srm_spark.errors import CheckpointFailed, LeaseLost, NotWritten, ProgressFailed
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.own_writer import CurrentAuthor
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.recovery.before import Before
from srm_spark.flow.recovery.shifts import Shifts
from srm_spark.flow.recovery.starts import Origin, Start
from srm_spark.flow.topics.commands import FlowCommands
from srm_spark.flow.topics.committer import committer_of
from srm_spark.flow.topics.internal_topics import (
    checkpoints_topic,
    ensure_topic,
    map_topic,
    progress_topic,
    quarantine_topic,
    syncs_topic,
)
from srm_spark.flow.topics.progress import Position, note_run, state_writer_of
from tests.memory_cluster import MemoryCluster
from tests.unit.memory_flow import HERE, MemoryFlow, flow_settings

UNCLEAN = LastRun(False, False, False, True)


@dataclass
class Id:
    """A producer id as its coordinator and the partitions of one cluster know it."""

    target: MemoryCluster
    epoch: int = -1
    heard: dict[TopicPartition, int] = field(default_factory=dict)

    def fence(self) -> MemoryIdFence:
        """As one process has it."""
        return MemoryIdFence(self)


class MemoryIdFence:
    """Takes over the id, and writes under it."""

    def __init__(self, its: Id) -> None:
        self._id = its
        self.refuses: list[NotWritten] = []

    def begin(self, tell: Callable[[str], None]) -> Author:
        self._id.epoch += 1
        return Author(7, self._id.epoch)

    def fence(self, partitions: Iterable[TopicPartition], tell: Callable[[str], None]) -> Fenced:
        author = self.begin(tell)
        self._id.heard.update(dict.fromkeys(partitions, author.epoch))
        return Fenced(self.begin(tell), {}, is_first=False)

    def write(self, author: Author, records: Sequence[ControlRecord], seconds: float) -> None:
        if self.refuses:
            raise self.refuses.pop()
        for record in records:
            place = self._id.target.place(record)
            if author.epoch < self._id.heard.get(place, -1):
                raise LeaseLost("another driver has fenced this one")
            self._id.heard[place] = author.epoch
            self._id.target.writer("fenced", ProgressFailed).write([record])

    def keep_alive(self, author: Author, partitions: Iterable[TopicPartition]) -> None:
        pass

    def plain(self) -> Author:
        return Author(99, 0)

    def close(self) -> None:
        pass


class Scene:
    """A flow whose topics are there, and the owners that come one after the other."""

    def __init__(self, *, is_fenced: bool) -> None:
        self.flow = MemoryFlow(flow_settings({"A->B.refused.record.policy": "park"}))
        target, settings = self.flow.target, self.flow.settings
        for topic in (progress_topic(settings), map_topic(settings), quarantine_topic(settings)):
            ensure_topic(target, topic)
        ensure_topic(target, checkpoints_topic(self.flow.clusters))
        ensure_topic(self.flow.clusters.syncs_cluster, syncs_topic(self.flow.clusters))
        self.id = Id(target)
        self._is_fenced = is_fenced

    def owner(self, last: LastRun = UNCLEAN) -> tuple[Clusters, Before]:
        """Another process that has just taken over."""
        make = self.id.fence if self._is_fenced else (lambda: None)
        clusters = replace(self.flow.clusters, make_fence=make, current=CurrentAuthor())
        before = Before(clusters, lambda _: None, lambda *_, **__: {})
        before.follow(last, after_failure=False)
        return clusters, before

    @property
    def ends(self) -> dict[str, int]:
        """Topic → how many records lie in it."""
        return {name: sum(log.end for log in topic.partitions) for name, topic in self.flow.target.held.items()}


def _commit(clusters: Clusters) -> None:
    detail = ProgressDetail(OffsetRange(0, 5), 5, (Interval(0, 0, 5),), logs=LogIdentity("id", 0))
    committer_of(clusters, {}, None).commit({HERE: detail})


def _put_aside(clusters: Clusters) -> None:
    topic = clusters.settings.quarantine_topic
    state_writer_of(clusters, None).write([ControlRecord(topic, b"k", b"v", partition=1)])


def _checkpoint(clusters: Clusters) -> None:
    topic = checkpoints_topic(clusters).spec.name
    clusters.own_writer("checkpoints", CheckpointFailed).write([ControlRecord(topic, b"k", b"v", partition=0)])


def _end(clusters: Clusters) -> None:
    note_run(clusters, is_clean=True, is_fenced=True)


LATE = {"map and progress": _commit, "quarantine": _put_aside, "checkpoints": _checkpoint, "the note of its end": _end}


@pytest.mark.parametrize("what", LATE)
def test_nothing_of_an_older_owner_is_taken(what: str) -> None:
    """He has asked for his lease before he was stopped, so that does not help: here it is always his."""
    scene = Scene(is_fenced=True)
    old, _ = scene.owner()
    scene.owner()
    before = scene.ends
    with pytest.raises(LeaseLost):
        LATE[what](old)
    assert scene.ends == before


@pytest.mark.parametrize("what", LATE)
def test_where_the_target_gives_no_id_it_is_taken(what: str) -> None:
    scene = Scene(is_fenced=False)
    old, _ = scene.owner()
    scene.owner()
    before = scene.ends
    LATE[what](old)
    assert scene.ends != before


@pytest.mark.parametrize("what", LATE)
def test_the_owner_of_now_writes_whatever_epochs_there_were(what: str) -> None:
    """Behind a clean end nobody hears of the next epoch before something is written under it."""
    scene = Scene(is_fenced=True)
    for last in (UNCLEAN, LastRun(True, False, False, True)):
        clusters, before = scene.owner(last)
        LATE[what](clusters)
        before.begin(before.take_over({}), in_transactions=False)
        ends = scene.ends
        LATE[what](clusters)
        assert scene.ends != ends


def test_a_generation_that_has_ended_records_nothing_under_the_next_one() -> None:
    scene = Scene(is_fenced=True)
    clusters, before = scene.owner()
    record = ControlRecord(clusters.settings.progress_topic, b"k", b"v", partition=0)
    first = state_writer_of(clusters, None, only=before.take_over({}))
    first.write([record])
    second = state_writer_of(clusters, None, only=before.take_over({}))
    second.write([record])
    with pytest.raises(LeaseLost, match="newer generation"):
        first.write([record])
    second.write([record])


def test_a_run_that_has_ended_writes_nothing_any_more() -> None:
    scene = Scene(is_fenced=True)
    clusters, before = scene.owner()
    before.close()
    with pytest.raises(LeaseLost, match="has ended"):
        _commit(clusters)


def test_in_another_process_it_is_the_plain_writer() -> None:
    """The numbers of the author are known in the driver only."""
    plain = Noted()
    made = CurrentAuthor().writer(plain, "A->B|progress", ProgressFailed, 5.0)
    arrived: Writer = pickle.loads(pickle.dumps(made))
    assert isinstance(arrived, Noted)


@dataclass
class Noted:
    """A writer that travels."""

    written: list[ControlRecord] = field(default_factory=list)

    def write(self, records: Iterable[ControlRecord]) -> None:
        self.written += records


@pytest.mark.parametrize(("is_spent", "epochs"), [(False, 0), (True, 1)])
def test_an_author_of_no_use_any_more_is_replaced(*, is_spent: bool, epochs: int) -> None:
    """Else what is written without a generation, as checkpoints are, would not be written before its end."""
    scene = Scene(is_fenced=True)
    current, fence = CurrentAuthor(), MemoryIdFence(Id(scene.flow.target))
    first = current.become(fence, lambda: fence.begin(lambda _: None))
    fence.refuses = [NotWritten("cluster B: it may or may not be there", is_spent=is_spent)]
    made = current.writer(Noted(), "A->B|checkpoints", CheckpointFailed, 5.0)
    record = ControlRecord(checkpoints_topic(scene.flow.clusters).spec.name, b"k", b"v", partition=0)
    with pytest.raises(CheckpointFailed, match="checkpoints cannot write: cluster B: it may"):
        made.write([record])
    made.write([record])
    with current.held(ProgressFailed, 1.0) as held:
        assert held == (fence, Author(first.producer_id, first.epoch + epochs))


@dataclass
class TakingOver:
    """Sets positions in transactions of the same id, as librdkafka's producers do."""

    its: Id
    places: set[TopicPartition] = field(default_factory=set)

    def write(self, records: Iterable[ControlRecord]) -> None:
        self.its.epoch += 1
        for record in records:
            place = self.its.target.place(record)
            self.places.add(place)
            self.its.heard[place] = self.its.epoch
            self.its.target.writer("offsets", ProgressFailed).write([record])


def test_what_is_written_behind_a_transaction_of_the_same_id_is_so_under_a_newer_epoch() -> None:
    """The position is set by a producer that has taken over the id; the flow goes on, with the topics that it wrote."""
    scene = Scene(is_fenced=True)
    clusters, _ = scene.owner()
    recorded, commands = Recorded(clusters), FlowCommands(clusters)
    pause = Command(CommandKind.PAUSE, scope_of(HERE), 1, "ann@host")
    act = Command(CommandKind.OFFSETS, scope_of(HERE), 2, "ann@host", "", Shift(3, 1, "id"))
    commands.in_force = ({pause.scope: pause}, {"an act": act})
    shifts = Shifts(clusters, recorded.progress, recorded.maps, commands)
    taking_over = TakingOver(scene.id)
    lost = Start(Position(0), OffsetRange(0, 3), LogIdentity("id", 0), Origin.NOTHING)
    shifts.let_go({HERE: lost}, taking_over)
    assert recorded.progress.answers.shifted["an act"].declined is not None
    (answered,) = taking_over.places
    state_writer_of(clusters, None).write([ControlRecord(answered.topic, b"k", b"v", partition=answered.partition)])
    assert scene.id.heard[answered] == scene.id.epoch


def test_an_author_that_is_replaced_amid_a_generation_is_of_the_same_one() -> None:
    scene = Scene(is_fenced=True)
    current, fence = CurrentAuthor(), MemoryIdFence(Id(scene.flow.target))
    state = current.writer(
        Noted(), "A->B|progress", ProgressFailed, 5.0, only=current.become(fence, lambda: fence.begin(lambda _: None))
    )
    current.renew()
    state.write([ControlRecord(scene.flow.clusters.settings.progress_topic, b"k", b"v", partition=0)])
    current.become(fence, lambda: fence.begin(lambda _: None))
    with pytest.raises(LeaseLost, match="newer generation"):
        state.write([ControlRecord(scene.flow.clusters.settings.progress_topic, b"k", b"v", partition=0)])


def test_an_end_does_not_wait_long_for_who_hangs_and_nothing_is_written_behind_it() -> None:
    """As long as it waits the lease is kept, and nobody else may copy."""
    current, is_at_it, goes_on = CurrentAuthor(), threading.Event(), threading.Event()

    def hang() -> None:
        with current.held(ProgressFailed, 5.0):
            is_at_it.set()
            goes_on.wait(30)

    hanging = threading.Thread(target=hang)
    hanging.start()
    is_at_it.wait(30)
    began = time.monotonic()
    current.end()
    assert time.monotonic() - began < 10
    goes_on.set()
    hanging.join(30)
    with pytest.raises(LeaseLost, match="this run of the flow has ended"), current.held(ProgressFailed, 5.0):
        pass
