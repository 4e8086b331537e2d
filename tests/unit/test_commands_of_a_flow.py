"""A flow that is paused, resumed and restarted while it runs, and across starts, between clusters in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import MagicMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srm_spark.config.settings import Timings
from srm_spark.core.acts import Command, CommandKind, CommandState, Scope, Shift
from srm_spark.core.lists import Act, Change, ListKind
from srm_spark.core.model import TopicPartition
from srm_spark.errors import SourceUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.run import FlowRun
from srm_spark.flow.runner import FlowRunner
from srm_spark.flow.status import FlowState
from srm_spark.flow.topics.commands import FlowCommands, Restarts
from srm_spark.flow.topics.restart_watch import RestartWatch
from srm_spark.spark.opening import Spark
from tests.awaiting import await_until
from tests.unit.commanded import Commanded, P
from tests.unit.memory_flow import MemoryLease

U = TopicPartition("u", 0)
WHY = "paused by ann@host: maintenance"


def values(*names: str) -> list[bytes]:
    return [name.encode() for name in names]


@pytest.mark.parametrize(("scope", "name"), [((), "A->B"), (("t",), "t"), (("t", 0), "t-0")])
def test_what_is_paused_stands_still_and_goes_on_where_it_stood(scope: tuple[object, ...], name: str) -> None:
    world = Commanded(count=2)
    with world.run() as run:
        run.begin()
        world.copy(run)
        world.pause(*scope)
        world.look(run)
        assert (world.flowing, world.held) == (set(), {name: WHY})
        world.write(b"t2", b"t3")
        world.copy(run)
        assert world.values() == values("t0", "t1")
        assert world.last("lag_records") == 2, "it is counted all the same"
        assert world.shown[-1][:2] == (FlowState.RUNNING, None)
        world.resume(*scope)
        world.look(run)
        world.copy(run)
        assert (world.values(), world.held) == (values("t0", "t1", "t2", "t3"), {})
        assert world.losses == {}


def test_the_batch_in_progress_is_recorded_and_nothing_else_is_stopped() -> None:
    world = Commanded(count=2)
    world.write(b"u0", partition=U)
    with world.run() as run:
        run.begin()
        world.generation.copy()  # nobody has looked at it yet
        world.pause("t")
        world.look(run)
        assert world.flowing == {U}
        world.write(b"t2")
        world.write(b"u1", partition=U)
        world.copy(run)
        world.resume("t")
        world.look(run)
        world.copy(run)
    assert (world.values(), world.values("A.u")) == (values("t0", "t1", "t2"), values("u0", "u1"))


def test_one_partition_is_paused_and_its_topic_goes_on() -> None:
    world = Commanded()
    world.partitions("t", 2)
    with world.run() as run:
        run.begin()
        world.pause("t", 1)
        world.look(run)
        assert world.flowing == {P}
        assert world.held == {"t-1": WHY}


def test_the_widest_pause_counts_until_each_is_lifted() -> None:
    world = Commanded()
    with world.run() as run:
        run.begin()
        world.pause("t", 0)
        world.pause(why="")
        world.look(run)
        assert world.held == {"t-0": WHY, "A->B": "paused by ann@host"}
        world.resume()
        world.look(run)
        assert (world.flowing, world.held) == (set(), {"t-0": WHY})
        world.resume("t", 0)
        world.look(run)
        assert world.flowing == {P}


def test_a_pause_holds_across_starts_and_a_topic_that_was_never_copied_begins_at_its_beginning() -> None:
    world = Commanded(count=2)
    world.pause("t")
    for _ in range(2):
        with world.run() as run:
            run.begin()
            assert (world.flowing, world.held) == (set(), {"t": WHY})
    assert world.values() == []
    world.resume("t")
    world.copied()
    assert world.values() == values("t0", "t1")


def test_what_the_source_deletes_meanwhile_is_told_and_starts_nothing() -> None:
    world = Commanded(count=2)
    with world.run() as run:
        run.begin()
        world.copy(run)
        world.pause("t")
        world.look(run)
        world.write(b"t2", b"t3")
        world.flow.log.delete_before(3)
        count = len(world.generations)
        for _ in range(3):
            run.tick()
        assert len(world.generations) == count
        world.resume("t")
        world.look(run)
        world.copy(run)
    assert (world.values(), world.losses) == (values("t0", "t1", "t3"), {"t-0": "2 to 2"})


def test_a_pause_is_nothing_that_is_tried_again_and_hides_no_other_reason() -> None:
    world = Commanded(count=1)
    world.timings = replace(world.timings, retry_paused_seconds=0.0)
    world.change({})
    world.refuse = lambda *_: Failure(FailureKind.TOO_LARGE, "words")
    with world.run() as run:
        run.begin()
        world.generation.copy()
        run.tick()
        assert world.held == {"t-0": "held at offset 0: words"}
        world.pause("t")
        world.look(run)
        for _ in range(3):
            run.tick()
        assert world.flowing == set()
        assert world.held["t"] == WHY


def test_acts_are_answered_once_they_count() -> None:
    world = Commanded(count=1)
    with world.run() as run:
        run.begin()
        assert world.taken is None, "nobody said anything"
        paused = world.pause("t")
        run.lists.look()
        assert world.taken is None, "it was read, and does not count yet"
        running, stop = world.generation, world.generation.stop
        before: list[str | None] = []
        running.stop = lambda timeout: before.append(world.taken) or stop(timeout)  # type: ignore[method-assign, func-returns-value]
        run.tick()
        assert before == [None], "a batch may be in progress"
        assert world.taken == paused
        assert world.flowing == set()
        listed = world.act(Act(ListKind.GROUPS, Change(("g",)), 1, "ann@host"))
        world.look(run)
        assert world.taken == listed
        before = world.flow.target.log(TopicPartition(world.flow.settings.progress_topic, 0)).end
        for _ in range(3):
            world.look(run)
        assert world.flow.target.log(TopicPartition(world.flow.settings.progress_topic, 0)).end == before
    late = world.resume("t")
    assert world.taken == listed
    with world.run() as run:
        run.begin()
        assert world.taken == late


def test_a_flow_that_may_not_answer_obeys_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    world = Commanded(count=1)
    with world.run() as run:
        run.begin()
        world.flow.target.forbidden[world.flow.settings.progress_topic] = "not authorized"
        world.pause("t")
        for _ in range(3):
            world.look(run)
        assert world.flowing == set()
        world.flow.target.forbidden.clear()
    assert len([one for one in caplog.messages if "cannot say that it took" in one]) == 1


def refused(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one for one in caplog.messages if "cannot say that it took" in one]


def test_an_answer_that_could_not_be_written_is_written_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("srm_spark.flow.topics.commands.AGAIN_SECONDS", 0.0)
    world = Commanded(count=1)
    with world.run() as run:
        run.begin()
        forbidden, progress = world.flow.target.forbidden, world.flow.settings.progress_topic
        paused = world.pause("t")
        for reason in ("no leader", "not authorized"):
            forbidden[progress] = reason
            for _ in range(3):
                world.look(run)
        assert (world.taken, len(refused(caplog))) == (None, 2), "once per reason"
        forbidden.clear()
        world.look(run)
        assert world.taken == paused
        forbidden[progress] = "no leader"
        resumed = world.resume("t")
        world.look(run)
        forbidden.clear()
        world.look(run)
        assert (world.taken, len(refused(caplog))) == (resumed, 3), "it had worked in between"


def test_an_answer_that_could_not_be_written_is_not_tried_at_each_look_and_the_next_one_at_once() -> None:
    world = Commanded(count=1)
    with world.run() as run:
        run.begin()
        world.flow.target.forbidden[world.flow.settings.progress_topic] = "no leader"
        world.pause("t")
        world.look(run)
        world.flow.target.forbidden.clear()
        for _ in range(3):
            world.look(run)
        assert world.taken is None
        resumed = world.resume("t")
        world.look(run)
        assert world.taken == resumed


def test_who_has_lost_the_lease_answers_nothing() -> None:
    world = Commanded(count=1)
    with world.run() as run:
        run.begin()
        listed = world.act(Act(ListKind.GROUPS, Change(("g",)), 1, "ann@host"))
        world.flow.lease.owner = "another driver"
        world.look(run)
        assert world.taken is None
        world.flow.lease.owner = None
    with world.run() as run:
        run.begin()
        assert world.taken == listed


def test_no_look_in_between_answers_what_it_has_not_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's clock reads acts while the flow looks at them in its own thread."""
    world = Commanded(count=1)
    seen: list[tuple[str | None, bool, bool]] = []
    is_reading = False

    def assign(commands: FlowCommands, name: str, value: object) -> None:
        nonlocal is_reading
        object.__setattr__(commands, name, value)
        if is_reading:
            is_reading = False
            run.tick()
            seen.append((world.taken, bool(world.flowing), commands.wants_restart()))
            is_reading = True

    with world.run() as run:
        run.begin()
        monkeypatch.setattr(FlowCommands, "__setattr__", assign, raising=False)
        paused = world.pause("t")
        is_reading = True
        run.lists.look()
        is_reading = False
        restart = world.command_restart()
        is_reading = True
        run.lists.look()
        is_reading = False
    assert not [flows for taken, flows, _ in seen if taken == paused and flows]
    assert seen[-1] == (paused, False, True)
    assert restart not in {taken for taken, *_ in seen}


def test_an_act_is_never_seen_beside_the_pauses_of_another_look() -> None:
    world = Commanded(count=1)
    commands, scope = FlowCommands(world.flow.clusters), Scope("t")
    pause = Command(CommandKind.PAUSE, scope, 1_700, "ann@host", "")
    act = Command(CommandKind.OFFSETS, Scope("t", 0), 1_701, "ann@host", "", Shift(1, 0, "x"))
    commands.begin(CommandState({scope: pause}, shifts={"act": act}), None)
    before = commands.in_force
    commands.take(CommandState({scope: replace(pause, at=1_702)}), None)  # resumed meanwhile, which ended the act
    assert before == ({scope: pause}, {"act": act})
    assert commands.in_force == ({scope: replace(pause, at=1_702)}, {})


@pytest.mark.parametrize("keys", [{}, {"refresh.topics.enabled": "false"}])
def test_what_was_paused_and_resumed_between_two_looks_disturbs_nothing(keys: dict[str, str]) -> None:
    world = Commanded(keys, count=1)
    with world.run() as run:
        run.begin()
        count = len(world.generations)
        world.pause("t")
        world.resume("t")
        world.look(run)
        assert len(world.generations) == count


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.sampled_from(["pause", "resume", "pause u", "resume u", "pause t", "resume t", "write", "copy", "start"]),
        max_size=12,
    )
)
def test_whatever_is_paused_and_when_each_record_arrives_once_and_in_order(steps: list[str]) -> None:
    world = Commanded(count=1)
    world.write(b"u0", partition=U)
    written = 1
    rest = iter([*steps, "start", "resume", "resume t", "resume u", "copy", "end"])
    step = ""
    while step != "end":
        with world.run() as run:
            run.begin()
            for step in rest:
                word, *scope = step.split()
                if word in ("start", "end"):
                    break
                if word == "write":
                    world.write(f"t{written}".encode())
                    world.write(f"u{written}".encode(), partition=U)
                    written += 1
                elif word == "copy":
                    world.copy(run)
                else:
                    world.command(CommandKind(word), *scope)
                    world.look(run)
    for name in ("t", "u"):
        assert world.values(f"A.{name}") == [f"{name}{number}".encode() for number in range(written)]


def test_a_pause_outlives_its_topic_and_the_log_says_until_when(caplog: pytest.LogCaptureFixture) -> None:
    world = Commanded(count=1)
    with world.run() as run:
        run.begin()
        world.pause("t")
        world.look(run)
        world.flow.target.delete("mm2-control.A.internal")
        world.look(run)
        world.resume("u")
        for _ in range(2):
            world.look(run)
        assert world.flowing == set()
    assert caplog.messages[-1] == (
        "flow=A->B topic mm2-control.A.internal was made anew without a pause: t is paused by ann@host: maintenance, "
        "until the driver ends: pause it again"
    )
    with world.run() as run:
        run.begin()
        assert world.flowing == {P}


# Restarts


class Driven:
    """A flow as a driver runs it, its clock included."""

    def __init__(self, world: Commanded, *, waits: bool = True, lists_seconds: float = 0.02) -> None:
        world.timings = Timings(tick_seconds=0.01, lists_seconds=lists_seconds, lag_seconds=0.0, debounce_seconds=0.0)
        world.change({})
        self.world, self.tasks = world, Periodic()
        self.runner = FlowRunner(
            world.flow.settings, Spark.given(MagicMock()), self.tasks, waits=waits, means=world.means
        )

    def __enter__(self) -> Driven:
        self.tasks.start()
        self.runner.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.stop()
        assert self.runner.join(20)
        self.tasks.stop(5.0)

    def await_state(self, state: FlowState) -> None:
        await_until(lambda: self.runner.status.state is state, 20, f"it is {state.value}")

    def restart_until(self, state: FlowState) -> None:
        """One that comes before the driver's first look is one of a time before."""

        def has_come() -> bool:
            self.world.command(CommandKind.RESTART)
            return self.runner.status.state is state

        self.await_that(has_come, f"it is {state.value}")

    def await_that(self, is_so: Callable[[], bool], what: str) -> None:
        await_until(is_so, 20, what)


def test_a_restart_ends_a_run_in_peace_and_begins_another_one(caplog: pytest.LogCaptureFixture) -> None:
    world = Commanded(count=1)
    world.command(CommandKind.RESTART)  # of a time before
    with caplog.at_level(logging.INFO), Driven(world) as driven:
        driven.await_state(FlowState.RUNNING)
        act = world.command(CommandKind.RESTART)
        driven.await_that(lambda: len(world.generations) == 2, "another generation")
        driven.await_that(lambda: world.taken == act, "an answer")
        assert world.generations[0].is_ended
    assert [one for one in caplog.messages if "starts anew" in one] == [
        "flow=A->B starts anew, as somebody wants it to"
    ]
    assert world.progress().last_run.is_clean
    assert len(world.generations) == 2
    assert world.waited == [], "nothing of the run before was under way"


def test_a_restart_ends_a_delay() -> None:
    world = Commanded({"flow.retry.delay.ms": "3600000"}, count=1)
    world.flow.source.down = "no route"
    with Driven(world) as driven:
        driven.await_state(FlowState.RETRYING)
        world.flow.source.down = None
        driven.restart_until(FlowState.RUNNING)
        driven.await_that(lambda: world.taken is not None, "an answer")


def test_a_flow_that_was_given_up_is_started() -> None:
    world = Commanded({"flow.retry.count": "0"}, count=1)
    world.flow.source.down = "no route"
    with Driven(world) as driven:
        driven.await_state(FlowState.FAILED)
        world.flow.source.down = None
        driven.restart_until(FlowState.RUNNING)
    assert driven.runner.status.state is FlowState.STOPPED


def test_a_target_that_is_away_ends_no_wait() -> None:
    world = Commanded({"flow.retry.delay.ms": "3600000"})
    world.flow.target.down = "no route"
    with Driven(world) as driven:
        driven.await_state(FlowState.RETRYING)
        world.flow.target.down = None
        assert driven.runner.status.state is FlowState.RETRYING
        driven.restart_until(FlowState.RUNNING)


def test_a_pause_that_comes_with_a_restart_is_answered_once_nothing_is_copied() -> None:
    world = Commanded(count=1)
    with world.run() as run:
        run.begin()
        running, stop = world.generation, world.generation.stop
        before: list[str | None] = []
        running.stop = lambda timeout: before.append(world.taken) or stop(timeout)  # type: ignore[method-assign, func-returns-value]
        world.command_restart()
        paused = world.pause("t")
        run.lists.look()
        run.begin = lambda: True  # type: ignore[method-assign]
        assert run.until_stopped()
        assert (before, world.taken) == ([None], paused)


def watch_of(world: Commanded, lease: MemoryLease, woken: list[bool]) -> RestartWatch:
    """Looks for restarts where the flow does not run."""
    return RestartWatch(
        world.flow.settings,
        lambda settings: replace(world.flow.reach(settings), make_lease=lambda: lease),  # type: ignore[arg-type, return-value]
        Restarts(),
        lambda: woken.append(True),
    )


@pytest.mark.parametrize(("owner", "is_answered"), [(None, True), ("another driver", False)])
@pytest.mark.parametrize("is_told", [True, False])
def test_a_flow_that_does_not_run_answers_for_no_other_driver(
    owner: str | None, is_answered: bool, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Commanded(count=1)
    world.copied()
    lease, released, woken = MemoryLease(owner), list[bool](), list[bool]()
    monkeypatch.setattr(lease, "release", lambda: released.append(True))
    if not is_told:
        is_answered = False
        monkeypatch.setattr(lease, "other_owner", MagicMock(side_effect=world.flow.target.refused("ask", "no right")))

    watch = watch_of(world, lease, woken)
    watch.look()
    world.pause("t")
    restart = world.command_restart()
    watch.look()
    watch.close()
    assert world.taken == (restart if is_answered else None)
    assert (woken, released) == ([True], [True]), "it counts for this driver all the same"


def test_a_restart_counts_though_nobody_can_look_who_owns_the_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    world, woken, lease = Commanded(count=1), list[bool](), MemoryLease()
    world.copied()
    monkeypatch.setattr(lease, "release", MagicMock(side_effect=OSError("too many open files")))
    watch = watch_of(world, lease, woken)
    watch.look()
    world.command_restart()
    with pytest.raises(OSError, match="too many"):
        watch.look()
    watch.close()
    assert woken == [True], "at the next look it is no news"


@pytest.mark.parametrize("keys", [{"flow.retry.delay.ms": "3600000"}, {"flow.retry.count": "0"}])
def test_a_restart_counts_that_was_read_by_a_run_which_failed_before_it_looked(
    keys: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = Commanded(keys, count=1)
    tick, restarts = FlowRun.tick, list[str]()

    def fail(run: FlowRun) -> None:
        if restarts:
            tick(run)
            return
        restarts.append(world.command_restart())
        run.lists.look()
        raise SourceUnavailable("cluster A: no route")

    monkeypatch.setattr(FlowRun, "tick", fail)
    with caplog.at_level(logging.INFO), Driven(world, lists_seconds=3600.0) as driven:
        driven.await_that(lambda: len(world.generations) == 2, "another generation")
        driven.await_that(lambda: world.taken == restarts[0], "an answer")
    states = [one.split(" ", 1)[1] for one in caplog.messages if " state=" in one]
    assert "state=retrying reason=cluster A: no route" in states, "why is told"
    assert not [one for one in states if one.startswith("state=failed")], "its driver would end"


def give_away(world: Commanded, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that waits gets the lease as soon as it is released."""
    lease, release = world.flow.lease, world.flow.lease.release

    def released() -> None:
        if lease.held:
            lease.owner = "a standby"
        release()

    monkeypatch.setattr(lease, "release", released)


def test_a_restart_waits_for_the_driver_that_was_faster_also_where_the_first_start_may_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Commanded(count=1)
    with Driven(world, waits=False) as driven:
        driven.await_state(FlowState.RUNNING)
        give_away(world, monkeypatch)
        world.command_restart()
        driven.await_that(lambda: driven.runner.status.state in (FlowState.WAITING, FlowState.FAILED), "it ends")
        assert driven.runner.status.state is FlowState.WAITING
        world.flow.lease.owner = None
        driven.await_state(FlowState.RUNNING)


def test_so_does_one_that_ends_a_delay_behind_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Commanded({"flow.retry.delay.ms": "3600000"}, count=1)
    with Driven(world, waits=False) as driven:
        driven.await_state(FlowState.RUNNING)
        give_away(world, monkeypatch)
        world.flow.source.down = "no route"
        driven.await_state(FlowState.RETRYING)
        driven.await_that(lambda: world.flow.lease.owner is not None, "the standby has it")
        world.command_restart()
        driven.await_that(lambda: driven.runner.status.state in (FlowState.WAITING, FlowState.FAILED), "it ends")
        assert driven.runner.status.state is FlowState.WAITING


def test_a_flow_that_never_had_the_lease_is_refused_again_by_a_restart() -> None:
    world = Commanded(count=1)
    world.flow.lease.owner = "another driver"
    with Driven(world, waits=False) as driven:
        driven.await_state(FlowState.FAILED)
        attempts = list[FlowState]()
        other_owner = world.flow.lease.other_owner

        def asked() -> str | None:
            attempts.append(driven.runner.status.state)
            return other_owner()  # type: ignore[no-any-return]

        world.flow.lease.other_owner = asked

        def was_tried() -> bool:
            world.command_restart()
            return FlowState.STARTING in attempts

        driven.await_that(was_tried, "another try")
        driven.await_state(FlowState.FAILED)


def test_a_pause_holds_across_a_restart_though_somebody_deleted_its_topic() -> None:
    world = Commanded(count=1)
    world.pause("t")
    with Driven(world) as driven:
        driven.await_state(FlowState.RUNNING)
        world.flow.target.delete("mm2-control.A.internal")
        world.command(CommandKind.RESTART)
        act = world.command(CommandKind.RESTART)
        driven.await_that(lambda: len(world.generations) >= 2, "another generation")
        driven.await_that(lambda: world.taken == act, "an answer")
        assert driven.runner.status.held == {"t": WHY}
        assert world.flowing == set()
