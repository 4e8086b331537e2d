"""The match of an unrecorded tail, against logs made up record by record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.model import Interval
from srm_spark.core.tail import TailRecord, match_logs, match_scattered, match_tail


def record(offset: int, value: str | None, timestamp: int = 1000) -> TailRecord:
    return TailRecord(offset, timestamp, b"k", None if value is None else value.encode())


def test_what_landed_is_skipped_and_mapped() -> None:
    source = [record(40, "a"), record(41, "b"), record(44, "c"), record(45, "d")]
    target = [record(7, "a"), record(8, "b"), record(9, "c")]
    match = match_tail(source, target, 40, 7)
    assert match.foreign is None
    assert match.next_offset == 45
    assert match.intervals == [Interval(40, 7, 2), Interval(44, 9, 1)]


def test_an_empty_tail_changes_nothing() -> None:
    match = match_tail([record(40, "a")], [], 40, 7)
    assert (match.next_offset, match.intervals, match.foreign) == (40, [], None)


def test_a_foreign_record_is_told_and_nothing_behind_it_counts() -> None:
    source = [record(40, "a"), record(41, "b")]
    match = match_tail(source, [record(7, "a"), record(8, "x"), record(9, "b")], 40, 7)
    assert match.foreign is not None
    assert "8" in match.foreign
    assert match.next_offset == 41
    assert match.intervals == [Interval(40, 7, 1)]


def test_foreign_records_can_be_passed_over() -> None:
    source = [record(40, "a"), record(41, "b"), record(42, "c")]
    target = [record(7, "x"), record(8, "a"), record(9, "y"), record(10, "b"), record(11, "z")]
    match = match_tail(source, target, 40, 7, skips_foreign=True)
    assert match.foreign is not None
    assert match.next_offset == 42
    assert match.intervals == [Interval(40, 8, 1), Interval(41, 10, 1)]


def test_a_hole_before_a_foreign_record_swallows_nothing_of_the_source() -> None:
    source = [record(40, "a"), record(41, "b")]
    match = match_tail(source, [record(9, "x"), record(10, "a")], 40, 7, skips_foreign=True)
    assert match.intervals == [Interval(40, 10, 1)]
    assert match.next_offset == 41


def test_more_on_the_target_than_on_the_source_is_foreign() -> None:
    assert match_tail([record(40, "a")], [record(7, "a"), record(8, "a")], 40, 7).foreign is not None


def test_timestamps_count_unless_the_target_wrote_its_own() -> None:
    source, target = [record(0, "a", 5)], [record(0, "a", 6)]
    assert match_tail(source, target, 0, 0).foreign is not None
    assert match_tail(source, [target[0]._replace(is_append_time=True)], 0, 0).foreign is None


def test_timestamps_that_the_copy_cannot_keep_do_not_count() -> None:
    source = [record(0, "a", 0), record(1, "b", -1)]
    assert match_tail(source, [record(0, "a", 777), record(1, "b", 778)], 0, 0).foreign is None


def test_a_header_or_a_null_that_differs_is_foreign() -> None:
    header = record(0, "a")._replace(headers=(("h", None),))
    assert match_tail([header], [header._replace(headers=(("h", b""),))], 0, 0).foreign is not None
    assert match_tail([record(0, None)], [record(0, "")], 0, 0).foreign is not None


def test_records_compacted_on_the_target_are_not_copied_again() -> None:
    source = [record(n, str(n)) for n in range(40, 46)]
    match = match_tail(source, [record(7, "40"), record(10, "43")], 40, 7)
    assert match.foreign is None
    assert match.next_offset == 44
    assert match.intervals == [Interval(40, 7, 1), Interval(43, 10, 1)]


def test_records_compacted_on_the_source_since_are_passed_over() -> None:
    source = [record(40, "a"), record(43, "d"), record(44, "e")]
    target = [record(7, "a"), record(8, "b"), record(9, "c"), record(10, "d")]
    match = match_tail(source, target, 40, 7)
    assert match.foreign is None
    assert match.next_offset == 44
    assert match.intervals == [Interval(40, 7, 1), Interval(43, 10, 1)]


@given(
    offsets=st.lists(st.integers(0, 200), min_size=1, max_size=40, unique=True).map(sorted),
    landed=st.integers(0, 40),
    values=st.integers(1, 3),
)
def test_every_prefix_is_recognised(offsets: list[int], landed: int, values: int) -> None:
    """With few distinct values neighbours often look alike; position decides."""
    source = [record(offset, str(index % values)) for index, offset in enumerate(offsets)]
    target = [entry._replace(offset=100 + index) for index, entry in enumerate(source[:landed])]
    match = match_tail(source, target, offsets[0], 100)
    assert match.foreign is None
    assert match.next_offset == (offsets[min(landed, len(offsets)) - 1] + 1 if landed else offsets[0])
    mapped = [(i.upstream + n, i.downstream + n) for i in match.intervals for n in range(i.count)]
    assert mapped == [(entry.offset, 100 + index) for index, entry in enumerate(source[:landed])]


def test_whole_logs_are_matched_behind_copies_that_the_source_has_lost() -> None:
    source = [record(40, "a"), record(41, "b"), record(44, "c")]
    target = [record(5, "older"), record(6, "old"), record(7, "a"), record(8, "b"), record(9, "c")]
    match = match_logs(source, target, 46)
    assert match.foreign is None
    assert match.intervals == [Interval(40, 7, 2), Interval(44, 9, 1)]


def test_whole_logs_that_do_not_pair_up_to_the_end_are_no_match() -> None:
    source = [record(40, "a"), record(41, "b"), record(42, "c")]
    for target, why in (
        ([record(7, "a"), record(8, "x"), record(9, "b"), record(10, "c")], "target offset 8"),
        ([record(7, "a"), record(8, "b")], "source offset 42 has no copy"),
        ([record(7, "b"), record(8, "c")], "source offset 40 has no copy"),
        ([], "source offset 40 has no copy"),
    ):
        assert why in (match_logs(source, target, 43).foreign or "")


def test_equal_records_cannot_hide_that_one_is_missing() -> None:
    same = [record(40, "a"), record(41, "a"), record(42, "a")]
    assert match_logs(same, [record(7, "a"), record(8, "a"), record(9, "a")], 43).foreign is None
    assert match_logs(same, [record(7, "a"), record(8, "a")], 43).foreign is not None
    assert match_logs(same, [record(6, "a"), *(record(n, "a") for n in (7, 8, 9))], 43).foreign is not None


def test_a_log_without_records_matches_everything_before_it() -> None:
    match = match_logs([], [record(7, "old")], 46)
    assert (match.foreign, match.next_offset, match.intervals) == (None, 46, [])


def _fixed(offset: int, value: str, timestamp: int, original: bytes) -> TailRecord:
    return record(offset, value, timestamp)._replace(headers=(("srm-original-timestamp", original),))


def test_a_fixed_copy_is_compared_as_it_was_before() -> None:
    source = [record(40, "a", 5), record(41, "b", 6), record(42, "c", 7)]
    target = [_fixed(7, "a", 999, b"5"), record(8, "b", 6), _fixed(9, "c", 999, b"8")]
    match = match_tail(source, target, 40, 7)
    assert match.intervals == [Interval(40, 7, 2)]
    assert match.foreign is not None, "the last one was another record"


def test_a_copy_of_a_fixed_copy_is_compared_as_it_is() -> None:
    """It came through another cluster, where it was fixed: here the header is the record's own."""
    source, target = [_fixed(40, "a", 999, b"5")], [_fixed(7, "a", 999, b"5")]
    assert match_tail(source, target, 40, 7).intervals == [Interval(40, 7, 1)]


def test_a_header_that_is_no_timestamp_is_any_header() -> None:
    assert match_tail([record(40, "a", 5)], [_fixed(7, "a", 5, b"soon")], 40, 7).foreign is not None


def test_the_kind_of_a_timestamp_says_nothing() -> None:
    assert match_tail([record(40, "a")._replace(is_append_time=True)], [record(7, "a")], 40, 7).foreign is None


@given(
    st.lists(st.sampled_from("abc"), max_size=20).flatmap(
        lambda values: st.tuples(st.just(values), st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    )
)
def test_copies_that_are_left_are_found_in_order(drawn: tuple[list[str], list[bool]]) -> None:
    values, kept = drawn
    source = [record(40 + number, value) for number, value in enumerate(values)]
    left = [one for one, is_kept in zip(source, kept, strict=True) if is_kept]
    match = match_scattered(source, [one._replace(offset=7 + at) for at, one in enumerate(left)], 40)
    assert (match.foreign, match.copied) == (None, len(left))
    assert match.next_offset <= (left[-1].offset + 1 if left else 40)
    found = [interval.upstream + at for interval in match.intervals for at in range(interval.count)]
    assert [values[offset - 40] for offset in found] == [one.value.decode() for one in left if one.value is not None]


def test_a_foreign_record_among_scattered_copies() -> None:
    source = [record(40, "a"), record(41, "b"), record(42, "c")]
    target = [record(7, "b"), record(8, "x"), record(9, "c")]
    match = match_scattered(source, target, 40)
    assert match.foreign is not None
    assert "8" in match.foreign
    assert (match.next_offset, match.intervals) == (42, [Interval(41, 7, 1)])
    match = match_scattered(source, target, 40, skips_foreign=True)
    assert match.foreign is not None
    assert (match.next_offset, match.intervals) == (43, [Interval(41, 7, 1), Interval(42, 9, 1)])
