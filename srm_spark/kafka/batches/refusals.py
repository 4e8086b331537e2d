"""What the target does not take as it is: whether it is damaged, and the records in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from srm_spark.core.limits import Limits
from srm_spark.core.model import PausedPartition, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.kafka.batches.codecs import NONE
from srm_spark.kafka.batches.damage import broken_hold
from srm_spark.kafka.batches.packer import Packed, Why
from srm_spark.kafka.batches.packing import merge
from srm_spark.kafka.batches.unpacking import unpack
from srm_spark.kafka.batches.writer import BatchWriter, Lane

_ANY = Limits(max_bytes=2**31)


def judge(writer: BatchWriter, lane: Lane) -> PausedPartition | None:
    """Where a partition waits whose batch was refused for being damaged, which nobody has looked for yet.

    Where it is not, what it is refused for may fail the lane.
    """
    assert lane.refused is not None
    piece = lane.refused.piece
    hold = _damage(lane.source, piece) if piece.is_whole else None
    if hold is None:
        writer.doubt(lane)
    return hold


def records_of(partition: TopicPartition, piece: Packed) -> Iterator[Run]:
    """The records of a batch that was sent, at their offsets on the source. Raises Broken."""
    batch = piece.batch
    offsets = np.concatenate([np.arange(start, end) for start, end in piece.stretches])
    for run in unpack(partition, [(batch, piece.data)], batch.base_offset, batch.end):
        yield replace(run, offsets=offsets)


def _damage(partition: TopicPartition, piece: Packed) -> PausedPartition | None:
    end = piece.batch.end
    stop = merge(partition, [(piece.batch, piece.data)], 0, end, limits=_ANY, now_ms=0, codec=NONE).stop
    return broken_hold(stop.offset, stop.sentence) if stop is not None and stop.why is Why.BROKEN else None
