"""Both logs along the map: every fault is found and named, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.codec import ORIGINAL_TIMESTAMP_HEADER
from srm_spark.core.model import Interval, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.provenance import Stamp
from srm_spark.core.tail import TailRecord
from srm_spark.core.translation import IntervalMap
from srm_spark.core.verification import (
    MOST_FINDINGS,
    Checked,
    Difference,
    Finding,
    First,
    OneSided,
    Reason,
    Sides,
    Verdict,
    check,
)

T = TopicPartition("t", 0)
STAMP = Stamp("A", "B")


def record(offset: int, value: str = "", **changes: Any) -> TailRecord:
    made = TailRecord(offset, 1000 + offset, b"k%d" % offset, (value or f"v{offset}").encode())
    return made._replace(**changes)


def copied(record: TailRecord, offset: int) -> TailRecord:
    return record._replace(offset=offset)


def map_of(source: OffsetRange, target_end: int, *intervals: Interval) -> PartitionMap:
    known = PartitionMap("id")
    known.put(IntervalMap(source, target_end, intervals))
    return known


def sides(known: PartitionMap, first: First | None = None, **changes: Any) -> Sides:
    return replace(Sides(T, known, lambda: first or First(0, 0)), **changes)


HERE = [record(offset) for offset in range(10)]
THERE = [copied(each, each.offset + 100) for each in HERE]
PLAIN = map_of(OffsetRange(0, 10), 110, Interval(0, 100, 10))


def found(source: Sequence[TailRecord], target: Sequence[TailRecord], **changes: Any) -> Checked:
    return check(source, target, sides(PLAIN, **changes))


def test_equal_records_are_equal() -> None:
    result = found(HERE, THERE)
    assert (result.equal, result.verdict) == (10, Verdict.EQUAL)
    assert not result.differences
    assert not result.explained


def test_no_record_is_not_equal() -> None:
    assert found([], []).verdict is Verdict.NOTHING


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"key": b"x"}, "other key"),
        ({"key": None}, "other key"),
        ({"value": b"x"}, "other value"),
        ({"value": None}, "other value"),
        ({"headers": (("h", b"1"),)}, "other headers"),
        ({"timestamp": 5}, "other timestamp"),
        ({"timestamp": 5, "value": b"x"}, "other value, timestamp"),
    ],
)
def test_what_is_changed_is_named(changes: dict[str, Any], what: str) -> None:
    result = found(HERE, [*THERE[:4], THERE[4]._replace(**changes), *THERE[5:]])
    assert result.findings == [Finding(Difference.CHANGED, 4, 104, what)]
    assert result.equal == 9
    assert result.verdict is Verdict.DIFFERENT


def test_the_time_of_the_broker_is_no_difference() -> None:
    result = found(HERE, [each._replace(timestamp=7, is_append_time=True) for each in THERE])
    assert (result.equal, result.verdict) == (10, Verdict.EQUAL)


def test_a_fixed_timestamp_is_explained() -> None:
    fixed = THERE[4]._replace(timestamp=99, headers=((ORIGINAL_TIMESTAMP_HEADER, b"1004"),))
    result = found(HERE, [*THERE[:4], fixed, *THERE[5:]])
    assert (result.equal, result.explained) == (9, {Reason.FIXED: 1})
    assert result.verdict is Verdict.EQUAL


def test_a_lost_copy_is_named_by_both_offsets() -> None:
    result = found(HERE, [*THERE[:4], *THERE[5:]])
    assert result.findings == [Finding(Difference.LOST, 4, None, "its copy at target offset 104 is gone")]


def test_two_that_are_swapped_are_told_as_such() -> None:
    target = [*THERE[:2], copied(THERE[7], 102), *THERE[3:7], copied(THERE[2], 107), *THERE[8:]]
    result = found(HERE, target)
    assert result.differences == {Difference.SWAPPED: 2}
    assert [(each.source, each.target) for each in result.findings] == [(2, 102), (7, 107)]
    assert "source offset 7" in result.findings[0].what
    assert "source offset 2" in result.findings[1].what


def test_two_alike_with_other_headers_are_changed_and_not_swapped() -> None:
    alike = [each._replace(key=b"k", value=None) for each in HERE]
    copies = [copied(each, each.offset + 100) for each in alike]
    for at in (2, 7):
        copies[at] = copies[at]._replace(headers=(("h", b"1"),))
    result = found(alike, copies)
    assert result.findings == [Finding(Difference.CHANGED, at, 100 + at, "other headers") for at in (2, 7)]


def test_what_is_only_fixed_is_compared() -> None:
    fixed = [
        each._replace(timestamp=99, headers=((ORIGINAL_TIMESTAMP_HEADER, b"%d" % (1000 + offset)),))
        for offset, each in enumerate(THERE)
    ]
    result = found(HERE, fixed)
    assert (result.explained, result.verdict) == ({Reason.FIXED: 10}, Verdict.EQUAL)


@pytest.mark.parametrize("side", ["source", "target"])
def test_what_was_deleted_a_moment_ago_is_explained_and_what_is_there_still_was_never(side: str) -> None:
    """Where logs begin is asked now and then; in front of saying that something is wrong it is asked once more."""
    logs = (HERE[5:], THERE) if side == "source" else (HERE, THERE[5:])
    now = First(3, 0) if side == "source" else First(0, 103)
    result = found(*logs, first_now=lambda: now)
    reason = Reason.SOURCE_DELETED if side == "source" else Reason.TARGET_DELETED
    assert result.explained == {reason: 3}
    assert result.differences.total() == 2


def test_what_is_remembered_to_know_doubled_ones_does_not_grow_with_the_log() -> None:
    """Whatever somebody else writes among the copies makes what has waited be looked at, and kept."""
    some, times = 25_000, 12
    count = some * times
    intervals = [Interval(at * some, 1 + at * (some + 1), some) for at in range(times)]
    known = map_of(OffsetRange(0, count), count + times, *intervals)
    source = (record(offset) for offset in range(count))
    target = chain.from_iterable(
        (
            record(place - 1, "theirs"),
            *(copied(record(at), place + at - first) for at in range(first, first + some)),
        )
        for first, place, _ in intervals
    )
    again = [copied(record(offset), count + times + number) for number, offset in enumerate((0, count - 1))]
    result = check(source, chain(target, again), sides(known))
    assert (result.equal, result.differences) == (count, {Difference.FOREIGN: times + 1, Difference.DOUBLED: 1})
    assert result.findings[-2:] == [
        Finding(Difference.FOREIGN, None, count + times, "no record of the source was copied to there"),
        Finding(Difference.DOUBLED, count - 1, count + times + 1, f"one more copy of source offset {count - 1}"),
    ]


def test_what_the_target_deleted_or_compacted_is_explained() -> None:
    assert found(HERE, THERE[4:], first=First(0, 104)).explained == {Reason.TARGET_DELETED: 4}
    result = found(HERE, [*THERE[:4], *THERE[5:]], target_compacts=True)
    assert (result.equal, result.explained) == (9, {Reason.TARGET_COMPACTED: 1})
    without = [*HERE[:4], HERE[4]._replace(key=None), *HERE[5:]]
    assert found(without, [*THERE[:4], *THERE[5:]], target_compacts=True).differences == {Difference.LOST: 1}


def test_compaction_shortens_no_log() -> None:
    """What lies behind the end of one was cut off, be its topic compacted or not."""
    ends = First(10, 106)
    cut = found(HERE, THERE[:6], target_compacts=True, ends=ends)
    assert (cut.differences, cut.explained) == ({Difference.LOST: 4}, {})
    assert found(HERE, [*THERE[:4], *THERE[5:6]], target_compacts=True, ends=ends).explained == {
        Reason.TARGET_COMPACTED: 1
    }
    made_anew = found(HERE[:6], THERE, source_compacts=True, ends=First(6, 110))
    assert made_anew.differences == {Difference.FOREIGN: 4}


def test_what_the_source_deleted_or_compacted_is_explained() -> None:
    assert found(HERE[4:], THERE, first=First(4, 0)).explained == {Reason.SOURCE_DELETED: 4}
    assert found([*HERE[:4], *HERE[5:]], THERE, source_compacts=True).explained == {Reason.SOURCE_COMPACTED: 1}
    assert found([*HERE[:4], *HERE[5:]], THERE).differences == {Difference.FOREIGN: 1}


GAPS = map_of(OffsetRange(0, 10), 112, Interval(0, 100, 4), Interval(5, 106, 5))
BESIDE = [*THERE[:4], *(copied(HERE[offset], offset + 101) for offset in range(5, 10))]


def test_what_has_no_copy_is_lost_unless_it_is_known_why() -> None:
    assert check(HERE, BESIDE, sides(GAPS)).findings[0].kind is Difference.LOST
    for one_sided, reason in (
        (OneSided(quarantined=frozenset([4])), Reason.QUARANTINED),
        (OneSided(skipped=(range(4, 5),)), Reason.SKIPPED),
        (OneSided(forgotten=frozenset([4])), Reason.FORGOTTEN),
        (OneSided(replayed={4: 500}), Reason.REPLAYED),
    ):
        result = check(HERE, BESIDE, sides(GAPS, one_sided=one_sided))
        assert (result.equal, result.explained, result.verdict) == (9, {reason: 1}, Verdict.EQUAL)
    aborted = check(HERE, BESIDE, sides(GAPS, is_aborted=lambda offset: offset == 4))
    assert (aborted.explained, aborted.verdict) == ({Reason.ABORTED: 1}, Verdict.EQUAL)
    known = check(HERE, BESIDE, sides(GAPS, one_sided=OneSided(lost=(range(4, 5),))))
    assert "which is known" in known.findings[0].what
    for before in (
        OneSided(lost=(range(4, 5),), forgotten=frozenset([4])),
        OneSided(lost=(range(4, 5),), replayed={4: 1}),
    ):
        lost = check(HERE, BESIDE, sides(GAPS, one_sided=before))
        assert "which is known" in lost.findings[0].what, "it was copied since"


def test_the_copy_that_a_replay_wrote_is_its_record_s_and_no_other_is() -> None:
    replayed = sides(GAPS, one_sided=OneSided(replayed={4: 111}))
    result = check(HERE, [*BESIDE, copied(HERE[4], 111)], replayed)
    assert (result.equal, result.explained, result.differences) == (9, {Reason.REPLAYED: 1}, {})
    other = check(HERE, [*BESIDE, record(111, "other")], replayed)
    assert [(each.kind, each.target) for each in other.findings] == [(Difference.FOREIGN, 111)]
    elsewhere = check(HERE, [*BESIDE, copied(HERE[4], 112)], replayed)
    assert [(each.kind, each.target) for each in elsewhere.findings] == [(Difference.DOUBLED, 112)]
    without_its_record = check(HERE[5:], [*BESIDE[4:], copied(HERE[4], 111)], replayed)
    assert (without_its_record.equal, without_its_record.explained) == (5, {Reason.REPLAYED: 1})


def test_what_nobody_copied_is_doubled_or_foreign() -> None:
    source = [*HERE[:4], *HERE[5:]]
    target = [*BESIDE[:4], copied(HERE[2], 104), record(105, "x"), *BESIDE[4:]]
    result = check(source, target, sides(GAPS))
    assert [(each.kind, each.source, each.target) for each in result.findings] == [
        (Difference.DOUBLED, 2, 104),
        (Difference.FOREIGN, None, 105),
    ]


def test_with_a_stamp_records_of_others_are_theirs() -> None:
    stamped = [each._replace(headers=tuple(STAMP.headers(T, each.offset, ()) or ())) for each in HERE]
    target = [copied(stamped[offset], offset + 100) for offset in range(4)]
    target += [record(104, "theirs"), *(copied(stamped[offset], offset + 101) for offset in range(5, 10))]
    back = HERE[4]._replace(headers=tuple(Stamp("B", "A").headers(T, 0, ()) or ()))
    source = [*HERE[:4], back, *HERE[5:]]
    result = check(source, target, sides(GAPS, stamp=STAMP, own_stamp=STAMP))
    assert result.equal == 9
    assert result.explained == {Reason.FROM_THERE: 1, Reason.OF_OTHERS: 1}
    assert result.verdict is Verdict.EQUAL


def test_what_the_map_does_not_know_is_not_judged() -> None:
    known = map_of(OffsetRange(5, 10), 110, Interval(5, 105, 5))
    result = check(HERE, THERE, sides(known))
    assert (result.equal, result.unknown, result.verdict) == (5, 10, Verdict.EQUAL)


def test_findings_beyond_the_most_are_counted() -> None:
    many = MOST_FINDINGS + 50
    known = map_of(OffsetRange(0, many), many, Interval(0, 0, many))
    result = check([record(offset) for offset in range(many)], [], sides(known))
    assert len(result.findings) == MOST_FINDINGS
    assert result.differences == {Difference.LOST: many}


FAULTS = st.sampled_from(["lose", "key", "value", "header", "time", "double"])


@given(
    gaps=st.sets(st.integers(0, 60), max_size=20),
    faults=st.dictionaries(st.integers(0, 60), FAULTS, max_size=12),
)
def test_every_fault_is_found_and_nothing_else(gaps: set[int], faults: dict[int, str]) -> None:
    """The source has gaps (markers), the target one offset between any two copies, where a second one may lie."""
    source = [record(offset) for offset in range(61) if offset not in gaps]
    known = map_of(OffsetRange(0, 61), 2 * 61, *(Interval(each.offset, 2 * each.offset, 1) for each in source))
    target: list[TailRecord] = []
    expected: list[tuple[Difference, int | None, int | None]] = []
    for each in source:
        copy, fault = copied(each, 2 * each.offset), faults.get(each.offset)
        if fault == "lose":
            expected.append((Difference.LOST, each.offset, None))
            continue
        if fault == "double":
            target.append(copy)
            target.append(copied(each, copy.offset + 1))
            expected.append((Difference.DOUBLED, each.offset, copy.offset + 1))
            continue
        if fault is not None:
            changes: dict[str, Any] = {
                "key": b"?",
                "value": b"?%d" % each.offset,
                "headers": (("h", None),),
                "timestamp": 3,
            }
            name = {"header": "headers", "time": "timestamp"}.get(fault, fault)
            copy = copy._replace(**{name: changes[name]})
            expected.append((Difference.CHANGED, each.offset, copy.offset))
        target.append(copy)
    result = check(source, target, sides(known))
    assert [(each.kind, each.source, each.target) for each in result.findings] == expected
    assert result.equal == len(source) - sum(1 for kind, *_ in expected if kind is not Difference.DOUBLED)
    assert not result.unknown
    assert not result.explained
