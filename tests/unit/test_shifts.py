"""Other positions for a flow in memory: what is copied, what is told as lost, and where groups go on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.model import KeptLoss, LossCause, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.errors import ProgressFailed
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.topics.losses import kept_losses
from tests.unit.commanded import Commanded, P

REMOTE = TopicPartition("A.t", 0)


class Shifted(Commanded):
    """A flow of one partition whose records are `t0`, `t1` …"""

    def copied_to(self, count: int) -> None:
        """So many records are written and copied."""
        self.write(*(f"t{number}".encode() for number in range(self.flow.log.end, count)))
        self.copied()

    def done(self, start: int, end: int) -> str:
        """A move that a driver carries out when it starts; nothing is copied meanwhile."""
        act = self.shift((0, start, end))
        with self.run() as run:
            run.begin()
        return act

    @property
    def map(self) -> PartitionMap:
        recorded = Recorded(self.flow.clusters)
        recorded.refresh()
        return recorded.maps.maps.get(P, PartitionMap())

    @property
    def lost(self) -> list[OffsetRange]:
        """Offsets that were skipped."""
        kept = kept_losses(self.flow.settings, self.flow.reach)
        return sorted(one.loss.offsets for one in kept if one.loss.cause is LossCause.SKIPPED)

    @property
    def position(self) -> int:
        return self.progress().positions[P].next_offset

    def declined(self, act: str) -> dict[int, str]:
        return dict(self.progress().answers.carried_out[act].declined)


def names(*numbers: int) -> list[bytes]:
    return [f"t{number}".encode() for number in numbers]


@pytest.fixture
def world() -> Shifted:
    return Shifted()


def test_what_is_skipped_is_lost_and_groups_pass_over_it(world: Shifted) -> None:
    world.copied_to(3)
    world.write(*names(3, 4, 5, 6))
    act = world.done(3, 5)
    assert world.declined(act) == {}
    assert (world.position, world.lost) == (5, [(3, 5)])
    world.copied()
    assert world.values() == names(0, 1, 2, 5, 6)
    assert [world.map.downstream(offset) for offset in range(8)] == [0, 1, 2, 3, 3, 3, 4, 5]
    assert world.losses == {"t-0": "3 to 4"}
    assert world.total("lost_records") == 2


def test_what_is_copied_twice_counts_by_its_newest_copy(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    assert (world.position, world.lost) == (1, [])
    assert [world.map.downstream(offset) for offset in range(5)] == [0, 1, 2, 3, 4], "as long as there is no other"
    world.copied()
    assert world.values() == names(0, 1, 2, 3, 1, 2, 3)
    assert [world.map.downstream(offset) for offset in range(5)] == [0, 4, 5, 6, 7]
    assert [world.map.copy_of(offset) for offset in range(4)] == [0, 4, 5, 6]
    assert world.map.upstream(2) == 1, "who has read the first copies reads all of the second ones"
    world.copied_to(5)
    assert world.values()[-1] == b"t4"
    assert world.losses == {}


def test_a_rewind_to_the_beginning_of_everything(world: Shifted) -> None:
    world.copied_to(2)
    world.done(2, 0)
    world.copied()
    assert world.values() == names(0, 1, 0, 1)
    assert [world.map.downstream(offset) for offset in range(3)] == [2, 3, 4]


def test_a_rewind_that_is_skipped_over_is_undone(world: Shifted) -> None:
    world.copied_to(4)
    world.done(4, 1)
    world.done(1, 4)
    assert (world.position, world.lost) == (4, [])
    world.copied_to(5)
    assert world.values() == names(0, 1, 2, 3, 4)
    assert [world.map.downstream(offset) for offset in range(6)] == [0, 1, 2, 3, 4, 5]


def test_what_was_skipped_and_is_copied_after_all_is_no_loss(world: Shifted) -> None:
    world.copied_to(1)
    world.write(*names(1, 2, 3))
    world.done(1, 3)
    world.copied()
    assert world.lost == [(1, 3)]
    world.done(4, 2)
    assert world.lost == [(1, 2)]
    world.copied()
    assert world.values() == names(0, 3, 2, 3)
    assert [world.map.downstream(offset) for offset in range(5)] == [0, 2, 2, 3, 4]


def test_what_was_skipped_stays_so_where_a_rewind_over_it_is_undone(world: Shifted) -> None:
    world.copied_to(1)
    world.write(*names(1, 2, 3))
    world.done(1, 3)
    world.copied()
    world.done(4, 0)
    assert world.lost == []
    world.done(0, 4)
    assert world.lost == [(1, 4)], "3 has a copy: better told once too often"


def test_a_partition_that_went_on_is_left_alone(world: Shifted) -> None:
    world.copied_to(3)
    act = world.shift((0, 2, 0))
    world.copied()
    assert world.declined(act) == {0: "it stands at 3 by now, and not at 2"}
    assert world.values() == names(0, 1, 2)


def test_a_place_beyond_the_source_is_refused(world: Shifted) -> None:
    world.copied_to(3)
    act = world.done(3, 9)
    assert world.declined(act) == {0: "the source ends at 3"}
    assert world.position == 3


def test_what_the_source_has_deleted_meanwhile_is_passed_without_a_loss(world: Shifted) -> None:
    world.copied_to(4)
    world.flow.log.delete_before(3)
    world.done(4, 0)
    assert world.position == 3
    world.copied()
    assert (world.values(), world.losses, world.lost) == (names(0, 1, 2, 3, 3), {}, [])


def test_a_partition_that_waits_for_what_was_deleted_is_set_behind_it() -> None:
    world = Shifted({"source.truncated.policy": "stop"})
    world.copied_to(2)
    world.write(*names(2, 3, 4, 5))
    world.flow.log.delete_before(4)
    with world.run() as run:
        run.begin()
        assert "the source deleted" in world.last("held")["t-0"]
    world.done(2, 5)
    kept = kept_losses(world.flow.settings, world.flow.reach)
    assert [(one.loss.cause, tuple(one.loss.offsets)) for one in kept] == [
        (LossCause.DELETED, (2, 4)),
        (LossCause.SKIPPED, (4, 5)),
    ]
    world.copied()
    assert world.values() == names(0, 1, 5)


def test_a_partition_that_is_held_for_another_reason_is_left_alone() -> None:
    world = Shifted({"source.recreated.policy": "stop"})
    world.copied_to(2)
    world.topic("t", b"new")
    act = world.done(2, 1)
    assert world.declined(act)[0].startswith("it is held: the source topic was created anew")


def test_an_act_on_a_partition_that_is_not_there_waits() -> None:
    world = Shifted()
    world.copied_to(2)
    act = world.shift((0, 2, 0), (1, 5, 0))
    with world.run() as run:
        run.begin()
    assert act not in world.progress().answers.carried_out
    assert world.position == 2


def test_a_running_driver_carries_it_out_while_the_partition_is_paused(world: Shifted) -> None:
    world.copied_to(3)
    with world.run() as run:
        run.begin()
        world.pause("t")
        world.look(run)
        world.shift((0, 3, 1))
        world.look(run)
        assert (world.position, world.flowing) == (1, set())
        world.resume("t")
        world.look(run)
        world.copy(run)
    assert world.values() == names(0, 1, 2, 1, 2)


@pytest.mark.parametrize("left", range(6))
def test_whatever_dies_it_is_done_once(left: int) -> None:
    """The target takes only so many more records of the flow's own state, then the driver dies."""
    world = Shifted()
    world.copied_to(3)
    world.write(*names(3, 4, 5))
    act = world.shift((0, 3, 5))
    mine = {world.flow.settings.progress_topic, world.flow.settings.map_topic}
    target, written = world.flow.target, [0]
    writer = target.writer

    def dying(role: str, error: type[ProgressFailed], **options: object) -> object:
        made = writer(role, error, **options)  # type: ignore[arg-type]

        class Dying:
            def write(self, records: list[ControlRecord]) -> None:
                for record in records:
                    written[0] += record.topic in mine
                    if written[0] > left:
                        raise ProgressFailed("it died")
                    made.write([record])

        return Dying()

    target.writer = dying  # type: ignore[method-assign, assignment]
    try:
        with world.run() as run:
            run.begin()
    except ProgressFailed:
        pass
    target.writer = writer  # type: ignore[method-assign]
    world.copied()
    assert world.values() == names(0, 1, 2, 5)
    assert world.lost == [(3, 5)]
    assert world.declined(act) == {}
    assert [world.map.downstream(offset) for offset in range(7)] == [0, 1, 2, 3, 3, 3, 4]


def test_other_losses_stay() -> None:
    world = Shifted()
    world.copied_to(1)
    world.write(*names(1, 2))
    world.flow.log.delete_before(2)
    world.copied()
    world.done(3, 2)
    (kept,) = kept_losses(world.flow.settings, world.flow.reach)
    assert isinstance(kept, KeptLoss)
    assert (kept.loss.cause, kept.loss.offsets) == (LossCause.DELETED, OffsetRange(1, 2))


STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "copy", "start", "rewind", "skip"]), st.integers(1, 4)), max_size=14
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_no_reader_misses_what_was_not_skipped(steps: list[tuple[str, int]]) -> None:
    """Whoever stood at a source offset finds at its place on the target, or behind it, all that follows it."""
    world = Shifted()
    world.copied_to(1)
    for word, number in steps:
        position, end = world.position, world.flow.log.end
        if word == "write":
            world.write(*names(*range(end, end + number)))
        elif word == "copy":
            world.copied()
        elif word == "start":
            with world.run() as run:
                run.begin()
        elif word == "rewind":
            world.done(position, max(0, position - number))
        else:
            world.done(position, min(end, position + number))
    world.copied()
    log = world.flow.target.log(REMOTE)
    skipped = {offset for start, end in world.lost for offset in range(start, end)}
    known = world.map
    for offset in range(world.flow.log.end):
        place = known.downstream(offset)
        if place is None:
            continue  # nobody goes on there before it is known
        found = {record.value for at, record in log.records.items() if at >= place}
        missing = [n for n in range(offset, world.flow.log.end) if f"t{n}".encode() not in found]
        assert set(missing) <= skipped
        if (copy := known.copy_of(offset)) is not None:
            assert log.records[copy].value == f"t{offset}".encode()
    everything = {record.value for record in log.records.values()}
    assert {n for n in range(world.flow.log.end) if f"t{n}".encode() not in everything} <= skipped


def test_a_pause_by_a_batch_is_no_obstacle() -> None:
    world = Shifted()
    world.copied_to(1)
    world.write(b"big", b"t2")
    world.refuse = lambda _, r: Failure(FailureKind.TOO_LARGE, "words") if r.value == b"big" else None
    with world.run() as run:
        run.begin()
        world.copy(run)
        assert "t-0" in world.last("held")
        world.shift((0, 1, 2))
        world.look(run)
        world.copy(run)
    assert world.values() == [b"t0", b"t2"]
