"""Positions of groups, translated both ways, and which checkpoints are news."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.checkpoints import Translation, TranslationStatus, by_checkpoint, is_news, translate, translate_back
from srm_spark.core.model import Checkpoint, Interval, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.translation import IntervalMap


def a_map(start: int, end: int, target_end: int | None, *intervals: Interval) -> PartitionMap:
    found = PartitionMap("id")
    found.take(IntervalMap(OffsetRange(start, end), target_end, intervals), "id")
    return found


COPIED = a_map(0, 12, 9, Interval(2, 0, 5), Interval(8, 5, 4))  # 0, 1 and 7 hold no record
EMPTY = a_map(0, 0, 0)
LATEST = a_map(0, 7, 0)  # copying began behind seven records
TAKEN_OVER = a_map(20, 25, 30, Interval(20, 25, 5))  # somebody else copied what lies in front


@pytest.mark.parametrize(
    ("found", "upstream", "expected"),
    [
        (COPIED, 0, Translation(TranslationStatus.EXACT, 0, 0)),
        (COPIED, 3, Translation(TranslationStatus.EXACT, 3, 1)),
        (COPIED, 7, Translation(TranslationStatus.EXACT, 7, 5)),
        (COPIED, 12, Translation(TranslationStatus.EXACT, 12, 9)),
        (COPIED, 15, Translation(TranslationStatus.AHEAD, 12, 9)),
        (EMPTY, 0, Translation(TranslationStatus.EXACT, 0, 0)),
        (EMPTY, 3, Translation(TranslationStatus.EMPTY, 3)),
        (LATEST, 0, Translation(TranslationStatus.EMPTY, 0)),
        (LATEST, 7, Translation(TranslationStatus.EMPTY, 7)),
        (TAKEN_OVER, 19, Translation(TranslationStatus.UNKNOWN, 19)),
        (TAKEN_OVER, 21, Translation(TranslationStatus.EXACT, 21, 26)),
        (None, 0, Translation(TranslationStatus.UNMAPPED, 0)),
        (PartitionMap(), 0, Translation(TranslationStatus.UNMAPPED, 0)),
    ],
)
def test_forward(found: PartitionMap | None, upstream: int, expected: Translation) -> None:
    assert translate(found, upstream, 1000) == expected


@pytest.mark.parametrize(
    ("found", "downstream", "expected"),
    [
        (COPIED, 0, Translation(TranslationStatus.EXACT, 0, 2)),
        (COPIED, 4, Translation(TranslationStatus.EXACT, 4, 6)),
        (COPIED, 5, Translation(TranslationStatus.EXACT, 5, 8)),
        (COPIED, 9, Translation(TranslationStatus.EXACT, 9, 12)),
        (COPIED, 11, Translation(TranslationStatus.AHEAD, 9, 12)),
        (EMPTY, 0, Translation(TranslationStatus.EXACT, 0, 0)),
        (LATEST, 0, Translation(TranslationStatus.EMPTY, 0)),
        (TAKEN_OVER, 3, Translation(TranslationStatus.UNKNOWN, 3)),
        (None, 0, Translation(TranslationStatus.UNMAPPED, 0)),
    ],
)
def test_back(found: PartitionMap | None, downstream: int, expected: Translation) -> None:
    assert translate_back(found, downstream, 1000) == expected


UNKNOWN = Translation(TranslationStatus.UNKNOWN, 50)
SAMPLED = Translation(TranslationStatus.SAMPLED, 50, 41, 9)
SAID = Checkpoint("g", TopicPartition("A.t", 0), 48, 45)


@pytest.mark.parametrize(
    ("found", "last", "downstream"),
    [
        (UNKNOWN, SAID, 45),
        (SAMPLED, SAID, 45),
        (UNKNOWN, None, None),
        (SAMPLED, None, 41),
        (SAMPLED, replace(SAID, downstream=41), 41),
        (SAMPLED, replace(SAID, downstream=40), 41),
        (UNKNOWN, replace(SAID, upstream=51), None),  # the group went back: the checkpoint would skip records
        (SAMPLED, replace(SAID, upstream=51), 41),
        (UNKNOWN, replace(SAID, downstream=101), None),  # of a topic that is no longer there
        (Translation(TranslationStatus.EXACT, 50, 44), SAID, 44),
        (Translation(TranslationStatus.AHEAD, 49, 44), SAID, 44),
        (Translation(TranslationStatus.BEYOND, 50), SAID, None),
    ],
)
def test_a_checkpoint_of_the_group_helps_where_the_map_does_not_know(
    found: Translation, last: Checkpoint | None, downstream: int | None
) -> None:
    better = by_checkpoint(found, last, 100)
    assert better.downstream == downstream
    assert better == found or (better.status, better.upstream) == (TranslationStatus.CHECKPOINT, found.upstream)


def test_never_beyond_the_end_of_the_other_side() -> None:
    assert translate(COPIED, 12, 8) == Translation(TranslationStatus.BEYOND, 12)
    assert translate(COPIED, 12, 9).downstream == 9
    assert translate_back(COPIED, 9, 11) == Translation(TranslationStatus.BEYOND, 9)


@given(st.integers(0, 12))
def test_there_and_back_is_the_next_unread_record(upstream: int) -> None:
    there = translate(COPIED, upstream, 1000).downstream
    assert there is not None
    back = translate_back(COPIED, there, 1000).downstream
    holding = [*range(2, 7), *range(8, 12)]
    assert back == next((offset for offset in holding if offset >= upstream), 12)


@pytest.mark.parametrize(
    ("upstream", "downstream", "expected"),
    [
        (100, 40, False),  # the same again
        (100, 41, True),
        (110, 50, True),
        (110, 40, True),  # read through markers: only the source side moved
        (110, 39, False),  # never back for a group that went on
        (90, 35, True),  # it rewound
        (90, 45, True),
    ],
)
def test_news_is_monotonic_unless_the_group_rewound(upstream: int, downstream: int, expected: bool) -> None:
    place = TopicPartition("A.t", 0)
    last = Checkpoint("g", place, 100, 40)
    assert is_news(Checkpoint("g", place, upstream, downstream), last) is expected
    assert is_news(last, None)
