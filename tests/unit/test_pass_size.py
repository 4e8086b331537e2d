"""How large a transaction may be, by what came of those before."""

from __future__ import annotations

from srm_spark.flow.batch.pass_size import PassSize

MB = 1024 * 1024


def test_a_fast_target_gets_the_largest_passes_at_once() -> None:
    size, passes = PassSize(2048 * MB, 60.0), 0
    while size.bytes < 2048 * MB:
        size.committed(size.bytes, size.bytes / (100 * MB))
        passes += 1
    assert passes <= 3


def test_a_pass_takes_about_its_time_on_a_slow_target() -> None:
    size = PassSize(2048 * MB, 60.0)
    for _ in range(9):
        size.committed(size.bytes, size.bytes / (MB / 2))
    assert size.bytes == 30 * MB


def test_behind_an_abort_a_pass_is_half_of_what_was_achieved() -> None:
    size = PassSize(2048 * MB, 60.0)
    size.aborted(400_000)
    assert size.bytes == 200_000


def test_it_shrinks_where_nothing_is_known_of_what_was_achieved() -> None:
    size, tries = PassSize(2048 * MB, 60.0), 0
    while size.bytes > 1:
        before = size.bytes
        size.aborted(0)
        assert 1 <= size.bytes < before
        tries += 1
    assert tries < 12


def test_more_than_was_tried_is_never_taken_for_achieved() -> None:
    size = PassSize(2048 * MB, 60.0)
    size.aborted(1000)
    size.aborted(64 * MB)
    assert size.bytes == 250


def test_a_small_pass_says_nothing_of_large_ones() -> None:
    size = PassSize(2048 * MB, 60.0)
    size.aborted(8 * MB)
    size.committed(1000, 0.001)
    size.committed(1000, 30.0)
    assert size.bytes == 4 * MB
