"""Attempts to run a flow, between clusters in memory: what it starts, what ends it, what it goes on with."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest

from srm_spark.core.driver_status import DriverId
from srm_spark.core.last_run import LastRun
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.spreading import StandBy
from srm_spark.core.tail import TailRecord
from srm_spark.errors import (
    AnotherSource,
    LeaseHeld,
    LeaseLost,
    QueryFailed,
    SourceUnavailable,
    TargetUnavailable,
)
from srm_spark.failure import Effect, Failure, FailureKind
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.refused.unreadable import OVERFLOW_MS
from srm_spark.flow.share import OTHERS_SECONDS, Share
from srm_spark.flow.status import FlowState
from srm_spark.flow.topics.progress import ProgressTopic
from tests.awaiting import await_until
from tests.memory_cluster import MemoryLog, MemoryTopic
from tests.unit.memory_flow import HERE, THERE
from tests.unit.memory_run import QUICK, World

OTHER = TopicPartition("other", 0)


def last_run(world: World) -> LastRun:
    world.flow.recorded.progress.close()
    world.flow.recorded.progress.refresh()
    return world.flow.recorded.progress.last_run


def test_a_run_copies_says_so_and_ends_cleanly() -> None:
    world = World()
    world.flow.write(b"a", b"b")
    with world.run() as run:
        assert run.begin()
        assert (world.last("lag_records"), world.last("topics"), world.last("partitions")) == (2, 1, 1)
        world.generation.copy()
        run.tick()
        assert (world.total("records"), world.last("lag_records")) == (2, 0)
        assert world.last("batch_ms") == {"addBatch": 3}
        assert world.shown[-1][0] is FlowState.RUNNING
        assert world.flow.lease.held
    assert world.generation.is_ended
    assert not world.flow.lease.held
    world.flow.start()
    assert world.values() == [b"a", b"b"]


def test_what_a_clean_end_leaves_spares_the_next_start_its_wait() -> None:
    world = World()
    world.flow.write(b"a")
    with world.run() as run:
        run.begin()
        world.generation.copy()
    assert world.waited == [], "nobody has ever run"
    with world.run() as run:
        run.begin()
    assert world.waited == []
    with world.run(after_failure=True) as run:
        run.begin()
    assert world.waited == [False]


def test_behind_a_batch_that_was_interrupted_the_next_start_waits() -> None:
    world = World()
    world.flow.write(b"a")
    with world.run() as run:
        run.begin()
        world.generation.ends_cleanly = False
    with world.run() as run:
        run.begin()
    assert len(world.waited) == 1


def test_a_run_that_fails_says_so_at_once_and_leaves_no_note() -> None:
    world = World()
    with pytest.raises(SourceUnavailable, match="no route"):
        world.attempt(lambda: setattr(world.flow.source, "down", "no route"))
    assert world.shown[-1][0] is FlowState.RETRYING
    assert not world.flow.lease.held
    world.flow.source.down = None
    world.flow.start()
    assert not last_run(world).is_clean


def test_what_a_batch_recorded_before_a_clean_end_is_counted() -> None:
    world = World()
    world.flow.write(b"a", b"b")
    with world.run() as run:
        run.begin()
        world.generation.copy()
    assert world.total("records") == 2


# The lease


@pytest.mark.parametrize("what", ["its lease is lost", "its query has failed"])
def test_a_look_that_waited_for_a_cluster_does_not_show_as_running_what_has_ended_meanwhile(what: str) -> None:
    world = World()
    world.flow.write(b"a")
    with world.run() as run:
        run.begin()
        assert world.shown[-1][0].value == "running"

        def ends(asked: str) -> None:
            if asked == "list offsets":
                world.flow.source.happens = lambda _: None
                if what == "its lease is lost":
                    world.flow.lease.held = False
                else:
                    world.generation.failed = Failure(FailureKind.LEASE_LOST, "it is lost")

        world.flow.source.happens = ends
        run.tick()
        assert world.shown[-1][0].value == "starting"


def test_a_flow_of_another_driver_is_left_alone_or_waited_for() -> None:
    world = World()
    world.flow.lease.owner = "driver@host"
    with pytest.raises(LeaseHeld, match="another driver owns the flow: driver@host"), world.run(waits=False) as run:
        run.begin()
    assert FlowState.RETRYING not in {state for state, _, _ in world.shown}, "it is no failure"
    run = world.run()
    with run:
        waiting = threading.Thread(target=run.begin)
        waiting.start()
        await_until(lambda: world.shown[-1][0] is FlowState.WAITING, 10, "it waits")
        assert world.generations == []
        world.flow.lease.owner = None
        waiting.join(10)
        assert len(world.generations) == 1


@pytest.mark.parametrize("owner", ["h2 pid 2", None])
def test_what_is_copied_from_another_cluster_is_never_copied_from_ours(owner: str | None) -> None:
    """Not beside whoever copies it, nor while he is away."""
    world = World()
    world.flow.lease.owner, world.flow.lease.copied_from = owner, "theirs"
    with pytest.raises(AnotherSource) as raised, world.run() as run:
        run.begin()
    remedy = owner or "A->B.flow.source.cluster.id = id-of-A"
    for part in ("flow A->B", "the Kafka cluster id-of-A", "theirs", remedy, "give the source another alias"):
        assert part in str(raised.value)
    assert (world.flow.lease.held, world.generations) == (False, [])
    assert (world.shown[-1][0], world.shown[-1][1]) == (FlowState.RETRYING, str(raised.value))


def test_a_source_that_was_built_anew_is_copied_from_once_the_file_says_so(caplog: pytest.LogCaptureFixture) -> None:
    world = World({"flow.source.cluster.id": "id-of-A"})
    world.flow.lease.copied_from = "the one before"
    with world.run() as run:
        assert run.begin()
    assert world.flow.lease.copied_from == "id-of-A"
    assert "is copied from the Kafka cluster id-of-A from now on, and was from the one before" in caplog.text


def test_who_copies_from_another_cluster_goes_first_whatever_the_file_says() -> None:
    world = World({"flow.source.cluster.id": "id-of-A"})
    world.flow.lease.owner, world.flow.lease.copied_from = "h2 pid 2", "theirs"
    said = "a driver of another installation copies the flow from theirs: h2 pid 2"
    with pytest.raises(AnotherSource, match=said), world.run() as run:
        run.begin()


def test_a_source_that_is_not_the_one_of_the_file_is_not_copied_from() -> None:
    world = World({"flow.source.cluster.id": "another"})
    said = r"cluster id-of-A, and flow\.source\.cluster\.id says another; correct"
    with pytest.raises(AnotherSource, match=said), world.run() as run:
        run.begin()
    assert world.generations == []


def error_behind_a_wait(world: World, then: Callable[[], None]) -> BaseException | None:
    """What ends a run that waits for another driver, until `then`."""

    def run_it() -> None:
        with world.run() as run:
            run.begin()

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(run_it)
        await_until(lambda: world.shown and world.shown[-1][0] is FlowState.WAITING, 10, "it waits")
        then()
        return ended.exception(10)


def test_who_has_waited_asks_again_which_cluster_its_source_is() -> None:
    """It may have been built anew meanwhile, or its name may lead elsewhere."""
    world = World()
    world.flow.lease.owner, world.flow.lease.copied_from = "h2 pid 2", "id-of-A"

    def is_another() -> None:
        world.flow.source.its_id = "another one"
        world.flow.lease.owner = None

    assert type(error_behind_a_wait(world, is_another)) is AnotherSource
    assert world.generations == []


def test_without_waiting_a_flow_of_another_installation_is_another_drivers(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.flow.lease.owner, world.flow.lease.copied_from = "h2 pid 2", "theirs"
    with pytest.raises(LeaseHeld, match="h2 pid 2"), world.run(waits=False) as run:
        run.begin()


def test_the_lease_is_given_up_whatever_else_fails_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def fail() -> None:
        raise RuntimeError("no more")

    def begin_and_end() -> None:
        with world.run() as run:
            assert run.begin()
            monkeypatch.setattr(ProgressTopic, "close", lambda _: fail())

    with pytest.raises(RuntimeError, match="no more"):
        begin_and_end()
    assert not world.flow.lease.held


def test_who_stands_by_does_so_while_its_source_is_away_and_does_not_copy_before_it_knows_which_one_it_is() -> None:
    world = World()
    world.flow.lease.owner = world.flow.lease.copied_from = "theirs"

    def is_away(asked: str) -> None:
        if asked == "ask for its id":
            raise SourceUnavailable("it is away")

    world.flow.source.happens = is_away

    def is_gone() -> None:
        world.flow.lease.owner = None

    assert type(error_behind_a_wait(world, is_gone)) is SourceUnavailable
    assert world.generations == []


def test_who_waits_for_a_flow_can_be_told_to_stop() -> None:
    world = World()
    world.flow.lease.owner = "driver@host"
    world.stop.set()
    with world.run() as run:
        assert not run.begin()
    assert world.generations == []


def test_who_has_lost_the_lease_stops() -> None:
    world = World()
    with pytest.raises(LeaseLost):
        world.attempt(world.flow.lease.release)
    assert world.generation.is_ended


def test_it_ticks_until_it_is_told_to_stop() -> None:
    world = World()
    with world.run() as run:
        running = threading.Thread(target=run.until_stopped)
        running.start()
        await_until(lambda: len(world.shown) > 5, 10, "some ticks")
        world.stop.set()
        running.join(10)
        assert not running.is_alive()


# Other partitions


def test_a_new_topic_begins_another_generation() -> None:
    world = World()
    with world.run() as run:
        run.begin()
        run.tick()
        assert world.generation.partitions == {HERE}
        world.topic("other", b"x")
        run.tick()
        assert world.generation.partitions == {HERE, OTHER}
        world.generation.copy()
        run.tick()
    assert world.values("A.other") == [b"x"]
    assert len(world.generations) == 2


def test_a_topic_made_anew_begins_another_generation() -> None:
    world = World()
    world.flow.write(b"a", b"b")
    with world.run() as run:
        run.begin()
        world.generation.copy()
        run.tick()
        world.topic("t", b"new")
        run.tick()
        world.generation.copy()
    assert world.values() == [b"a", b"b", b"new"]


def test_where_topics_are_not_looked_for_nothing_begins() -> None:
    world = World({"refresh.topics.enabled": "false"})
    with world.run() as run:
        run.begin()
        world.topic("other", b"x")
        run.tick()
        assert world.generation.partitions == {HERE}


def test_a_remote_topic_that_does_not_show_is_held_and_the_others_flow(caplog: pytest.LogCaptureFixture) -> None:
    """We may make it, and not see it: that is waited for once."""
    world = World(timings=replace(QUICK, retry_paused_seconds=0.0))
    world.topic("other", b"x")
    world.flow.write(b"a")
    world.flow.target.unlisted = {"A.other"}
    with caplog.at_level(logging.INFO), world.run() as run:
        run.begin()
        why = "A.other on B was created and does not show; check the controller, and DESCRIBE on it"
        assert (world.generation.partitions, world.held) == ({HERE}, {"other": why})
        begun = time.monotonic()
        run.tick()
        assert time.monotonic() < begun + 0.2
        assert world.generation.partitions == {HERE}
        world.generation.copy()
        world.flow.target.unlisted = set()
        run.tick()
        assert (world.generation.partitions, world.held) == ({HERE, OTHER}, {})
    assert len([one for one in caplog.messages if "created" in one and "A.other" in one]) == 1


def test_where_no_remote_topic_shows_the_run_fails() -> None:
    world = World()
    world.flow.write(b"a")
    world.flow.target.unlisted = {"A.t"}
    with world.run() as run, pytest.raises(TargetUnavailable, match="does not show"):
        run.begin()


# Records that are refused


def test_a_refused_record_pauses_its_partition_until_the_limit_is_another_one() -> None:
    world = World()
    world.topic("other", b"x", b"y")
    world.flow.write(b"a", b"big", b"c")
    too_large = Failure(FailureKind.TOO_LARGE, "too large")
    world.refuse = lambda _, record: too_large if record.value == b"big" else None
    with world.run() as run:
        run.begin()
        world.generation.copy()
        run.tick()
        assert world.generation.partitions == {OTHER}
        assert world.held == {"t-0": "held at offset 1: too large"}
        assert world.last("lag_records") == 2
        run.tick()
        assert len(world.generations) == 2, "it rests"
        world.refuse = lambda *_: None
        world.flow.target.held["A.t"].configs["max.message.bytes"] = "9000"
        run.tick()
        world.generation.copy()
        run.tick()
        assert world.held == {}
    assert world.values() == [b"a", b"big", b"c"]
    assert world.values("A.other") == [b"x", b"y"]


@pytest.mark.parametrize(("policy", "generations"), [("park", 2), ("fix", 2), ("hold", 1)])
def test_what_a_remote_topic_takes_by_now_is_put_aside_no_more(policy: str, generations: int) -> None:
    world = World({f"policy.{policy}.topics": "t"})
    world.flow.write(b"a")
    with world.run() as run:
        run.begin()
        run.tick()
        assert len(world.generations) == 1
        world.flow.target.held["A.t"].configs["max.message.bytes"] = "9000"
        run.tick()
        run.tick()
        assert len(world.generations) == generations
        assert world.generation.assignment.routes["t"].limits.max_bytes == (9000 if generations > 1 else 1_048_588)


def test_a_paused_partition_is_tried_again_in_time() -> None:
    world = World(timings=replace(QUICK, retry_paused_seconds=0.0))
    world.flow.write(b"a", b"b")
    world.refuse = lambda *_: Failure(FailureKind.NO_KEY, "no key")
    with world.run() as run:
        run.begin()
        world.generation.copy()
        run.tick()
        assert world.generation.partitions == set()
        world.refuse = lambda *_: None
        run.tick()
        world.generation.copy()
    assert world.values() == [b"a", b"b"]


@pytest.mark.parametrize("refresh", [600.0, -1.0])
def test_it_is_tried_again_however_seldom_anybody_wants_new_topics(refresh: float) -> None:
    world = World(timings=replace(QUICK, retry_paused_seconds=0.3), refresh_seconds=refresh)
    world.flow.write(b"a", b"b")
    world.refuse = lambda *_: Failure(FailureKind.NO_KEY, "no key")
    with world.run() as run:
        run.begin()
        run.tick()  # the first look of all
        world.generation.copy()
        run.tick()
        assert world.generation.partitions == set()
        world.refuse = lambda *_: None

        def is_tried() -> bool:
            run.tick()
            return world.generation.partitions == {HERE}

        await_until(is_tried, 10, "another try")
        world.generation.copy()
    assert world.values() == [b"a", b"b"]


def test_who_wants_no_new_topics_is_not_looked_at_all_the_time() -> None:
    world, asked = World(refresh_seconds=-1.0), list[str]()
    world.flow.write(b"a")
    world.refuse = lambda *_: Failure(FailureKind.TOO_LARGE, "too large")
    with world.run() as run:
        run.begin()
        run.tick()
        world.generation.copy()
        run.tick()
        world.flow.target.happens = asked.append
        for _ in range(5):
            run.tick()
    assert "read configs" not in asked, "limits of what is held"


def test_a_restart_tries_it_at_once_and_copies_nothing_twice() -> None:
    world = World()
    world.flow.write(b"a", b"b")
    world.refuse = lambda _, record: Failure(FailureKind.NO_KEY, "no key") if record.value == b"b" else None
    for _ in range(2):
        with world.run() as run:
            run.begin()
            world.generation.copy()
            run.tick()
            assert world.held == {"t-0": "held at offset 1: no key"}
            assert world.values() == [b"a"]
    world.refuse = lambda *_: None
    with world.run() as run:
        run.begin()
        world.generation.copy()
    assert world.values() == [b"a", b"b"]


def test_what_the_source_dropped_is_waited_for_no_more() -> None:
    world = World()
    world.flow.write(b"a", b"big", b"c")
    world.refuse = lambda _, record: Failure(FailureKind.TOO_LARGE, "x") if record.value == b"big" else None
    with world.run() as run:
        run.begin()
        world.generation.copy()
        run.tick()
        assert world.generation.partitions == set()
        world.flow.log.delete_before(2)
        run.tick()
        world.generation.copy()
        run.tick()
        assert world.values() == [b"a", b"c"]
        assert world.losses == {"t-0": "1 to 1"}
    assert world.total("lost_records") == 1


def test_unreadable_records_are_passed_where_the_policy_says_so_and_pause_elsewhere() -> None:
    world = World({"policy.park.topics": "t"})
    for topic in ("t", "other"):
        log = world.topic(topic, b"0")
        log.append(TailRecord(0, OVERFLOW_MS, b"k", b"far"))
        log.append(TailRecord(0, 1_000, b"k", b"2"))
    with world.run() as run:
        run.begin()
        world.fail(FailureKind.TIMESTAMP_OVERFLOW)
        run.tick()
        assert world.passed == [{HERE}]
        assert (HERE in world.generation.blocked, OTHER in world.generation.blocked) == (False, True)
        world.generation.copy()
        run.tick()
        assert world.held.keys() == {"other-0"}
    assert world.values() == [b"0", b"2"]
    assert world.values("A.other") == [b"0"]


# Failures of a query


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind.effect is Effect.STARTS_ANEW])
def test_what_another_look_at_both_sides_mends_begins_another_generation(kind: FailureKind) -> None:
    world = World()
    world.flow.write(b"a")
    with world.run() as run:
        run.begin()
        world.fail(kind)
        run.tick()
        assert len(world.generations) == 2
        world.generation.copy()
    assert world.values() == [b"a"]
    assert len(world.waited) == 1, "the other tasks of the batch may be under way"


@pytest.mark.parametrize(
    "kind",
    [kind for kind in FailureKind if kind.effect not in (Effect.STARTS_ANEW, Effect.SEARCHES)],
)
def test_everything_else_fails_the_run(kind: FailureKind) -> None:
    world = World()
    with pytest.raises(QueryFailed, match="words") as raised:
        world.attempt(lambda: world.fail(kind))
    assert raised.value.kind is kind
    assert len(world.generations) == 1


def test_topics_that_may_not_be_read_wait_and_the_others_go_on() -> None:
    world = World()
    world.topic("other", b"x")
    world.flow.write(b"a")
    with world.run() as run:
        run.begin()
        world.generation.failed = Failure(FailureKind.SOURCE_DENIED, "not authorized", ("other",))
        run.tick()
        assert world.generation.partitions == {HERE}
        world.generation.copy()
        run.tick()
        assert world.held == {"other-0": "held at offset 0: not authorized"}
    assert world.values() == [b"a"]


def test_a_search_that_finds_nothing_new_fails_the_run() -> None:
    world = World()
    with pytest.raises(QueryFailed):
        world.attempt(lambda: world.fail(FailureKind.TIMESTAMP_OVERFLOW))


# What is lost


def test_losses_that_a_start_finds_are_told_before_its_first_batch() -> None:
    world = World()
    world.flow.write(b"a")
    with world.run() as run:
        run.begin()
        world.generation.copy()
    world.flow.write(b"b", b"c")
    world.flow.log.delete_before(2)
    with world.run() as run:
        run.begin()
        assert world.losses == {"t-0": "1 to 1"}
        assert world.total("lost_records") == 1
        world.generation.copy()
    assert world.values() == [b"a", b"c"]


@pytest.mark.parametrize("policy", ["resume", "stop"])
def test_a_remote_topic_that_is_deleted_under_a_running_flow(policy: str) -> None:
    world = World({"target.changed.policy": policy})
    world.flow.write(b"a", b"b")
    with world.run() as run:
        run.begin()
        world.generation.copy()
        run.tick()
        world.flow.target.delete("A.t")
        world.flow.write(b"c")
        world.fail(FailureKind.TARGET_CHANGED)
        run.tick()
        if policy == "stop":
            assert "is gone on B" in world.held["t"]
            assert "set target.changed.policy=resume" in world.held["t"]
            assert "A.t" not in world.flow.target.held
            return
        world.generation.copy()
        run.tick()
        assert world.losses == {"t-0": "0 to 1"}
    assert world.values() == [b"c"]


def test_a_remote_topic_made_anew_is_noticed_by_a_look() -> None:
    world = World()
    world.flow.write(b"a", b"b")
    with world.run() as run:
        run.begin()
        world.generation.copy()
        run.tick()
        world.flow.target.held["A.t"] = MemoryTopic([MemoryLog()], {})
        world.flow.write(b"c")
        run.tick()
        world.generation.copy()
        run.tick()
        assert world.losses == {"t-0": "0 to 1"}
    assert world.values() == [b"c"]


# A cluster that is away


def test_a_target_that_is_away_at_the_start_fails_it() -> None:
    world = World()
    world.flow.target.down = "no route"
    with pytest.raises(TargetUnavailable), world.run() as run:
        run.begin()
    assert world.generations == []
    assert THERE.topic not in world.flow.target.held


def test_too_large_factors_are_told_by_the_first_attempt_alone(caplog: pytest.LogCaptureFixture) -> None:
    world = World({"offset.storage.replication.factor": "3"})
    for after_failure in (False, True):
        with pytest.raises(TargetUnavailable), world.run(after_failure=after_failure) as run:
            run.begin()
    assert len([one for one in caplog.messages if "topics cannot be created with it" in one]) == 1


# Topics that wait, and others that go on


def test_a_foreign_record_holds_its_partition_and_the_others_go_on() -> None:
    world = World()
    world.topic("other", b"x")
    world.flow.write(b"a", b"b")
    world.copied()
    world.flow.remote.append(TailRecord(0, 1, b"who", b"am I"))
    world.flow.write(b"later")
    world.flow.source.log(OTHER).append(TailRecord(0, 1_000, b"k", b"y"))
    world.copied()
    held = world.held
    assert held.keys() == {"t-0"}
    assert held["t-0"].startswith("held at offset 2: ")
    assert "foreign writer" in held["t-0"]
    assert world.values("A.other") == [b"x", b"y"]
    assert world.values() == [b"a", b"b", b"am I"]


def test_a_topic_that_keeps_its_name_is_held_when_records_of_another_flow_are_read_back() -> None:
    world = World({"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"})
    world.topic("own", b"x")
    world.flow.write(b"a")
    world.copied()
    world.flow.target.log(HERE).append(TailRecord(0, 1_000, b"k", b"of C"))
    world.flow.write(b"b")
    world.flow.source.log(TopicPartition("own", 0)).append(TailRecord(0, 1_000, b"k", b"y"))
    world.copied()
    assert world.held.keys() == {"t-0"}
    assert (world.values("t"), world.values("own")) == ([b"a", b"of C"], [b"x", b"y"])


def test_records_deleted_before_they_were_replicated_hold_where_the_policy_says_so() -> None:
    world = World({"policy.stop.topics": "t"})
    world.topic("other", b"x")
    world.flow.write(b"a")
    world.copied()
    world.flow.write(b"b", b"c")
    world.flow.log.delete_before(2)
    world.flow.source.log(OTHER).append(TailRecord(0, 1_000, b"k", b"y"))
    world.copied()
    held = world.held["t-0"]
    assert held.startswith("held at offset 1")
    assert "source.truncated.policy=resume" in held
    assert (world.values(), world.values("A.other")) == ([b"a"], [b"x", b"y"])


@pytest.mark.parametrize("count", [2, 20])
@pytest.mark.parametrize("policy", ["resume", "stop"])
def test_a_topic_made_anew_under_a_running_flow(count: int, policy: str) -> None:
    """Longer than it was, the batch that would skip its first records sees it; shorter, a look does."""
    world = World({"source.recreated.policy": policy})
    world.flow.write(b"0", b"1", b"2")
    with world.run() as run:
        run.begin()
        world.generation.copy()
        run.tick()
        world.topic("t", *(b"new %d" % number for number in range(count)))
        if count == 20:
            world.fail(FailureKind.SOURCE_CHANGED)
        run.tick()
        world.generation.copy()
        run.tick()
    if policy == "stop":
        assert "created anew" in world.held["t-0"]
        assert world.values() == [b"0", b"1", b"2"]
    else:
        assert world.values()[3:] == [b"new %d" % number for number in range(count)]
        assert world.total("records") == 3 + count


@pytest.mark.parametrize(("way", "values"), [("resume", [b"later"]), ("recopy", [b"a", b"b", b"later"])])
def test_a_topic_of_another_name_waits_until_somebody_says_which_way(way: str, values: list[bytes]) -> None:
    world, now = World(), {"replication.policy.separator": "-"}
    world.flow.write(b"a", b"b")
    world.copied()
    world.flow.write(b"later")
    world.change(now)
    world.copied()
    assert "lie in A.t on B and would go to A-t" in world.held["t"]
    assert "A-t" not in world.flow.target.held
    world.change({**now, "target.renamed.policy": way})
    for _ in range(2):  # and once more, when nothing is left to decide
        world.copied()
    assert (world.values("A-t"), world.values("A.t")) == (values, [b"a", b"b"])
    assert world.losses == {}


def test_a_topic_whose_id_is_not_known_for_a_moment_is_not_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.flow.write(b"a")
    world.copied()
    real, asked = world.flow.target.topic_ids, list[object]()

    def late(names: Collection[str]) -> dict[str, str]:
        asked.extend([names] if set(names) == {"A.t"} else [])
        return {} if set(names) == {"A.t"} and len(asked) == 1 else real(names)

    monkeypatch.setattr(world.flow.target, "topic_ids", late)
    world.flow.write(b"b")
    world.copied()
    assert (world.held, world.values(), world.losses) == ({}, [b"a", b"b"], {})


def test_a_topic_that_comes_later_waits_for_somebody_to_say_which_way_too() -> None:
    world = World()
    world.flow.write(b"a")
    world.topic("late", b"x")
    world.copied()
    kept = world.flow.source.held.pop("late")
    world.change({"replication.policy.separator": "-"})
    with world.run() as run:
        run.begin()
        assert set(world.held) == {"t"}
        world.flow.source.held["late"] = kept
        run.tick()
        assert "lie in A.late on B and would go to A-late" in world.held["late"]
    assert "A-late" not in world.flow.target.held
    assert world.losses == {}


# The topics that it makes, or finds


def test_a_topic_that_cannot_be_made_is_held_and_the_others_flow() -> None:
    """One broker cannot keep two copies; what is there already needs no creation."""
    world = World({"replication.factor": "2"})
    world.topic("missing", b"x")
    world.flow.target.held["A.t"] = MemoryTopic([MemoryLog()], {})
    world.flow.write(b"a")
    world.copied()
    reason = world.held["missing"]
    assert reason.startswith("A.missing cannot be created on B: ")
    assert "replication factor" in reason
    assert "A.missing" not in world.flow.target.held
    assert world.values() == [b"a"]


def test_remote_topics_inherit_what_is_not_excluded_and_larger_ones_are_left_alone() -> None:
    world = World()
    configs = {"min.insync.replicas": "1", "retention.ms": "-1"}
    world.flow.source.held["t"] = MemoryTopic([MemoryLog()], configs)
    world.flow.source.held["larger"] = MemoryTopic([MemoryLog(), MemoryLog()], configs)
    world.flow.target.held["A.larger"] = MemoryTopic([MemoryLog() for _ in range(5)], {"retention.ms": "9"})
    for partition in (0, 1):
        world.flow.source.log(TopicPartition("larger", partition)).append(TailRecord(0, 1_000, b"k", b"v"))
    world.copied()
    assert world.flow.target.held["A.t"].configs == {"retention.ms": "-1"}
    assert world.flow.target.held["A.larger"].configs == {"retention.ms": "9"}
    assert [log.end for log in world.flow.target.held["A.larger"].partitions] == [1, 1, 0, 0, 0]


def test_a_filter_of_the_users_own_decides_what_remote_topics_inherit() -> None:
    world = World({"config.property.filter.class": "tests.broker.policies:NoSegments"})
    world.flow.source.held["t"] = MemoryTopic([MemoryLog()], {"segment.ms": "77777777", "retention.ms": "9"})
    world.copied()
    assert world.flow.target.held["A.t"].configs == {"retention.ms": "9"}


def test_a_progress_topic_that_deletes_by_age_is_refused_until_it_is_compacted() -> None:
    world = World()
    name = world.flow.settings.progress_topic
    world.flow.write(b"a")
    world.flow.target.held[name] = MemoryTopic([MemoryLog() for _ in range(3)], {"cleanup.policy": "delete"})
    with pytest.raises(TargetUnavailable) as raised:
        world.copied()
    assert f"topic {name}: it holds how far each partition was replicated" in str(raised.value)
    assert f"--topic {name} --add-config cleanup.policy=compact" in str(raised.value)
    assert "A.t" not in world.flow.target.held
    world.flow.target.held[name].configs["cleanup.policy"] = "compact"
    world.copied()
    assert world.values() == [b"a"]


def test_a_stall_is_shown_whatever_the_run_is_at_and_its_end_as_well() -> None:
    world, tasks = World(timings=replace(QUICK, silent_seconds=0.4)), Periodic()
    world.flow.write(b"a")
    with world.run(tasks=tasks) as run:
        tasks.start()
        run.begin()
        world.generation.copy()
        run.tick()
        world.flow.source.down = "no route"
        await_until(lambda: world.shown[-1][0] is FlowState.STALLED, 20, "it is told")
        _, reason, changes = world.shown[-1]
        assert "no route" in (reason or "")
        assert changes["unknown_since"] > 0
        world.flow.source.down = None
        await_until(lambda: world.shown[-1][0] is FlowState.RUNNING, 20, "it is over")
    assert tasks.stop(10)


def two_topics() -> World:
    """One record in each."""
    world = World()
    world.flow.write(b"a")
    world.topic("other", b"x")
    return world


def test_of_a_log_that_ends_before_what_was_copied_nobody_knows_the_lag() -> None:
    world = two_topics()
    with world.run() as run:
        run.begin()
        world.generation.copy()
        run.tick()
        assert world.last("lag_records") == 0
        world.flow.log.cut(0)
        run.tick()
        assert world.last("lag_records") is None


def test_of_a_topic_that_is_held_before_its_first_record_nobody_knows_the_lag() -> None:
    world = two_topics()
    world.flow.target.forbidden[f"A.{OTHER.topic}"] = "not allowed"
    with world.run() as run:
        run.begin()
        world.generation.copy()
        run.tick()
        assert (set(world.held), world.last("lag_records")) == ({OTHER.topic}, None)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_partition_without_a_leader_waits_for_one_and_no_other_does(side: str) -> None:
    world = two_topics()
    world.copied()
    world.flow.write(b"b")
    world.flow.source.log(OTHER).append(TailRecord(0, 1, None, b"y"))
    cluster, led = (world.flow.source, HERE) if side == "source" else (world.flow.target, THERE)
    cluster.without_leader = {led}
    with world.run() as run:
        run.begin()
        assert world.generation.partitions == {OTHER}
        world.generation.copy()
        run.tick()
        assert "no leader" in world.held["t-0"]
        assert world.held["t-0"].startswith("held at offset 1: ")
        assert world.last("lag_records") is None, "nobody knows how much there is"
        begun = len(world.generations)
        run.tick()
        assert len(world.generations) == begun, "it rests"
        cluster.without_leader = set()
        run.tick()
        assert world.generation.partitions == {HERE, OTHER}
        world.generation.copy()
        run.tick()
        assert (world.held, world.last("lag_records")) == ({}, 0)
    assert (world.values(), world.values("A.other")) == ([b"a", b"b"], [b"x", b"y"])


def test_a_leader_that_is_lost_while_a_query_runs_stops_its_partition_only() -> None:
    world = two_topics()
    with world.run() as run:
        run.begin()
        world.generation.copy()
        run.tick()
        world.flow.source.without_leader = {HERE}
        run.tick()
        assert world.generation.partitions == {OTHER}
        assert "no leader" in world.held["t-0"]


class Shared:
    """A driver that has two flows, and another one that stands by for this one."""

    def __init__(self, **keys: str) -> None:
        self.now = 0.0
        self.share = Share(DriverId("h1", 1, 1), lambda: self.now)
        self.share.begin(Flow("C", "D"))
        self.world = World(keys)
        self.lease = self.world.flow.lease

    def comes(self, load: float) -> None:
        """The other driver, a minute later."""
        self.lease.others.append(StandBy(DriverId("h2", 2, 2), load))
        self.now += 60.0


def test_a_flow_goes_to_a_driver_with_less_to_do_that_stands_by_and_is_waited_for_then() -> None:
    shared = Shared()
    with shared.world.run(share=shared.share) as run:
        ended = Future[str | None]()
        running = threading.Thread(target=lambda: ended.set_result(run.until_stopped()))
        running.start()
        await_until(lambda: len(shared.world.generations) == 1, 10, "it runs")
        shared.comes(1.5)
        await_until(lambda: len(shared.world.shown) > 5, 10, "it looks")
        assert not ended.done(), "it has about as much to do"
        shared.comes(0.0)
        assert ended.result(10) == "goes to h2 pid 2, which has less to do"
        running.join(10)
    assert shared.world.generation.is_ended
    assert not shared.lease.held
    shared.lease.owner = "h2 pid 2"
    with shared.world.run(share=shared.share) as again:
        waiting = threading.Thread(target=again.until_stopped)
        waiting.start()
        await_until(lambda: len(shared.lease.said) > 0, 10, "it stands by")
        assert shared.lease.said[0] == StandBy(DriverId("h1", 1, 1), 1.0)
        shared.world.stop.set()
        waiting.join(10)


def test_who_has_no_spark_yet_stands_by_for_nothing_and_leaves_what_is_free_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = Shared()
    shared.world.spark = Future()
    shared.lease.owner = "h2 pid 2"
    waited = list[float]()
    with shared.world.run(share=shared.share) as run:
        waiting = threading.Thread(target=run.until_stopped)
        waiting.start()
        await_until(lambda: shared.world.shown[-1][0] is FlowState.WAITING, 10, "it waits")
        await_until(lambda: len(shared.world.shown) > 5, 10, "it looks")
        assert shared.lease.said == []
        shared.comes(9.0)
        monkeypatch.setattr(shared.world.stop, "wait", waited.append)
        shared.lease.owner = None
        await_until(lambda: len(shared.world.generations) == 1, 10, "nobody else took it")
        assert OTHERS_SECONDS in waited
        monkeypatch.undo()
        shared.world.stop.set()
        waiting.join(10)


def test_who_is_told_to_stop_while_others_may_take_it_does_not_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Shared()
    shared.comes(0.0)
    stop = shared.world.stop

    def told(_: float) -> bool:
        stop.set()
        return True

    monkeypatch.setattr(stop, "wait", told)
    monkeypatch.setattr(shared.lease, "acquire", lambda: pytest.fail("it is taken"))
    with shared.world.run(share=shared.share) as run:
        assert not run.begin()


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_flow_that_shall_not_be_spread_stays(*, is_alone: bool) -> None:
    shared = Shared(**{} if is_alone else {"flow.spread.enabled": "false"})
    with shared.world.run(share=None if is_alone else shared.share) as run:
        running = threading.Thread(target=run.until_stopped)
        running.start()
        await_until(lambda: len(shared.world.generations) == 1, 10, "it runs")
        shared.comes(0.0)
        shown = len(shared.world.shown)
        await_until(lambda: len(shared.world.shown) > shown + 5, 10, "it looks")
        assert running.is_alive()
        shared.world.stop.set()
        running.join(10)


def test_a_flow_that_is_free_is_left_to_who_has_less_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """He is faster; where he is not there any more, it is ours."""
    shared = Shared()
    shared.comes(0.0)
    answers = iter([None, "h2 pid 2", None, None])
    monkeypatch.setattr(shared.lease, "other_owner", lambda: next(answers))
    monkeypatch.setattr(shared.lease, "await_free", lambda *_: None)
    with shared.world.run(share=shared.share) as run:
        assert run.begin()
    shown = [(state, reason) for state, reason, _ in shared.world.shown]
    assert (FlowState.WAITING, "another driver owns the flow: h2 pid 2") in shown
