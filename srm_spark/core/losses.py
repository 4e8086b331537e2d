"""Bytes of losses: in the header of a progress record, and as records of their own in the topic of the offset map.

A record here is one loss. Progress records are compacted, but what was lost is to be known for ever: each has a key.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from srm_spark.core.compact_json import compact_json
from srm_spark.core.model import Interval, KeptLoss, Loss, LossCause, OffsetRange, TopicPartition

_VERSION = 1
_KIND = "loss"


def loss_fields(loss: Loss) -> list[Any]:
    """A loss as JSON: source start and end, then the cause unless it is `deleted`, and target start and end."""
    if loss.cause is LossCause.DELETED:
        return [*loss.offsets]
    return [*loss.offsets, loss.cause.value, *(loss.target or ())]


def loss_of(fields: Sequence[Any]) -> Loss:
    """Read `loss_fields`. Raises ValueError or TypeError where they are none."""
    start, end, cause, *target = fields if len(fields) > 2 else (*fields, LossCause.DELETED)
    if not 0 <= start < end:
        raise ValueError((start, end))
    return Loss(OffsetRange(start, end), LossCause(cause), OffsetRange._make(target) if target else None)


def loss_key(partition: TopicPartition, topic_id: str | None, loss: Loss) -> bytes:
    """Key of a kept loss, compact JSON; the same loss found a second time has the same key."""
    return compact_json([_KIND, *partition, topic_id, loss.cause.value, *loss.offsets])


def loss_value(loss: Loss, found_at: int) -> bytes:
    """Value of a kept loss: target offsets of the copies, and when it was found (ms since the epoch)."""
    return compact_json({"v": _VERSION, "target": loss.target, "found_at": found_at})


def decode_loss(key: bytes | None, value: bytes | None) -> KeptLoss | None:
    """Read a kept loss; None for anything else, and for a version that this reader does not know."""
    try:
        kind, topic, number, topic_id, cause, start, end = json.loads(key or b"")
        document = json.loads(value or b"")
        if kind != _KIND or document["v"] != _VERSION:
            return None
        loss = loss_of([start, end, cause, *(document["target"] or ())])
        return KeptLoss(TopicPartition(topic, number), loss, topic_id, int(document["found_at"]))
    except (KeyError, TypeError, ValueError):
        return None


def rests(kept: KeptLoss, copies: Iterable[Interval], causes: Collection[LossCause]) -> list[KeptLoss] | None:
    """What of a loss is still one where `copies`, which are in order, are there after all, since when it was.

    None where it stays as it is: of another cause than these, or nothing of it was copied.
    """
    if kept.loss.cause not in causes:
        return None
    left = list(uncovered(kept.loss.offsets, copies))
    if left == [kept.loss.offsets]:
        return None
    return [replace(kept, loss=replace(kept.loss, offsets=offsets)) for offsets in left]


def uncovered(offsets: OffsetRange, intervals: Iterable[Interval]) -> Iterator[OffsetRange]:
    """Stretches of source offsets that none of the intervals, which are in order, covers."""
    at = offsets.start
    for interval in intervals:
        if at < min(interval.upstream, offsets.end):
            yield OffsetRange(at, min(interval.upstream, offsets.end))
        at = max(at, interval.upstream_end)
    if at < offsets.end:
        yield OffsetRange(at, offsets.end)
