"""Who lives, by the signs that came."""

from __future__ import annotations

from srm_spark.core.vitals import Silence, Vitals


def test_nobody_is_silent_before_the_patience_is_over() -> None:
    vitals = Vitals(4.0)
    vitals.sign("A", 100.0)
    assert vitals.silence(103.9) is None
    assert vitals.silence(104.0) == Silence("A", 100.0, None)


def test_who_has_been_silent_for_longest_is_named_with_what_was_said_last() -> None:
    vitals = Vitals(4.0)
    vitals.sign("A", 100.0)
    vitals.sign("B", 99.0)
    vitals.failed("B", "refused")
    assert vitals.silence(105.0) == Silence("B", 99.0, "refused")
    vitals.sign("B", 105.0)
    assert vitals.silence(105.0) == Silence("A", 100.0, None)
    vitals.failed("B", "refused once")
    vitals.sign("B", 105.5)
    vitals.sign("A", 105.5)
    assert vitals.silence(110.0) in (Silence("A", 105.5, None), Silence("B", 105.5, None))


def test_a_start_may_take_longer() -> None:
    vitals = Vitals(4.0)
    vitals.sign("the batch", 100.0, grace=30.0)
    assert vitals.silence(133.9) is None
    assert vitals.silence(134.0) == Silence("the batch", 130.0, None)
    vitals.sign("the batch", 101.0)
    assert vitals.silence(105.0) == Silence("the batch", 101.0, None)


def test_of_whom_nothing_is_expected_nothing_is_missed() -> None:
    vitals = Vitals(4.0)
    vitals.sign("the batch", 100.0)
    vitals.forget("the batch")
    assert vitals.silence(200.0) is None


def test_what_is_only_expected_now_and_then_is_missed_where_it_is_expected_still() -> None:
    vitals = Vitals(4.0)
    vitals.expect("copies", 100.0)
    assert vitals.silence(110.0) is None, "nobody has looked since whether there is anything to copy"
    assert vitals.age("copies", 103.0) == 3.0
    vitals.expect("copies", 103.0)
    assert vitals.silence(110.0) is None
    vitals.expect("copies", 104.0)
    assert vitals.silence(110.0) == Silence("copies", 100.0, None)
    vitals.sign("copies", 111.0)
    assert vitals.silence(112.0) is None
    assert vitals.age("nobody", 112.0) == 0.0
