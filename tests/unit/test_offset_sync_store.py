"""The store of offset syncs against the vectors of MirrorMaker 2's own class."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.checkpoints import Translation, TranslationStatus, sample
from srm_spark.core.offset_sync_store import SLOTS, OffsetSyncStore


def filled(pairs: Iterable[tuple[int, int]]) -> OffsetSyncStore:
    store = OffsetSyncStore()
    for pair in pairs:
        store.add(pair)
    return store


def same(offsets: Iterable[int]) -> OffsetSyncStore:
    return filled((offset, offset) for offset in offsets)


def printed(store: OffsetSyncStore) -> str:
    """Index and source offset wherever the sync changes."""
    changes = [i for i in range(SLOTS) if i == 0 or store.slots[i] is not store.slots[i - 1]]
    return " ".join(f"{i}={store.slots[i][0]}" for i in changes)


def generated() -> list[int]:
    x, offsets = 1, [0]
    for _ in range(300):
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
        offsets.append(offsets[-1] + 1 + x % 997)
    return offsets[1:]


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        (range(21), "0=20 1=19 2=18 3=16 4=8 5=0"),
        (range(0, 1001, 100), "0=1000 8=900 9=800 10=400 11=0"),
        (range(0, 10001, 100), "0=10000 8=9900 9=9800 10=9600 11=8800 12=8000 13=6400 14=0"),
        (range(0, 1001, 10), "0=1000 5=990 6=960 7=900 8=840 9=720 10=480 11=0"),
        (
            [*range(0, 1001, 10), *range(1000, 10001, 10)],
            "0=10000 5=9990 6=9960 7=9900 8=9840 9=9600 10=9120 11=8640 12=7680 13=3840 14=0",
        ),
        ([0, 50, 100, 7, 8], "0=8 1=7"),
        ([5, 5, 6], "0=6 1=5"),
        ([100, 200, 300], "0=300 8=200 9=100"),
        ([175, 275, 375, 475], "0=475 8=375 9=175"),
        (
            range(0, 20 * 2**33 + 1, 2**33),
            "0=171798691840 34=163208757248 35=154618822656 36=137438953472 37=68719476736 38=0",
        ),
        (
            generated(),
            "0=147074 11=146547 12=145853 13=142651 14=136549 15=122777 16=108684 17=55327 18=135",
        ),
    ],
)
def test_slots_are_those_of_mirror_maker(offsets: Iterable[int], expected: str) -> None:
    assert printed(same(offsets)) == expected


def test_the_generated_vector_is_the_right_one() -> None:
    offsets = generated()
    assert (offsets[:3], offsets[-1], len(offsets)) == ([135, 322, 861], 147074, 300)


@pytest.mark.parametrize(
    ("pairs", "upstream", "downstream"),
    [
        ([(100, 200)], 150, 201),
        ([(100, 200), (150, 251)], 150, 251),
        ([(100, 200)], 5, None),
        ([(100, 200), (150, 251), (200, 10)], 200, 10),  # the target was made anew
        ([(100, 200), (20, 20)], 20, 20),  # copying began again
        ([(100, 200), (20, 20)], 19, None),
        ([], 0, None),
        ([(100, 200)], 0, None),
        ([(100, 200)], 100, 200),
        ([(100, 200)], 200, 201),
        ([(1000, 5), (1500, 11000)], 1499, 6),
        ([(2000, 5), (1500, 11000)], 1499, None),
        ([(2000, 5), (1500, 11000)], 1500, 11000),
        ([(2000, 5), (1500, 11000)], 2000, 11001),
    ],
)
def test_translations_of_mirror_makers_own_test(
    pairs: list[tuple[int, int]], upstream: int, downstream: int | None
) -> None:
    assert filled(pairs).downstream(upstream) == downstream


steps = st.lists(st.integers(0, 3000), min_size=1, max_size=200)


@given(steps)
def test_invariants_hold_for_all_pairs(gaps: list[int]) -> None:
    offsets = list(accumulate(gap + 1 for gap in gaps))
    slots = same(offsets).slots
    assert (slots[0][0], slots[-1][0]) == (offsets[-1], offsets[0])
    for (i, one), (j, other) in combinations(enumerate(slots), 2):
        if one is not other:
            assert one[0] <= other[0] + 2**j - 2**i
            assert one[0] >= other[0] + 2 ** max(i - 2, 0)


@given(steps, st.integers(0, 10))
def test_a_translation_is_never_behind_the_next_unread_record(gaps: list[int], more: int) -> None:
    """Records at some source offsets, one after the other on the target; every third one has a sync."""
    records = list(accumulate(gap + 1 for gap in gaps))
    store = filled((up, down) for down, up in enumerate(records) if down % 3 == 0)
    last = -1
    for upstream in range(records[0], records[-1] + more, max(1, records[-1] // 50)):
        unread = bisect_right(records, upstream - 1)
        found = store.downstream(upstream)
        assert found is not None
        assert last <= found <= unread
        last = found
        translation = sample(store, upstream, len(records))
        assert translation is not None
        read_again = [record for record in records if record < upstream][found:]
        assert len(read_again) <= translation.reread


def test_a_sampled_position_says_how_many_records_may_be_read_again() -> None:
    store = filled([(100, 200), (150, 251)])
    assert sample(store, 150, 1000) == Translation(TranslationStatus.SAMPLED, 150, 251, 0)
    assert sample(store, 160, 1000) == Translation(TranslationStatus.SAMPLED, 160, 252, 9)
    assert str(sample(store, 160, 1000)) == "by an offset sync: up to 9 records are read again"
    assert sample(store, 99, 1000) is None
    assert sample(OffsetSyncStore(), 99, 1000) is None
    assert sample(store, 160, 251) is None  # what lies there now cannot be what the sync speaks of
