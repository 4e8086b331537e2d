"""Up to where the records of a source partition and their copies are still the same. Pure.

A log that lost its newest records (unclean leader election, a disk restored from a backup) keeps its topic id, and may
have grown past the old end since. What it still has in common with the other side is a beginning, so whoever looks
backwards may stop at the first copy that is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from srm_spark.core.model import Interval
from srm_spark.core.tail import TailRecord


class Comparison(NamedTuple):
    """What a stretch of copies says."""

    difference: int | None
    """First source offset whose record and copy are not the same; None where there is none."""
    agrees: bool
    """Whether any copy in front of that is right: then all earlier ones are."""


def compare_copies(
    intervals: Sequence[Interval],
    source: Iterable[TailRecord],
    target: Iterable[TailRecord],
    *,
    source_end: int,
    target_end: int,
    may_be_compacted: bool,
    is_copy: Callable[[TailRecord, TailRecord], bool],
) -> Comparison:
    """Compare the copies that `intervals` name; `source` and `target` are in order and hold what is still there.

    A record that is missing on the source, in front of its end, was compacted or deleted and says nothing. So does a
    copy; but behind another one, where the target is not compacted, a marker of a transaction has taken its place: an
    unclean election has cut the log off right there, and the marker came to the new leader.
    """
    behind = _behind_an_end(intervals, source_end, target_end)
    there, agrees = iter(target), False
    is_kept = False
    copy = next(there, None)
    for place, record in _placed(intervals, source):
        while copy is not None and copy.offset < place:
            is_kept, copy = True, next(there, None)
        if copy is not None and copy.offset == place:
            if not is_copy(record, copy):
                return Comparison(record.offset, agrees)
            agrees = True
        elif is_kept and place < target_end and not may_be_compacted:
            return Comparison(record.offset, agrees)
        elif copy is None:
            break
    return Comparison(behind, agrees)


def _placed(intervals: Sequence[Interval], source: Iterable[TailRecord]) -> Iterable[tuple[int, TailRecord]]:
    """The source records that were copied, each with the target offset of its copy."""
    at = 0
    for record in source:
        while at < len(intervals) and intervals[at].upstream_end <= record.offset:
            at += 1
        if at == len(intervals):
            return
        if record.offset >= intervals[at].upstream:
            yield intervals[at].downstream + record.offset - intervals[at].upstream, record


def _behind_an_end(intervals: Sequence[Interval], source_end: int, target_end: int) -> int | None:
    """First source offset that, or whose copy, lies behind the end of its log."""
    for interval in intervals:
        kept = min(source_end - interval.upstream, target_end - interval.downstream)
        if kept < interval.count:
            return interval.upstream + max(0, kept)
    return None
