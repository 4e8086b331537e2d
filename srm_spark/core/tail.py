"""Which source records lie in a stretch of the target that nobody recorded: what a batch wrote before it died.

A record here is everything that is copied, with its offset. Pure: readers of any kind hand the records in.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, dropwhile
from typing import NamedTuple

from srm_spark.core.codec import ORIGINAL_TIMESTAMP_HEADER
from srm_spark.core.model import Interval, TopicPartition
from srm_spark.core.provenance import Stamp


class TailRecord(NamedTuple):
    """One record as a plain consumer reads it."""

    offset: int
    timestamp: int
    """Milliseconds since the epoch; -1 where there is none."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    is_append_time: bool = False
    """The timestamp is the broker's (LogAppendTime)."""


@dataclass
class TailMatch:
    """What was found on the target from the recorded end on."""

    next_offset: int
    """First source offset that has not landed."""
    intervals: list[Interval] = field(default_factory=list)
    foreign: str | None = None
    """The first record that is not ours, if there is one."""

    @property
    def copied(self) -> int:
        """How many records were found."""
        return sum(interval.count for interval in self.intervals)


def match_tail(
    source: Iterable[TailRecord],
    target: Iterable[TailRecord],
    source_start: int,
    target_start: int,
    *,
    skips_foreign: bool = False,
) -> TailMatch:
    """Match target records from `target_start` on with source records from `source_start` on, by position.

    ```
    source   40 41 42 ·  44 45 …       recorded: up to 39, next target offset 7
    target   7  8  9  10               42 → 9, 44 → 10: next source offset 45
    ```

    - Offsets missing on the target (compacted there, or markers of a transaction) may stand for as many source records.
    - Source offsets missing (compacted since) may have been as many target records.
    - The timestamp of a copy says nothing where it is the broker's (LogAppendTime on the target, then).
    - A copy whose timestamp was fixed is compared as it was before.
    - The match ends at the first record that is not ours; with `skips_foreign` it goes on behind it.
    """
    return _match(_Candidates(source, source_start), target, target_start, skips_foreign)


def match_scattered(
    source: Iterable[TailRecord], target: Iterable[TailRecord], source_start: int, *, skips_foreign: bool = False
) -> TailMatch:
    """The same behind an election that has cost copies: any source record may be without one, in front of any copy.

    Each target record is the copy of the first source record that it may be, behind that of the one before. All of
    `source` is held in memory.
    """
    waiting: defaultdict[tuple[bytes | None, bytes | None], deque[TailRecord]] = defaultdict(deque)
    for record in source:
        waiting[record.key, record.value].append(record)
    match = TailMatch(source_start)
    for copy in target:
        alike = waiting[copy.key, copy.value]
        while alike and alike[0].offset < match.next_offset:
            alike.popleft()
        original = next((record for record in alike if is_copy(record, copy)), None)
        if original is not None:
            _add(match.intervals, original.offset, copy.offset)
            match.next_offset = original.offset + 1
            continue
        match.foreign = match.foreign or _foreign(copy, match.next_offset)
        if not skips_foreign:
            break
    return match


def match_logs(source: Iterable[TailRecord], target: Iterable[TailRecord], end: int) -> TailMatch:
    """Match two whole logs that meet behind their last records; `end` is the source offset there.

    Copies that the source has lost since come first on the target, and no place is known for them. Records that do not
    pair up to the very end make the match `foreign`, and nothing in it can be relied on.
    """
    records = iter(source)
    first = next(records, None)
    if first is None:
        return TailMatch(end)
    copies = dropwhile(lambda record: not is_copy(first, record), iter(target))
    start = next(copies, None)
    if start is None:
        return TailMatch(first.offset, foreign=f"source offset {first.offset} has no copy")
    candidates = _Candidates(chain((first,), records), first.offset)
    match = _match(candidates, chain((start,), copies), start.offset, skips_foreign=False)
    left = candidates.next()
    if match.foreign is None and left is not None:
        match.foreign = f"source offset {left.offset} has no copy"
    return match


def copies(stamp: Stamp, partition: TopicPartition, source: Iterable[TailRecord]) -> Iterator[TailRecord]:
    """Records of a source partition as they are when `stamp` lets a flow copy them, with their source offsets."""
    for record in source:
        headers = stamp.headers(partition, record.offset, record.headers)
        if headers is not None:
            yield record._replace(headers=tuple(headers))


def ours(stamp: Stamp, partition: TopicPartition, target: Iterable[TailRecord]) -> Iterator[TailRecord]:
    """Records of the target that are copies of the source partition; others write there, too."""
    return (record for record in target if stamp.is_ours(partition.topic, record.headers))


def _match(candidates: _Candidates, target: Iterable[TailRecord], expected: int, skips_foreign: bool) -> TailMatch:
    match = TailMatch(candidates.next_offset)
    for record in target:
        original = candidates.take(record, record.offset - expected)
        expected = record.offset + 1
        if original is None:
            match.foreign = match.foreign or _foreign(record, candidates.next_offset)
            if not skips_foreign:
                break
        elif original >= 0:
            _add(match.intervals, original, record.offset)
    match.next_offset = candidates.next_offset
    return match


def _foreign(record: TailRecord, next_offset: int) -> str:
    return (
        f"target offset {record.offset} holds a record that is not the next one of the source, which is at offset "
        f"{next_offset}"
    )


class _Candidates:
    """Source records in order, some of them looked at before they are taken."""

    def __init__(self, records: Iterable[TailRecord], start: int) -> None:
        self._records: Iterator[TailRecord] = iter(records)
        self._seen: deque[TailRecord] = deque()
        self.next_offset = start

    def next(self) -> TailRecord | None:
        """The next record that was not taken."""
        return self._look(0)

    def take(self, wanted: TailRecord, skippable: int) -> int | None:
        """Source offset of `wanted`; -1 if it must have been compacted away there; None if it is not the source's.

        At most `skippable` records before it are passed over: they landed and were compacted away on the target.
        """
        for index in range(skippable + 1):
            candidate = self._look(index)
            if candidate is None:
                break
            if is_copy(candidate, wanted):
                for _ in range(index + 1):
                    self._seen.popleft()
                self.next_offset = candidate.offset + 1
                return candidate.offset
        following = self._look(0)
        if following is not None and following.offset > self.next_offset:
            self.next_offset += 1  # one of the missing source offsets was this record
            return -1
        return None

    def _look(self, index: int) -> TailRecord | None:
        while len(self._seen) <= index:
            record = next(self._records, None)
            if record is None:
                return None
            self._seen.append(record)
        return self._seen[index]


def is_copy(source: TailRecord, target: TailRecord) -> bool:
    """Whether `target` is what a record becomes: key, value, headers, and the timestamp where the target kept it."""
    unfixed = _unfixed(target)
    if unfixed is not None and _is_equal(source, unfixed):
        return True
    return _is_equal(source, target)


def is_copy_either_way(stamp: Stamp, partition: TopicPartition, source: TailRecord, target: TailRecord) -> bool:
    """The same of a copy that was made with a provenance header or without one: nobody knows what was set then."""
    return is_copy(source, target) or any(is_copy(record, target) for record in copies(stamp, partition, [source]))


def _unfixed(target: TailRecord) -> TailRecord | None:
    """The record as it was before its timestamp was fixed; None where no header says that it was."""
    headers = target.headers
    at = next((at for at in reversed(range(len(headers))) if headers[at][0] == ORIGINAL_TIMESTAMP_HEADER), -1)
    value = headers[at][1] if at >= 0 else None
    if value is None or not value.isdigit():
        return None
    return target._replace(timestamp=int(value), headers=headers[:at] + headers[at + 1 :])


def _is_equal(source: TailRecord, target: TailRecord) -> bool:
    if (source.key, source.value, source.headers) != (target.key, target.value, target.headers):
        return False
    # The client library sends 0, and -1 is none: both were written with the time of the copy.
    return target.is_append_time or source.timestamp in (0, -1) or source.timestamp == target.timestamp


def _add(intervals: list[Interval], upstream: int, downstream: int) -> None:
    last = intervals[-1] if intervals else None
    if last is not None and (last.upstream_end, last.downstream_end) == (upstream, downstream):
        intervals[-1] = last._replace(count=last.count + 1)
    else:
        intervals.append(Interval(upstream, downstream, 1))
