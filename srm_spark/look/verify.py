"""Reads what a flow has copied on both sides, record by record along the offset map, and says what is not equal.

It trusts no digest and no count of ours. Nothing is written, and a driver may go on meanwhile: what is looked at ends
where the map ended at the beginning. Of what the map does not know nothing is said but where it lies.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple, Protocol

from srm_spark.config.settings import FlowSettings
from srm_spark.core.bandwidth import Bandwidth
from srm_spark.core.cluster import Cluster
from srm_spark.core.doubts import doubts
from srm_spark.core.log_digest import LogDigest, LogRoot
from srm_spark.core.model import Flow, Interval, KeptLoss, LossCause, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.pieces import Piece, count_of, size_of
from srm_spark.core.sampling import chosen, what_it_says
from srm_spark.core.tail import TailRecord
from srm_spark.core.topic_configs import cleanup_policies
from srm_spark.core.verification import Checked, First, OneSided, Sides, Verdict, check
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.refused.quarantine import Quarantine
from srm_spark.flow.topics.lists import take_lists
from srm_spark.flow.topics.offset_map import OffsetMaps

_FIRST_SECONDS = 1.0
"""What was the first offset so long ago may be deleted by now."""
_SAY_RECORDS = 100_000
_LOOK_SECONDS = 0.5
"""Between two looks whether somebody has ended it, while it is held back."""
_TOGETHER = 4
"""Partitions that are read at a time: each waits for brokers more than it computes, and holds what comes ahead."""


class Roots(NamedTuple):
    """Digests of both sides of a partition."""

    source: LogRoot
    target: LogRoot


@dataclass(frozen=True)
class Verified:
    """One partition."""

    partition: TopicPartition
    remote: TopicPartition
    checked: Checked
    source: OffsetRange
    """What was looked at."""
    uncovered: tuple[OffsetRange, ...] = ()
    """Source offsets, in front of the map's end, of which it knows nothing: somebody else has copied them."""
    not_yet: int = 0
    """Source offsets behind the map: they are not copied yet."""
    unchecked: str | None = None
    """Why nothing of it was looked at, or what of it was not; None where all of it was."""
    target: OffsetRange | None = None
    """What was looked at there; None where nothing was."""
    roots: Roots | None = None
    """Of what was read on both sides; None where they were not wanted."""
    doubts: tuple[OffsetRange, ...] | None = ()
    """Where to look again, once what is behind is known; None where that cannot be said."""

    @property
    def is_done(self) -> bool:
        """Whether all of it was compared, up to where it was looked at, and nothing is wrong."""
        is_equal = self.verdict is Verdict.EQUAL
        return is_equal and not (self.unchecked or self.uncovered or self.checked.unknown)

    @property
    def verdict(self) -> Verdict:
        """Of what was looked at."""
        return self.checked.verdict


@dataclass(frozen=True)
class Verification:
    """What a flow has copied, and whether it is what its source has."""

    flow: Flow
    began: int
    """Milliseconds since the epoch."""
    ended: int
    partitions: tuple[Verified, ...]
    is_sample: bool = False
    """Only some of the records were compared, chosen by chance."""

    @property
    def said_of_all(self) -> str | None:
        """What a sample says of the records that are not in it."""
        if not self.is_sample:
            return None
        checked = [one.checked for one in self.partitions]
        differing = sum(one.differences.total() for one in checked)
        return what_it_says(sum(one.equal + one.explained.total() for one in checked) + differing, differing)

    @property
    def verdict(self) -> Verdict:
        """Equal is only what was looked at as a whole: every partition, up to where the flow has come."""
        if any(one.verdict is Verdict.DIFFERENT for one in self.partitions):
            return Verdict.DIFFERENT
        if not any(one.verdict is Verdict.EQUAL for one in self.partitions):
            return Verdict.NOTHING
        is_whole = not any(one.unchecked or one.uncovered or one.checked.unknown for one in self.partitions)
        if not is_whole:
            return Verdict.PARTLY
        return Verdict.SAMPLED if self.is_sample else Verdict.EQUAL


class Before(Protocol):
    """How far partitions were looked at before; used by several threads."""

    def begins(self, ids: Mapping[str, str]) -> Mapping[TopicPartition, int]:
        """Where to begin in topics that are still the ones with these ids."""

    def again(self, ids: Mapping[str, str]) -> Mapping[TopicPartition, tuple[OffsetRange, ...]]:
        """What to look at again, in front of that."""

    def took(self, found: Verified, topic_id: str | None) -> None:
        """A partition of a topic with this id was looked at to its end."""


Say = Callable[[TopicPartition, int], None]
"""Told of a partition that is read, and how many records of one side have been read of it; from several threads."""


def verify(
    settings: FlowSettings,
    takes: Callable[[str], bool],
    number: int | None = None,
    *,
    since: int | None = None,
    rate: int | None = None,
    roots: bool = False,
    sample: int | None = None,
    before: Before | None = None,
    over: threading.Event | None = None,
    say: Say = lambda *_: None,
    reach: Connect = connect,
) -> Verification:
    """Compare all that was copied of the topics that `takes` says, or of one partition number.

    From the first source record on that is not older than `since` (ms since the epoch), where that is said.

    `rate` is in bytes/s of keys, values and headers, of both sides together; None for no limit. `roots`: digests of
    what is read are made, too. `before`: go on where that says, and note how far this one comes. `sample`: only so
    many records, chosen by chance, and their copies: what else lies on the target is not looked at then. Once it is
    `over`, nothing more is read, and what is returned says nothing. Raises
    SourceUnavailable and TargetUnavailable: where one side cannot be read, nothing is said.
    """
    began = int(time.time() * 1000)
    clusters = reach(settings)
    take_lists(clusters)
    with (
        closing(OffsetMaps(clusters.target, settings.map_topic, f"{settings.flow}|verify", TargetUnavailable)) as maps,
        closing(Quarantine(settings, clusters.target, f"{settings.flow}|verify-quarantine")) as quarantine,
    ):
        if settings.map_topic in clusters.target.topics():
            maps.refresh()
        quarantine.refresh()
        flow = _Flow(clusters, takes, number, maps, quarantine)
    if since is not None:
        flow.begin_at(since)
    if before is not None:
        flow.begin_behind(before)
    pace = Pace(None if rate is None else Bandwidth(rate), say, over or threading.Event())

    def plan(partition: TopicPartition) -> Comparison | Verified:
        return flow.unread(partition) if pace.is_over else flow.planned(partition)

    def one(planned: Comparison | Verified) -> Verified:
        if isinstance(planned, Verified):
            return planned
        if pace.is_over:
            return flow.unread(planned.partition)
        try:
            offsets = None if picked is None else picked[planned.partition]
            found = flow.believed(flow.compared(planned, pace, roots=roots, sample=offsets))
            # Where somebody has ended it, this one was not read to its end.
            if before is not None and not pace.is_over:
                before.took(found, flow.topic_id(planned.partition))
            return found
        except BaseException:  # nobody wants the others
            pace.end()
            raise

    with ThreadPoolExecutor(_TOGETHER, "srm verify") as pool:
        try:
            planned = list(pool.map(plan, flow.partitions))
            logs = {each.partition: each.source for each in planned if isinstance(each, Comparison)}
            picked = None if sample is None else chosen(logs, sample, random.SystemRandom())
            partitions = tuple(pool.map(one, planned))
        finally:  # where somebody interrupts it, the pool would wait for those that are read
            pace.end()
    return Verification(settings.flow, began, int(time.time() * 1000), partitions, is_sample=sample is not None)


class Comparison(NamedTuple):
    """What is to be read of a partition."""

    partition: TopicPartition
    remote: TopicPartition
    known: PartitionMap
    source: OffsetRange
    target: OffsetRange
    uncovered: tuple[OffsetRange, ...]
    not_yet: int
    again: tuple[OffsetRange, ...]
    """Of the source, in front of that: what was not right."""


class _Flow:
    """What is known of all partitions before the first record is read."""

    def __init__(
        self,
        clusters: Clusters,
        takes: Callable[[str], bool],
        number: int | None,
        maps: OffsetMaps,
        quarantine: Quarantine,
    ) -> None:
        source, target = clusters.source, clusters.target
        self._clusters = clusters
        counts = source.topics()
        flowing = {topic for topic in counts if clusters.flows(topic) and takes(topic)}
        there = {TopicPartition(topic, n) for topic in flowing for n in range(counts[topic])}
        known = {partition for partition in maps.maps if takes(partition.topic)}
        self.partitions = sorted(one for one in there | known if number in (None, one.partition))
        self._remotes = {one: self._remote(one) for one in self.partitions}
        self._maps = {one: maps.maps[one].copy() for one in self.partitions if one in maps.maps}
        self._losses: defaultdict[TopicPartition, list[KeptLoss]] = defaultdict(list)
        for kept in maps.losses.values():
            self._losses[kept.partition].append(kept)
        self._counts, remote_counts = counts, target.topics()
        topics = sorted({one.topic for one in self.partitions if one.topic in counts})
        self._ids = source.topic_ids(topics)
        self._quarantined = quarantine.offsets(self._ids)
        self._ended = quarantine.endings(self._ids)
        remotes = sorted({one.topic for one in self._remotes.values() if one.topic in remote_counts})
        self._compacting = _compacting(source, topics), _compacting(target, remotes)
        asked = [one for one in self.partitions if one.partition < counts.get(one.topic, 0)]
        copies = [one for one in self._remotes.values() if one.partition < remote_counts.get(one.topic, 0)]
        # Nothing can be asked of these, and the others need not wait for them.
        self._silent = source.leaderless(asked), target.leaderless(copies)
        asked = [one for one in asked if one not in self._silent[0]]
        copies = [one for one in copies if one not in self._silent[1]]
        self._ends = source.end_offsets(asked, committed=clusters.settings.reads_committed)
        # Where copies end may be in front of where the map says that they do.
        self._target_ends = target.end_offsets(copies, committed=True)
        self._begins: dict[TopicPartition, int] = {}
        self._again: Mapping[TopicPartition, tuple[OffsetRange, ...]] = {}

    def begin_at(self, moment: int) -> None:
        """Leave out what is older; of a partition where all of it is, there is nothing to look at."""
        asked = list(self._ends)
        found = self._clusters.source.offsets_since(asked, moment)
        self._begins = {one: found.get(one, self._ends[one]) for one in asked}

    def begin_behind(self, before: Before) -> None:
        """Leave out what was compared before, but for what was not right."""
        self._again = before.again(self._ids)
        for partition, end in before.begins(self._ids).items():
            if partition in self._ends:
                self._begins[partition] = max(end, self._begins.get(partition, 0))

    def topic_id(self, partition: TopicPartition) -> str | None:
        """Of its topic on the source; None where that has none."""
        return self._ids.get(partition.topic)

    def unread(self, partition: TopicPartition) -> Verified:
        """What is to be said of a partition that nobody looks at any more."""
        remote = self._remotes[partition]
        return Verified(partition, remote, Checked(), OffsetRange(0, 0), unchecked="it was ended before")

    def believed(self, found: Verified) -> Verified:
        """The same, unless its topic was made anew while it was read: then these were other records."""
        topic = found.partition.topic
        if found.verdict is not Verdict.DIFFERENT:
            return found
        if self._clusters.source.topic_ids([topic]).get(topic) == self._ids.get(topic):
            return found
        return replace(found, checked=Checked(), unchecked=f"{topic} was made anew on the source meanwhile")

    def planned(self, partition: TopicPartition) -> Comparison | Verified:
        """What is to be read of a partition; what is to be said of it, where that is nothing."""
        remote, known = self._remotes[partition], self._maps.get(partition)
        nothing = Verified(partition, remote, Checked(), OffsetRange(0, 0))
        unchecked = self._unchecked(partition, known)
        if unchecked is not None:
            return replace(nothing, unchecked=unchecked)
        first, end = self._first(partition), self._ends[partition]
        if known is None or known.source is None:
            return replace(nothing, not_yet=max(0, end - first.source))
        oldest = max(first.source, self._begins.get(partition, 0))
        begin = max(oldest, known.source.start)
        source = _within(OffsetRange(begin, known.source.end), min(end, self._readable(remote, known)))
        holes = [OffsetRange(max(hole.source.start, oldest), hole.source.end) for hole in known.holes()]
        target_start = _target_start(known, first)
        if partition in self._begins:
            target_start = max(target_start, _behind_copies(known, begin))
        target = _within(OffsetRange(target_start, known.target_end or 0), self._target_ends.get(remote, 0))
        uncovered = tuple(hole for hole in holes if hole.start < hole.end)
        again = self._again.get(partition, ())
        return Comparison(partition, remote, known, source, target, uncovered, max(0, end - source.end), again)

    def _readable(self, remote: TopicPartition, known: PartitionMap) -> int:
        """Where source offsets end whose copies can be read: not behind a transaction that is open on the target."""
        assert known.source is not None
        readable, copied = self._target_ends.get(remote, 0), known.target_end or 0
        if readable >= copied or copied > self._clusters.target.end_offsets([remote]).get(remote, 0):
            return known.source.end  # all can be read, or the log was cut: that is a difference
        first = known.next_original(readable)
        return known.source.end if first is None else first

    def compared(self, one: Comparison, pace: Pace, *, roots: bool, sample: Sequence[int] | None) -> Verified:
        """What came of it: of all of its records, or of those at some offsets of the source."""
        known = self._sides(one.partition, one.known)
        sides = replace(known, is_aborted=self._aborted(one.partition, one.source.end))
        of_source, of_target = LogDigest(), LogDigest()
        if sample is None:
            here, there = self._read(one, records=roots)
        else:
            copies = ((offset, one.known.copy_of(offset)) for offset in sample)
            only = [Interval(offset, copy, 1) for offset, copy in copies if copy is not None]
            sides = replace(sides, only=only)
            here, there = self._picked(one, sample, only)
        if roots:
            here, there = _digested(here, of_source), _digested(there, of_target)
        checked = check(pace.slowed(one.partition, here), pace.slowed(one.partition, there), sides)
        waiting = None
        for stretch in one.again:
            if stretch.end <= one.source.start:
                checked.take_differences(self._checked_again(one, stretch, known, pace))
            elif stretch.end > one.source.end:  # else it was among the others
                waiting = f"source offset {stretch.start} cannot be looked at again now"
        return Verified(
            one.partition,
            one.remote,
            checked,
            one.source,
            unchecked=waiting,
            doubts=doubts(checked, one.source.end),
            uncovered=one.uncovered,
            not_yet=one.not_yet,
            target=one.target,
            roots=Roots(of_source.root(), of_target.root()) if roots else None,
        )

    def _checked_again(self, one: Comparison, stretch: OffsetRange, known: Sides, pace: Pace) -> Checked:
        """A stretch in front of what is looked at now, and its copies: between them lies what was judged before.

        Behind a rewind they may lie far from the copies of its neighbours.
        """
        copies = one.known.copies_within(stretch)
        sides = replace(known, is_aborted=self._aborted(one.partition, stretch.end), only=copies)
        end = self._target_ends.get(one.remote, 0)
        places = (_within(OffsetRange(copy.downstream, copy.downstream_end), end) for copy in copies)
        there = self._copies_at(one.remote, (at for at in places if at.start < at.end))
        here = self._clusters.source.pieces(one.partition, stretch)
        return check(pace.slowed(one.partition, here), pace.slowed(one.partition, there), sides)

    def _read(self, one: Comparison, *, records: bool) -> tuple[Iterable[Piece], Iterable[Piece]]:
        """Both sides, as `records` where each one has to be looked at. Of aborted transactions nothing is a copy."""
        here, there = self._clusters.source, self._clusters.target
        read, read_copies = (here.records, there.records) if records else (here.pieces, there.pieces)
        return (
            read(one.partition, one.source) if one.source.start < one.source.end else (),
            read_copies(one.remote, one.target, committed=True) if one.target.start < one.target.end else (),
        )

    def _picked(
        self, one: Comparison, offsets: Sequence[int], copies: Sequence[Interval]
    ) -> tuple[Iterable[Piece], Iterable[Piece]]:
        """The records at these offsets, and at those of their copies as far as the target has them."""
        here, end = self._clusters.source, one.target.end
        places = (OffsetRange(copy.downstream, copy.downstream + 1) for copy in copies if copy.downstream < end)
        return (
            chain.from_iterable(here.pieces(one.partition, OffsetRange(at, at + 1)) for at in offsets),
            self._copies_at(one.remote, places),
        )

    def _copies_at(self, remote: TopicPartition, places: Iterable[OffsetRange]) -> Iterable[Piece]:
        """What is committed there, and nothing between."""
        return chain.from_iterable(self._clusters.target.pieces(remote, at, committed=True) for at in places)

    def _aborted(self, partition: TopicPartition, end: int) -> Callable[[int], bool]:
        """By a second reader, which sees what is committed; it begins at the first record that somebody asks about.

        The flow may read everything now, and have read what was committed then.
        """
        if self._clusters.settings.reads_committed:
            return lambda _: False  # then what was read is committed
        committed: Iterator[TailRecord] | None = None
        newest: TailRecord | None = None

        def is_aborted(offset: int) -> bool:
            nonlocal committed, newest
            if committed is None:
                committed = self._clusters.source.records(partition, OffsetRange(offset, end), committed=True)
                newest = next(committed, None)
            while newest is not None and newest.offset < offset:
                newest = next(committed, None)
            return newest is None or newest.offset > offset

        return is_aborted

    def _unchecked(self, partition: TopicPartition, known: PartitionMap | None) -> str | None:
        """Why it cannot be looked at."""
        remote = self._remotes[partition]
        is_listed = partition.partition < self._counts.get(partition.topic, 0)
        if not is_listed or (partition not in self._ends and partition not in self._silent[0]):  # deleted since then
            return f"{partition} is not on the source"
        for one, silent in zip((partition, remote), self._silent, strict=True):
            if one in silent:
                return f"{one} has no leader"
        if known is None:
            return None
        if known.is_of_another(self._ids.get(partition.topic)):
            return f"{partition.topic} on the source is another topic than the one that was copied: it was made anew"
        if known.has_records and remote not in self._target_ends:
            return f"{remote} is not on the target"
        return None

    def _sides(self, partition: TopicPartition, known: PartitionMap) -> Sides:
        settings, (here, there) = self._clusters.settings, self._compacting
        losses = self._losses.get(partition, [])
        # What was copied in the end, since a position was set back, is compared like all others.
        ended = [one for one in self._ended.get(partition, ()) if known.copy_of(one.place.offset) is None]
        asked_at, first = float("-inf"), First(0, 0)

        def newest() -> First:
            nonlocal asked_at, first
            if time.monotonic() - asked_at > _FIRST_SECONDS:
                asked_at, first = time.monotonic(), self._first(partition)
            return first

        return Sides(
            partition,
            known,
            newest,
            first_now=lambda: self._first(partition),
            source_compacts=partition.topic in here,
            target_compacts=self._remotes[partition].topic in there,
            ends=First(self._ends[partition], self._target_ends.get(self._remotes[partition], 0)),
            stamp=settings.stamp,
            own_stamp=settings.own_stamp,
            one_sided=OneSided(
                frozenset(self._quarantined.get(partition, ())),
                skipped=_ranges(losses, known.topic_id, LossCause.SKIPPED),
                lost=_ranges(losses, known.topic_id, LossCause.TARGET),
                replayed={one.place.offset: one.copy for one in ended if one.copy is not None},
                forgotten=frozenset(one.place.offset for one in ended if one.copy is None),
            ),
        )

    def _first(self, partition: TopicPartition) -> First:
        """Where both logs begin; behind its end where one was deleted: then all of it is gone."""
        remote, ends, target_ends = self._remotes[partition], self._ends, self._target_ends
        here = self._clusters.source.first_offsets([partition]).get(partition, ends.get(partition, 0))
        if remote not in target_ends:
            return First(here, 0)
        return First(here, self._clusters.target.first_offsets([remote]).get(remote, target_ends[remote]))

    def _remote(self, partition: TopicPartition) -> TopicPartition:
        settings = self._clusters.settings
        topic = self._clusters.policy.format_remote_topic(settings.flow.source, partition.topic)
        return TopicPartition(topic, partition.partition)


class Pace:
    """Holds readers back to a rate, and tells how far they are. Safe to use from several threads."""

    def __init__(self, line: Bandwidth | None, say: Say, over: threading.Event) -> None:
        self._line = line
        self._say = say
        self._lock = threading.Lock()
        self._over, self._is_over_for_all = threading.Event(), over.is_set

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self._over.is_set() or self._is_over_for_all()

    def end(self) -> None:
        """Let nothing more come: what was found until then is not used."""
        self._over.set()

    def slowed(self, partition: TopicPartition, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """The same, each when it may come."""
        records = said = 0
        for piece in pieces:
            if self.is_over:
                return
            yield piece
            records += count_of(piece)
            if records - said >= _SAY_RECORDS:
                said = records
                self._say(partition, records)
            if self._line is not None:
                with self._lock:
                    now = time.monotonic()
                    until = self._line.reserve(size_of(piece), now)
                while not self.is_over and (left := until - time.monotonic()) > 0:
                    self._over.wait(min(left, _LOOK_SECONDS))


def _digested(records: Iterable[Piece], digest: LogDigest) -> Iterator[Piece]:
    for record in records:
        assert isinstance(record, TailRecord)  # digests are of records
        digest.take(record)
        yield record


def _within(offsets: OffsetRange, end: int) -> OffsetRange:
    """What of these offsets the log has."""
    end = min(offsets.end, end)
    return OffsetRange(min(offsets.start, end), end)


def _target_start(known: PartitionMap, first: First) -> int:
    """In front of what the map knows lie the copies of others, if it does not begin with the log."""
    holes = known.holes()
    if not holes or holes[0].source.start > 0:
        return first.target
    return first.target if holes[0].before is None else max(first.target, holes[0].before)


def _behind_copies(known: PartitionMap, begin: int) -> int:
    """Where the target has nothing any more that was made of records in front of `begin`.

    Right behind the last copy of these: in front of the next one may lie what somebody else has written.
    """
    before = known.copies_before(begin, 1)
    if before:
        return before[-1].downstream_end
    copy = known.next_copy(begin)
    return (known.target_end or 0) if copy is None else copy


def _compacting(cluster: Cluster, topics: list[str]) -> frozenset[str]:
    configs = cluster.configs(topics)
    return frozenset(
        topic
        for topic, found in configs.items()
        if (policy := found.get("cleanup.policy")) is not None and "compact" in cleanup_policies(policy.value)
    )


def _ranges(losses: Iterable[KeptLoss], topic_id: str | None, cause: LossCause) -> tuple[range, ...]:
    return tuple(
        range(kept.loss.offsets.start, kept.loss.offsets.end)
        for kept in losses
        if kept.loss.cause is cause and kept.topic_id in (None, topic_id)
    )
