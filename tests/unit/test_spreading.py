"""Which driver should have a flow: all have about the same to do in the end, and nothing moves any more then."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srm_spark.core.driver_status import DriverId
from srm_spark.core.model import Flow
from srm_spark.core.spreading import StandBy, better, seconds_to_others, weight
from srm_spark.flow.share import Share

FLOWS = [Flow(f"s{number}", "b") for number in range(40)]


def other(name: str, load: float) -> StandBy:
    return StandBy(DriverId(name, 1, 1), load)


def test_what_is_said_is_read_as_it_was_said() -> None:
    said = StandBy(DriverId("h/1", 1, 2), 3.25)
    assert StandBy.decode(said.encode()) == said


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"act":"held"}',
        b'{"act":"stands-by","driver":"h/1/2","load":"x"}',
        b'{"act":"stands-by","driver":"d","load":1.0}',
    ],
)
def test_what_is_no_such_word_says_nothing(value: bytes | None) -> None:
    assert StandBy.decode(value) is None


def test_the_one_flow_of_a_driver_stays_and_one_of_two_goes() -> None:
    assert better(1.0, 1.0, [other("idle", 0.0)]) is None
    found = better(2.0, 1.0, [other("busy", 1.5), other("idle", 0.0)])
    assert found is not None
    assert found.driver.host == "idle"
    assert better(2.0, 1.0, []) is None


def test_a_flow_that_makes_most_of_the_load_stays_and_a_small_one_goes() -> None:
    heavy = weight(100_000_000.0)
    assert heavy == 11.0
    assert better(heavy + 1.0, heavy, [other("idle", 0.0)]) is None
    assert better(heavy + 1.0, 1.0, [other("idle", 0.0)]) is not None


def test_who_has_more_to_do_is_slower_and_of_equals_one_is() -> None:
    mine = other("b", 2.0)
    words = [mine, other("a", 1.0), other("c", 2.0), other("d", 3.0)]
    waits = {one.driver.host: seconds_to_others(one, words) for one in words}
    assert sorted(waits, key=waits.__getitem__) == ["a", "b", "c", "d"]
    assert waits["a"] == 0.0
    assert len(set(waits.values())) == 4


class Drivers:
    """Processes with a share each; who is given a flow has it at once, and says so a second later."""

    def __init__(self, count: int, chance: random.Random) -> None:
        self.now, self.chance = 0.0, chance
        self.shares = [Share(DriverId("h", number, 1), lambda: self.now) for number in range(count)]
        self.heard: list[StandBy] = []
        self.owners: dict[Flow, int] = {}
        self.moves = 0

    def take(self, flow: Flow, number: int) -> None:
        """It is this driver's now."""
        self.owners[flow] = number
        self.shares[number].begin(flow)

    def second(self, sizes: dict[Flow, int]) -> None:
        """All of them look at all of theirs once."""
        for flow, number in sorted(self.owners.items(), key=lambda _: self.chance.random()):
            self.shares[number].copied(flow, sizes.get(flow, 0))
            found = self.shares[number].goes_to(flow, self.heard)
            if found is not None:
                self.moves += 1
                self.take(flow, found.driver.pid)
        self.heard = [share.stand_by(FLOWS[0]) for share in self.shares]
        self.now += 1.0

    def loads(self) -> list[float]:
        """Of all."""
        return [share.stand_by(FLOWS[0]).load for share in self.shares]


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), drivers=st.integers(2, 5), flows=st.integers(1, 40))
def test_all_have_about_as_much_to_do_and_then_nothing_moves(seed: int, drivers: int, flows: int) -> None:
    chance = random.Random(seed)
    sizes = {flow: chance.choice((0, 0, 2_000_000, 30_000_000)) for flow in FLOWS[:flows]}
    world = Drivers(drivers, chance)
    for flow in sizes:
        world.take(flow, 0)
    for _ in range(300):
        world.second(sizes)
    loads, heaviest = world.loads(), max(weight(size) for size in sizes.values())
    assert max(loads) - min(loads) <= heaviest + 1.0 + 0.1 * max(loads)
    assert world.moves <= 2 * flows, "not to and fro"
    moves = world.moves
    for _ in range(300):
        world.second(sizes)
    assert world.moves == moves


def test_a_driver_that_comes_has_its_share_of_many_idle_flows_within_seconds() -> None:
    world = Drivers(2, random.Random(1))
    for flow in FLOWS:
        world.take(flow, 0)
    for _ in range(30):
        world.second({})
    assert sorted(world.owners.values()).count(1) in (18, 19, 20)


class Clocked:
    """One share, and a clock that is turned by hand."""

    def __init__(self, flows: int) -> None:
        self.now = 0.0
        self.share = Share(DriverId("me", 1, 1), lambda: self.now)
        for flow in FLOWS[:flows]:
            self.share.begin(flow)
        self.now += 60.0

    def goes(self, flow: Flow, *others: StandBy) -> str | None:
        """To whom."""
        found = self.share.goes_to(flow, others)
        return None if found is None else found.driver.host


def test_flows_go_one_after_the_other_and_not_before_they_have_settled() -> None:
    ours = Clocked(6)
    assert ours.goes(FLOWS[0], other("idle", 0.0)) == "idle"
    assert ours.goes(FLOWS[1], other("idle", 0.0)) is None, "what the first one has made of it is not known yet"
    ours.now += 2.0
    assert ours.goes(FLOWS[1], other("idle", 1.0)) == "idle"
    assert ours.goes(FLOWS[0], other("idle", 0.0)) is None, "it is not ours"
    late = Clocked(0)
    for flow in FLOWS[:6]:
        late.share.begin(flow)
    assert late.goes(FLOWS[0], other("idle", 0.0)) is None, "it has just begun"


def test_what_we_said_ourselves_before_it_was_ours_is_nobody_to_give_it_to() -> None:
    ours = Clocked(6)
    assert ours.goes(FLOWS[0], StandBy(DriverId("me", 1, 1), 0.0)) is None


def test_who_gave_a_flow_away_leaves_it_to_others_and_takes_it_where_nobody_does() -> None:
    ours = Clocked(6)
    assert ours.share.seconds_to_others(FLOWS[0], []) == 0.0
    assert ours.goes(FLOWS[0], other("idle", 0.0)) == "idle"
    assert ours.share.seconds_to_others(FLOWS[0], []) == 3.0
    assert ours.share.seconds_to_others(FLOWS[1], []) == 0.0
    ours.share.stand_by(FLOWS[0])
    assert ours.share.seconds_to_others(FLOWS[0], []) == 0.0, "somebody has taken it"


def test_who_gives_a_flow_back_does_not_get_it_again_for_an_hour() -> None:
    """It may reach no source, and would take it again and again."""
    ours = Clocked(6)
    assert ours.goes(FLOWS[0], other("idle", 0.0)) == "idle"
    ours.now += 20.0
    ours.share.begin(FLOWS[0])
    ours.now += 60.0
    assert ours.goes(FLOWS[0], other("idle", 0.0)) is None
    assert ours.goes(FLOWS[1], other("idle", 0.0)) is None, "nor anything else for two minutes"
    ours.now += 61.0
    assert ours.goes(FLOWS[1], other("idle", 0.0)) == "idle"
    ours.now += 5.0
    assert ours.goes(FLOWS[0], other("idle", 0.0), other("new", 1.0)) == "new"
    ours.share.begin(FLOWS[0])
    ours.now += 3600.0
    assert ours.goes(FLOWS[0], other("idle", 0.0)) == "idle"


def test_a_flow_that_ends_is_nothing_to_do() -> None:
    ours = Clocked(2)
    ours.share.copied(FLOWS[0], 600_000_000)
    assert ours.share.stand_by(FLOWS[0]).load == pytest.approx(3.58)  # 10 MB/s, of which a younger flow has shown less
    ours.now += 600.0
    assert ours.share.stand_by(FLOWS[0]).load == pytest.approx(2.0)
    ours.share.end(FLOWS[0])
    ours.share.copied(FLOWS[0], 600_000_000)
    assert ours.share.stand_by(FLOWS[0]) == StandBy(DriverId("me", 1, 1), 1.0)


def test_a_driver_that_is_drained_gives_at_once_and_gets_nothing() -> None:
    ours = Clocked(2)
    ours.share.drain(FLOWS[0], ["me"])
    said = ours.share.stand_by(FLOWS[0])
    assert better(50.0, 1.0, [said]) is None
    assert ours.share.seconds_to_others(FLOWS[0], [other("busy", 40.0)]) > 0.0
    assert ours.share.stand_by(FLOWS[1]).load == 2.0, "of another flow nobody has said so"
    assert ours.goes(FLOWS[0]) is None, "nobody else is there"
    assert ours.goes(FLOWS[0], other("busy", 40.0), other("busier", 41.0)) == "busy"
    ours.share.drain(FLOWS[0], [])
    assert ours.share.stand_by(FLOWS[0]).load == 1.0


def test_who_gave_it_back_because_he_is_drained_is_excused() -> None:
    ours = Clocked(6)
    assert ours.goes(FLOWS[0], StandBy(DriverId("h2", 2, 2), 0.0)) == "h2"
    ours.share.begin(FLOWS[0])
    ours.now += 60.0
    ours.share.drain(FLOWS[0], ["h2"])
    assert ours.goes(FLOWS[0], StandBy(DriverId("h2", 2, 2), 0.0)) == "h2", "once it is returned"


def test_of_a_drained_driver_flows_go_also_to_who_gave_them_back_where_nobody_else_is() -> None:
    ours = Clocked(6)
    assert ours.goes(FLOWS[0], other("idle", 0.0)) == "idle"
    ours.share.begin(FLOWS[0])
    ours.share.drain(FLOWS[0], ["me"])
    assert ours.goes(FLOWS[0], other("idle", 0.0), other("busy", 50.0)) == "busy"
    ours.share.begin(FLOWS[0])
    assert ours.goes(FLOWS[0], other("idle", 0.0)) is None, "he gave it back a moment ago"
    ours.now += 121.0
    assert ours.goes(FLOWS[0], other("idle", 0.0)) == "idle"


def test_of_a_drained_driver_all_do_not_go_to_one() -> None:
    ours = Clocked(4)
    others = [other("a", 0.0), other("b", 0.5)]
    for flow in FLOWS[:4]:
        ours.share.drain(flow, ["me"])
    assert [ours.goes(flow, *others) for flow in FLOWS[:4]] == ["a", "b", "a", "b"]


def test_a_burst_behind_a_takeover_is_no_load() -> None:
    ours = Clocked(0)
    ours.share.begin(FLOWS[0])
    ours.now += 1.0
    ours.share.copied(FLOWS[0], 90_000_000)
    assert ours.share.stand_by(FLOWS[0]).load < 1.6
