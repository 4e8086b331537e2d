"""A flow whose lists are changed while it runs, between clusters in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from srm_spark.config.settings import Timings
from srm_spark.core.cluster import ControlRecord
from srm_spark.core.lists import NO_LISTS, Act, Change, ListKind, Lists, act_key, encode_act
from srm_spark.core.model import TopicPartition
from srm_spark.errors import TargetUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.clusters import filters_of
from srm_spark.flow.run import FlowRun
from srm_spark.flow.status import FlowState
from srm_spark.flow.topics.internal_topics import control_topic, ensure_topic
from srm_spark.flow.topics.lists import FlowLists, KnownActs, take_lists
from tests.unit.memory_run import QUICK, World

TOPIC = "mm2-control.A.internal"


def act(number: int, change: Change, kind: ListKind = ListKind.TOPICS, why: str = "") -> ControlRecord:
    return raw(number, encode_act(Act(kind, change, number, "ann@host", why)))


def raw(number: int, value: bytes | None) -> ControlRecord:
    return ControlRecord(TOPIC, act_key(str(number)), value, partition=0)


class Steered(World):
    """A world of which somebody changes the lists; its clock is the test's."""

    def __init__(self, topics: str = "", timings: Timings = QUICK) -> None:
        self.count = 0
        super().__init__({"A->B.topics": topics, "dialect": "srm"}, timings)
        for name in ("u", "v"):
            self.topic(name, name.encode())

    def put(self, *records: ControlRecord) -> None:
        ensure_topic(self.flow.target, control_topic(self.flow.settings))
        self.flow.target.writer("test", TargetUnavailable).write(records)

    def change(self, *added: str, why: str = "", **change: tuple[str, ...]) -> None:  # type: ignore[override]
        self.count += 1
        self.put(act(self.count, Change(added, **change), why=why))

    def look(self, run: FlowRun) -> None:
        """What the driver's clock does each second, and the flow behind it."""
        run.lists.look()
        run.tick()

    @property
    def flowing(self) -> set[str]:
        return {partition.topic for partition in self.generation.assignment.starts}


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    with caplog.at_level(logging.INFO, "srm_spark.flow.topics.lists"):
        yield lambda: [one for one in caplog.messages if " lists: " in one]


def test_a_flow_of_which_no_topic_is_chosen_waits_for_entries() -> None:
    world = Steered()
    with world.run() as run:
        assert run.begin()
        assert world.flowing == set()
        state, reason, _ = world.shown[-1]
        assert (state, reason) == (
            FlowState.RUNNING,
            "no pattern of topics and no entry of their list names a topic of A: "
            "srm-control topics --source A --target B --add LIST",
        )
        assert TOPIC in world.flow.target.held
        world.change("u")
        world.look(run)
        assert world.flowing == {"u"}
        world.generation.copy()
        run.tick()
        assert world.values("A.u") == [b"u"]


def test_a_topic_that_is_taken_off_stops_and_goes_on_where_it_stood() -> None:
    world = Steered()
    world.change("u", "v")
    with world.run() as run:
        run.begin()
        world.generation.copy()
        world.change(remove=("u",))
        world.look(run)
        assert world.flowing == {"v"}
        world.topic("w", b"w")
        world.flow.source.log(TopicPartition("u", 0)).append(
            world.flow.source.log(TopicPartition("u", 0)).records[0]._replace(value=b"u2")
        )
        world.generation.copy()
        run.tick()
        assert world.values("A.u") == [b"u"]
        world.change("u")
        world.look(run)
        assert world.generation.assignment.starts[TopicPartition("u", 0)].next_offset == 1
        world.generation.copy()
    assert (world.values("A.u"), world.values("A.v")) == ([b"u", b"u2"], [b"v"])


def test_what_was_deleted_while_a_topic_was_off_is_told() -> None:
    world = Steered()
    world.change("u")
    with world.run() as run:
        run.begin()
        world.generation.copy()
        world.change(remove=("u",))
        world.look(run)
        log = world.flow.source.log(TopicPartition("u", 0))
        for value in (b"u2", b"u3"):
            log.append(log.records[0]._replace(value=value))
        log.delete_before(2)
        world.change("u")
        world.look(run)
        world.generation.copy()
        run.tick()
    assert (world.values("A.u"), world.losses) == ([b"u", b"u3"], {"u-0": "1 to 1"})


def test_a_topic_that_is_off_the_list_waits_for_nothing() -> None:
    world = Steered()
    world.change("u", "v")
    with world.run() as run:
        run.begin()
        world.refuse = lambda p, _: Failure(FailureKind.TOO_LARGE, "words") if p.topic == "u" else None
        world.generation.refuse = world.refuse
        world.generation.copy()
        run.tick()
        assert set(world.held) == {"u-0"}
        world.change(remove=("u",))
        world.look(run)
        assert world.held == {}
        world.change("u")
        world.look(run)
        world.generation.copy()
        run.tick()
        assert set(world.held) == {"u-0"}, "it is tried again, and waits as before"


def test_heartbeats_alone_are_no_choice() -> None:
    world = Steered()
    world.topic("heartbeats", b"x")
    with world.run() as run:
        run.begin()
        assert world.flowing == {"heartbeats"}
        assert "no entry of their list" in str(world.shown[-1][1])
        world.change("u")
        world.look(run)
        assert world.shown[-1][1] is None


def test_the_lists_of_the_file_and_of_the_topic_are_combined_and_hold_across_restarts() -> None:
    world = Steered("t, u")
    world.change("v", add_deny=("t",))
    for _ in range(2):
        with world.run() as run:
            run.begin()
            assert world.flowing == {"u", "v"}


@pytest.mark.parametrize("keys", [{}, {"refresh.topics.enabled": "false"}])
def test_a_change_is_taken_whenever_topics_are_looked_for(keys: dict[str, str]) -> None:
    world = Steered()
    World.change(world, keys)
    world.flow.settings.topics.__dict__["refresh_seconds"] = 3600.0
    with world.run() as run:
        run.begin()
        run.tick()
        count = len(world.generations)
        world.change("u")
        world.look(run)
        assert (len(world.generations), world.flowing) == (count + 1, {"u"})
        world.topic("w")
        world.change(remove=("nothing",))
        world.look(run)
        assert len(world.generations) == count + 1, "no other topics, no other query"


def test_each_act_is_told_once(told: Callable[[], list[str]]) -> None:
    world = Steered()
    world.change("u", why="before")
    with world.run() as run:
        run.begin()
        world.change("v", "w", why="the shop moves")
        world.put(act(100, Change(remove_deny=("g",)), ListKind.GROUPS))
        for _ in range(3):
            world.look(run)
    assert told() == [
        "flow=A->B lists: topics allow=1 deny=0",
        "flow=A->B lists: topics +v,w by ann@host (the shop moves)",
        "flow=A->B lists: groups deny -g by ann@host",
    ]


def test_garbage_is_passed_over_and_told_once(told: Callable[[], list[str]]) -> None:
    world = Steered()
    world.put(raw(1, b"junk"), raw(2, None), act(3, Change(("u",))))
    with world.run() as run:
        run.begin()
        assert world.flowing == {"u"}
        for _ in range(3):
            world.look(run)
        world.put(raw(4, b"more"))
        world.look(run)
    said = "flow=A->B lists: passed over {} of topic mm2-control.A.internal: no act of srm-control"
    assert told() == [
        said.format("1 record"),
        "flow=A->B lists: topics allow=1 deny=0",
        said.format("2 records"),
    ]


def test_acts_that_were_deleted_are_told_at_the_start(told: Callable[[], list[str]]) -> None:
    world = Steered()
    world.put(act(1, Change(add_deny=("t",))), act(2, Change(("u",))))
    world.flow.target.log(TopicPartition(world.flow.settings.control_topic, 0)).delete_before(1)
    with world.run() as run:
        run.begin()
        assert world.flowing == {"u"}
    assert "topic mm2-control.A.internal begins at offset 1: what was in front of it was deleted" in told()[0]


def test_an_act_that_was_written_twice_counts_once() -> None:
    world = Steered()
    once = act(1, Change(("u",)))
    world.put(once, act(2, Change(remove=("u",))), once)
    with world.run() as run:
        run.begin()
        assert world.flowing == set()


NEWER = b'{"v":2,"kind":"topics","drop":["u"]}'


def test_without_an_act_of_a_newer_version_nothing_begins() -> None:
    world = Steered()
    world.change("u")
    world.put(raw(7, NEWER))
    with pytest.raises(TargetUnavailable) as caught, world.run() as run:
        run.begin()
    assert str(caught.value) == (
        "cluster B (memory:B): cannot read the lists in topic mm2-control.A.internal: the record at offset 1 is not "
        "understood: it was written by a newer srm-spark (version 2 of its form): upgrade this one"
    )
    assert world.generations == []


def test_a_flow_that_runs_keeps_what_it_knew_before_a_newer_version(told: Callable[[], list[str]]) -> None:
    world = Steered()
    world.change("u")
    with world.run() as run:
        run.begin()
        world.change("v")
        world.put(raw(7, NEWER), act(8, Change(remove=("u", "v"))))
        for _ in range(3):
            world.look(run)
        assert world.flowing == {"u", "v"}
    warned = [one for one in told() if "what is known goes on to count" in one]
    assert len(warned) == 1
    assert "upgrade this one" in warned[0]


def test_a_topic_that_is_deleted_stops_no_flow(told: Callable[[], list[str]]) -> None:
    world = Steered()
    world.change("u", "v")
    with world.run() as run:
        run.begin()
        world.flow.target.delete(TOPIC)
        for _ in range(3):
            world.look(run)
        assert world.flowing == {"u", "v"}
        assert len(world.generations) == 1
        world.topic("w")
        world.change("w", remove=("v",))
        for _ in range(3):
            world.look(run)
        assert world.flowing == {"u", "w"}
    warned = [one for one in told() if "what is known goes on to count" in one]
    assert len(warned) == 1
    assert told()[-1] == (
        "flow=A->B lists: topic mm2-control.A.internal was made anew without topics +u, which count until the "
        "driver ends: add them"
    )
    with world.run() as run:
        run.begin()
        assert world.flowing == {"w"}


def test_a_retry_goes_on_with_what_the_driver_knew_though_the_topic_was_deleted(told: Callable[[], list[str]]) -> None:
    world, known = Steered(".*"), KnownActs()
    world.change(add_deny=("u",))
    with world.run(known=known) as run:
        run.begin()
        assert world.flowing == {"t", "v"}
        world.flow.target.delete(TOPIC)
    with world.run(after_failure=True, known=known) as run:
        run.begin()
        assert world.flowing == {"t", "v"}
        world.change(add_deny=("v",))
        world.look(run)
        assert world.flowing == {"t"}
    warned = [one for one in told() if "was made anew" in one]
    assert warned == [
        "flow=A->B lists: topic mm2-control.A.internal was made anew without topics deny +u, which count until the "
        "driver ends: add them"
    ]
    with world.run(known=known) as run:
        run.begin()
        assert world.flowing == {"t"}
    with world.run() as run:
        run.begin()
        assert world.flowing == {"t", "u"}, "another driver knows only what the topic says"


def test_a_topic_that_cannot_be_read_stops_no_flow_and_is_read_again(told: Callable[[], list[str]]) -> None:
    world = Steered()
    world.change("u")
    with world.run() as run:
        run.begin()
        world.flow.target.without_leader.add(TopicPartition(TOPIC, 0))
        world.change("v")
        for _ in range(3):
            run.lists.look()
            run.tick()
        assert world.flowing == {"u"}
        world.flow.target.without_leader.clear()
        world.look(run)
        assert world.flowing == {"u", "v"}
    assert ["goes on to count" in one for one in told()].count(True) == 1
    assert "is read again" in "".join(told())


def test_a_topic_that_may_not_be_made_ends_the_start() -> None:
    world = Steered()
    world.flow.target.forbidden[TOPIC] = "not authorized"
    with pytest.raises(TargetUnavailable, match="cannot be created: not authorized; allow CREATE"), world.run() as run:
        run.begin()


def test_a_command_takes_the_lists_where_there_are_any() -> None:
    world = Steered()
    take_lists(world.flow.clusters)
    assert world.flow.clusters.filters.topics.lists is NO_LISTS
    world.change("u")
    take_lists(world.flow.clusters)
    assert world.flow.clusters.filters.topics.lists == Lists(("u",))
    world.put(raw(7, NEWER))
    with pytest.raises(TargetUnavailable, match="upgrade"):
        take_lists(world.flow.clusters)


def test_other_kinds_start_no_look_for_topics() -> None:
    world = Steered()
    world.change("u")
    lists = FlowLists(world.flow.clusters)
    lists.begin()
    world.put(act(50, Change(("g",)), ListKind.GROUPS))
    lists.look()
    assert not lists.topics_changed()
    assert world.flow.clusters.filters.groups.lists == Lists(("g",))
    world.change("v")
    lists.look()
    assert (lists.topics_changed(), lists.topics_changed()) == (True, False)
    lists.close()
    assert filters_of(world.flow.settings).groups.lists is NO_LISTS
