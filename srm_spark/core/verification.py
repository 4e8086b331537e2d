"""Whether the copies of a partition are what its records are, by content: both logs along the offset map. Pure.

```
source  40 41 42 ·  44 45        the map says  40→7  41→8  42→9  44→12
         │  │  │     │  ╎
target   7  8  9 10 12           10 is no copy of anything; 45 lies behind the map, and is not looked at
```

What is not equal is either a difference, which somebody has to look at, or explained, by what is known of both logs.
What the map does not know is neither: it was not checked, and is told.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from srm_spark.core.model import Interval, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.pieces import Cursor, Piece, Sealed, count_of, equal_ahead, size_of
from srm_spark.core.provenance import Stamp
from srm_spark.core.rows import Run
from srm_spark.core.tail import TailRecord, is_copy, is_copy_either_way

MOST_FINDINGS = 1_000
"""Of a partition, one by one; the others are counted."""
_REMEMBERED = 100_000
"""Source records by which one that is doubled is recognised; further apart it is a foreign one."""
_REMEMBERED_BYTES = 16_777_216
"""Or so many bytes of them."""
_MOST_SINGLY = 1024


class Verdict(Enum):
    """What is to be said of what was looked at."""

    EQUAL = "equal"
    PARTLY = "equal as far as it was checked"
    SAMPLED = "no difference in the sample"
    DIFFERENT = "different"
    NOTHING = "nothing checked"


GOOD = frozenset({Verdict.EQUAL, Verdict.SAMPLED})
"""Nothing is wrong with all that was to be looked at."""


class Difference(Enum):
    """What is wrong with one record."""

    LOST = "lost"
    CHANGED = "changed"
    SWAPPED = "swapped"
    DOUBLED = "doubled"
    FOREIGN = "foreign"


class Reason(Enum):
    """Why one record is on one side only, or other than the one that it was made of, and nothing is wrong."""

    TARGET_DELETED = "the target has deleted the copy"
    TARGET_COMPACTED = "the target has compacted the copy away"
    SOURCE_DELETED = "the source has deleted the record"
    SOURCE_COMPACTED = "the source has compacted the record away"
    QUARANTINED = "the record is in quarantine"
    REPLAYED = "the record was in quarantine, and its copy was written behind the others by a replay"
    FORGOTTEN = "the record was in quarantine, and somebody has given it up"
    ABORTED = "its transaction was aborted"
    SKIPPED = "somebody has set the position behind the record"
    FROM_THERE = "the record has been on the target before"
    OF_OTHERS = "the record is somebody else's, written on the target"
    FIXED = "the timestamp of the copy was fixed, and the original one is in a header"


class Finding(NamedTuple):
    """One difference. An offset is None where there is no record on that side."""

    kind: Difference
    source: int | None
    target: int | None
    what: str


class First(NamedTuple):
    """The first offsets that both logs still have."""

    source: int
    target: int


class OneSided(NamedTuple):
    """What is known of records that have no copy."""

    quarantined: frozenset[int] = frozenset()
    skipped: tuple[range, ...] = ()
    lost: tuple[range, ...] = ()
    """The target has lost their copies, and that is known."""
    replayed: Mapping[int, int] = MappingProxyType({})
    """Source offset of a record → target offset of the copy that a replay wrote."""
    forgotten: frozenset[int] = frozenset()
    """Quarantine has them no more, and nobody copies them."""

    def reason(self, offset: int) -> Reason | None:
        """Why the source record at `offset` has no copy; None where nobody knows."""
        if offset in self.quarantined:
            return Reason.QUARANTINED
        if not self.is_known_loss(offset):  # of a copy that was made later
            if offset in self.forgotten:
                return Reason.FORGOTTEN
            if offset in self.replayed:
                return Reason.REPLAYED
        return Reason.SKIPPED if any(offset in each for each in self.skipped) else None

    def is_known_loss(self, offset: int) -> bool:
        """Whether its copy was found to be lost before."""
        return any(offset in each for each in self.lost)


_NOTHING_KNOWN = OneSided()


@dataclass(frozen=True)
class Sides:
    """What is known of a partition and of its copy, beside their records."""

    partition: TopicPartition
    map: PartitionMap
    first: Callable[[], First]
    """As of a moment ago: what is not there may have been deleted while it was read."""
    source_compacts: bool = False
    target_compacts: bool = False
    ends: First | None = None
    """Where both logs end, which compaction changes nothing of; None where that is not known."""
    stamp: Stamp | None = None
    """What the flow's copies get as a header; None where they get none."""
    own_stamp: Stamp | None = None
    """What copies have that were made while they got one."""
    one_sided: OneSided = _NOTHING_KNOWN
    first_now: Callable[[], First] = lambda: First(0, 0)
    """The same as of this moment, in front of saying that something is wrong."""
    only: Sequence[Interval] | None = None
    """All that is looked at of the map, where that is a sample; None for everything."""
    is_aborted: Callable[[int], bool] = lambda _: False
    """Whether the source record at an offset was of a transaction that was aborted; asked of offsets in their order."""


@dataclass
class Checked:
    """What looking at the records of a partition has brought."""

    equal: int = 0
    explained: Counter[Reason] = field(default_factory=Counter)
    differences: Counter[Difference] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    """The first ones."""
    unknown: int = 0
    """Records of which the map knows nothing, on either side."""

    def take_differences(self, again: Checked) -> None:
        """What is not right in a stretch that was counted before."""
        self.differences += again.differences
        self.unknown += again.unknown
        self.findings = [*self.findings, *again.findings][:MOST_FINDINGS]

    @property
    def verdict(self) -> Verdict:
        """Nothing is equal where nothing was looked at."""
        if self.differences:
            return Verdict.DIFFERENT
        return Verdict.EQUAL if self.equal or self.explained.get(Reason.FIXED) else Verdict.NOTHING


class _Changed(NamedTuple):
    at: int
    """In the findings."""
    source: int
    was: int
    """Hash of the record."""
    became: int


def check(source: Iterable[Piece], target: Iterable[Piece], sides: Sides) -> Checked:
    """Compare the records of both sides, each in the order of its offsets, from where the map begins to where it ends.

    Every record of the source is looked for where the map says that its copy lies, and every record of the target has
    to be such a copy. Memory does not grow with the logs.
    """
    looking = _Looking(sides)
    here, there = Cursor(source), Cursor(target)
    for interval in _intervals(sides.map) if sides.only is None else sides.only:
        while here.offset < interval.upstream:
            looking.has_no_copy(here.take())
        while there.offset < interval.downstream:
            looking.is_no_copy(there.take())
        while (of_source := here.offset - interval.upstream) < interval.count or (
            there.offset - interval.downstream < interval.count
        ):
            of_target = there.offset - interval.downstream
            if of_source == of_target:
                if not looking.are_equal(here, there, interval.count - of_source):
                    looking.pair(here.take(), there.take())
            elif of_source < of_target:
                looking.copy_is_gone(here.take(), interval.downstream + of_source)
            else:
                looking.record_is_gone(there.take(), interval.upstream + of_target)
        if here.is_over and there.is_over:
            break
    while not here.is_over:
        looking.has_no_copy(here.take())
    while not there.is_over:
        looking.is_no_copy(there.take())
    return looking.checked


def _intervals(known: PartitionMap) -> Iterator[Interval]:
    return (interval for part in known.parts() for interval in part.intervals)


class _Seen:
    """Source records of late by their content, which is worked out once somebody asks."""

    def __init__(self) -> None:
        self._waiting: deque[Piece | Run] = deque()
        """What nobody has asked about yet, in order."""
        self._waiting_records = self._waiting_bytes = 0
        self._offsets: dict[int, int] = {}
        self._order: deque[tuple[int, int]] = deque()
        """Content and offset."""

    def take(self, passed: Piece | Run) -> None:
        """One record, or many that were passed at once."""
        self._waiting.append(passed)
        self._weigh(passed, 1)
        while len(self._waiting) > 1 and (
            self._waiting_records > _REMEMBERED or self._waiting_bytes > _REMEMBERED_BYTES
        ):
            self._weigh(self._waiting.popleft(), -1)

    def _weigh(self, passed: Piece | Run, times: int) -> None:
        self._waiting_records += times * count_of(passed)
        self._waiting_bytes += times * size_of(passed)

    def find(self, copy: TailRecord) -> int | None:
        """The offset of the newest source record with that content."""
        while self._waiting:
            passed = self._waiting.popleft()
            self._weigh(passed, -1)
            if isinstance(passed, TailRecord):
                self._keep(passed.offset, _hash(passed))
                continue
            for run in passed.opened() if isinstance(passed, Sealed) else (passed,):
                keys, values, *_ = run.columns()
                for offset, key, value in zip(run.offsets.tolist(), keys, values, strict=True):
                    self._keep(offset, hash((key, value)))
        return self._offsets.get(_hash(copy))

    def _keep(self, offset: int, content: int) -> None:
        self._offsets[content] = offset
        self._order.append((content, offset))
        if len(self._order) > _REMEMBERED:
            oldest, its_offset = self._order.popleft()
            if self._offsets.get(oldest) == its_offset:  # else a newer one has that content
                del self._offsets[oldest]


class _Looking:
    """Judges one record, or one pair, after the other."""

    def __init__(self, sides: Sides) -> None:
        self.checked = Checked()
        self._sides = sides
        self._holes = sides.map.holes()
        self._seen = _Seen()
        self._changed: list[_Changed] = []
        self._replays = {copy: original for original, copy in sides.one_sided.replayed.items()}
        self._replayed: dict[int, int] = {}
        """Source offset of a record whose copy a replay has written → hash of the record."""
        self._singly = 0
        """So many pairs are looked at one by one before many are compared at once again."""
        self._in_vain = 0
        """How many were, when that brought nothing the last time."""

    def are_equal(self, here: Cursor, there: Cursor, most: int) -> bool:
        """Whether some of the next `most` records are equal to what the map says their copies are; those are passed."""
        if self._singly:
            self._singly -= 1
            return False
        batch = here.sealed
        count = equal_ahead(here, there, most)
        if not count:
            self._in_vain = self._singly = min(2 * self._in_vain + 1, _MOST_SINGLY)
            return False
        self._in_vain = 0
        run = None if here.sealed is not None else here.ahead()
        if run is not None:
            self._seen.take(run.slice(here.at, here.at + count))
        elif batch is not None:
            self._seen.take(batch)
        here.skip(count)
        there.skip(count)
        self.checked.equal += count
        return True

    def pair(self, record: TailRecord, copy: TailRecord) -> None:
        """The map says that they are the same."""
        checked, own = self.checked, self._sides.own_stamp
        self._seen.take(record)
        if is_copy(record, copy) or (own is not None and is_copy_either_way(own, self._sides.partition, record, copy)):
            if copy.is_append_time or record.timestamp == copy.timestamp or record.timestamp in (0, -1):
                checked.equal += 1
            else:
                checked.explained[Reason.FIXED] += 1
            return
        was, became = _hash(record), _hash(copy)
        # Of one whose headers or time differ alone the content is its own.
        twins = (one for one in self._changed if was != became and (one.was, one.became) == (became, was))
        twin = next(twins, None)
        if twin is None:
            at = self._find(Difference.CHANGED, record.offset, copy.offset, f"other {_fields(record, copy)}")
            if at is not None:
                self._changed.append(_Changed(at, record.offset, was, became))
            return
        first = checked.findings[twin.at]
        text = "it holds the copy of source offset {}, and that one holds its own"
        checked.findings[twin.at] = Finding(Difference.SWAPPED, first.source, first.target, text.format(record.offset))
        checked.differences[Difference.CHANGED] -= 1
        checked.differences += Counter()  # without kinds of which there are none any more
        checked.differences[Difference.SWAPPED] += 1
        self._changed.remove(twin)
        self._find(Difference.SWAPPED, record.offset, copy.offset, text.format(twin.source))

    def copy_is_gone(self, record: TailRecord, at: int) -> None:
        """Where its copy should lie, nothing is."""
        self._seen.take(record)
        if at < self._sides.first().target:
            self.checked.explained[Reason.TARGET_DELETED] += 1
        elif self._sides.target_compacts and record.key is not None and self._lies_within(target=at):
            self.checked.explained[Reason.TARGET_COMPACTED] += 1
        elif self._asks and at < self._sides.first_now().target:
            self.checked.explained[Reason.TARGET_DELETED] += 1
        else:
            self._find(Difference.LOST, record.offset, None, f"its copy at target offset {at} is gone")

    def record_is_gone(self, copy: TailRecord, at: int) -> None:
        """What it is a copy of is not there."""
        if at < self._sides.first().source:
            self.checked.explained[Reason.SOURCE_DELETED] += 1
        elif self._sides.source_compacts and copy.key is not None and self._lies_within(source=at):
            self.checked.explained[Reason.SOURCE_COMPACTED] += 1
        elif self._asks and at < self._sides.first_now().source:
            self.checked.explained[Reason.SOURCE_DELETED] += 1
        else:
            what = f"it should be the copy of source offset {at}, where the source has no record"
            self._find(Difference.FOREIGN, None, copy.offset, what)

    @property
    def _asks(self) -> bool:
        """Whether it is worth a question to a cluster: of very many that are gone it is not."""
        return len(self.checked.findings) < MOST_FINDINGS

    def _lies_within(self, source: int = 0, target: int = 0) -> bool:
        """Whether a log of today is so long."""
        ends = self._sides.ends
        return ends is None or (source < ends.source and target < ends.target)

    def has_no_copy(self, record: TailRecord) -> None:
        """The map knows none of it."""
        self._seen.take(record)
        sides, offset = self._sides, record.offset
        reason = sides.one_sided.reason(offset)
        if reason is not None:
            self.checked.explained[reason] += 1
            if reason is Reason.REPLAYED:
                self._replayed[offset] = _hash(record)
        elif sides.stamp is not None and sides.stamp.headers(sides.partition, offset, record.headers) is None:
            self.checked.explained[Reason.FROM_THERE] += 1
        elif sides.one_sided.is_known_loss(offset):
            self._find(Difference.LOST, offset, None, "its copy is gone, which is known: see srm-control losses")
        elif any(hole.source.start <= offset < hole.source.end for hole in self._holes):
            self.checked.unknown += 1
        elif sides.is_aborted(offset):
            self.checked.explained[Reason.ABORTED] += 1
        else:
            self._find(Difference.LOST, offset, None, "it was passed, and no copy was made of it")

    def is_no_copy(self, copy: TailRecord) -> None:
        """No record of the source was copied to there."""
        sides, offset = self._sides, copy.offset
        replayed = self._replays.get(offset)
        if replayed is not None and self._replayed.get(replayed, _hash(copy)) == _hash(copy):
            self.checked.explained[Reason.REPLAYED] += replayed not in self._replayed  # the record was counted
        elif sides.stamp is not None and not sides.stamp.is_ours(sides.partition.topic, copy.headers):
            self.checked.explained[Reason.OF_OTHERS] += 1
        elif any(hole.after <= offset and (hole.before is None or offset < hole.before) for hole in self._holes):
            self.checked.unknown += 1
        elif (original := self._seen.find(copy)) is not None:
            what = f"one more copy of source offset {original}"
            self._find(Difference.DOUBLED, original, offset, what)
        else:
            self._find(Difference.FOREIGN, None, offset, "no record of the source was copied to there")

    def _find(self, kind: Difference, source: int | None, target: int | None, what: str) -> int | None:
        """Where it is in the findings; None where these are full."""
        self.checked.differences[kind] += 1
        if len(self.checked.findings) >= MOST_FINDINGS:
            return None
        self.checked.findings.append(Finding(kind, source, target, what))
        return len(self.checked.findings) - 1


def _hash(record: TailRecord) -> int:
    """Of what a copy keeps in any case: headers may be added, and timestamps be the broker's."""
    return hash((record.key, record.value))


def _fields(record: TailRecord, copy: TailRecord) -> str:
    """What differs, for people."""
    pairs: Sequence[tuple[str, object, object]] = (
        ("key", record.key, copy.key),
        ("value", record.value, copy.value),
        ("headers", record.headers, copy.headers),
        ("timestamp", record.timestamp, copy.timestamp),
    )
    return ", ".join(name for name, one, other in pairs if one != other)
