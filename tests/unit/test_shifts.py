"""Other positions for a flow in memory: what is copied, what is told as lost, and where groups go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from srm_spark.core.cluster import ControlRecord, Writer
from srm_spark.core.model import Interval, LossCause, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.errors import LeaseLost, ProgressFailed
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.recovery.fencing import complete_map
from srm_spark.flow.recovery.guard import SourceGuard
from tests.unit.commanded import P
from tests.unit.shifted import REMOTE, Shifted, names


@pytest.fixture
def world() -> Shifted:
    return Shifted()


def test_what_is_skipped_is_lost_and_groups_pass_over_it(world: Shifted) -> None:
    world.copied_to(3)
    world.write(*names(3, 4, 5, 6))
    act = world.done(3, 5)
    assert world.declined(act) is None
    assert (world.position, world.kept) == (5, [(LossCause.SKIPPED, (3, 5))])
    world.copied()
    assert world.values() == names(0, 1, 2, 5, 6)
    assert world.places == [0, 1, 2, 3, 3, 3, 4, 5]
    assert world.losses == {"t-0": "3 to 4"}
    assert world.total("lost_records") == 2


def test_the_first_copies_count_until_all_are_there_twice_then_the_second_ones(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    assert (world.position, world.kept) == (1, [])
    assert world.places == [0, 1, 2, 3, 4]
    world.copy_part(2)
    assert world.values() == names(0, 1, 2, 3, 1, 2)
    assert world.places == [0, 1, 2, 3, 4], "behind 4 there is no third record yet"
    world.copied()
    assert world.values() == names(0, 1, 2, 3, 1, 2, 3)
    assert world.places == [0, 4, 5, 6, 7]
    assert [world.map.copy_of(offset) for offset in range(4)] == [0, 4, 5, 6]
    assert world.map.upstream(2) == 1, "who has read the first copies reads all of the second ones"
    assert world.map.again is None
    world.copied_to(5)
    assert world.values()[-1] == b"t4"
    assert world.losses == {}


def test_a_rewind_to_the_beginning_of_everything(world: Shifted) -> None:
    world.copied_to(2)
    world.done(2, 0)
    world.copied()
    assert world.values() == names(0, 1, 0, 1)
    assert world.places == [2, 3, 4]


def test_a_rewind_amid_a_rewind(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 2)
    world.copy_part(1)
    assert world.declined(world.done(3, 1)) is None
    assert world.places == [0, 1, 2, 3, 4]
    world.copied()
    assert world.values() == names(0, 1, 2, 3, 2, 1, 2, 3)
    assert world.places == [0, 5, 6, 7, 8]


def test_nothing_is_skipped_of_what_is_copied_again(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    act = world.done(1, 4)
    assert world.declined(act) == "offsets up to 3 are being copied again: nothing is skipped before that is done"
    world.copied()
    assert world.values() == names(0, 1, 2, 3, 1, 2, 3)


@pytest.mark.parametrize("cut", [2, 3])
def test_copies_that_the_target_loses_amid_a_rewind_are_made_again(
    world: Shifted, cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    world.copied_to(4)
    world.done(4, 1)
    world.flow.target.log(REMOTE).cut(cut)
    world.copied()
    assert set(world.values()) == set(names(0, 1, 2, 3))
    assert (world.values()[-3:], world.kept) == (names(1, 2, 3), [])
    assert "are lost" not in caplog.text
    assert world.places[1:] == [cut, cut + 1, cut + 2, cut + 3]


def test_first_copies_that_the_target_has_lost_do_not_count(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    world.flow.target.log(REMOTE).cut(3)
    world.copy_part(1)
    assert world.values() == names(0, 1, 2, 1)
    assert [world.map.copy_of(offset) for offset in range(4)] == [0, 3, None, None]


def test_a_remote_topic_that_is_made_anew_amid_a_rewind(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    world.flow.target.delete("A.t")
    world.copied()
    assert world.values() == names(1, 2, 3)
    assert world.kept == [(LossCause.TARGET, (0, 1))]


def test_a_remote_topic_that_is_made_anew_behind_a_rewind_to_the_beginning_has_lost_nothing(
    world: Shifted, caplog: pytest.LogCaptureFixture
) -> None:
    world.copied_to(3)
    world.done(3, 0)
    world.flow.target.delete("A.t")
    world.copied()
    assert (world.values(), world.kept, world.places) == (names(0, 1, 2), [], [0, 1, 2, 3])
    assert "are lost" not in caplog.text


def test_a_source_that_is_cut_amid_a_rewind_is_told(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    world.flow.log.cut(2)
    world.write(b"x2", b"x3", b"x4")
    world.copied()
    assert world.values() == [*names(0, 1, 2, 3, 1), b"x2", b"x3", b"x4"]
    assert world.kept == [(LossCause.DIVERGED, (2, 4))]


def test_a_source_that_is_cut_and_short_amid_a_rewind_is_told(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    world.flow.log.cut(2)
    world.write(b"x2")
    world.copied()
    assert world.values() == [*names(0, 1, 2, 3, 1), b"x2"]
    assert world.kept == [(LossCause.DIVERGED, (2, 4))]
    assert world.places == [0, 4, 5, 6]


def test_a_source_that_is_cut_amid_a_rewind_stops_it_where_the_policy_says_so(world: Shifted) -> None:
    world.change({"source.diverged.policy": "stop"})
    world.copied_to(4)
    world.done(4, 1)
    world.flow.log.cut(2)
    with world.run() as run:
        run.begin()
        assert "offsets 2 to 3 were replicated, and the source has none" in world.held["t-0"]
    assert world.values() == names(0, 1, 2, 3)


def test_a_target_that_fences_nobody_has_no_other_positions(world: Shifted) -> None:
    world.copied_to(3)
    world.shift_by(lambda *_: None)
    act = world.done(3, 1)
    assert str(world.declined(act)).startswith("this target gives the flow no producer id")
    assert world.position == 3


def test_what_was_skipped_and_is_copied_after_all_is_no_loss(world: Shifted) -> None:
    world.copied_to(1)
    world.write(*names(1, 2, 3))
    world.done(1, 3)
    world.copied()
    world.done(4, 2)
    assert world.kept == [(LossCause.SKIPPED, (1, 3))], "it is not there yet"
    world.copied()
    assert world.kept == [(LossCause.SKIPPED, (1, 2))]
    assert world.values() == names(0, 3, 2, 3)
    assert world.places == [0, 2, 2, 3, 4]


@pytest.mark.parametrize("is_running", [False, True])
def test_what_is_deleted_before_it_is_copied_again_is_no_loss(world: Shifted, is_running: bool) -> None:
    world.copied_to(4)
    world.done(4, 1)
    if not is_running:
        world.flow.log.delete_before(3)
    with world.run() as run:
        run.begin()
        if is_running:
            assignment = world.generation.assignment
            guard = SourceGuard(
                world.flow.settings, assignment.logs, assignment.routes, world.flow.source, world.flow.reach
            )
            world.flow.log.delete_before(3)
            checked = guard.before({P: OffsetRange(1, 4)}, assignment.maps)
            assert (checked.lost, checked.passed, checked.ranges) == ({}, {P: 3}, {P: OffsetRange(3, 4)})
            assert guard.after({P: [OffsetRange(1, 3)]}, assignment.maps) == {}
            return
        world.copy(run)
    assert (world.values(), world.losses, world.kept) == (names(0, 1, 2, 3, 3), {}, [])
    assert world.places == [0, 1, 2, 4, 5], "what has no second copy stays at its first"


def test_what_is_deleted_beyond_is_a_loss(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    world.write(*names(4, 5, 6))
    world.flow.log.delete_before(6)
    world.copied()
    assert (world.values(), world.kept) == ([*names(0, 1, 2, 3, 6)], [(LossCause.DELETED, (4, 6))])
    assert world.places == [0, 1, 2, 3, 4, 4, 4, 5]


def test_a_rewind_does_not_pass_a_hold(world: Shifted) -> None:
    world.change({"source.truncated.policy": "stop"})
    world.copied_to(4)
    world.write(*names(4, 5, 6))
    world.flow.log.delete_before(5)
    with world.run() as run:
        run.begin()
        assert "the source deleted" in world.held["t-0"]
    for end in (1, 6):
        act = world.done(4, end)
        assert str(world.declined(act)).startswith("it is held: the source deleted offsets 4 to 4")
    assert world.position == 4


def test_an_act_ends_with_the_pause(world: Shifted) -> None:
    world.copied_to(3)
    world.pause("t")
    act = world.shift(3, 1)
    world.resume("t")
    world.pause("t")
    world.copied()
    assert act not in world.progress().answers.shifted
    assert world.position == 3


def test_without_a_pause_there_is_no_act(world: Shifted) -> None:
    world.copied_to(3)
    act = world.shift(3, 1)
    world.pause("t")
    world.copied()
    assert act not in world.progress().answers.shifted
    assert world.position == 3


@pytest.mark.parametrize("scope", [(), ("t",), ("t", 0)])
def test_any_pause_around_it_will_do(world: Shifted, scope: tuple[object, ...]) -> None:
    world.copied_to(3)
    world.pause(*scope)
    act = world.shift(3, 1)
    with world.run() as run:
        run.begin()
    assert (world.declined(act), world.position) == (None, 1)


def test_a_running_driver_carries_it_out_while_the_partition_is_paused(world: Shifted) -> None:
    world.copied_to(3)
    with world.run() as run:
        run.begin()
        world.pause("t")
        world.look(run)
        world.shift(3, 1)
        world.look(run)
        assert (world.position, world.flowing) == (1, set())
        world.resume("t")
        world.look(run)
        world.copy(run)
    assert world.values() == names(0, 1, 2, 1, 2)


def test_acts_on_one_partition_are_done_one_after_the_other(world: Shifted) -> None:
    world.copied_to(3)
    world.write(*names(3, 4))
    world.pause("t")
    acts = [world.shift(3, 4), world.shift(4, 1), world.shift(4, 0)]
    with world.run() as run:
        run.begin()
    assert [world.declined(act) for act in acts] == [None, None, "it stands at 1 by now, and not at 4"]


def test_a_hold_of_a_batch_is_no_obstacle(world: Shifted) -> None:
    world.copied_to(1)
    world.write(b"big", b"t2")
    world.refuse = lambda _, r: Failure(FailureKind.TOO_LARGE, "words") if r.value == b"big" else None
    with world.run() as run:
        run.begin()
        world.copy(run)
        assert "t-0" in world.held
        world.pause("t")
        world.shift(1, 2)
        world.look(run)
        world.resume("t")
        world.look(run)
        world.copy(run)
    assert world.values() == [b"t0", b"t2"]


def _went_on(world: Shifted) -> None:
    world.shift(2, 0)


def _beyond(world: Shifted) -> None:
    world.shift(3, 9)


def _deleted(world: Shifted) -> None:
    world.flow.log.delete_before(2)
    world.shift(3, 1)


def _of_another(world: Shifted) -> None:
    world.shift(3, 1, topic_id="another")


def _of_none(world: Shifted) -> None:
    world.shift(0, 0, TopicPartition("u", 0), topic_id="x")


def _without_map(world: Shifted) -> None:
    world.flow.target.delete(world.flow.settings.map_topic)
    world.shift(3, 1)


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (_went_on, "it stands at 3 by now, and not at 2"),
        (_beyond, "the source has offsets 0 to 3 now, and not 9"),
        (_deleted, "the source has offsets 2 to 3 now, and not 1"),
        (_of_another, "the source topic was created anew since, or its id is not known"),
        (_of_none, "it does not flow now"),
        (_without_map, "the offset map does not reach where it stands: let the flow copy something first"),
    ],
)
def test_what_is_declined_says_why(world: Shifted, act: Callable[[Shifted], None], why: str) -> None:
    world.copied_to(3)
    world.pause()
    act(world)
    with world.run() as run:
        run.begin()
    (answer,) = world.progress().answers.shifted.values()
    assert (answer.declined, world.position) == (why, 3)


def test_what_is_held_for_another_reason_is_left_alone(world: Shifted) -> None:
    world.change({"source.recreated.policy": "stop"})
    world.copied_to(2)
    topic_id = world.flow.source.topic_ids(["t"])["t"]
    world.topic("t", b"new")
    world.pause("t")
    act = world.shift(2, 1, topic_id=topic_id)
    with world.run() as run:
        run.begin()
    assert str(world.declined(act)).startswith("it is held: the source topic was created anew")


def test_a_topic_that_was_made_anew_since_is_left_alone(world: Shifted) -> None:
    world.copied_to(2)
    world.pause("t")
    act = world.shift(2, 1)
    world.topic("t", *names(0, 1, 2))
    with world.run() as run:
        run.begin()
    assert world.declined(act) == "its progress was lost, or speaks of another topic: what was done of it nobody knows"
    assert world.position == 0


def test_lost_progress_ends_an_act(world: Shifted) -> None:
    world.copied_to(4)
    world.pause("t")
    act = world.shift(4, 1)
    world.flow.target.delete(world.flow.settings.progress_topic)
    with world.run() as run:
        run.begin()
    assert world.declined(act) == "its progress was lost, or speaks of another topic: what was done of it nobody knows"
    assert world.position == 4


def test_a_rewind_is_not_done_again_where_progress_is_lost(world: Shifted) -> None:
    world.copied_to(4)
    world.pause("t")
    act = world.shift(4, 1)
    for _ in range(2):
        with world.run() as run:
            run.begin()
        world.flow.target.delete(world.flow.settings.progress_topic)
    world.resume("t")
    world.copied()
    assert world.values() == names(0, 1, 2, 3, 1, 2, 3)
    assert act not in world.progress().answers.shifted


def test_progress_that_is_lost_amid_a_rewind_goes_on_there(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    world.copy_part(1)
    world.flow.target.delete(world.flow.settings.progress_topic)
    world.copied()
    assert world.values() == names(0, 1, 2, 3, 1, 2, 3)
    assert world.places == [0, 4, 5, 6, 7]


def test_a_driver_without_the_lease_does_nothing_and_says_nothing(world: Shifted) -> None:
    world.copied_to(3)
    world.pause("t")
    world.shift(3, 1)
    made = world.flow.clusters.make_shift_writer

    def late(*args: Any) -> Writer | None:
        world.flow.lease.owner = "another driver"  # while this one hung
        return made(*args)

    world.shift_by(late)
    with pytest.raises(LeaseLost), world.run() as run:
        run.begin()
    assert world.progress().answers.shifted == {}
    assert world.position == 3


@pytest.mark.parametrize("end", [1, 5])
def test_it_is_done_whole_or_not_at_all(world: Shifted, end: int) -> None:
    world.copied_to(3)
    world.write(*names(3, 4, 5))
    world.pause("t")
    act = world.shift(3, end)
    made = world.flow.clusters.make_shift_writer

    class Dying:
        def write(self, _: Iterable[ControlRecord]) -> None:
            raise ProgressFailed("it died")

    world.shift_by(lambda *_: Dying())
    with pytest.raises(ProgressFailed), world.run() as run:
        run.begin()
    assert (world.position, world.kept, act in world.progress().answers.shifted) == (3, [], False)
    world.shift_by(made)
    with world.run() as run:
        run.begin()
    world.resume("t")
    world.copied()
    assert world.values() == (names(0, 1, 2, 5) if end == 5 else names(0, 1, 2, 1, 2, 3, 4, 5))
    assert world.declined(act) is None


def test_what_a_transaction_committed_amid_a_rewind_comes_to_the_map(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    batch = ProgressDetail(OffsetRange(1, 3), 6, (Interval(1, 4, 2),), logs=world.progress().positions[P].logs)
    assert complete_map(world.flow.clusters, {P: world.map}, {P: [batch]}, None)
    assert world.map.next_offset == 3
    assert world.places == [0, 1, 2, 3, 4]
    assert not complete_map(world.flow.clusters, {P: world.map}, {P: [batch]}, None)


def test_a_batch_that_died_amid_a_rewind_is_found(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    world.die(2)
    world.copied()
    assert world.values() == names(0, 1, 2, 3, 1, 2, 3)
    assert world.places == [0, 4, 5, 6, 7]


def test_other_losses_stay(world: Shifted) -> None:
    world.copied_to(1)
    world.write(*names(1, 2))
    world.flow.log.delete_before(2)
    world.copied()
    world.done(3, 2)
    assert world.kept == [(LossCause.DELETED, (1, 2))]
