"""How much of a batch one pass takes, so that progress is recorded every so many bytes whatever a record weighs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from srm_spark.flow.outcome import Done
from srm_spark.model import OffsetRange, TopicPartition

UNBOUNDED = 2**31 - 1
"""The value with which Spark does not look at the bytes of an Arrow batch."""


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

    def arrow_bounds(self, topics: Iterable[str], max_records: int, max_bytes: int) -> tuple[int, int]:
        """Records and bytes of one Arrow batch between Spark and Python.

        Spark asks every column for its size after each record to keep a bound of bytes, which costs small records a
        third of their time. So bytes are bound only until a pass has told what a record weighs, then records are.
        """
        weights = [self._bytes.get(topic) for topic in topics]
        known = [weight for weight in weights if weight is not None]
        if len(known) < len(weights):
            return max_records, max_bytes
        return max(1, min(max_records, int(max_bytes / max(1.0, *known)))), UNBOUNDED

    def affordable(
        self, ranges: Mapping[TopicPartition, OffsetRange], max_bytes: int
    ) -> Mapping[TopicPartition, OffsetRange]:
        """The part of `ranges` that is about `max_bytes`, the same share of each; all while sizes are unknown."""
        total = sum((end - start) * self._bytes.get(p.topic, 0.0) for p, (start, end) in ranges.items())
        if total <= max_bytes:
            return ranges
        share = max_bytes / total
        return {p: OffsetRange(start, start + math.ceil((end - start) * share)) for p, (start, end) in ranges.items()}
