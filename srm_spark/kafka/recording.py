"""What a write task of the exactly-once mode needs to record progress in the transaction of its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from srm_spark.core.codec import progress_records
from srm_spark.core.model import LogIdentity, OffsetRange, TopicPartition
from srm_spark.core.reports import PartitionReport
from srm_spark.kafka.fencing import FencingToken


@dataclass(frozen=True)
class Recording:
    """Shipped to the executors, so it holds plain values only."""

    fencing: FencingToken
    connector: str
    """First element of the progress keys."""
    source: str
    """Alias of the source."""
    progress_topic: str
    ranges: Mapping[TopicPartition, OffsetRange]
    """What the pass is to replicate."""
    target_ends: Mapping[TopicPartition, int | None]
    logs: Mapping[TopicPartition, LogIdentity]
    writers: Mapping[int, str] = field(default_factory=dict)
    """Slot → the process that wrote it last: its producer is the newest."""

    def progress(self, report: PartitionReport) -> Iterator[tuple[bytes, bytes, dict[str, bytes]]]:
        """Key, value and headers of the records that say how far a partition has come."""
        start, end = self.ranges[report.partition]
        detail = report.detail(
            OffsetRange(start, report.reached(start, end)),
            self.target_ends.get(report.partition),
            self.logs[report.partition],
        )
        return progress_records(self.connector, self.source, report.partition, detail)
