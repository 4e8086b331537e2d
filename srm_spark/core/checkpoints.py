"""Where a group stands on the other side, and which checkpoints have to be written for it. No I/O.

A position here is a group's committed offset on a source partition; its checkpoint says where the same group would go
on in the remote partition: at the first record that it has not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from srm_spark.core.model import Checkpoint, TopicPartition
from srm_spark.core.offset_map import Hole, PartitionMap
from srm_spark.core.offset_sync_store import OffsetSyncStore

GroupPartition = tuple[str, TopicPartition]
"""A consumer group on one partition of the target."""


class TranslationStatus(Enum):
    """How well a position could be translated."""

    EXACT = "exact"
    AHEAD = "ahead of replication: translated up to where replication stands"
    EMPTY = "no record was replicated yet"
    UNMAPPED = "the partition is not replicated yet"
    SAMPLED = "by an offset sync"
    UNKNOWN = "copied by somebody else, or before the offset map begins"
    CHECKPOINT = "as its newest checkpoint says"
    BEYOND = "the remote partition ends before it: it was truncated or created anew"


OUTSIDE_THE_MAP = (TranslationStatus.EMPTY, TranslationStatus.UNMAPPED, TranslationStatus.UNKNOWN)
"""Positions of which our map cannot tell; somebody else may have copied those records."""


@dataclass(frozen=True)
class Translation:
    """A position on both sides; no `downstream` where there is none, and `status` says why."""

    status: TranslationStatus
    upstream: int
    downstream: int | None = None
    reread: int = 0
    """Records of the source that may be read again, at most; 0 where the position is exact."""

    def __str__(self) -> str:
        """How good the translation is, or why there is none."""
        text = self.status.value
        return (
            f"{text}: up to {self.reread} records are read again" if self.status is TranslationStatus.SAMPLED else text
        )


def translate(known: PartitionMap | None, upstream: int, target_end: int | None) -> Translation:
    """Translate one position by the exact map; `target_end` is the end of the remote partition.

    A partition that has never held a record translates 0 to 0, and nothing else does while no record was replicated
    (`MirrorConnectorsIntegrationBaseTest`). A group that read further than replication went is translated as
    far as replication went: what it has read beyond that is not on the target.
    """
    source = None if known is None else known.source
    if known is None or source is None:
        return Translation(TranslationStatus.UNMAPPED, upstream)
    if not known.has_records and (source.end, upstream, known.target_end) != (0, 0, 0):
        return Translation(TranslationStatus.EMPTY, upstream)
    downstream = known.downstream(min(upstream, source.end))
    if downstream is None:
        return Translation(TranslationStatus.UNKNOWN, upstream)
    if target_end is not None and downstream > target_end:
        return Translation(TranslationStatus.BEYOND, upstream)
    if upstream > source.end:
        return Translation(TranslationStatus.AHEAD, source.end, downstream)
    return Translation(TranslationStatus.EXACT, upstream, downstream)


def sample(store: OffsetSyncStore, upstream: int, limit: int, hole: Hole | None = None) -> Translation | None:
    """Translate, by offset syncs, a position that the exact map does not know; None where they cannot tell.

    It goes on behind the last sync that the group has passed (`OffsetSyncStore`), or where the exact map ends
    in front of its `hole`: nothing is skipped. Beyond `limit`, an offset of the target that must lie behind it, the
    syncs speak of a topic that is no longer there.
    """
    sync, downstream = store.nearest(upstream), store.downstream(upstream)
    if downstream is not None and downstream > limit:
        sync = downstream = None
    if hole is not None and 0 < hole.after <= limit and (downstream is None or downstream < hole.after):
        return Translation(TranslationStatus.SAMPLED, upstream, hole.after, upstream - hole.source.start)
    if sync is None or downstream is None:
        return None
    return Translation(TranslationStatus.SAMPLED, upstream, downstream, max(0, upstream - sync[0] - 1))


def by_checkpoint(translation: Translation, last: Checkpoint | None, target_end: int) -> Translation:
    """`found`, unless the group's own newest checkpoint knows more of a position that the exact map does not know.

    MirrorMaker 2 left it, or we did while the offset syncs behind it were still there. It was true of a group that had
    read less or as much, so nothing is skipped.
    """
    if translation.status not in (*OUTSIDE_THE_MAP, TranslationStatus.SAMPLED):
        return translation
    if last is None or last.upstream > translation.upstream or last.downstream > target_end:
        return translation
    if translation.downstream is not None and translation.downstream >= last.downstream:
        return translation
    return Translation(TranslationStatus.CHECKPOINT, translation.upstream, last.downstream)


def translate_back(known: PartitionMap | None, downstream: int, source_end: int | None) -> Translation:
    """The same for a group that reads a remote topic and goes back to the source; `source_end` is the end there.

    `upstream` of the answer is where the group stands on the remote topic, `downstream` where it would go on.
    """
    source = None if known is None else known.source
    if known is None or source is None:
        return Translation(TranslationStatus.UNMAPPED, downstream)
    end = known.target_end
    if end is None or (not known.has_records and (source.end, downstream, end) != (0, 0, 0)):
        return Translation(TranslationStatus.EMPTY, downstream)
    upstream = known.upstream(min(downstream, end))
    if upstream is None:
        return Translation(TranslationStatus.UNKNOWN, downstream)
    if source_end is not None and upstream > source_end:
        return Translation(TranslationStatus.BEYOND, downstream)
    return Translation(
        TranslationStatus.AHEAD if downstream > end else TranslationStatus.EXACT, min(downstream, end), upstream
    )


def is_news(checkpoint: Checkpoint, last: Checkpoint | None) -> bool:
    """Whether a checkpoint must be written after `last`: monotonic unless the group rewound (`MirrorCheckpointTask`).

    MirrorMaker 2 keeps one back whose target offset did not move; ours is written when only the source side moved,
    too, so that a reader can tell how far the group is.
    """
    if last is None or checkpoint.upstream < last.upstream:
        return True
    if checkpoint.downstream < last.downstream:
        return False
    return checkpoint != last
