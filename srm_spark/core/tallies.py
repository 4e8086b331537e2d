"""What was copied, added up cheaply: one addition per commit of a partition, whatever its records. No I/O."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from srm_spark.core.intervals import records_in
from srm_spark.core.metrics import BOUNDS_MS, Histogram
from srm_spark.core.model import ProgressDetail


@dataclass
class Tally:
    """Of one partition or topic over some time. Latency is in milliseconds.

    A commit carries the latency of its last record only (acknowledgement minus record timestamp), and all its records
    count with that: of a commit that catches up, those before were older, and so the true latency is higher.
    """

    records: int = 0
    bytes: int = 0
    buckets: dict[int, int] = field(default_factory=dict)
    """Number of a bucket of `BOUNDS_MS` → records with a latency in it."""
    total: float = 0.0
    least: float | None = None
    most: float | None = None
    last: float | None = None
    """Latency of the newest commit that says one."""
    newest: int | None = None
    """Timestamp of the newest record that was copied, in milliseconds since the epoch; None where it is not known."""

    def commit(self, detail: ProgressDetail, at: int | None) -> None:
        """Take in what was committed at that time, in milliseconds since the epoch; None: not known."""
        records = records_in(detail.intervals)
        self.records += records
        self.bytes += detail.bytes
        if detail.latency_ms is None or not records:
            return
        if at is not None:  # progress is written right behind the acknowledgement
            # A timestamp may lie in the future, and no record is newer than its copy.
            self.newest = max(self.newest or 0, at - max(0, detail.latency_ms))
        self.latency(detail.latency_ms, records)

    def latency(self, ms: float, count: int) -> None:
        """So many took so long."""
        bucket = bisect_left(BOUNDS_MS, ms)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        self.total += ms * count
        self.least = ms if self.least is None else min(self.least, ms)
        self.most = ms if self.most is None else max(self.most, ms)
        self.last = ms

    def add(self, later: Tally) -> None:
        """Take in what came behind it."""
        self.records += later.records
        self.bytes += later.bytes
        if later.newest is not None and (self.newest is None or later.newest > self.newest):
            self.newest = later.newest
        if later.least is None or later.most is None:
            return
        for bucket, count in later.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        self.total += later.total
        self.least = later.least if self.least is None or later.least < self.least else self.least
        self.most = later.most if self.most is None or later.most > self.most else self.most
        self.last = later.last

    @property
    def histogram(self) -> Histogram:
        """The latencies."""
        counts = tuple(self.buckets.get(bucket, 0) for bucket in range(len(BOUNDS_MS) + 1))
        return Histogram(counts, self.total, self.least, self.most)
