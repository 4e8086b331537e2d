"""Which batches go as they came, which are packed anew, and where somebody has to look inside: the same decision for
whoever copies a partition.

```
came     [large] [small] [small] [small] [large] [a record that is refused] …
goes     [large] [        merged       ] [large]  stop
```
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.record_batch import MAGIC, Batch, Fit, Odd
from srm_spark.core.rows import Run
from srm_spark.kafka.batches.codecs import NONE
from srm_spark.kafka.batches.damage import broken_hold
from srm_spark.kafka.batches.packer import TARGET_BYTES, Packed, Why, whole
from srm_spark.kafka.batches.packing import merge
from srm_spark.kafka.batches.skimming import SMALL_BYTES, Skimmed
from srm_spark.kafka.batches.sources import Part, Source
from srm_spark.kafka.batches.unpacking import unpack
from srm_spark.kafka.producers import level_of

_SMALL = {NONE: SMALL_BYTES, "lz4": 20_480, "snappy": 20_480, "zstd": 8_192, "gzip": 2_048}
"""A batch of fewer bytes costs more as it is than packed anew with its neighbours: a request of its own, and what the
target's broker does for each. From which size on that is no longer so says the codec: gzip takes many times what lz4
takes for a byte.
"""
_PACKED_ANEW = frozenset({Odd.GAPS, Odd.LOG_APPEND_TIME, Odd.EDGE, Odd.SIZE, Odd.CODEC, Odd.HORIZON})
"""What does not go whole for these reasons goes in another batch."""


@dataclass(frozen=True)
class Form:
    """What batches of one source topic must become."""

    fit: Fit
    limits: Limits
    """Of the target topic, for what is packed anew."""
    codec: str = ""
    """In which that is compressed; empty for the one that it came in."""
    level: int | None = None
    batch_bytes: int = TARGET_BYTES
    """Of what is packed anew, where the target topic takes so much."""


def form_of(route: Route, options: Mapping[str, Any]) -> Form:
    """What batches must be like on a remote topic, where a producer has these options."""
    codec = str(options.get("compression.type") or route.limits.codec or "")
    size = int(options.get("batch.size", TARGET_BYTES))
    return Form(Fit(route.limits.max_bytes, codec), route.limits, codec, level_of(options), size)


@dataclass
class Sorted:
    """What becomes of consecutive batches; every offset before `next` is in a piece, or has no record."""

    next: int
    pieces: list[Packed] = field(default_factory=list)
    stop: OffsetRange | None = None
    """Offsets that somebody has to look at: from where to before which; nothing behind them was sorted."""
    hold: PausedPartition | None = None
    """A batch that is damaged, with everything in front of it in a piece."""

    @property
    def is_over(self) -> bool:
        """Whether nothing behind this can be sorted."""
        return self.stop is not None or self.hold is not None


@dataclass(frozen=True)
class Pieces:
    """Batches of one source partition, ready to be written."""

    partition: TopicPartition
    batches: list[Packed]


def sort(partition: TopicPartition, parts: Iterable[Source], start: int, end: int, form: Form) -> Sorted:
    """Sort consecutive batches, of which the records at offsets `start` to before `end` are wanted."""
    sorting = _Sorting(partition, end, form, Sorted(start))
    for part in parts:
        if sorting.found.next >= end or sorting.found.is_over:
            break
        if isinstance(part, Skimmed):
            sorting.add_several(part)
        else:
            sorting.add(*part)
    sorting.pack()
    return sorting.found


def opened(partition: TopicPartition, parts: list[Part], start: int, end: int, form: Form) -> Iterator[Run | Pieces]:
    """The same with the records of what has to be looked at, everything in order. Raises Broken."""
    at_once = 1
    while parts:
        found = sort(partition, parts, start, end, form)
        if found.pieces:
            yield Pieces(partition, found.pieces)
        if not found.is_over:
            return
        left = [part for part in parts if part[0].end > found.next]
        # Where one such record follows the other, to sort what is behind each of them anew would never end.
        inside, parts = left[:at_once], left[at_once:]
        at_once *= 2
        yield from unpack(partition, inside, found.next, end)
        start = inside[-1][0].end


@dataclass
class _Sorting:
    """The course of it."""

    partition: TopicPartition
    end: int
    form: Form
    found: Sorted
    loose: list[Source] = field(default_factory=list)
    """Batches that are to be packed anew, behind all pieces; `next` is behind them."""
    loose_from: int = 0
    """The first offset that they are about."""
    is_fine: bool = True
    """All of them might go as they came, too."""

    def add(self, batch: Batch, data: memoryview) -> None:
        """The next one."""
        found, is_readable = self.found, batch.magic == MAGIC
        if is_readable and (batch.is_control or not batch.records or batch.base_offset >= self.end):
            self._pass(batch)
            return
        if is_readable and batch.end <= found.next:
            return  # a leader gives the batch that holds the offset, and compaction may have taken that one out of it
        why = self.form.fit.odd(batch, found.next, self.end)
        if why is None and not _is_small(batch):
            self.pack()
            if not found.is_over:
                found.pieces.append(whole(batch, data))
        elif why is None or why in _PACKED_ANEW:
            self._loosen((batch, data), is_fine=why is None)
        else:
            self.pack()
            if not found.is_over:
                # Where nobody knows what the batch holds, nobody knows where it ends, either.
                end = min(batch.end, self.end) if is_readable else self.end
                found.stop = OffsetRange(found.next, end)
        if not found.is_over:
            self._pass(batch)

    def add_several(self, several: Skimmed) -> None:
        """The next ones, all of which are small; markers alone are none."""
        if several.end > self.found.next:
            if several.records:
                self._loosen(several, is_fine=False)
            self._pass(several)

    def _loosen(self, source: Source, *, is_fine: bool) -> None:
        if not self.loose:
            self.loose_from, self.is_fine = self.found.next, True
        self.loose.append(source)
        self.is_fine = self.is_fine and is_fine

    def _pass(self, batch: Batch | Skimmed) -> None:
        self.found.next = max(self.found.next, min(batch.end, self.end))

    def pack(self) -> None:
        """Pack anew what is loose, but for a single batch that need not be."""
        found, form, parts = self.found, self.form, self.loose
        self.loose = []
        if not parts:
            return
        if len(parts) == 1 and self.is_fine and not isinstance(parts[0], Skimmed):
            found.pieces.append(whole(*parts[0]))
            return
        packing = merge(
            self.partition,
            parts,
            self.loose_from,
            self.end,
            limits=form.limits,
            now_ms=int(time.time() * 1000),
            codec=form.codec,
            level=form.level,
            target_bytes=min(form.limits.batch_bytes, form.batch_bytes),
        )
        found.pieces += [replace(piece, is_merged=True) for piece in packing.pieces]
        if (stop := packing.stop) is None:
            return
        found.next = stop.offset
        if stop.why is Why.BROKEN:
            found.hold = broken_hold(stop.offset, stop.sentence)
        else:
            found.stop = OffsetRange(stop.offset, min(stop.end, self.end))


def _is_small(batch: Batch) -> bool:
    return batch.size < _SMALL.get(batch.codec, 0)
