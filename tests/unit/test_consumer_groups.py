"""Rounds of the groups' thread between clusters in memory: checkpoints, offsets on the target, and why not."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace

import pytest

from srm_spark.core.checkpoints import TranslationStatus
from srm_spark.core.cluster import Committed, ControlRecord, GroupOffsets
from srm_spark.core.codec import decode_checkpoint, encode_checkpoint
from srm_spark.core.filters import NameFilter
from srm_spark.core.model import Checkpoint, TopicPartition
from srm_spark.core.tail import TailRecord
from srm_spark.errors import CheckpointFailed
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.groups.checkpoints import Checkpoints
from srm_spark.flow.groups.consumer_groups import ConsumerGroups
from srm_spark.flow.groups.sync import SyncState
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.topics.internal_topics import checkpoints_topic, ensure_topic
from tests.awaiting import await_until
from tests.memory_cluster import MemoryGroups, MemoryLog, MemoryTopic
from tests.unit.memory_flow import HERE, THERE, MemoryFlow, flow_settings
from tests.unit.memory_run import World

UNANSWERED = Failure(FailureKind.GROUP_UNANSWERED, "no answer in 6 tries: the coordinators are moving")
CHECKPOINTS = "A.checkpoints.internal"
KEYS = {
    "emit.offset-syncs.enabled": "true",
    "emit.checkpoints.enabled": "true",
    "sync.group.offsets.enabled": "true",
    "A->B.groups": ".*",
}


class Rounds:
    """A flow that has copied ten records and a group that stands at the fourth."""

    def __init__(self, **keys: str) -> None:
        settings = flow_settings({**KEYS, **keys})
        settings = replace(settings, checkpoints=replace(settings.checkpoints, sync_seconds=0.0))
        self.flow = MemoryFlow(settings)
        self.flow.write(*(b"%d" % number for number in range(10)))
        self.flow.run()
        self.here, self.there = self.flow.source.group_calls, self.flow.target.group_calls
        self.here.committed["g"] = {HERE: Committed(4, "note")}
        self.begin_again()

    def begin_again(self) -> None:
        """As a new run of the flow does."""
        self.groups = ConsumerGroups(self.flow.clusters, self.flow.recorded.maps)

    def round(self) -> dict[str, tuple[SyncState, str]]:
        """Group → what came of it."""
        self.groups.round()
        assert self.groups.report is not None
        return {one.position.group: (one.state, one.detail) for one in self.groups.report.synced}

    def said_before(self, checkpoint: Checkpoint) -> None:
        """By whoever ran the flow."""
        ensure_topic(self.flow.target, checkpoints_topic(self.flow.clusters))
        record = ControlRecord(CHECKPOINTS, *encode_checkpoint(checkpoint), partition=0)
        self.flow.target.writer("test", CheckpointFailed).write([record])

    def checkpoints(self) -> list[Checkpoint]:
        """All that were ever written."""
        log = self.flow.target.held[CHECKPOINTS].partitions[0]
        return [decode_checkpoint(one.key, one.value) for one in log.ever.values()]


class AnswersOnce(MemoryGroups):
    """A coordinator that moves behind the first answer."""

    def offsets(self, groups: Iterable[str]) -> dict[str, GroupOffsets]:
        answers = super().offsets(groups)
        self.refused = dict.fromkeys(answers, UNANSWERED)
        return answers

    def active(self, groups: Collection[str]) -> dict[str, bool | Failure]:
        return dict.fromkeys(groups, False)


def test_a_group_moves_with_its_checkpoint() -> None:
    rounds = Rounds()
    assert rounds.round() == {"g": (SyncState.SYNCED, "")}
    assert rounds.there.committed["g"][THERE].offset == 4
    (checkpoint,) = rounds.checkpoints()
    assert (checkpoint.group, checkpoint.partition, checkpoint.upstream, checkpoint.downstream) == ("g", THERE, 4, 4)
    assert checkpoint.metadata == "note"


def test_a_group_with_members_on_the_target_is_left_alone() -> None:
    rounds = Rounds()
    rounds.there.live["g"] = ("someone",)
    rounds.there.committed["g"] = {THERE: Committed(2)}
    state, _ = rounds.round()["g"]
    assert state is SyncState.ACTIVE
    assert rounds.there.committed["g"][THERE].offset == 2


def test_a_group_that_may_not_be_read_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    rounds = Rounds()
    rounds.here.committed["secret"] = {HERE: Committed(1)}
    rounds.here.refused["secret"] = Failure(FailureKind.GROUP_DENIED, "not authorized")
    assert rounds.round()["g"] == (SyncState.SYNCED, "")
    assert "secret" not in rounds.there.committed
    rounds.round()
    told = [one for one in caplog.messages if "group=secret" in one]
    assert told == ["flow=A->B group=secret is not translated: not authorized"], "once, and not with each round"


def test_a_group_that_is_further_on_the_target_is_left_alone() -> None:
    rounds = Rounds()
    rounds.there.committed["g"] = {THERE: Committed(9)}
    assert rounds.round()["g"][0] is SyncState.AHEAD


def test_positions_go_on_with_what_is_replicated() -> None:
    rounds = Rounds()
    rounds.round()
    rounds.flow.write(b"more")
    rounds.flow.run()
    rounds.here.committed["g"] = {HERE: Committed(11)}
    rounds.begin_again()
    assert rounds.round() == {"g": (SyncState.SYNCED, "")}
    assert [one.downstream for one in rounds.checkpoints()] == [4, 11]


def test_checkpoints_follow_a_group_that_rewinds() -> None:
    rounds = Rounds()
    for offset in (3, 8, 5, 10):
        rounds.here.committed["g"] = {HERE: Committed(offset)}
        rounds.round()
    assert [(one.upstream, one.downstream) for one in rounds.checkpoints()] == [(3, 3), (8, 8), (5, 5), (10, 10)]


@pytest.mark.parametrize("follows", [True, False])
def test_a_group_that_rewinds_on_the_source_rewinds_on_the_target_where_that_is_wanted(*, follows: bool) -> None:
    rounds = Rounds(**{"sync.group.offsets.rewinds.enabled": str(follows).lower()})

    def stands(upstream: int) -> tuple[SyncState, int]:
        rounds.here.committed["g"] = {HERE: Committed(upstream)}
        return rounds.round()["g"][0], rounds.there.committed["g"][THERE].offset

    assert stands(8) == (SyncState.SYNCED, 8)
    if not follows:
        assert stands(3) == (SyncState.AHEAD, 8)
        return
    assert stands(3) == (SyncState.SYNCED, 3)
    rounds.there.committed["g"] = {THERE: Committed(6)}  # it consumed there
    assert stands(2) == (SyncState.AHEAD, 6)


def test_a_filter_of_the_users_own_decides_which_groups_are_taken() -> None:
    rounds = Rounds(**{"group.filter.class": "tests.broker.policies:Paying"})
    for kind in ("paying", "free"):
        rounds.here.committed[f"x-{kind}"] = {HERE: Committed(0)}
    rounds.round()
    assert {one.group for one in rounds.checkpoints()} == {"x-paying"}


def test_a_partition_without_records_translates_0_to_0_and_only_where_it_was_copied() -> None:
    world = World({**KEYS, "A->B.consumer.auto.offset.reset": "latest", "topics.exclude": "empty"})
    here = world.flow.source.group_calls
    world.flow.source.held["empty"] = MemoryTopic([MemoryLog(), MemoryLog()], {})
    for partition in (HERE, TopicPartition("empty", 0)):
        for number in range(5):
            world.flow.source.log(partition).append(TailRecord(0, 1_000, b"k", b"%d" % number))
    stands = {TopicPartition("empty", 0): Committed(5), TopicPartition("empty", 1): Committed(0), HERE: Committed(5)}
    here.committed["g"] = stands
    world.copied()
    world.flow.write(b"more")
    world.copied()
    assert checkpoints_of(world) == {("A.t", 0): (5, 0)}
    world.change({"topics.exclude": "nothing", "A->B.consumer.auto.offset.reset": "earliest"})
    world.copied()
    assert checkpoints_of(world) == {("A.t", 0): (5, 0), ("A.empty", 0): (5, 5), ("A.empty", 1): (0, 0)}


def checkpoints_of(world: World) -> dict[tuple[str, int], tuple[int, int]]:
    """Behind a round of a thread that begins anew: the newest of each partition."""
    recorded = Recorded(world.flow.clusters)
    recorded.refresh()
    ConsumerGroups(world.flow.clusters, recorded.maps).round()
    log = world.flow.target.held[CHECKPOINTS].partitions[0]
    found = [decode_checkpoint(one.key, one.value) for one in log.ever.values()]
    return {(one.partition.topic, one.partition.partition): (one.upstream, one.downstream) for one in found}


class Thread:
    """Rounds by the driver's clock."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds, self.tasks = rounds, Periodic()
        self.tasks.start()
        rounds.groups.start(self.tasks)

    def committed(self) -> int | None:
        found = self.rounds.there.committed.get("g", {}).get(THERE)
        return None if found is None else found.offset

    def end(self) -> None:
        self.rounds.groups.tell_to_stop()
        assert self.rounds.groups.join(10)
        assert self.tasks.stop(10)


def test_rounds_come_by_the_clock_and_with_records() -> None:
    thread = Thread(Rounds())
    await_until(lambda: thread.committed() == 4, 10, "the first round")
    rounds = thread.rounds
    rounds.here.committed["g"] = {HERE: Committed(7)}
    rounds.groups.moved()
    await_until(lambda: thread.committed() == 7, 10, "a round that records caused")
    thread.end()
    rounds.here.committed["g"] = {HERE: Committed(9)}
    rounds.groups.moved()
    assert thread.committed() == 7


def test_what_was_said_of_a_remote_topic_that_was_deleted_holds_no_checkpoint_back() -> None:
    """The one in its place has grown past it; who goes by checkpoints would skip what lies between."""
    rounds = Rounds()
    old = Checkpoint("g", THERE, 2, 9)
    rounds.said_before(old)
    rounds.round()
    assert rounds.checkpoints() == [old, Checkpoint("g", THERE, 4, 4, "note")]


@pytest.mark.parametrize("is_new_run", [True, False])
def test_a_group_goes_back_where_the_target_lost_what_it_stood_behind(*, is_new_run: bool) -> None:
    """New records lie where the lost ones lay: who stands behind these would skip them."""
    rounds = Rounds()
    rounds.here.committed["g"] = {HERE: Committed(10)}
    assert rounds.round() == {"g": (SyncState.SYNCED, "")}
    rounds.flow.remote.cut(7)
    rounds.flow.write(*(b"more" for _ in range(5)))
    rounds.flow.run()
    if is_new_run:
        rounds.begin_again()
    assert rounds.round() == {"g": (SyncState.SYNCED, "")}
    assert rounds.there.committed["g"][THERE].offset == 7
    rounds.there.committed["g"] = {THERE: Committed(8)}
    assert rounds.round()["g"][0] is SyncState.AHEAD, "it consumed one there"


def test_who_came_to_where_it_would_be_set_by_itself_is_not_set_back_behind_a_rewind() -> None:
    rounds = Rounds(**{"sync.group.offsets.rewinds.enabled": "true"})
    rounds.round()
    rounds.here.committed["g"] = {HERE: Committed(10)}
    rounds.there.committed["g"] = {THERE: Committed(10)}  # it consumed there
    assert rounds.round()["g"][0] is SyncState.IN_STEP
    rounds.here.committed["g"] = {HERE: Committed(2)}
    assert rounds.round()["g"][0] is SyncState.AHEAD


def test_a_map_that_ends_earlier_than_what_was_said_sets_nobody_back() -> None:
    """Its own topic may have lost its newest records, or MirrorMaker 2 ran meanwhile: copies are all there."""
    rounds = Rounds()
    rounds.said_before(Checkpoint("g", THERE, 15, 15))
    rounds.here.committed["g"] = {HERE: Committed(15)}
    rounds.there.committed["g"] = {THERE: Committed(15)}
    for _ in range(5):
        rounds.flow.remote.mark()
    assert rounds.round()["g"][0] is SyncState.AHEAD
    assert rounds.there.committed["g"][THERE].offset == 15


def test_a_group_that_consumed_on_the_target_is_not_set_back_where_that_lost_copies() -> None:
    rounds = Rounds()
    rounds.round()
    rounds.there.committed["g"] = {THERE: Committed(9)}
    rounds.flow.remote.cut(3)
    rounds.flow.write(*(b"more" for _ in range(8)))
    rounds.flow.run()
    assert rounds.round()["g"][0] is SyncState.AHEAD


def test_where_a_transaction_may_move_a_group_it_is_not_taken_for_nowhere() -> None:
    rounds = Rounds()
    rounds.there.committed["g"] = {THERE: Committed(8)}
    rounds.there.unsettled = {"g": {THERE}}
    assert rounds.round() == {"g": (SyncState.REFUSED, "a transaction that may move its offset there is open")}
    assert rounds.there.committed["g"][THERE].offset == 8
    rounds.there.unsettled = {}
    assert rounds.round()["g"][0] is SyncState.AHEAD
    rounds.here.unsettled = {"g": {HERE}}
    assert rounds.round() == {}
    assert rounds.groups.report is not None
    told = "a transaction that may move its offset on t-0 is open"
    assert rounds.groups.report.positions.refusals == {"g": told}
    del rounds.there.committed["g"]
    rounds.here.unsettled = {"g": {TopicPartition("other", 0)}}
    assert rounds.round()["g"][0] is SyncState.SYNCED
    assert rounds.groups.report.positions.refusals == {}


def test_a_transaction_that_opens_right_before_the_commit_keeps_the_group_where_it_is() -> None:
    rounds = Rounds()

    class Opens(MemoryGroups):
        def offsets(self, groups: Iterable[str]) -> dict[str, GroupOffsets]:
            answers = super().offsets(groups)
            self.unsettled = {"g": {THERE}}
            return answers

    rounds.flow.target.group_calls = rounds.there = Opens()
    rounds.begin_again()
    assert rounds.round()["g"][0] is SyncState.REFUSED
    assert rounds.there.committed == {}


def test_a_round_that_fails_leaves_nothing_known_of_groups() -> None:
    rounds = Rounds(**{"emit.checkpoints.interval.seconds": "1"})
    thread = Thread(rounds)
    await_until(lambda: rounds.groups.report is not None, 10, "a round")
    rounds.flow.source.down = "no route"
    rounds.groups.moved()
    await_until(lambda: rounds.groups.report is None, 10, "it is not known any more")
    rounds.flow.source.down = None
    await_until(lambda: rounds.groups.report is not None, 10, "it is known again")
    thread.end()


def test_a_round_that_fails_is_told_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    rounds = Rounds(**{"emit.checkpoints.interval.seconds": "1"})
    rounds.flow.target.down = "no route"
    with caplog.at_level(logging.WARNING):
        thread = Thread(rounds)
        await_until(lambda: len(failures(caplog)) > 0, 10, "it is told")
        rounds.groups.moved()
        rounds.flow.target.down = None
        await_until(lambda: thread.committed() == 4, 10, "it is over")
        thread.end()
    assert len(failures(caplog)) == 1


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one for one in caplog.messages if "consumer groups are not translated" in one]


def test_where_nothing_is_wanted_nothing_begins() -> None:
    rounds = Rounds(**{"emit.checkpoints.enabled": "false", "sync.group.offsets.enabled": "false"})
    thread = Thread(rounds)
    assert not rounds.groups.is_wanted
    thread.end()


def test_once_the_source_is_gone_checkpoints_say_where_groups_stood() -> None:
    rounds = Rounds()
    rounds.here.committed["h"] = {HERE: Committed(9)}
    rounds.round()
    rounds.flow.source.down = "no route"
    checkpoints = Checkpoints(rounds.flow.clusters)
    checkpoints.refresh()
    found = checkpoints.positions(NameFilter((".*",))).known
    assert [(one.group, one.partition, one.remote, one.translation.downstream) for one in found] == [
        ("g", HERE, THERE, 4),
        ("h", HERE, THERE, 9),
    ]
    (only,) = checkpoints.positions(NameFilter(("h",))).known
    assert (only.group, only.committed.offset, only.target_end) == ("h", 9, 10)
    rounds.flow.remote.cut(6)
    beyond = checkpoints.positions(NameFilter(("h",))).known[0].translation
    assert (beyond.status, beyond.downstream) == (TranslationStatus.BEYOND, None)
