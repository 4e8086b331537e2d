"""Packs batches anew that do not go whole: several small ones as one, without what is not wanted of them.

```
source   [40 41 · 43] [44 45] [46 … 90]      a gap, small batches, a range that ends at 60
new      [ 0  1  2  3  4  5 … 18]            offsets 40, 41, 43 to 59
```

Keys, values and headers are copied as they are; offsets and times are counted anew. No object per record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from srm_spark.core.limits import Limits
from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import MAGIC, Batch
from srm_spark.core.rows import Run
from srm_spark.errors import CodecError
from srm_spark.kafka.batches import loop_fields
from srm_spark.kafka.batches.codecs import NONE
from srm_spark.kafka.batches.columns import columns_of
from srm_spark.kafka.batches.packer import TARGET_BYTES, Packer, Packing, Stop, Why
from srm_spark.kafka.batches.skimming import Skimmed
from srm_spark.kafka.batches.sources import Group, Groups, Source, arena, broken
from srm_spark.kafka.batches.ways import Way, best

_SPARE_IN_RECORD = 19
"""The most by which a record grows: three longer numbers."""
_ENDLESS = 2**62
_REFUSALS = {loop_fields.NO_KEY: Why.NO_KEY, loop_fields.EARLY: Why.EARLY, loop_fields.LATE: Why.LATE}


def merge(
    partition: TopicPartition,
    parts: Sequence[Source],
    start: int,
    end: int,
    *,
    limits: Limits,
    now_ms: int,
    codec: str = "",
    level: int | None = None,
    target_bytes: int = TARGET_BYTES,
    way: Way | None = None,
) -> Packing:
    """The records at offsets `start` to before `end` of consecutive batches of one partition, in new batches.

    They are of about `target_bytes`, in `codec`, or in that of the first batch. Control batches, and those that are
    said to have no records, are passed over. It stops at a record that is outside of `limits` at `now_ms`, and at a
    batch that is damaged, of which it takes nothing. Checksums are not looked at. Raises CodecError for batches of an
    old format, and for a codec or level that there is not.
    """
    wanted = list(_wanted(parts, start, end))
    old = (part[0] for part in wanted if not isinstance(part, Skimmed) and part[0].magic != MAGIC)
    if (odd := next(old, None)) is not None:
        raise CodecError(f"{partition}: the batch at offset {odd.base_offset} has message format {odd.magic}")
    way = way or best()
    codec = codec or (_codec(wanted[0]) if wanted else "") or NONE
    room = _room(wanted)
    packer = Packer(way, codec, level, target_bytes=target_bytes, max_bytes=limits.max_bytes, room=room)
    course = _Merging(way, packer, partition, _bounds(start, end, limits, now_ms))
    course.run(wanted)
    if (damage := course.damage) is None:
        return packer.finish(course.stop)
    batch, why, sentence = damage
    done = merge(
        partition,
        list(_up_to(batch, wanted)),
        start,
        batch.base_offset,
        limits=limits,
        now_ms=now_ms,
        codec=codec,
        level=level,
        target_bytes=target_bytes,
        way=way,
    )
    return Packing(done.pieces, done.stop or Stop(max(start, batch.base_offset), why, sentence, batch.end))


def _wanted(parts: Iterable[Source], start: int, end: int) -> Iterator[Source]:
    for part in parts:
        if isinstance(part, Skimmed):
            if (within := part.within(start, end)) is not None and within.records:
                yield within
        elif _is_wanted(part[0], start, end):
            yield part


def _up_to(batch: Batch, parts: Iterable[Source]) -> Iterator[Source]:
    """What lies in front of this batch, and those that were found together with it."""
    for part in parts:
        if isinstance(part, Skimmed):
            yield part
            if part.base_offset <= batch.base_offset < part.end:
                return
        elif part[0] is batch:
            return
        else:
            yield part


def _is_wanted(batch: Batch, start: int, end: int) -> bool:
    return bool(batch.records) and not batch.is_control and batch.base_offset < end and batch.end > start


def _codec(part: Source) -> str:
    return NONE if isinstance(part, Skimmed) else part[0].codec


def _room(parts: Sequence[Source]) -> int:
    """At most so many bytes of records come out of these batches, as far as that is known before."""
    if any(_codec(part) != NONE for part in parts):
        return _ENDLESS
    known = (part if isinstance(part, Skimmed) else part[0] for part in parts)
    return sum(one.size + _SPARE_IN_RECORD * one.records for one in known)


def pack(
    run: Run,
    *,
    codec: str,
    max_bytes: int,
    level: int | None = None,
    target_bytes: int = TARGET_BYTES,
    way: Way | None = None,
) -> Packing:
    """The records of a run, with the headers that they get, in new batches; stops at one that alone does not fit.

    Raises CodecError for a header without a name.
    """
    way = way or best()
    packer = Packer(way, codec, level, target_bytes=target_bytes, max_bytes=max_bytes)
    rows = columns_of(run, way)
    code = packer.fill(
        lambda out, state, stretches, close: way.pack(
            rows.keys, rows.values, rows.headers, rows.offsets, rows.timestamps, out, state, stretches, close
        )
    )
    if code not in (loop_fields.DONE, loop_fields.FULL):
        offset = packer.number(loop_fields.ASKED)
        raise CodecError(f"{run.partition}: the record at offset {offset}: {loop_fields.MEANINGS[code]}")
    return packer.finish(None)


class _Merging:
    """The course of one merge."""

    def __init__(self, way: Way, packer: Packer, partition: TopicPartition, bounds: npt.NDArray[np.int64]) -> None:
        self._way, self._packer, self._partition = way, packer, partition
        self._limits, self._bounds = bounds, way.array(bounds)
        self._fields = way.array(np.zeros(loop_fields.FIELDS, np.int64))
        self.stop: Stop | None = None
        self.damage: tuple[Batch, Why, str] | None = None
        """The batch that is damaged, and how; what was packed may hold some of its records."""

    def run(self, parts: Sequence[Source]) -> None:
        """Pack as far as it goes."""
        with arena() as memory:
            groups = Groups(self._way, parts, memory)
            try:
                for group in groups:
                    if not self._take(group):
                        break
            except CodecError as error:
                if groups.broken is None:
                    raise
                self.damage = groups.broken, Why.BROKEN, f"{self._partition}: {error}"

    def _take(self, group: Group) -> bool:
        """Pack a group: whether it is done."""
        self._packer.begin_source(group.ratio)
        code = self._packer.fill(lambda out, state, stretches, close: self._step(group, out, state, stretches, close))
        offset = self._packer.number(loop_fields.ASKED)
        if (why := _REFUSALS.get(code)) is not None:
            self.stop = Stop(offset, why, f"{self._partition}: the record at offset {offset}: {why.value}", offset + 1)
        elif code not in (loop_fields.DONE, loop_fields.FULL):
            batch = group.batch(self._packer.number(loop_fields.ROW))
            behind = batch.base_offset + self._packer.number(loop_fields.NEXT)
            why = Why.NO_TIME if code == loop_fields.BAD_TIME else Why.BROKEN
            self.damage = batch, why, broken(self._partition, batch, code, behind)
        return code == loop_fields.DONE

    def _step(self, group: Group, out: Any, state: Any, stretches: Any, close: int) -> int:
        self._limits[loop_fields.CLOSE] = close
        return self._way.merge(group.base, group.table, out, state, stretches, self._bounds, self._fields)


def _bounds(start: int, end: int, limits: Limits, now_ms: int) -> npt.NDArray[np.int64]:
    low = -_ENDLESS if limits.before_ms is None else max(-_ENDLESS, now_ms - limits.before_ms)
    high = _ENDLESS if limits.after_ms is None else min(_ENDLESS, now_ms + limits.after_ms)
    return np.array([start, end, 0, low, high, limits.needs_key], np.int64)
