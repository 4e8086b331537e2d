"""A copy beside its source, run by run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from srm_spark.bench.same import difference
from srm_spark.core.model import TopicPartition
from srm_spark.core.rows import Run

RecordRow = tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ROWS: Sequence[RecordRow] = [
    (b"k", b"v", 1, []),
    (None, b"", 2, [("h", None), ("h", b"x")]),
    (b"", None, 2, []),
    (b"k", b"w", 3, [("", b"")]),
]


def runs(rows: Sequence[RecordRow], *cuts: int) -> Iterator[Run]:
    """As they are fetched: offsets with gaps, and no lists at all where no record of a run has a header."""
    borders = [0, *cuts, len(rows)]
    for start, end in itertools.pairwise(borders):
        part = rows[start:end]
        lists: Any = [[{"key": name, "value": value} for name, value in row[3]] for row in part]
        yield Run(
            TopicPartition("t", 0),
            np.arange(start, end) * (1 + len(cuts)),
            np.array([row[2] for row in part], np.int64),
            pa.array([row[0] for row in part], pa.binary()),
            pa.array([row[1] for row in part], pa.binary()),
            pa.array(lists, HEADERS) if any(lists) else pa.nulls(end - start, HEADERS),
        )


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2, 3), (3,)])
def test_a_copy_is_one_however_it_is_fetched(cuts: tuple[int, ...]) -> None:
    assert difference(runs(ROWS), runs(ROWS, *cuts)) is None
    assert difference(runs(ROWS, 1, 3), runs(ROWS, *cuts)) is None


@pytest.mark.parametrize(
    ("at", "row", "what"),
    [
        (0, (None, b"v", 1, []), "keys"),
        (2, (b"", b"", 2, []), "values"),
        (3, (b"k", b"w", 4, [("", b"")]), "timestamps"),
        (0, (b"k", b"v", 1, [("h", None)]), "headers"),
        (1, (None, b"", 2, [("h", b""), ("h", b"x")]), "headers"),
        (1, (None, b"", 2, [("h", b"x"), ("h", None)]), "headers"),
        (1, (None, b"", 2, []), "headers"),
    ],
)
def test_each_field_counts(at: int, row: RecordRow, what: str) -> None:
    other = [*ROWS[:at], row, *ROWS[at + 1 :]]
    assert str(difference(runs(ROWS), runs(other, 2))).startswith(f"{what} differ among the 2 records")


def test_a_copy_that_is_too_short_or_too_long_is_none() -> None:
    assert difference(runs(ROWS), runs(ROWS[:3])) == "the copy ends after 3 records"
    assert difference(runs(ROWS), runs([*ROWS, ROWS[0]], 4)) == "the source ends after 4 records"
    assert difference(iter(()), iter(())) is None


def test_of_a_part_the_end_may_be_missing_and_nothing_else() -> None:
    assert difference(runs(ROWS), runs(ROWS[:3]), is_part=True) is None
    assert difference(runs(ROWS), iter(()), is_part=True) is None
    assert difference(runs(ROWS[:3]), runs(ROWS, 4), is_part=True) == "the source ends after 3 records"
    other = [*ROWS[:1], (None, b"other", 2, []), *ROWS[2:3]]
    assert str(difference(runs(ROWS), runs(other), is_part=True)).startswith("values differ")
