"""Samples: every record is as likely as any other, and what is said of the rest is what a sample can say."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.sampling import chosen, what_it_says

PARTITIONS = [TopicPartition("t", number) for number in range(4)]
LOGS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=4)


@given(LOGS, st.integers(1, 100), st.integers())
def test_it_is_of_the_logs_and_as_large_as_it_can_be(spans: list[tuple[int, int]], most: int, seed: int) -> None:
    logs = {p: OffsetRange(start, start + size) for p, (start, size) in zip(PARTITIONS, spans, strict=False)}
    found = chosen(logs, most, random.Random(seed))
    assert found.keys() == logs.keys()
    for partition, offsets in found.items():
        assert offsets == sorted(set(offsets))
        assert all(logs[partition].start <= offset < logs[partition].end for offset in offsets)
    assert sum(map(len, found.values())) == min(most, sum(size for _, size in spans))


def test_every_record_is_as_likely_as_any_other() -> None:
    logs = {PARTITIONS[0]: OffsetRange(5, 8), PARTITIONS[1]: OffsetRange(0, 0), PARTITIONS[2]: OffsetRange(0, 7)}
    chance, counts = random.Random(3), Counter[tuple[int, int]]()
    for _ in range(10_000):
        counts.update((p.partition, offset) for p, offsets in chosen(logs, 2, chance).items() for offset in offsets)
    assert len(counts) == 10
    assert all(1800 < number < 2200 for number in counts.values())


@pytest.mark.parametrize(
    ("records", "differing", "said"),
    [
        (0, 0, "nothing is known of the others"),
        (1, 0, "none of 1 record that were chosen by chance differs: with 95% confidence fewer than 95 % of all"),
        (59, 0, "fewer than 5 % of all"),
        (1000, 0, "fewer than 0.3 % of all"),
        (1000, 2, "2 records of 1000 that were chosen by chance differ: compare all of them"),
    ],
)
def test_what_a_sample_says_of_the_rest(records: int, differing: int, said: str) -> None:
    assert said in what_it_says(records, differing)


def test_what_it_says_is_so() -> None:
    """Where just the share that is named differs, a sample shows nothing in one case of twenty."""
    chance, share = random.Random(5), 1 - 0.05 ** (1 / 59)
    silent = sum(all(chance.random() >= share for _ in range(59)) for _ in range(20_000)) / 20_000
    assert 0.045 < silent < 0.055
