"""What is remembered of the offset syncs of one partition, and where a position lies by them: MirrorMaker 2's rules.

A sync here is the pair of offsets of one record that was copied. 64 of them are kept, close together near the newest
and far apart in the past (`OffsetSyncStore`). No I/O.
"""

from __future__ import annotations

from collections.abc import Sequence

from srm_spark.core.translation import OffsetPair

SLOTS = 64


class OffsetSyncStore:
    """Kafka's `OffsetSyncStore`, of one source partition, with the whole topic usable from its first sync on.

    MirrorMaker 2 forgets syncs from before its start where it cannot read its checkpoints; this one never does.
    """

    def __init__(self) -> None:
        self.slots: Sequence[OffsetPair] = ()
        """Newest first; neighbours are often the same sync. Empty before the first one."""

    def add(self, sync: OffsetPair) -> None:
        """Take in the next sync, in the order of the topic. One behind the newest means that copying began again."""
        if not self.slots or sync[0] < self.slots[0][0]:
            self.slots = (sync,) * SLOTS
        else:
            self.slots = _inserted(self.slots, sync)

    def nearest(self, upstream: int) -> OffsetPair | None:
        """The newest remembered sync at or before a source offset; None where all lie behind it."""
        return next((sync for sync in self.slots if sync[0] <= upstream), None)

    def downstream(self, upstream: int) -> int | None:
        """Target position of a group at `upstream`: never behind its next unread record; None where none is known.

        ```
        source  s ? ? ? ? g    s = sync, g = the group, ? = copied or not: a marker, compacted away, filtered
                │
        target  s g            so the first offset behind the sync is all that is safe
        ```
        """
        sync = self.nearest(upstream)
        return None if sync is None else sync[1] + (sync[0] < upstream)


def _inserted(old: Sequence[OffsetPair], newest: OffsetPair) -> Sequence[OffsetPair]:
    """The slots with one sync more; old ones move back where the distances of B and C are kept."""
    slots = list(old)
    slots[0] = replacement = newest
    at = 0  # the next of the old ones that may move
    for current in range(1, SLOTS):
        previous = slots[current - 1]
        while True:
            candidate = old[at]
            is_apart = _is_apart(previous, candidate, current - 1)
            fits_next = current + 1 == SLOTS or _is_apart(candidate, slots[current + 1], current)
            is_promoted = _is_recent(previous, candidate, current - 1, current) and is_apart and fits_next
            if is_promoted:
                replacement = candidate
            is_skipped = (at + 1 < SLOTS and candidate is old[at + 1]) or not is_apart
            at += is_promoted or is_skipped
            if at >= current or not is_skipped:
                break
        if _is_recent(previous, slots[current], current - 1, current):
            break  # so it is for all that follow
        slots[current] = replacement
    return slots


def _is_recent(one: OffsetPair, other: OffsetPair, i: int, j: int) -> bool:
    """Invariant B: the sync in slot j is not too old beside the one in slot i."""
    return one is other or one[0] <= other[0] + (1 << j) - (1 << i)


def _is_apart(one: OffsetPair, other: OffsetPair, i: int) -> bool:
    """Invariant C: the sync in slot i is far enough ahead of one in a later slot."""
    return one is other or one[0] >= other[0] + (1 << max(i - 2, 0))
