"""Looks at both sides of a flow for a guided move, as often as it is asked to; changes nothing unless told to."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace

from srm_spark.config.rights import acl_name
from srm_spark.config.settings import FlowSettings
from srm_spark.core.acls import Acl
from srm_spark.core.filters import NameFilter, is_replicated
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.errors import FlowError, SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Connect, connect
from srm_spark.flow.groups.checkpoints import Checkpoints
from srm_spark.flow.groups.positions import Positions, Translator
from srm_spark.flow.groups.sync import GroupSync
from srm_spark.flow.refused.quarantine import Quarantine
from srm_spark.flow.topics.lists import take_lists
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.progress import ProgressTopic
from srm_spark.plan.drain import behind
from srm_spark.plan.groups import Earlier, Judge
from srm_spark.plan.rights import WriteRights, left_in_force
from srm_spark.plan.snapshot import ClusterSnapshot, GroupMove, LossEstimate, MoveKind, Range, WriteRight
from srm_spark.plan.state import MoveState
from srm_spark.plan.undo import PutBack, put_back

_SECONDS = 15.0
"""Somebody is waiting: a cluster that does not answer in this time counts as down."""


class Preflight:
    """Both sides of one flow."""

    def __init__(
        self,
        settings: FlowSettings,
        groups: Sequence[str],
        rights: FlowSettings | None,
        reach: Connect = connect,
        *,
        may_be_empty: bool = False,
    ) -> None:
        """`groups`: names or patterns of those that move; `rights`: the flow whose copies applications may write.

        The latter is None for a failback whose other direction is not configured. `may_be_empty`: a group that is named
        may stand elsewhere.
        """
        self._ends, self._reach = reach(settings.within(_SECONDS)), reach
        self._rights = None
        if rights is not None:
            self._rights = WriteRights(rights.within(_SECONDS), allows=rights.flow == settings.flow, reach=reach)
        self._settings, target = self._ends.settings, self._ends.target
        self._names = NameFilter(tuple(groups))
        self._literal = [] if may_be_empty else literals(groups)
        self._maps = OffsetMaps(target, settings.map_topic, f"{settings.flow}|move", TargetUnavailable)
        self._translator = Translator(self._ends, self._maps)
        self._checkpoints = Checkpoints(self._ends)
        self._progress = ProgressTopic(self._settings, target)
        self._quarantine = Quarantine(settings, target, f"{settings.flow}|move-quarantine")
        self._here, self._there = self._ends.source.groups("DESCRIBE"), target.groups("READ")
        self._sync, self._lease = GroupSync(self._ends), self._ends.make_lease()
        self._source_down: str | None = None

    def close(self) -> None:
        """Let go of the connections."""
        self._lease.release()
        if self._rights is not None:
            self._rights.close()
        for part in (
            self._translator,
            self._checkpoints,
            self._progress,
            self._quarantine,
            self._here,
            self._there,
            self._sync,
            self._maps,
        ):
            part.close()

    def look(self, kind: MoveKind, earlier: Earlier, *, is_final: bool = True) -> ClusterSnapshot:
        """Everything at once. A source that does not answer is gone for good; raises TargetUnavailable."""
        take_lists(self._ends)
        try:
            return self._look(kind, earlier, is_final)
        except SourceUnavailable as error:
            self.lose_source(error)
            return self._look(kind, earlier, is_final)

    def lose_source(self, error: SourceUnavailable) -> None:
        """From now on it counts as gone."""
        self._source_down = str(error)

    def owner(self) -> str | None:
        """The driver that runs the flow."""
        return self._lease.other_owner()

    def ranges(self) -> tuple[Range, ...]:
        """How far each partition has been copied. Heartbeats are nobody's data: they never stand still."""
        self._progress.refresh()
        self._maps.refresh()
        lost = self._losses()
        self._quarantine.refresh()
        quarantined = Counter(place.partition for place in self._quarantine.entries)
        positions, source = self._progress.positions, self._ends.source
        if self._source_down is None:
            topics = {topic: count for topic, count in source.topics().items() if self._is_data(topic)}
            partitions = [TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)]
            starts = source.first_offsets(partitions, waits=False)
            ends = source.end_offsets(partitions, waits=False)
        else:
            partitions = [partition for partition in positions if self._is_data(partition.topic)]
            starts, ends = {}, {}
        remotes = {p: self._remote(p) for p in sorted(partitions)}
        target_ends = self._ends.target.end_offsets(remotes.values(), waits=False)
        return tuple(
            Range(
                partition,
                remote,
                None if (start := positions.get(partition)) is None else start.next_offset,
                ends.get(partition),
                starts.get(partition, 0),
                target_ends.get(remote),
                None if start is None or start.hold is None else start.hold.why.sentence,
                lost.get(partition, ()),
                quarantined[partition],
            )
            for partition, remote in remotes.items()
        )

    def _losses(self) -> dict[TopicPartition, tuple[OffsetRange, ...]]:
        """All that were ever found of the topics that are copied now; what was copied in the end is none of them."""
        found: defaultdict[TopicPartition, set[OffsetRange]] = defaultdict(set)
        with self._maps.lock:
            for kept in self._maps.losses.values():
                known = self._maps.maps.get(kept.partition)
                if known is None or not known.is_of_another(kept.topic_id):
                    found[kept.partition].add(kept.loss.offsets)
        return {partition: tuple(sorted(offsets)) for partition, offsets in found.items()}

    def moves(
        self,
        kind: MoveKind,
        earlier: Earlier,
        *,
        commits: bool = False,
        only: Collection[str] | None = None,
        is_final: bool = True,
    ) -> tuple[tuple[GroupMove, ...], tuple[str, ...]]:
        """What becomes, or with `commits` became, of each group; and groups whose position is not known.

        `only` these are set, where that is said: of them it is written down.
        """
        positions = self._positions()
        judge = Judge(kind, self._settings.flow, self._active(positions), earlier, is_final)
        stuck = {p.group: why for p in positions.known if (why := judge.stuck(p)) is not None}
        left = {p.group for p in positions.known if p.group in stuck or (only is not None and p.group not in only)}
        free = replace(positions, known=tuple(p for p in positions.known if p.group not in left))
        held = replace(positions, known=tuple(p for p in positions.known if p.group in left))
        verdicts = (*self._sync.sync(free, commits=commits), *self._sync.sync(held, commits=False))
        moves = judge.moves(verdicts, stuck)
        return moves, tuple(self._unknown(positions, {move.group for move in moves}))

    def _look(self, kind: MoveKind, earlier: Earlier, is_final: bool) -> ClusterSnapshot:
        ranges = self.ranges()
        moves, unknown = self.moves(kind, earlier, is_final=is_final)
        rights, unseen = self._look_at_rights()
        unknown = (*unknown, *unseen)
        return ClusterSnapshot(self._source_down, self.owner(), ranges, self._loss(ranges), moves, unknown, rights)

    def _look_at_rights(self) -> tuple[tuple[WriteRight, ...], tuple[str, ...]]:
        """Who may write copies, and why that is not known."""
        try:
            if self._rights is None:
                left = left_in_force(self._ends.source, self._settings)
                return (), () if left is None else (left,)
            return self._rights.look(), ()
        except FlowError as error:
            return (), (f"who may write remote topics is not known: {error}",)

    def set_rights(self) -> None:
        """Let applications write copies, or the flow alone again. Raises TargetUnavailable and ProgressFailed."""
        if self._rights is not None:
            self._rights.set()

    def missing_rights(self) -> tuple[Acl, ...]:
        """What `set_rights` of a failover would put in force now. Raises TargetUnavailable."""
        return () if self._rights is None else tuple(one.acl for one in self._rights.look() if not one.is_in_force)

    def withdraw_rights(self, only: Collection[Acl]) -> dict[Acl, str]:
        """Take back what a move has put in force; what is in force still, and why. Raises as `set_rights`."""
        if self._rights is None or not only:
            return {}
        with closing(WriteRights(self._rights.settings, allows=False, reach=self._reach)) as rights:
            rights.set(only)
            return {one.acl: one.refused for one in rights.look() if one.is_in_force and one.acl in only}

    def put_back(self, state: MoveState, *, commits: bool) -> tuple[PutBack, ...]:
        """Groups that a move has set, at where they stood before; as `plan/undo.py`. Raises TargetUnavailable."""
        return put_back(self._there, state, commits=commits)

    def _positions(self) -> Positions:
        if self._source_down is not None:
            self._checkpoints.refresh()
            return self._checkpoints.positions(self._names)
        names = [name for name in self._translator.groups() if self._names.matches(name)]
        return self._checkpoints.looked_up(self._translator.positions(names))

    def _active(self, positions: Positions) -> frozenset[str]:
        """Groups with members on the source; one that cannot be asked may have some."""
        if self._source_down is not None:
            return frozenset()
        active = self._here.active({position.group for position in positions.known})
        return frozenset(group for group, answer in active.items() if answer is not False)

    def _unknown(self, positions: Positions, seen: set[str]) -> list[str]:
        refused = [f"group {group}: {why}" for group, why in positions.refusals.items()]
        flow = self._settings.flow
        unseen = [
            f"group {name}: no offset of it on a topic of the flow {flow} is known"
            for name in self._literal
            if name not in seen and name not in positions.refusals
        ]
        whole = [why for why in (positions.no_way_back, positions.no_syncs) if why is not None]
        return [*refused, *unseen, *whole]

    def _loss(self, ranges: Sequence[Range]) -> LossEstimate:
        missing = {one.partition: one.missing for one in ranges}
        known = {partition: gap for partition, gap in missing.items() if gap is not None}
        progress_seconds = self._progress_seconds()
        if self._source_down is not None or len(known) < len(missing):
            return LossEstimate(None, None, progress_seconds)
        return LossEstimate(behind(ranges), self._loss_seconds(known), progress_seconds)

    def _loss_seconds(self, missing: dict[TopicPartition, OffsetRange]) -> float | None:
        asked = {partition: gap for partition, gap in missing.items() if gap.start < gap.end}
        if not asked:
            return 0.0
        first = self._ends.source.first_records(asked)
        times = [record.timestamp for record in first.values() if record is not None]
        if len(first) < len(asked) or -1 in times:
            return None
        return max(0.0, time.time() - min(times) / 1000) if times else 0.0

    def _progress_seconds(self) -> float | None:
        target, topic = self._ends.target, self._settings.progress_topic
        partitions = [TopicPartition(topic, number) for number in range(target.topics().get(topic, 0))]
        newest = max(target.newest_timestamps(partitions).values(), default=None)
        return None if newest is None else max(0.0, time.time() - newest / 1000)

    def _is_data(self, topic: str) -> bool:
        ends, target = self._ends, self._settings.flow.target
        chosen = is_replicated(topic, ends.topics, ends.policy, target, heartbeats_replicated=False)
        return chosen and not ends.policy.is_heartbeats_topic(topic)

    def _remote(self, partition: TopicPartition) -> TopicPartition:
        name = self._ends.policy.format_remote_topic(self._settings.flow.source, partition.topic)
        return TopicPartition(name, partition.partition)


def literals(groups: Sequence[str]) -> list[str]:
    """Those of names and patterns that are names."""
    return [name for pattern in groups if not (name := acl_name(pattern)).endswith("*")]
