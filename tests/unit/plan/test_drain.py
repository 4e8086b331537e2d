"""When a source counts as drained."""

from __future__ import annotations

from srm_spark.plan.drain import Stillness, behind, moved
from tests.unit.plan.examples import PARTITION, copied


def test_it_is_still_when_two_looks_far_enough_apart_say_the_same() -> None:
    stillness = Stillness(5)
    assert not stillness.take(0, [copied(10, 10)])
    assert not stillness.take(4.9, [copied(10, 10)])
    assert stillness.take(5, [copied(10, 10)])
    assert stillness.ends == {PARTITION: 10}


def test_one_look_is_never_enough() -> None:
    assert not Stillness(0.1).take(100, [copied(10, 10)])


def test_new_records_start_the_wait_again_even_when_they_are_copied() -> None:
    stillness = Stillness(5)
    stillness.take(0, [copied(10, 10)])
    assert not stillness.take(5, [copied(11, 11)])
    assert not stillness.take(9, [copied(11, 11)])
    assert stillness.moving == "orders-0 from 10 to 11"
    assert stillness.take(10, [copied(11, 11)])


def test_what_is_not_copied_starts_it_again() -> None:
    stillness = Stillness(5)
    stillness.take(0, [copied(10, 10)])
    stillness.take(3, [copied(9, 10)])
    assert not stillness.take(6, [copied(10, 10)])
    assert stillness.take(11, [copied(10, 10)])


def test_a_new_partition_is_a_movement() -> None:
    stillness = Stillness(5)
    stillness.take(0, [copied(10, 10)])
    assert not stillness.take(6, [copied(10, 10), copied(0, 0, partition=1)])
    assert stillness.moving == "orders-1 from nothing to 0"


def test_a_partition_without_a_leader_is_not_drained_until_its_end_is_known() -> None:
    stillness = Stillness(5)
    silent = [copied(10, 10), copied(3, None, partition=1)]
    stillness.take(0, [copied(10, 10), copied(3, 3, partition=1)])
    assert not stillness.take(5, silent)
    assert stillness.silent == [silent[1].partition]
    assert not stillness.take(60, silent)
    assert not stillness.take(61, [copied(10, 10), copied(3, 3, partition=1)])
    assert stillness.moving is None
    assert stillness.take(66, [copied(10, 10), copied(3, 3, partition=1)])


def test_a_partition_that_never_had_a_leader_is_not_drained() -> None:
    stillness = Stillness(5)
    ranges = [copied(10, 10), copied(None, None, partition=1)]
    assert not stillness.take(0, ranges)
    assert not stillness.take(6, ranges)


def test_what_is_behind() -> None:
    assert behind([copied(4, 10), copied(10, 10, partition=1)]) == 6
    assert behind([copied(None, 3)]) == 3
    assert behind([copied(12, 10)]) == 0
    assert behind([copied(4, None)]) == 0  # asked only of a source that answers


def test_many_movements_are_cut_short() -> None:
    partitions = [copied(partition=number).partition for number in range(5)]
    text = moved(dict.fromkeys(partitions, 1), dict.fromkeys(partitions, 2))
    assert text == "orders-0 from 1 to 2, orders-1 from 1 to 2, orders-2 from 1 to 2 and 2 more"
