"""For how long a confirmed right counts, and what a process that was stopped finds when it goes on."""

from __future__ import annotations

from srm_spark.core.lease_clock import LeaseClock


def test_a_right_counts_from_the_question_and_not_from_the_answer() -> None:
    lease = LeaseClock(9.0)
    assert not lease.is_held(0.0)
    lease.confirmed(asked_at=100.0)  # whenever the answer came
    assert lease.is_held(108.9)
    assert not lease.is_held(109.0)
    assert not lease.may_write(109.0)


def test_an_answer_that_comes_late_takes_nothing_back() -> None:
    lease = LeaseClock(9.0)
    lease.confirmed(100.0)
    lease.confirmed(98.0)
    assert lease.is_held(108.9)


def test_a_process_that_was_stopped_knows_at_its_first_question() -> None:
    lease = LeaseClock(9.0)
    lease.confirmed(100.0)
    assert not lease.may_write(100.0 + 60), "nobody told it anything while it was stopped"


def test_while_it_is_handed_over_what_has_begun_may_be_written_and_nothing_else_begun() -> None:
    lease = LeaseClock(9.0)
    lease.confirmed(100.0)
    lease.hand_over(until=160.0)
    assert not lease.is_held(101.0)
    assert lease.may_write(159.0)
    assert not lease.may_write(160.0)
    lease.end()
    assert not lease.may_write(101.0)
