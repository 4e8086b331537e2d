"""Batches that are damaged: what shows before anybody looks inside, and how a partition waits in front of one."""

from __future__ import annotations

import crc32c

from srm_spark.core.model import PausedPartition, TopicPartition
from srm_spark.core.record_batch import CHECKED_FROM, HEADER_BYTES, MAGIC, Batch, Odd, OddTimes, batches_in
from srm_spark.errors import CodecError
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.batches.codecs import NONE
from srm_spark.kafka.batches.skimming import SMALL_BYTES, Skimmed, skim
from srm_spark.kafka.batches.ways import Way

_REMEDY = "delete it on the source (kafka-delete-records) or let retention pass it"


def sound(partition: TopicPartition, records: memoryview, end: int, found: list[Batch]) -> CodecError | None:
    """Find the batches that begin before `end`, up to one that is damaged: what is wrong with that one.

    Nothing that a header says is to be believed before its checksum is right.
    """
    try:
        for batch in batches_in(records):
            _check(records, batch, end)
            found.append(batch)
    except CodecError as error:
        return _told(partition, error)
    return None


def sound_sources(
    partition: TopicPartition,
    records: memoryview,
    end: int,
    found: list[Batch | Skimmed],
    *,
    takes_transactions: bool,
    way: Way | None = None,
) -> CodecError | None:
    """The same, small ones together; those of transactions only where `takes_transactions` (`skim`).

    Of those that begin at `end` or behind it the first is found, too: so it is known that nothing comes before it.
    """
    at: int | None = 0
    try:
        while at is not None:
            at = _find(records, at, end, found, takes_transactions=takes_transactions, way=way)
    except CodecError as error:
        return _told(partition, error)
    return None


def _find(
    records: memoryview,
    at: int,
    end: int,
    found: list[Batch | Skimmed],
    *,
    takes_transactions: bool,
    way: Way | None,
) -> int | None:
    """Find batches from the place `at` on, up to several that are found together: where these end; None at the end."""
    for batch in batches_in(records, at):
        if batch.base_offset >= end:
            found.append(batch)
            return None
        has_more = len(records) - batch.at - batch.size >= HEADER_BYTES  # the loops take half a second to load
        is_other = (batch.is_transactional or batch.is_control) and not takes_transactions
        if has_more and batch.size < SMALL_BYTES and batch.magic == MAGIC and batch.codec == NONE and not is_other:
            several = skim(records[batch.at :], end, takes_transactions=takes_transactions, way=way)
            if several is not None:
                found.append(several)
                return batch.at + several.size
        _check(records, batch, end)
        found.append(batch)
    return None


def _check(records: memoryview, batch: Batch, end: int) -> None:
    if batch.base_offset < end and batch.magic == MAGIC:
        if crc32c.crc32c(records[batch.at + CHECKED_FROM : batch.at + batch.size]) != batch.checksum:
            raise CodecError(f"the batch at offset {batch.base_offset} is damaged: {Odd.CHECKSUM.value}")
        if not batch.codec:
            raise CodecError(f"the batch at offset {batch.base_offset} is compressed in an unknown codec")


def _told(partition: TopicPartition, error: CodecError) -> CodecError:
    return error if isinstance(error, OddTimes) else CodecError(f"{partition}: {error}")


def broken_hold(offset: int, sentence: str) -> PausedPartition:
    """A partition that waits in front of a batch that is damaged."""
    return PausedPartition(offset, Failure(FailureKind.BROKEN_BATCH, f"{sentence}; {_REMEDY}"))
