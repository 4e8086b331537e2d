"""As whom generations write: epochs, what is not fenced and why, and how the next start waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.last_run import UNKNOWN_RUN, LastRun
from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author, Fenced
from srm_spark.core.tail import TailRecord
from srm_spark.errors import FenceUnavailable, ProtocolUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.recovery.before import Before
from srm_spark.flow.recovery.settling import Remotes, TargetEnds
from tests.memory_cluster import MemoryLog, MemoryTopic
from tests.unit.memory_flow import HERE, THERE, MemoryFlow, flow_settings


class MemoryFence:
    """A producer id whose coordinator answers at once."""

    def __init__(self, error: Exception | None = None) -> None:
        self.epoch = -1
        self.error = error
        self.told: list[set[TopicPartition]] = []
        self.written: list[tuple[int, list[str]]] = []
        """Epoch, and topics."""
        self.refused: dict[TopicPartition, int] = {}
        self.first = True

    def begin(self, tell: Callable[[str], None]) -> Author:
        tell("the coordinator")
        if self.error is not None:
            raise self.error
        self.epoch += 1
        return Author(7, self.epoch)

    def fence(self, partitions: Iterable[TopicPartition], tell: Callable[[str], None]) -> Fenced:
        self.told.append(set(partitions))
        return Fenced(self.begin(tell), self.refused, self.first)

    def keep_alive(self, author: Author, partitions: Iterable[TopicPartition]) -> None:
        self.told.append(set(partitions))

    def write(self, author: Author, records: Sequence[ControlRecord], seconds: float) -> None:
        self.written.append((author.epoch, [record.topic for record in records]))

    def plain(self) -> Author:
        return Author(99, 0)

    def close(self) -> None:
        pass


class Start:
    """One start behind some last run, and how it waited."""

    def __init__(self, fence: MemoryFence | None, last: LastRun = UNKNOWN_RUN, **keys: str) -> None:
        flow = MemoryFlow(flow_settings({key.replace("_", "."): value for key, value in keys.items()}))
        self.waits: list[object] = []
        self.told: list[str] = []
        clusters = flow.clusters
        self.clusters = Clusters(
            clusters.settings,
            clusters.source,
            clusters.target,
            clusters.policy,
            clusters.filters,
            clusters.make_lease,
            make_fence=lambda: fence,
        )
        Recorded(self.clusters).progress.ensure()
        self.remote = MemoryLog()
        flow.target.held["A.t"] = MemoryTopic([self.remote], {})
        self.before = Before(self.clusters, self.told.append, self._wait)
        self.before.follow(last, after_failure=False)

    def _wait(self, _: Clusters, remotes: Remotes, **how: object) -> TargetEnds:
        self.waits.append(how["is_fenced"])
        return dict.fromkeys(remotes.values(), 0)

    @property
    def state(self) -> set[TopicPartition]:
        """All partitions of the topics that are there of those that hold the flow's state."""
        return {TopicPartition(self.clusters.settings.progress_topic, number) for number in range(25)}

    def write(self, records: int) -> None:
        """Somebody has."""
        for _ in range(records):
            self.remote.append(TailRecord(0, 1, b"k", b"v"))

    def author(self) -> Author | None:
        return self.before.take_over({HERE: THERE})


def test_behind_a_clean_end_a_new_epoch_is_enough() -> None:
    fence = MemoryFence()
    start = Start(fence, LastRun(True, False, False, True))
    assert start.author() == Author(7, 1)
    assert (fence.told, start.waits) == ([], [])
    assert start.told == ["the coordinator"] * 2


def test_behind_an_unclean_end_all_partitions_hear_of_it_and_nothing_is_waited_for() -> None:
    fence = MemoryFence()
    fence.first = False
    start = Start(fence, LastRun(False, False, False, True))
    assert start.author() == Author(7, 1)
    assert (fence.told, start.waits) == ([start.state, start.state | {THERE}], [True])


@pytest.mark.parametrize("what", ["another version", "forgotten id", "a partition was not told"])
def test_who_wrote_under_another_id_is_waited_for(what: str) -> None:
    fence = MemoryFence()
    fence.first = what == "forgotten id"
    fence.refused = {THERE: 2} if what == "a partition was not told" else {}
    start = Start(fence, LastRun(False, False, False, what != "another version"))
    start.author()
    assert start.waits == [False]
    assert bool(fence.told) == (what != "another version"), "a marker that nobody minds"


@pytest.mark.parametrize(("code", "is_remote", "fenced"), [(3, False, True), (29, True, True), (29, False, False)])
def test_who_may_not_tell_a_control_topic_knows_that_it_is_not_fenced(
    *, code: int, is_remote: bool, fenced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Its records may be written by another login; a remote partition takes nothing of an older writer either."""
    fence = MemoryFence()
    fence.first = False
    progress = TopicPartition(flow_settings({}).progress_topic, 0)
    fence.refused = {THERE if is_remote else progress: code}
    with caplog.at_level(logging.WARNING):
        start = Start(fence, LastRun(False, False, False, True))
        start.author()
    assert start.waits == [True], "for what is under way to the remote topics"
    assert (f"{progress} is not fenced" in caplog.text) != fenced


def test_a_generation_that_was_cut_off_is_fenced_by_the_next_one() -> None:
    fence = MemoryFence()
    fence.first = False
    start = Start(fence, LastRun(True, False, False, True))
    start.before.begin(start.author(), in_transactions=False)
    start.before.cut_off()
    start.author()
    assert (fence.told, start.waits) == ([start.state | {THERE}], [True])


@pytest.mark.parametrize(("records", "waits"), [(0, []), (1, [False])])
def test_where_no_run_is_known_only_what_lies_there_already_can_have_a_writer(records: int, waits: list[bool]) -> None:
    start = Start(MemoryFence())
    start.write(records)
    assert start.author() == Author(7, 1)
    assert start.waits == waits


def test_a_target_that_gives_no_id_is_told_of_and_written_to_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        start = Start(MemoryFence(FenceUnavailable("WRITE is not allowed on the transactional id")))
    start.write(1)
    assert start.author() == Author(99, 0)
    assert start.waits == [False]
    assert "WRITE is not allowed on the transactional id" in caplog.text
    assert "not fenced off" in caplog.text


@pytest.mark.parametrize("last", [LastRun(False, False, False, True), LastRun(True, False, False, True)])
def test_a_coordinator_that_is_away_is_waited_for_by_who_has_somebody_to_fence(last: LastRun) -> None:
    """Else whoever was stopped then could write once he wakes up, for as long as nobody marks the partitions."""
    error = FenceUnavailable("its transaction coordinator answers with error 15", may_pass=True)
    if last.is_clean:
        assert Start(MemoryFence(error), last).author() == Author(99, 0)
    else:
        with pytest.raises(TargetUnavailable, match="answers with error 15"):
            Start(MemoryFence(error), last)


def test_a_target_that_is_away_ends_the_start() -> None:
    with pytest.raises(TargetUnavailable, match="no broker"):
        Start(MemoryFence(ProtocolUnavailable("no broker answers")))


def test_the_exactly_once_mode_fences_whoever_wrote_in_the_default_mode() -> None:
    fence = MemoryFence()
    fence.first = False
    start = Start(fence, LastRun(False, False, False, True), **{"A->B.exactly_once.support": "required"})
    assert start.author() is None
    assert (fence.told, start.waits) == ([start.state, start.state | {THERE}], [True])


def test_an_id_is_kept_alive_by_markers_in_the_topics_of_the_flows_state() -> None:
    fence = MemoryFence()
    start = Start(fence, LastRun(True, False, False, True))
    start.before.begin(start.author(), in_transactions=False)
    start.before.keep_alive()
    assert fence.told == [start.state]


def test_a_login_without_transactions_ends_an_exactly_once_start_before_anything_is_fenced() -> None:
    def make_fence() -> None:
        raise ProtocolUnavailable("cluster B (nowhere:2): kafka-python knows nothing of sasl.oauthbearer.extensions")

    flow = MemoryFlow(flow_settings({"A->B.exactly.once.support": "required"}))
    flow.clusters = replace(flow.clusters, make_fence=make_fence)
    with pytest.raises(TargetUnavailable, match=r"oauthbearer\.extensions.* transactions; log in by"):
        flow.start()
    assert flow.lease.note == ""
