"""Random histories of a flow against a model: copies are what the acts announced, and the map skips nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from srm_spark.core.model import LossCause
from srm_spark.flow.run import FlowRun
from tests.unit.shifted import REMOTE, Shifted, copy_some, names

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "copy", "die", "start", "delete", "rewind", "skip", "lose progress"]),
        st.integers(1, 4),
    ),
    max_size=16,
)


@dataclass
class Model:
    """What has to be so."""

    world: Shifted = field(default_factory=Shifted)
    copies: list[int] = field(default_factory=list)
    """Source offsets, in the order of the target."""
    position: int = 0
    reached: int = 0
    """The furthest position so far."""
    places: list[int | None] = field(default_factory=list)

    def start(self) -> None:
        """A start goes on behind what the source has deleted."""
        self.go(max(self.position, self.world.flow.log.start))

    def go(self, position: int) -> None:
        self.position = position
        self.reached = max(self.reached, position)

    def copied(self, count: int) -> None:
        end = min(self.position + count, self.world.flow.log.end)
        self.copies += range(self.position, end)
        self.go(end)

    def write(self, count: int) -> None:
        end = self.world.flow.log.end
        self.world.write(*names(*range(end, end + count)))

    def copy(self, count: int) -> None:
        with self.world.run() as run:
            run.begin()
            self.start()
            copy_some(run, self.world, min(count, self.world.flow.log.end - self.position))
            self.copied(count)

    def die(self, count: int) -> None:
        """A batch lands and is not recorded; the next start finds it."""
        with self.world.run() as run:
            run.begin()
            self.start()
            end = min(self.position + count, self.world.flow.log.end)
            for offset in range(self.position, end):
                self.world.flow.target.log(REMOTE).append(self.world.flow.log.records[offset])
            self.world.generation.ends_cleanly = False
            self._stop(run)
        self.copied(count)
        with self.world.run() as run:
            run.begin()

    def delete(self, count: int) -> None:
        log = self.world.flow.log
        log.delete_before(min(log.start + count, log.end))

    def shift(self, end: int) -> None:
        end = max(self.world.flow.log.start, min(end, self.world.flow.log.end))
        if self.position < self.world.flow.log.start:
            self.restart()
        is_again = self.position < self.reached
        act = self.world.done(self.position, end)
        why = self.world.declined(act)
        assert (why is not None) == (end == self.position or (is_again and end > self.position)), why
        if why is None:
            self.go(end)

    def restart(self) -> None:
        with self.world.run() as run:
            run.begin()
        self.start()

    def check(self) -> None:
        """Of what is on the target, what is lost, and where groups go on."""
        world = self.world
        assert world.values() == names(*self.copies)
        lost = {offset for _, (start, end) in world.kept for offset in range(start, end)}
        assert lost == set(range(self.reached)) - set(self.copies)
        assert {cause for cause, _ in world.kept} <= {LossCause.DELETED, LossCause.SKIPPED}
        known = world.map
        places = [known.downstream(offset) for offset in range(self.reached + 1)]
        for offset, place in enumerate(places):
            assert place is not None
            behind = set(self.copies[place:])
            assert {one for one in self.copies if one >= offset} <= behind, "who stands there misses nothing"
            if (copy := known.copy_of(offset)) is not None:
                assert self.copies[copy] == offset
        assert places == sorted(places, key=lambda place: place or 0)
        assert all((new or 0) >= (old or 0) for new, old in zip(places, self.places, strict=False)), "never back"
        self.places = places

    @staticmethod
    def _stop(run: FlowRun) -> None:
        run.lists.look()


@settings(max_examples=60, deadline=None)
@example([("write", 2), ("skip", 2), ("rewind", 2), ("die", 1), ("rewind", 1)])
@example([("write", 2), ("delete", 1), ("skip", 2), ("rewind", 2), ("delete", 4)])
@given(STEPS)
def test_copies_losses_and_places_are_what_was_announced(steps: list[tuple[str, int]]) -> None:
    model = Model()
    model.write(3)
    model.copy(3)
    for word, number in steps:
        if word == "write":
            model.write(number)
        elif word == "copy":
            model.copy(number)
        elif word == "die":
            model.die(number)
        elif word == "start":
            model.restart()
        elif word == "delete":
            model.delete(number)
            model.restart()
        elif word == "rewind":
            model.shift(model.position - number)
        elif word == "skip":
            model.shift(model.position + number)
        elif word == "lose progress":
            model.world.flow.target.delete(model.world.flow.settings.progress_topic)
            model.restart()
        model.check()
    model.restart()
    model.copy(model.world.flow.log.end)
    model.check()
    assert model.world.map.again is None
