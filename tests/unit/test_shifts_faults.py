"""Random histories of a flow whose clusters lose what they had: nothing is lost silently, and no place is wrong."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from srm_spark.core.model import LossCause
from tests.unit.commanded import P
from tests.unit.shifted import REMOTE, Shifted, copy_some

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["write", "copy", "die", "start", "rewind", "skip", "delete", "cut source", "cut target", "delete target"]
        ),
        st.integers(1, 4),
    ),
    max_size=14,
)


class Faulty(Shifted):
    """Each record has a value of its own, also where it takes the place of a lost one."""

    written = 0

    @property
    def is_held(self) -> bool:
        return P not in self.generation.assignment.starts

    def more(self, count: int) -> None:
        self.write(*(f"w{self.written + number}".encode() for number in range(count)))
        self.written += count

    def step(self, word: str, number: int) -> None:
        log, position = self.flow.log, self.position
        if word == "write":
            self.more(number)
        elif word == "copy":
            with self.run() as run:
                run.begin()
                if not self.is_held:
                    at = self.generation.assignment.starts[P].next_offset
                    copy_some(run, self, max(0, min(number, log.end - at)))
        elif word == "die":
            if "A.t" in self.flow.target.held:
                self.die(number)
        elif word == "start":
            with self.run() as run:
                run.begin()
        elif word == "rewind":
            self.done(position, max(log.start, position - number))
        elif word == "skip":
            self.done(position, min(log.end, position + number))
        elif word == "delete":
            log.delete_before(min(log.start + number, log.end))
        elif word == "cut source":
            log.cut(max(log.start, log.end - number))
        elif word == "delete target":
            self.flow.target.held.pop("A.t", None)
        elif "A.t" in self.flow.target.held:
            remote = self.flow.target.log(REMOTE)
            remote.cut(max(remote.start, remote.end - number))


@settings(max_examples=60, deadline=None)
@example([("cut target", 2), ("rewind", 1)])
@example([("rewind", 2), ("cut target", 1), ("die", 2)])
@example([("write", 1), ("skip", 1), ("rewind", 1), ("write", 1), ("die", 2), ("cut source", 1), ("copy", 1)])
@given(STEPS)
def test_nothing_is_lost_silently_and_no_place_is_wrong(steps: list[tuple[str, int]]) -> None:
    world = Faulty()
    world.more(3)
    world.copied()
    for word, number in steps:
        world.step(word, number)
    world.copied()
    log, remote = world.flow.log, world.flow.target.log(REMOTE)
    there = {record.value for record in remote.records.values()}
    told = {offset for _, (start, end) in world.kept for offset in range(start, end)}
    missing = {at for at, record in log.records.items() if record.value not in there and at < world.position}
    assert missing <= told
    skipped = {at for cause, (start, end) in world.kept if cause is LossCause.SKIPPED for at in range(start, end)}
    is_held = world.is_held  # a driver has died, and the source has lost what it wrote: nobody knows whose that is
    assert is_held or not {at for at in skipped if at in log.records and log.records[at].value in there}
    known = world.map
    assert is_held or known.again is None or log.end < (known.copied_before or 0)
    for at, record in log.records.items():
        copy, place = known.copy_of(at), known.downstream(at)
        if place is not None and record.value in there and at not in told:
            assert record.value in {one.value for where, one in remote.records.items() if where >= place}
        assert copy is None or copy not in remote.records or remote.records[copy].value == record.value
