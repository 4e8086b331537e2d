"""Records that Spark's source cannot read, though any consumer can: where the next ones lie, and how they are fixed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import takewhile

from srm_spark.config.settings import FlowSettings
from srm_spark.core.header_names import is_text
from srm_spark.core.limits import Limits, clamp
from srm_spark.core.model import OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.core.tail import TailRecord
from srm_spark.errors import SourceUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.progress import Position
from srm_spark.kafka.records import read_range
from srm_spark.spark.source import SourceRow

OVERFLOW_MS = (2**63 - 1) // 1000 + 1
"""Spark counts microseconds in 64 bits: its source throws on a record with this timestamp or a later one."""
_RECORDS_AT_ONCE = 10_000
_BYTES_AT_ONCE = 16_777_216


def is_unreadable(record: TailRecord) -> bool:
    """Whether Spark's source throws on it."""
    return record.timestamp >= OVERFLOW_MS


def unreadable(
    clusters: Clusters, positions: Mapping[TopicPartition, Position]
) -> dict[TopicPartition, PausedPartition]:
    """The first record of each partition that Spark's source cannot read, where there is one ahead of us.

    Behind one that was passed it is looked for as far as a batch goes.
    """
    offsets = clusters.source.offsets_since(positions, OVERFLOW_MS)
    passed = {p: positions[p].next_offset for p, offset in offsets.items() if offset < positions[p].next_offset}
    source_ends = clusters.source.end_offsets(passed) if passed else {}
    for partition, start in passed.items():  # the broker names the first one only
        window = OffsetRange(start, min(source_ends.get(partition, start), start + clusters.settings.batch.max_records))
        offsets.update(_unreadable_in(clusters, partition, window))
    reason = (
        f"its timestamp is {OVERFLOW_MS} ms or later (nanoseconds written as milliseconds?), which Spark's "
        "Kafka source cannot read; delete it on the source (kafka-delete-records) or let retention pass it"
    )
    why = Failure(FailureKind.TIMESTAMP_OVERFLOW, reason)
    return {p: PausedPartition(offset, why) for p, offset in offsets.items() if offset >= positions[p].next_offset}


def _unreadable_in(clusters: Clusters, partition: TopicPartition, window: OffsetRange) -> dict[TopicPartition, int]:
    with closing(clusters.source.records(partition, window)) as records:
        offset = next((record.offset for record in records if is_unreadable(record)), None)
    return {} if offset is None else {partition: offset}


def fixed_rows(
    settings: FlowSettings, partition: TopicPartition, offsets: OffsetRange, limits: Limits
) -> list[SourceRow]:
    """Unreadable records at the start of `offsets`, some at a time, as rows with a timestamp inside of the limits."""
    with closing(read_range(settings.source, settings.consumer, partition, offsets, SourceUnavailable)) as records:
        fixable = _some(takewhile(_is_fixable, records))
    if not fixable:
        return []
    now_ms = int(time.time() * 1000)
    readable = OVERFLOW_MS - 1 - now_ms
    after_ms = readable if limits.after_ms is None else min(limits.after_ms, readable)
    run = clamp(Run.of(partition, fixable), replace(limits, after_ms=after_ms), now_ms)
    stamps, headers = run.timestamps.tolist(), run.header_lists()
    return [
        (*partition, record.offset, stamp * 1000, record.key, record.value, headers_of or [])
        for record, stamp, headers_of in zip(fixable, stamps, headers, strict=True)
    ]


def _is_fixable(record: TailRecord) -> bool:
    """Spark's rows have text as names of headers."""
    return is_unreadable(record) and all(is_text(name) for name, _ in record.headers)


def _some(records: Iterable[TailRecord]) -> list[TailRecord]:
    """As many as fit into memory without a thought."""
    taken: list[TailRecord] = []
    size = 0
    for record in records:
        taken.append(record)
        size += len(record.key or b"") + len(record.value or b"")
        if len(taken) >= _RECORDS_AT_ONCE or size >= _BYTES_AT_ONCE:
            break
    return taken
