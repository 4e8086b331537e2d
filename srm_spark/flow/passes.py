"""How much of a batch one pass takes, so that progress is recorded every so many bytes whatever a record weighs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from srm_spark.flow.outcome import Done
from srm_spark.model import OffsetRange, TopicPartition


class RecordSizes:
    """Bytes per source offset of each topic, as the newest pass found them."""

    def __init__(self) -> None:
        self._bytes: dict[str, float] = {}

    def learn(self, done: Mapping[TopicPartition, Done]) -> None:
        """Take in what a pass wrote."""
        for topic in {partition.topic for partition in done}:
            found = [one for partition, one in done.items() if partition.topic == topic]
            records = sum(interval.count for one in found for interval in one.intervals)
            if records:
                self._bytes[topic] = sum(one.bytes for one in found) / records

    def affordable(
        self, ranges: Mapping[TopicPartition, OffsetRange], max_bytes: int
    ) -> Mapping[TopicPartition, OffsetRange]:
        """The part of `ranges` that is about `max_bytes`, the same share of each; all while sizes are unknown."""
        total = sum((end - start) * self._bytes.get(p.topic, 0.0) for p, (start, end) in ranges.items())
        if total <= max_bytes:
            return ranges
        share = max_bytes / total
        return {p: OffsetRange(start, start + math.ceil((end - start) * share)) for p, (start, end) in ranges.items()}
