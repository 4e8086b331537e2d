"""Batches that are damaged: what shows before anybody looks inside, and how a partition waits in front of one."""

from __future__ import annotations

import crc32c

from srm_spark.core.model import PausedPartition, TopicPartition
from srm_spark.core.record_batch import CHECKED_FROM, MAGIC, Batch, Odd, OddTimes, batches_in
from srm_spark.errors import CodecError
from srm_spark.failure import Failure, FailureKind

_REMEDY = "delete it on the source (kafka-delete-records) or let retention pass it"


def sound(partition: TopicPartition, records: memoryview, end: int, found: list[Batch]) -> CodecError | None:
    """Find the batches that begin before `end`, up to one that is damaged: what is wrong with that one.

    Nothing that a header says is to be believed before its checksum is right.
    """
    try:
        for batch in batches_in(records):
            if batch.base_offset < end and batch.magic == MAGIC:
                if crc32c.crc32c(records[batch.at + CHECKED_FROM : batch.at + batch.size]) != batch.checksum:
                    raise CodecError(f"the batch at offset {batch.base_offset} is damaged: {Odd.CHECKSUM.value}")
                if not batch.codec:
                    raise CodecError(f"the batch at offset {batch.base_offset} is compressed in an unknown codec")
            found.append(batch)
    except CodecError as error:
        return error if isinstance(error, OddTimes) else CodecError(f"{partition}: {error}")
    return None


def broken_hold(offset: int, sentence: str) -> PausedPartition:
    """A partition that waits in front of a batch that is damaged."""
    return PausedPartition(offset, Failure(FailureKind.BROKEN_BATCH, f"{sentence}; {_REMEDY}"))
