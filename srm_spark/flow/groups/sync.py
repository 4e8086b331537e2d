"""Group offset sync: translated offsets are committed on the target while nobody consumes there.

Rules (KIP-545, `MirrorCheckpointTask`, KAFKA-19794): only groups without members; never backward over what the
group did on the target; looked at once more right before each commit, and the broker refuses it once somebody joined.
Backward where the target has lost copies and other records lie there now: a group that has not consumed there would
skip some of these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from srm_spark.core.checkpoints import GroupPartition, TranslationStatus
from srm_spark.core.cluster import Committed
from srm_spark.core.model import Checkpoint, TopicPartition
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.groups.positions import GroupPosition, Positions


class SyncState(Enum):
    """What became of one group's offset on one partition."""

    SYNCED = "synced"
    DUE = "to be synced"
    IN_STEP = "in step already"
    ACTIVE = "not synced: the group has members on the target"
    AHEAD = "not synced: the group is further on the target"
    UNTRANSLATED = "not synced: there is no translation"
    REFUSED = "not synced: the target refused it"


@dataclass(frozen=True)
class Synced:
    """The verdict on one position."""

    position: GroupPosition
    state: SyncState
    detail: str = ""
    """Why, where the state does not say everything."""
    before: int | None = None
    """What the group had committed on the target; None for nothing."""
    kind: FailureKind | None = None
    """Of the failure, where a cluster refused something."""


class _Said(NamedTuple):
    """Where a group was told to go on."""

    upstream: int
    """Where that is on the source."""
    downstream: int


WantedPositions = Mapping[TopicPartition, GroupPosition]


class GroupSync:
    """Commits on the target of one flow."""

    def __init__(self, clusters: Clusters) -> None:
        self._groups = clusters.target.groups("READ")
        self._require_lease = clusters.require_lease
        self._follows_rewinds = clusters.settings.checkpoints.rewinds_enabled
        self._ours: dict[GroupPartition, _Said] = {}
        """What we committed last: a group that still stands there has not consumed on the target."""
        self._said: dict[GroupPartition, _Said] = {}
        """What was true of the log on the target when it was said; a group stands there by itself, or has been set."""

    def learn(self, checkpoints: Mapping[GroupPartition, Checkpoint]) -> None:
        """Take in what was said of groups before, by whoever that was; what is known of them already counts more."""
        for place in checkpoints.keys() - self._said.keys():
            self._said[place] = _Said(checkpoints[place].upstream, checkpoints[place].downstream)

    def sync(self, positions: Positions, *, commits: bool = True) -> tuple[Synced, ...]:
        """Commit what is due, or only tell what would be; one verdict per position."""
        current = self._groups.offsets({position.group for position in positions.known})
        wanted: dict[str, dict[TopicPartition, GroupPosition]] = {}
        verdicts = []
        for position in positions.known:
            if position.translation.downstream is None:
                before = _offset(current[position.group].committed.get(position.remote))
                verdicts.append(Synced(position, SyncState.UNTRANSLATED, str(position.translation), before))
            else:
                wanted.setdefault(position.group, {})[position.remote] = position
        for group, mine in wanted.items():
            answer = current[group]
            if answer.refusal is not None:
                verdicts += [_refused(position, answer.refusal) for position in mine.values()]
            else:
                settled, unsettled = _parted(mine, answer.unsettled)
                verdicts += unsettled
                verdicts += self._one(group, settled, answer.committed, commits=commits)
        for one in verdicts:
            if one.state in (SyncState.SYNCED, SyncState.IN_STEP):
                said = _Said(one.position.translation.upstream, _downstream(one.position))
                self._said[_place(one.position)] = said
                if one.state is SyncState.SYNCED:
                    self._ours[_place(one.position)] = said
        return tuple(verdicts)

    def close(self) -> None:
        """Let go of the connections."""
        self._groups.close()

    def _one(
        self, group: str, wanted: WantedPositions, current: Mapping[TopicPartition, Committed], *, commits: bool
    ) -> Iterator[Synced]:
        due = {remote for remote, position in wanted.items() if self._is_due(position, current.get(remote))}
        yield from (_left(position, current.get(p)) for p, position in wanted.items() if p not in due)
        if not due:
            return
        active = self._groups.active([group])[group]
        if active is not False:
            for remote in due:
                before = _offset(current.get(remote))
                if active is True:
                    yield Synced(wanted[remote], SyncState.ACTIVE, "", before)
                else:
                    yield _refused(wanted[remote], active, before)
            return
        if not commits:
            yield from (Synced(wanted[remote], SyncState.DUE, "", _offset(current.get(remote))) for remote in due)
            return
        yield from self._commit(group, {remote: wanted[remote] for remote in due})

    def _commit(self, group: str, wanted: WantedPositions) -> Iterator[Synced]:
        answer = self._groups.offsets_at(group, wanted.keys())  # the group may have come and gone meanwhile
        if answer.refusal is not None:  # where it stands is not known, which is not the same as nowhere
            yield from (_refused(position, answer.refusal) for position in wanted.values())
            return
        now = answer.committed
        wanted, unsettled = _parted(wanted, answer.unsettled)
        yield from unsettled
        due = {p: position for p, position in wanted.items() if self._is_due(position, now.get(p))}
        yield from (_left(position, now.get(p)) for p, position in wanted.items() if p not in due)
        if not due:
            return
        offsets = {p: Committed(_downstream(position), position.committed.metadata) for p, position in due.items()}
        self._require_lease()
        for remote, refusal in self._groups.commit(group, offsets).items():
            before = _offset(now.get(remote))
            if refusal is None:
                yield Synced(due[remote], SyncState.SYNCED, "", before)
            else:
                yield _refused(due[remote], refusal, before)

    def _is_due(self, position: GroupPosition, current: Committed | None) -> bool:
        downstream = _downstream(position)
        if current is None or current.offset < downstream:
            return True
        if downstream == current.offset:
            return False
        ours = self._ours.get(_place(position))
        if self._follows_rewinds and ours is not None and ours.downstream == current.offset:
            return True
        said = self._said.get(_place(position))
        return said is not None and said.downstream == current.offset and _is_another_log(position, said)


def _is_another_log(position: GroupPosition, said: _Said) -> bool:
    """Whether the map says that what lay there is gone: no position of a log that is still there goes down by itself.

    On other ways than forward it does, behind a rewind; and where syncs say so, these may only have become coarser.
    """
    translation = position.translation
    is_known = position.is_forward and translation.status in (TranslationStatus.EXACT, TranslationStatus.AHEAD)
    return is_known and translation.upstream >= said.upstream


UNSETTLED = Failure(FailureKind.GROUP_UNANSWERED, "a transaction that may move its offset there is open")
"""Why it is not known where a group stands."""


def _parted(wanted: WantedPositions, unsettled: Collection[TopicPartition]) -> tuple[WantedPositions, list[Synced]]:
    """Without those where the group stands nobody knows where; and what is to be said of these."""
    settled = {p: position for p, position in wanted.items() if p not in unsettled}
    return settled, [_refused(wanted[p], UNSETTLED) for p in wanted.keys() - settled.keys()]


def _refused(position: GroupPosition, why: Failure, before: int | None = None) -> Synced:
    state = SyncState.ACTIVE if why.kind is FailureKind.GROUP_HAS_MEMBERS else SyncState.REFUSED
    return Synced(position, state, why.sentence, before, why.kind)


def _left(position: GroupPosition, current: Committed | None) -> Synced:
    offset = _offset(current)
    is_same = offset == position.translation.downstream
    return Synced(position, SyncState.IN_STEP if is_same else SyncState.AHEAD, "", offset)


def _offset(committed: Committed | None) -> int | None:
    return None if committed is None else committed.offset


def _place(position: GroupPosition) -> GroupPartition:
    return position.group, position.remote


def _downstream(position: GroupPosition) -> int:
    assert position.translation.downstream is not None
    return position.translation.downstream
