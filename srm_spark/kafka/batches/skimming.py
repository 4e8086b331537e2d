"""Small batches that lie one behind the other, known by a table of their headers: no object for each of them.

Where a producer makes a batch of each record, to look at a batch by itself costs some ten times what its record does.
What is plain goes together: not compressed, sound, in order. Everything else is left to who looks at each batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import crc32c
import numpy as np
import numpy.typing as npt

from srm_spark.core.record_batch import CHECKED_FROM, HEADER_BYTES, Batch, batches_in
from srm_spark.kafka.batches import loop_fields
from srm_spark.kafka.batches.ways import Way, best

SMALL_BYTES = 131_072
"""A batch of fewer bytes goes better with its neighbours (`sorting.py`). To look at a larger one by itself costs next
to nothing beside what its records do."""
_MOST_ROWS = 16_384
_FEWEST_ROWS = 2


@dataclass(frozen=True)
class Skimmed:
    """Consecutive batches."""

    data: memoryview
    """Their bytes, and maybe some behind them."""
    table: npt.NDArray[np.int64]
    """A row for each as loops take it, its places counted from where `data` begins."""

    @cached_property
    def size(self) -> int:
        """Bytes from where `data` begins to behind the last one."""
        return int(self.table[-1, loop_fields.END])

    @cached_property
    def base_offset(self) -> int:
        """Of the first one."""
        return int(self.table[0, loop_fields.OFFSET])

    @cached_property
    def end(self) -> int:
        """The offset behind the last one."""
        return int(self.table[-1, loop_fields.OFFSET] + self.table[-1, loop_fields.LAST]) + 1

    @cached_property
    def records(self) -> int:
        """How many they have."""
        return int(self.table[:, loop_fields.COUNT].sum())

    def batch(self, row: int) -> Batch:
        """One of them, as who looks at each batch knows it."""
        begin, end = (int(self.table[row, column]) for column in (loop_fields.BEGIN, loop_fields.END))
        (found,) = batches_in(self.data[begin:end])
        return found

    def within(self, start: int, end: int) -> Skimmed | None:
        """Those that have offsets from `start` to before `end`; None for none of them."""
        first = int(np.searchsorted(self.table[:, loop_fields.OFFSET] + self.table[:, loop_fields.LAST], start))
        behind = int(np.searchsorted(self.table[:, loop_fields.OFFSET], end))
        return Skimmed(self.data, self.table[first:behind]) if first < behind else None


def skim(data: memoryview, before: int, *, takes_transactions: bool, way: Way | None = None) -> Skimmed | None:
    """What is plain of the batches with which `data` begins, as far as they begin before the offset `before`.

    None where that is less than two of them. Batches of transactions only where `takes_transactions`: their records
    count all the same. Every checksum is right.
    """
    table = plain_rows(data, before, way or best(), takes_transactions=takes_transactions)
    count = _sound(data, table[:, [loop_fields.BEGIN, loop_fields.END, loop_fields.CHECKSUM]].tolist())
    # Of what there was room for, most is not used where other batches come between.
    return Skimmed(data, table[:count].copy()) if count >= _FEWEST_ROWS else None


def plain_rows(data: memoryview, before: int, way: Way, *, takes_transactions: bool) -> npt.NDArray[np.int64]:
    """A row of each, whose checksum nobody has compared yet."""
    table = np.empty((min(_MOST_ROWS, len(data) // HEADER_BYTES), loop_fields.CHECKSUM + 1), np.int64)
    base, _ = way.memory([data])
    count = way.skim(base, len(data), before, SMALL_BYTES, takes_transactions, way.array(table))
    return table[:count]


def _sound(data: memoryview, said: list[list[int]]) -> int:
    """How many of them have the checksum that they say, up to the first that has not."""
    checked: Callable[[memoryview], int] = crc32c.crc32c
    for row, (begin, end, checksum) in enumerate(said):
        if checked(data[begin + CHECKED_FROM : end]) != checksum:
            return row
    return len(said)
