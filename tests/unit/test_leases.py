"""Whose a flow is, by the log: one owner at a time, whatever is late, stopped, lost or cut off."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srm_spark.core.leases import (
    BEAT_SECONDS,
    HELD_SECONDS,
    PATIENCE_SECONDS,
    SURE_SECONDS,
    Act,
    Candidate,
    LeaseClock,
    LeaseRecord,
    Standing,
)


def test_a_right_counts_from_the_question_and_not_from_the_answer() -> None:
    clock = LeaseClock(9.0)
    assert not clock.is_held(0.0)
    clock.confirmed(asked_at=100.0)  # whenever the answer came
    assert clock.is_held(108.9)
    assert not clock.is_held(109.0)


def test_an_answer_that_comes_late_takes_nothing_back() -> None:
    clock = LeaseClock(9.0)
    clock.confirmed(100.0)
    clock.confirmed(98.0)
    assert clock.is_held(108.9)


@pytest.mark.parametrize("act", Act)
def test_a_record_is_read_as_it_was_written(act: Act) -> None:
    record = LeaseRecord(act, 7, "h", "host pid 1", 3, 12 if act is Act.CLAIM else -1, 'a "note"')
    assert LeaseRecord.decode(record.encode()) == record


def test_a_record_of_an_older_version_names_no_source() -> None:
    record = LeaseRecord(Act.HELD, 7, "h", "host pid 1", 3, source="cluster")
    assert LeaseRecord.decode(record.encode()) == record
    assert b"source" not in replace(record, source="").encode()
    assert LeaseRecord.decode(replace(record, source="").encode()) == replace(record, source="")


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"null",
        b"[]",
        b"\xff",
        b"{}",
        b'{"act":"other"}',
        b'{"act":"held","term":"x"}',
        b'{"act":"held","term":1e999}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_record_of_a_lease_says_nothing(value: bytes | None) -> None:
    assert LeaseRecord.decode(value) is None


def standing_of(*records: LeaseRecord, first: int = 0) -> Standing:
    standing = Standing()
    for offset, record in enumerate(records, first):
        standing = standing.after(offset, record)
    return standing


def claim(term: int, holder: str, behind: int) -> LeaseRecord:
    return LeaseRecord(Act.CLAIM, term, holder, holder, behind=behind)


def held(term: int, holder: str, note: str = "") -> LeaseRecord:
    return LeaseRecord(Act.HELD, term, holder, holder, note=note)


def left(term: int, holder: str) -> LeaseRecord:
    return LeaseRecord(Act.LEFT, term, holder, holder)


def test_of_two_claims_the_first_one_counts() -> None:
    assert standing_of(claim(1, "a", -1), claim(1, "b", -1)).holder == "a"


def test_a_claim_of_an_owner_who_was_heard_meanwhile_does_nothing() -> None:
    standing = standing_of(claim(1, "a", -1), held(1, "a"), held(1, "a"), claim(2, "b", 1))
    assert (standing.holder, standing.newest) == ("a", 2)


def test_a_claim_behind_his_newest_record_counts_and_what_he_says_then_does_nothing() -> None:
    standing = standing_of(claim(1, "a", -1), held(1, "a"), claim(2, "b", 1), held(1, "a"), left(1, "a"))
    assert (standing.holder, standing.newest, standing.is_left) == ("b", 2, False)


def test_what_was_left_is_free_until_the_next_claim() -> None:
    standing = standing_of(claim(1, "a", -1), held(1, "a", "note"), left(1, "a"), held(1, "a"))
    assert standing.is_free
    taken = standing.after(9, standing.claim("b", "b"))
    assert (taken.holder, taken.term, taken.is_free) == ("b", 2, False)
    assert standing.claim("b", "b").note == standing.note, "the next owner says what the last one has noted"


def test_what_a_flow_is_copied_from_is_remembered_by_who_says_nothing_of_it() -> None:
    log = [replace(claim(1, "a", -1), source="x"), replace(held(1, "a"), source="x"), left(1, "a")]
    standing = standing_of(*log)
    assert standing.source == "x"
    assert standing_of(*log, claim(2, "old version", 2)).source == "x"
    for said, then in (("", "x"), ("y", "y")):
        next_one = Candidate("b", said)
        next_one.heard(log, standing, 0.0)
        taken = next_one.claim("b", 1.0)
        next_one.heard([taken], standing.after(9, taken), 1.1)
        beat = next_one.beat(2.0)
        assert beat is not None
        assert (taken.source, beat.source) == (then, then)
    assert standing_of(replace(held(4, "a"), source="y"), first=100).source == "y", (
        "who reads from the middle learns it"
    )


def test_who_reads_from_the_middle_believes_who_is_heard_and_not_who_claims() -> None:
    assert standing_of(claim(5, "z", 3), first=100).holder == ""
    assert standing_of(held(4, "a"), claim(5, "z", 3), first=100).holder == "a"
    assert standing_of(held(3, "zombie"), held(4, "a"), first=100).holder == "a"
    assert standing_of(held(4, "a"), held(3, "zombie"), first=100).holder == "a"


def test_who_waits_does_not_know_before_something_is_heard_or_long_enough_nothing() -> None:
    log = [claim(1, "a", -1), held(1, "a")]
    waiting = Candidate("w")
    waiting.heard((), Standing(), 9.0, is_all=False)
    assert waiting.owner(100.0) is None, "not all was read"
    waiting.heard(log, standing_of(*log), 10.0)
    assert waiting.owner(10.1) is None, "it may be of yesterday"
    waiting.heard([held(1, "a")], standing_of(*log, held(1, "a")), 10.4)
    assert waiting.owner(10.5) == "a"
    assert waiting.owner(10.4 + 2 * BEAT_SECONDS) is None, "two beats are missing"
    assert waiting.owner(10.4 + PATIENCE_SECONDS + 0.1) == ""


def test_a_claim_that_was_given_up_is_nobodys_when_it_counts_after_all() -> None:
    """The log of a broker that hung goes on: whoever claimed has told his flow that it is another's meanwhile."""
    log = [claim(1, "a", -1), held(1, "a")]
    waiting = Candidate("w")
    waiting.heard(log, standing_of(*log), 10.0)
    late = waiting.claim("w1", 14.0)
    waiting.give_up()
    log.append(late)
    waiting.heard([late], standing_of(*log), 18.0)
    assert (waiting.is_owner, waiting.is_held(18.0), waiting.beat(18.6)) == (False, False, None)
    assert waiting.owner(18.1 + PATIENCE_SECONDS) == "", "and is free, like that of anybody who is not heard"
    again = waiting.claim("w2", 22.0)
    log.append(again)
    waiting.heard([again], standing_of(*log), 22.1)
    assert waiting.is_owner


def test_an_owner_who_cannot_be_sure_still_has_it_for_a_while() -> None:
    owner = Candidate("a")
    owner.heard((), Standing(), 0.0)
    record = owner.claim("a", 1.0)
    owner.heard([record], standing_of(record), 1.2)
    assert (owner.is_sure(1.0 + SURE_SECONDS - 0.1), owner.is_sure(1.0 + SURE_SECONDS)) == (True, False)
    assert (owner.is_held(1.0 + HELD_SECONDS - 0.1), owner.is_held(1.0 + HELD_SECONDS)) == (True, False)
    other = claim(2, "b", 0)
    owner.heard([other], standing_of(record, other), 2.0)
    assert (owner.is_sure(2.0), owner.is_held(2.0)) == (False, False), "from the moment that it is read"
    assert owner.beat(5.0) is None, "nor is there anything to say"
    assert owner.leave(2.0) is None, "it is not ours to give up"


def test_what_is_noted_is_said_at_once_and_confirmed_when_it_is_read() -> None:
    owner = Candidate("a")
    owner.heard((), Standing(), 0.0)
    log = [owner.claim("a", 0.0)]
    owner.heard(log, standing_of(*log), 0.1)
    first = owner.beat(0.1)
    assert first is not None
    assert owner.beat(0.2) is None
    owner.say("note")
    second = owner.beat(0.2)
    assert second is not None
    assert second.note == "note"
    owner.heard([first], standing_of(*log, first), 0.3)
    assert owner.confirmed_note != "note"
    owner.heard([second], standing_of(*log, first, second), 0.4)
    assert owner.confirmed_note == "note"


@dataclass
class Process:
    """A driver of the simulation: its network is slow, or cut, it reads late, and stands still now and then."""

    name: str
    chance: random.Random
    ours: Candidate = field(init=False)
    position: int = 0
    standing: Standing = field(default_factory=Standing)
    resting_until: float = 0.0
    cut_until: float = 0.0
    sent: list[tuple[float, LeaseRecord]] = field(default_factory=list)
    """Moment at which each record arrives."""
    lives: int = 0
    is_waiting: bool = False
    """For what becomes of its claim."""
    claimed_at: float = 0.0

    def __post_init__(self) -> None:
        self.ours = Candidate(self.name)

    def turn(self, log: list[LeaseRecord], now: float) -> None:
        """What it does when it gets a processor."""
        if now < self.resting_until:
            return
        if self.chance.random() < 0.01:
            self.resting_until = now + self.chance.choice((0.5, 2.0, 4.0, 20.0))
            return
        if self.chance.random() < 0.01:
            self.cut_until = now + self.chance.choice((0.3, 1.0, 5.0))
        if now >= self.cut_until:
            new = log[self.position :]
            for offset, record in enumerate(new, self.position):
                self.standing = self.standing.after(offset, record)
            self.position = len(log)
            self.ours.heard(new, self.standing, now)
        if self.is_waiting and (self.ours.is_owner or self.ours.is_late):
            self.is_waiting = False
        if self.is_waiting and now > self.claimed_at + PATIENCE_SECONDS and self.chance.random() < 0.2:
            self.ours.give_up()
            self.is_waiting = False
        if self.ours.is_owner and not self.ours.is_held(now):
            self.ours = Candidate(self.name)
            self.ours.heard((), self.standing, now)
        if (beat := self.ours.beat(now)) is not None:
            self._send(beat, now)
        if self.ours.is_owner and self.chance.random() < 0.005 and (last := self.ours.leave(now)) is not None:
            self._send(last, now)
        if not (self.ours.is_owner or self.is_waiting) and self.ours.owner(now) == "":
            self.lives += 1
            self._send(self.ours.claim(f"{self.name}{self.lives}", now), now)
            self.is_waiting, self.claimed_at = True, now

    def _send(self, record: LeaseRecord, now: float) -> None:
        delay = self.chance.choice((0.0, 0.01, 0.3, 1.0, 6.0)) if self.chance.random() < 0.2 else 0.005
        self.sent.append((max(now, self.cut_until) + delay, record))


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 4))
def test_no_two_are_sure_at_a_time_and_somebody_gets_it(seed: int, count: int) -> None:
    chance = random.Random(seed)
    processes = [Process(name, chance) for name in "abcd"[:count]]
    log: list[LeaseRecord] = []
    owners = set[str]()
    for tick in range(4000):
        now = tick * 0.05
        due = [(at, record, one) for one in processes for at, record in one.sent if at <= now]
        chance.shuffle(due)
        for at, record, one in due:
            one.sent.remove((at, record))
            log.append(record)
        for one in processes:
            one.turn(log, now)
        sure = [one.ours.holder for one in processes if one.ours.is_sure(now)]
        assert len(sure) <= 1, (now, sure)
        owners.update(sure)
    assert len(owners) > 3, "it changes hands"
