"""What one of both sides loses amid a rewind, in a flow in memory: second copies may be the only ones."""

from __future__ import annotations

import pytest

from srm_spark.core.model import Loss, LossCause, OffsetRange
from srm_spark.core.tail import TailRecord
from srm_spark.flow.recovery.guard import SourceGuard
from tests.unit.commanded import P
from tests.unit.shifted import REMOTE, Shifted, names


def _rewound(**keys: str) -> Shifted:
    """Four records are copied, and two of them, 1 and 2, once more: to 4 and 5."""
    world = Shifted({key.replace("_", "."): value for key, value in keys.items()})
    world.copied_to(4)
    world.done(4, 1)
    world.copy_part(2)
    return world


def _begun_late(policy: str = "resume") -> Shifted:
    """Offsets 5 and 6 are copied, and it stands at 0 by now."""
    world = Shifted({"topics.start.latest": "t", "source.truncated.policy": policy})
    world.write(*names(0, 1, 2, 3, 4))
    with world.run() as run:
        run.begin()
    world.copied_to(7)
    world.done(7, 0)
    return world


def test_only_copies_of_what_was_skipped_that_the_target_loses_are_made_once_more() -> None:
    world = Shifted()
    world.copied_to(1)
    world.write(*names(1, 2, 3, 4))
    world.done(1, 4)
    world.copied()
    world.done(5, 1)
    world.copy_part(2)
    world.flow.target.log(REMOTE).cut(3)
    world.copied()
    assert (world.values(), world.kept) == (names(0, 4, 1, 2, 3, 4), [])
    assert world.places == [0, 2, 3, 4, 5, 6]


def test_only_copies_from_before_the_beginning_that_the_target_loses_are_made_once_more() -> None:
    world = _begun_late()
    world.copy_part(3)
    world.flow.target.log(REMOTE).cut(3)
    world.copied()
    assert (world.values(), world.kept) == (names(5, 6, 0, 1, 2, 3, 4, 5, 6), [])
    assert world.places == [2, 3, 4, 5, 6, 7, 8, 9]


def test_only_copies_that_go_with_the_remote_topic_are_made_once_more() -> None:
    world = _begun_late()
    world.copy_part(3)
    world.flow.target.delete("A.t")
    world.copied()
    assert (world.values(), world.kept) == (names(0, 1, 2, 3, 4, 5, 6), [])
    assert world.places == [0, 1, 2, 3, 4, 5, 6, 7]


def test_second_copies_that_are_gone_when_a_driver_dies_do_not_count() -> None:
    world = _rewound()
    world.flow.target.log(REMOTE).cut(5)
    world.die(1)
    world.copied()
    assert (world.values(), world.kept) == (names(0, 1, 2, 3, 1, 2, 3), [])
    assert world.places == [0, 4, 5, 6, 7]


def test_first_and_second_copies_that_are_gone_when_a_driver_dies_do_not_count() -> None:
    world = Shifted()
    world.copied_to(4)
    world.done(4, 1)
    world.copy_part(1)
    world.flow.target.log(REMOTE).cut(2)
    world.write(*names(4, 5))
    world.die(3)
    assert set(world.places[2:]) == {None}
    world.copied()
    assert (world.values(), world.kept) == (names(0, 1, 1, 2, 3, 4, 5), [])
    assert world.places == [0, 2, 3, 4, 5, 6, 7]


def test_what_others_have_written_in_place_of_a_second_copy_holds_the_partition() -> None:
    world = _rewound()
    log = world.flow.target.log(REMOTE)
    log.cut(5)
    log.append(TailRecord(0, 5_000, b"z", b"foreign"))
    with world.run() as run:
        run.begin()
        assert "target offset 5 holds a record that is not the next one" in world.held["t-0"]


def test_lost_second_copies_stop_it_where_the_policy_says_so() -> None:
    world = _rewound(target_changed_policy="stop")
    world.flow.target.log(REMOTE).cut(5)
    with world.run() as run:
        run.begin()
        held = world.held["t-0"]
    assert "amid a rewind: the copies of offsets 2 to 2 are gone there; set target.changed.policy=resume" in held
    assert world.position == 3
    world.change({"target.changed.policy": "resume"})
    world.copied()
    assert (world.values(), world.kept) == (names(0, 1, 2, 3, 1, 2, 3), [])


@pytest.mark.parametrize("policy", ["resume", "stop"])
def test_a_source_with_other_records_than_those_of_the_only_copies_is_told(policy: str) -> None:
    world = _begun_late()
    world.change({"source.diverged.policy": policy})
    world.copy_part(3)
    world.flow.log.cut(1)
    world.write(b"x1", b"x2", b"x3")
    world.copied()
    if policy == "stop":
        assert world.values() == names(5, 6, 0, 1, 2)
        return
    assert world.values() == [*names(5, 6, 0, 1, 2), b"x1", b"x2", b"x3"]
    assert set(world.kept) == {(LossCause.DIVERGED, (1, 3)), (LossCause.DIVERGED, (5, 7))}


def test_a_source_that_is_cut_ahead_of_the_position_leaves_first_copies_in_front_of_that_valid() -> None:
    world = Shifted()
    world.copied_to(6)
    world.done(6, 1)
    world.copy_part(1)
    world.flow.log.cut(5)
    world.write(b"x5")
    with world.run() as run:
        run.begin()
    assert world.kept == [(LossCause.DIVERGED, (5, 6))]
    assert world.places == [0, 1, 2, 3, 4, 6, None], "not to 7, behind which 2, 3 and 4 are not there yet"
    world.copied()
    assert world.values() == [*names(0, 1, 2, 3, 4, 5, 1, 2, 3, 4), b"x5"]
    assert world.places == [0, 6, 7, 8, 9, 10, 11]


def test_a_source_that_is_cut_where_it_stands_leaves_the_only_copies_in_front_of_that_valid() -> None:
    world = Shifted({"topics.start.latest": "t"})
    world.write(*names(0, 1, 2))
    with world.run() as run:
        run.begin()
    world.copied_to(5)
    world.done(5, 0)
    world.copy_part(3)
    world.flow.log.cut(3)
    world.write(b"x3", b"x4")
    world.copied()
    assert world.values() == [*names(3, 4, 0, 1, 2), b"x3", b"x4"]
    assert world.places == [2, 3, 4, 5, 6, 7]


def test_what_somebody_else_copies_on_amid_a_rewind_is_a_hole_and_no_gap() -> None:
    world = Shifted()
    world.copied_to(4)
    world.done(4, 1)
    world.write(*names(4, 5, 6, 7))
    for offset in range(1, 8):
        world.flow.target.log(REMOTE).append(world.flow.log.records[offset])
    world.recorded_by_mirrormaker(8)
    world.write(b"t8")
    world.copied()
    assert world.values()[-5:] == names(4, 5, 6, 7, 8)
    assert world.places == [0, 1, 2, 3, 4, None, None, None, 11, 12], "nobody at 5 to 7 passes over those copies"


def test_what_is_deleted_and_was_never_copied_before_is_lost() -> None:
    world = _begun_late()
    world.flow.log.delete_before(3)
    world.copied()
    assert (world.values(), world.kept) == (names(5, 6, 3, 4, 5, 6), [(LossCause.DELETED, (0, 3))])
    assert world.losses == {"t-0": "0 to 2"}


def test_what_is_deleted_and_was_never_copied_before_stops_it_where_the_policy_says_so() -> None:
    world = _begun_late("stop")
    world.flow.log.delete_before(3)
    with world.run() as run:
        run.begin()
        assert "the source deleted offsets 0 to 2 before they were replicated" in world.held["t-0"]
    assert (world.position, world.values()) == (0, names(5, 6))


@pytest.mark.parametrize("is_running", [False, True])
def test_of_what_is_deleted_before_it_is_copied_again_only_what_was_skipped_is_lost(is_running: bool) -> None:
    world = Shifted()
    world.copied_to(2)
    world.write(*names(2, 3, 4, 5))
    world.done(2, 4)
    world.copied()
    world.done(6, 1)
    with world.run() as run:
        if is_running:
            run.begin()
            world.flow.log.delete_before(5)
            assignment = world.generation.assignment
            guard = SourceGuard(
                world.flow.settings, assignment.logs, assignment.routes, world.flow.source, world.flow.reach
            )
            checked = guard.before({P: OffsetRange(1, 6)}, assignment.maps)
            assert checked.lost == {P: (Loss(OffsetRange(2, 4)),)}
            assert (checked.passed, checked.ranges) == ({P: 5}, {P: OffsetRange(5, 6)})
            assert guard.after({P: [OffsetRange(1, 4)]}, assignment.maps) == checked.lost
            return
        world.flow.log.delete_before(5)
        run.begin()
        world.copy(run)
    assert world.values() == names(0, 1, 4, 5, 5)
    assert set(world.kept) == {(LossCause.SKIPPED, (2, 4)), (LossCause.DELETED, (2, 4))}
    assert world.places == [0, 1, 2, 2, 2, 4, 5]


@pytest.mark.parametrize("policy", ["resume", "stop"])
def test_only_copies_that_are_gone_on_both_sides_are_lost(policy: str) -> None:
    world = _begun_late(policy)
    world.copy_part(3)
    world.flow.target.log(REMOTE).cut(3)
    world.flow.log.delete_before(2)
    world.copied()
    if policy == "stop":
        assert world.values() == names(5, 6, 0)
        return
    assert (world.values(), world.kept) == (names(5, 6, 0, 2, 3, 4, 5, 6), [(LossCause.DELETED, (1, 2))])
    assert world.places == [2, 3, 3, 4, 5, 6, 7, 8]


def test_what_the_target_has_lost_and_is_copied_after_all_is_no_loss() -> None:
    world = Shifted()
    world.copied_to(5)
    world.flow.target.log(REMOTE).cut(2)
    world.copied()
    assert world.kept == [(LossCause.TARGET, (2, 5))]
    world.done(5, 3)
    world.copied()
    assert (world.values(), world.kept) == (names(0, 1, 3, 4), [(LossCause.TARGET, (2, 3))])


def test_what_the_target_has_lost_is_not_what_a_source_that_was_cut_has_at_its_offsets() -> None:
    world = Shifted()
    world.copied_to(3)
    world.flow.target.log(REMOTE).cut(0)
    world.copied()
    assert world.kept == [(LossCause.TARGET, (0, 3))]
    world.flow.log.cut(0)
    world.copied()
    world.write(b"x0", b"x1", b"x2")
    world.copied()
    assert world.values() == [b"x0", b"x1", b"x2"]
    assert (LossCause.TARGET, (0, 3)) in world.kept


def test_what_is_no_record_among_what_was_skipped_is_no_loss_once_that_is_copied() -> None:
    world = Shifted()
    world.copied_to(1)
    world.write(*names(1, 2, 3, 4, 5, 6, 7))
    world.done(1, 7)
    world.copied()
    for marker in (2, 4, 6):
        del world.flow.log.records[marker]
    world.done(8, 1)
    world.copy_part(4)
    assert world.kept == [(LossCause.SKIPPED, (4, 7))], "of 4 nothing is known before something behind it is copied"
    world.copied()
    assert (world.values(), world.kept) == (names(0, 7, 1, 3, 5, 7), [(LossCause.SKIPPED, (4, 5))])
