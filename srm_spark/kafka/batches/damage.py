"""Batches that are damaged: what shows before anybody looks inside, and how a partition waits in front of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import crc32c

from srm_spark.core.model import PausedPartition, TopicPartition
from srm_spark.core.record_batch import CHECKED_FROM, HEADER_BYTES, MAGIC, Batch, Odd, OddTimes, batches_in
from srm_spark.errors import CodecError
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.batches.codecs import NONE
from srm_spark.kafka.batches.skimming import SMALL_BYTES, Skimmed, skim
from srm_spark.kafka.batches.ways import Way

_B = TypeVar("_B", Batch, Batch | Skimmed)
_REMEDY = "delete it on the source (kafka-delete-records) or let retention pass it"


def sound(partition: TopicPartition, records: memoryview, end: int, found: list[Batch]) -> CodecError | None:
    """Find the batches that begin before `end`, up to one that is damaged: what is wrong with that one.

    Nothing that a header says is to be believed before its checksum is right.
    """
    return _collect(partition, _checked(records, end), found)


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
    return _collect(partition, _sources(records, end, takes_transactions=takes_transactions, way=way), found)


def _collect(partition: TopicPartition, several: Iterator[_B], found: list[_B]) -> CodecError | None:
    try:
        for one in several:
            found.append(one)
    except CodecError as error:
        return error if isinstance(error, OddTimes) else CodecError(f"{partition}: {error}")
    return None


def _checked(records: memoryview, end: int) -> Iterator[Batch]:
    for batch in batches_in(records):
        _check(records, batch, end)
        yield batch


def _sources(records: memoryview, end: int, *, takes_transactions: bool, way: Way | None) -> Iterator[Batch | Skimmed]:
    at: int | None = 0
    while at is not None:
        batches, at = batches_in(records, at), None
        for batch in batches:
            several = _together(records, batch, end, takes_transactions=takes_transactions, way=way)
            if several is not None:
                yield several
                at = batch.at + several.size
                break
            _check(records, batch, end)
            yield batch
            if batch.base_offset >= end:
                break


def _together(
    records: memoryview, first: Batch, end: int, *, takes_transactions: bool, way: Way | None
) -> Skimmed | None:
    has_more = len(records) - first.at - first.size >= HEADER_BYTES  # the loops take half a second to load
    is_small = first.size < SMALL_BYTES and first.magic == MAGIC and first.codec == NONE
    is_taken = takes_transactions or not (first.is_transactional or first.is_control)
    if not (has_more and is_small and is_taken and first.base_offset < end):
        return None
    return skim(records[first.at :], end, takes_transactions=takes_transactions, way=way)


def _check(records: memoryview, batch: Batch, end: int) -> None:
    if batch.base_offset < end and batch.magic == MAGIC:
        if crc32c.crc32c(records[batch.at + CHECKED_FROM : batch.at + batch.size]) != batch.checksum:
            raise CodecError(f"the batch at offset {batch.base_offset} is damaged: {Odd.CHECKSUM.value}")
        if not batch.codec:
            raise CodecError(f"the batch at offset {batch.base_offset} is compressed in an unknown codec")


def broken_hold(offset: int, sentence: str) -> PausedPartition:
    """A partition that waits in front of a batch that is damaged."""
    return PausedPartition(offset, Failure(FailureKind.BROKEN_BATCH, f"{sentence}; {_REMEDY}"))
