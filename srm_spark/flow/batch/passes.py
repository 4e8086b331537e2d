"""How much of a batch one pass takes, so that progress is recorded every so many bytes whatever a record weighs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from srm_spark.core.bandwidth import budget
from srm_spark.core.intervals import records_in
from srm_spark.core.model import OffsetRange, ProgressDetail, TopicPartition

PROBE = 1_000
"""So many source offsets are enough to tell what a topic's records weigh."""
UNBOUNDED = 2**31 - 1
"""The value with which Spark does not look at the bytes of an Arrow batch."""


class RecordSizes:
    """Bytes per source offset of each topic, as the newest pass found them."""

    def __init__(self) -> None:
        self._bytes: dict[str, float] = {}

    def learn(self, done: Mapping[TopicPartition, ProgressDetail]) -> None:
        """Take in what a pass wrote."""
        for topic in {partition.topic for partition in done}:
            of_topic = [one for partition, one in done.items() if partition.topic == topic]
            records = sum(records_in(one.intervals) for one in of_topic)
            if records:
                self._bytes[topic] = sum(one.bytes for one in of_topic) / records

    def arrow_bounds(self, topics: Iterable[str], max_records: int, max_bytes: int) -> tuple[int, int]:
        """Records and bytes of one Arrow batch between Spark and Python.

        Spark asks every column for its size after each record to keep a bound of bytes, and the nested one of headers
        makes that ten times as dear as all the rest (docs/performance.md). So bytes are bound only for the first
        records of a topic, which tell what they weigh; from then on records are.
        """
        weights = [self._bytes.get(topic) for topic in topics]
        known = [weight for weight in weights if weight is not None]
        if len(known) < len(weights):
            return max_records, max_bytes
        return max(1, min(max_records, int(max_bytes / max(1.0, *known)))), UNBOUNDED

    def knows(self, topics: Iterable[str]) -> bool:
        """Whether it was seen of all of them what a record weighs."""
        return self._bytes.keys() >= set(topics)

    def weigh(self, ranges: Mapping[TopicPartition, OffsetRange]) -> float:
        """Bytes of `ranges`; topics of which no record was seen yet count nothing."""
        return sum((end - start) * self._bytes.get(p.topic, 0.0) for p, (start, end) in ranges.items())

    def first(
        self, ranges: Mapping[TopicPartition, OffsetRange], max_bytes: int, ranks: Mapping[str, int]
    ) -> Mapping[TopicPartition, OffsetRange]:
        """The part of `ranges` that is about `max_bytes`, topics of a lower rank before the others.

        Those behind are given a part of each pass, so that they come on, too.
        """
        part: dict[TopicPartition, OffsetRange] = {}
        waiting = sorted({ranks.get(p.topic, 0) for p in ranges})
        while waiting:
            rank = waiting.pop(0)
            own = {p: offsets for p, offsets in ranges.items() if ranks.get(p.topic, 0) == rank}
            part.update(self.affordable(own, int(budget(max_bytes - self.weigh(part), max_bytes, waiting))))
        return part

    def affordable(
        self, ranges: Mapping[TopicPartition, OffsetRange], max_bytes: int
    ) -> Mapping[TopicPartition, OffsetRange]:
        """The part of `ranges` that is about `max_bytes`, the same share of each.

        Where topics are among them of which no record was seen yet, some of theirs come first, in a pass of their own.
        """
        unknown = {p: offsets for p, offsets in ranges.items() if p.topic not in self._bytes}
        if unknown and sum(end - start for start, end in ranges.values()) > PROBE:
            return _share(unknown, PROBE / sum(end - start for start, end in unknown.values()))
        total = self.weigh(ranges)
        if total <= max_bytes:
            return ranges
        return _share(ranges, max_bytes / total)


def _share(ranges: Mapping[TopicPartition, OffsetRange], share: float) -> Mapping[TopicPartition, OffsetRange]:
    part = min(1.0, share)
    return {p: OffsetRange(start, start + math.ceil((end - start) * part)) for p, (start, end) in ranges.items()}
