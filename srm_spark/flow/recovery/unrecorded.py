"""Crash recovery: records on the target that progress does not know are found and recorded before a generation starts.

A batch that died leaves them behind the recorded end of the remote partition; so does MirrorMaker 2 between two flushes
of its offsets, and a progress topic that was lost. What has landed is not copied again, and its exact map is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import islice

from srm_spark.core.limits import Route
from srm_spark.core.model import KeptLoss, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.provenance import Stamp
from srm_spark.core.tail import TailMatch, TailRecord, copies, match_scattered, match_tail, ours
from srm_spark.core.wording import count
from srm_spark.failure import FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.lost_copies import losses_behind
from srm_spark.flow.recovery.settling import Remotes, Settle
from srm_spark.flow.recovery.starts import Anchor, Start, Starts, flowing
from srm_spark.flow.topics.committer import committer_of
from srm_spark.flow.topics.losses import retract
from srm_spark.flow.topics.offset_map import Maps
from srm_spark.flow.topics.sync_history import newest_syncs
from srm_spark.kafka.fencing import FencingToken

log = logging.getLogger(__name__)

_SEARCHED = 100_000
"""Source records among which those are looked for that have a copy behind an election that cost copies. Longer than
what is under way at a time, and all of them are held in memory."""


@dataclass(frozen=True)
class _Tail:
    """Target offsets to be matched with source records, and the pair of offsets where both logs are known to meet."""

    partition: TopicPartition
    remote: TopicPartition
    source_start: int
    target: OffsetRange
    is_ours: bool
    """The anchor is our own progress record, not a guess from offset syncs or from the beginning."""
    anchors: tuple[Anchor, ...] = ()
    """Where an election may have cost copies: from where else the match may go."""


@dataclass(frozen=True)
class _Found:
    """What a tail turned out to be."""

    match: TailMatch
    is_scattered: bool = False
    """Amid it copies are missing, or it begins with copies that were taken for lost. There are some, then."""


def recover_unrecorded(
    clusters: Clusters,
    starts: Starts,
    routes: Mapping[str, Route],
    maps: Maps,
    *,
    fencing: FencingToken | None,
    stamp: Stamp | None,
    settle: Settle | None,
    quarantined: Mapping[TopicPartition, Set[int]],
    losses: Mapping[bytes, KeptLoss],
) -> Starts:
    """Move start positions behind what has landed, and record it.

    Where anything has, `settle` waits until nothing more of it comes, and gives the ends; None where that is done
    already. `stamp` is what the last writer put on its copies. What is `quarantined` has none. `losses` are those that
    are kept, by their keys.
    """
    going, remotes = flowing(starts), remotes_of(starts, routes)
    tails = _tails(clusters, going, remotes)
    if tails and settle is not None:
        ends = settle(remotes)
        going = {p: replace(start, target_end=ends.get(remotes[p], 0)) for p, start in going.items()}
        tails = _tails(clusters, going, remotes)
    anchored = {partition: _anchored(start) for partition, start in going.items()}
    source_ends = clusters.source.end_offsets([tail.partition for tail in tails])
    recovered: dict[TopicPartition, Start] = {}
    details: dict[TopicPartition, ProgressDetail] = {}
    for tail in tails:
        partition, start = tail.partition, anchored[tail.partition]
        aside = quarantined.get(partition, frozenset())
        found = _found(clusters, tail, source_ends.get(partition, 0), stamp, aside)
        recovered[partition] = _recovered(clusters, tail, start, found.match)
        if recovered[partition].paused is not None:
            continue
        # In front of a guess copies may lie: the map must not say that there are none.
        begin = min(tail.source_start, start.begin) if tail.is_ours else tail.source_start
        if found.is_scattered:
            begin = min(begin, found.match.intervals[0].upstream)
            lost = losses_behind(
                clusters.settings.flow,
                partition,
                recovered[partition],
                recorded=start.position.next_offset,
                found=found.match.intervals,
                known=maps.get(partition, PartitionMap()),
            )
            recovered[partition] = replace(recovered[partition], losses=lost)
        details[partition] = _detail(tail, recovered[partition], found.match, begin)
    if details:
        committer_of(clusters, maps, fencing).commit(details)
        retract(clusters, fencing, losses, details)
    return {**starts, **anchored, **recovered}


def remotes_of(starts: Starts, routes: Mapping[str, Route]) -> Remotes:
    """The remote partitions of all partitions that start."""
    return {p: routes[p.topic].remote(p) for p in flowing(starts)}


def _anchored(start: Start) -> Start:
    """From here on it is known where the next copy must lie."""
    if start.position.target_end is not None:
        return start
    return replace(start, position=replace(start.position, target_end=start.target_end or 0))


def _detail(tail: _Tail, start: Start, match: TailMatch, begin: int) -> ProgressDetail:
    is_known, next_offset = tail.is_ours or match.foreign is None, start.position.next_offset
    return ProgressDetail(
        source=OffsetRange(begin if is_known else next_offset, next_offset),
        target_end=start.position.target_end,
        intervals=tuple(match.intervals) if is_known else (),
        logs=start.logs,
        lost=start.losses,
    )


def _recovered(clusters: Clusters, tail: _Tail, start: Start, match: TailMatch) -> Start:
    """The start behind what was matched, which is recorded then; or a pause, where somebody else has written."""
    flow, copied = clusters.settings.flow, match.copied
    goes_on = tail.is_ours and not clusters.settings.policies.stops("foreign.writer.policy", tail.partition.topic)
    next_offset = max(match.next_offset, start.position.next_offset)
    if match.foreign is not None and goes_on:
        log.warning("flow=%s partition=%s foreign writer: %s: going on", flow, tail.partition, match.foreign)
    if match.foreign is None or goes_on:
        if copied:  # others may have written all of it
            log.info(
                "flow=%s partition=%s %s on %s unrecorded: going on at offset %s",
                flow,
                tail.partition,
                count(copied, "record"),
                tail.remote,
                next_offset,
            )
        return _moved(start, next_offset, tail.target.end)
    if tail.is_ours:
        return start.pause(
            next_offset,
            FailureKind.FOREIGN_WRITER,
            f"foreign writer: {match.foreign} ({tail.remote}): somebody else writes to the remote topic; stop that "
            f"writer, then reset this partition's progress in {clusters.settings.progress_topic} or delete the remote "
            "topic",
        )
    log.warning(
        "flow=%s partition=%s %s could not be matched (%s): going on at offset %s, records may be there twice",
        flow,
        tail.partition,
        tail.remote,
        match.foreign,
        start.position.next_offset,
    )
    return _moved(start, start.position.next_offset, tail.target.end)


def _moved(start: Start, next_offset: int, target_end: int) -> Start:
    return replace(
        start, position=replace(start.position, next_offset=next_offset, target_end=target_end), is_recorded=True
    )


def _tails(clusters: Clusters, starts: Starts, remotes: Remotes) -> list[_Tail]:
    tails: list[_Tail] = []
    guesses: dict[TopicPartition, Start] = {}
    for partition, start in starts.items():
        end, known_end = start.target_end or 0, start.position.target_end
        if start.origin.is_anew:
            continue
        if known_end is None:
            if end > 0:
                guesses[partition] = start
        elif end > (known_end if start.agreed is None else min(known_end, start.agreed.target)):
            first = start.position.next_offset if start.deleted is None else start.deleted.start
            target = OffsetRange(min(known_end, end), end)
            anchors = _anchors(start, Anchor(first, target.start))
            tails.append(_Tail(partition, remotes[partition], first, target, is_ours=True, anchors=anchors))
    return tails + _guessed(clusters, guesses, remotes)


def _anchors(start: Start, recorded: Anchor) -> tuple[Anchor, ...]:
    """From where else to look: only under another leader can the target have lost copies, or have old ones again."""
    was, now = start.position.logs.remote_epoch, start.logs.remote_epoch
    if start.agreed is not None:
        return (start.agreed, recorded)
    return () if was in (None, now) else (recorded,)


def _guessed(clusters: Clusters, starts: Starts, remotes: Remotes) -> list[_Tail]:
    """Tails of partitions whose target end was never recorded.

    From the newest offset sync; without one from the last record that MirrorMaker 2 says it has replicated; where
    nothing is recorded, from both starts.
    """
    if not starts:
        return []
    syncs = newest_syncs(clusters)
    source_first = clusters.source.first_offsets(list(starts))
    target_first = clusters.target.first_offsets([remotes[partition] for partition in starts])
    tails = []
    for partition, start in starts.items():
        remote = remotes[partition]
        sync, end = syncs.get(partition), start.target_end or 0
        first = source_first.get(partition, 0)
        if sync is not None and first <= sync.upstream and sync.downstream < end:
            tails.append(_Tail(partition, remote, sync.upstream, OffsetRange(sync.downstream, end), is_ours=False))
        elif not start.is_recorded and target_first.get(remote, 0) < end:
            log.info(
                "flow=%s partition=%s no progress is recorded: comparing %s", clusters.settings.flow, partition, remote
            )
            tails.append(_Tail(partition, remote, first, OffsetRange(target_first[remote], end), is_ours=False))
        elif start.is_recorded and start.position.next_offset > 0:
            pair = _same_time(clusters, partition, remote, start.position.next_offset - 1)
            if pair is not None and pair[1] < end:
                tails.append(_Tail(partition, remote, pair[0], OffsetRange(pair[1], end), is_ours=False))
    return tails


def _same_time(
    clusters: Clusters, partition: TopicPartition, remote: TopicPartition, offset: int
) -> tuple[int, int] | None:
    """Source and target offset of one record, by the timestamp of the source record at `offset`, which was copied.

    The first record that is not older is the same one on both sides, in whichever order timestamps are.
    """
    record = clusters.source.first_records({partition: OffsetRange(offset, offset + 1)}).get(partition)
    if record is None:
        return None
    here = clusters.source.offsets_since([partition], record.timestamp).get(partition)
    there = clusters.target.offsets_since([remote], record.timestamp).get(remote)
    return None if here is None or there is None else (here, there)


def _found(clusters: Clusters, tail: _Tail, source_end: int, stamp: Stamp | None, quarantined: Set[int]) -> _Found:
    """The match that explains most; the strict one where others do not explain more."""
    skips_foreign = tail.is_ours and not clusters.settings.policies.stops("foreign.writer.policy", tail.partition.topic)
    recorded = Anchor(tail.source_start, tail.target.start)
    source, target = _sides(clusters, tail, recorded, source_end, stamp)
    # Behind our own progress nothing is in quarantine: progress stands before the record while it is put there.
    strict = match_tail(
        (record for record in source if tail.is_ours or record.offset not in quarantined),
        target,
        tail.source_start,
        tail.target.start,
        skips_foreign=skips_foreign,
    )
    found = [_Found(strict)]
    for anchor in tail.anchors:
        if strict.foreign is not None or anchor != recorded:
            source, target = _sides(clusters, tail, anchor, source_end, stamp)
            match = match_scattered(islice(source, _SEARCHED), target, anchor.source, skips_foreign=skips_foreign)
            found.append(_Found(match, is_scattered=True))
    return max(found, key=lambda one: (one.match.foreign is None, one.match.copied))


def _sides(
    clusters: Clusters, tail: _Tail, anchor: Anchor, source_end: int, stamp: Stamp | None
) -> tuple[Iterator[TailRecord], Iterator[TailRecord]]:
    """The records of both sides from `anchor` on."""
    source: Iterator[TailRecord] = clusters.source.records(tail.partition, OffsetRange(anchor.source, source_end))
    target: Iterator[TailRecord] = clusters.target.records(tail.remote, OffsetRange(anchor.target, tail.target.end))
    if stamp is None:
        return source, target
    return copies(stamp, tail.partition, source), ours(stamp, tail.partition, target)
