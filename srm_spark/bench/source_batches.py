"""Which batches the source's topic has, read from the headers in the broker's own files.

A workload stands and falls with them, and what a producer makes of its settings is seen nowhere else.
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from srm_spark.bench.workloads import Workload
from srm_spark.core.record_batch import Batch, batches_in

_ENOUGH = 0.95
"""Of the records have to lie in batches of their workload."""


class Kind(NamedTuple):
    """What makes no difference between two batches."""

    size: int
    records: int
    codec: str
    has_gaps: bool
    is_transactional: bool

    @classmethod
    def of(cls, batch: Batch) -> Kind:
        """A batch's kind."""
        has_gaps = batch.records != batch.last_delta + 1
        return cls(batch.size, batch.records, batch.codec, has_gaps, batch.is_transactional)


@dataclass
class SourceBatches:
    """The batches of a topic that have records, counted by kind."""

    full: Counter[Kind] = field(default_factory=Counter)
    rest: Counter[Kind] = field(default_factory=Counter)
    """The last one of each partition: what was left over."""
    markers: int = 0
    """Batches that end a transaction."""

    def add(self, partition: Iterable[Batch]) -> None:
        """Count a partition's batches."""
        newest: Kind | None = None
        for batch in partition:
            if batch.is_control:
                self.markers += 1
            elif batch.records:
                if newest is not None:
                    self.full[newest] += 1
                newest = Kind.of(batch)
        if newest is not None:
            self.rest[newest] += 1

    @property
    def records(self) -> int:
        """Of all batches."""
        return sum(kind.records * count for kind, count in (self.full + self.rest).items())

    @property
    def middle(self) -> Kind:
        """The batch that the middle record lies in where batches lie in order of their size."""
        left = self.records // 2
        for kind, count in sorted((self.full + self.rest).items()):
            left -= kind.records * count
            if left < 0:
                return kind
        raise ValueError("there are no batches")


def source_batches(data: Path, topic: str, partitions: int) -> SourceBatches:
    """Of a topic in the folder of a broker that leads all of it.

    Raises FileNotFoundError where the broker replaces a file meanwhile, as compaction does.
    """
    found = SourceBatches()
    for number in range(partitions):
        found.add(_of_partition(data / f"{topic}-{number}"))
    return found


def _of_partition(folder: Path) -> Iterator[Batch]:
    for path in sorted(folder.glob("*.log")):
        if path.stat().st_size:
            with path.open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            yield from batches_in(memoryview(content))


def misfit(workload: Workload, found: SourceBatches) -> str | None:
    """Why these are not the batches of a workload; None where they are. What was left over may be anything."""
    records = sum(kind.records * count for kind, count in found.full.items())
    fitting = sum(kind.records * count for kind, count in found.full.items() if _fits(workload, kind))
    if fitting < records * _ENOUGH:
        middle = found.middle
        return (
            f"{fitting:,} of {records:,} records lie in batches as it says, the middle one in a batch of "
            f"{middle.size:,} B with {middle.records:,} records, {middle.codec}{', with gaps' * middle.has_gaps}"
        )
    if bool(found.markers) != bool(workload.transaction):
        return f"there are {found.markers} markers of transactions"
    return None


def _fits(workload: Workload, kind: Kind) -> bool:
    count = workload.transaction or workload.batch_records
    return (
        workload.least_bytes <= kind.size <= workload.most_bytes
        and kind.records == (count or kind.records)
        and kind.codec == workload.codec
        and kind.has_gaps == workload.is_compacted
        and kind.is_transactional == bool(workload.transaction)
    )
