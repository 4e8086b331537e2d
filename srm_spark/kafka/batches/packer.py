"""New batches as a loop fills them, closed at about the size that is wanted, and cut where they are too large."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from srm_spark.core.intervals import FEW, Stretches
from srm_spark.core.model import OffsetRange
from srm_spark.core.record_batch import HEADER_BYTES, MAGIC, Batch, write_header
from srm_spark.errors import CodecError
from srm_spark.kafka.batches import loop_fields
from srm_spark.kafka.batches.codecs import CODECS, NONE, compress
from srm_spark.kafka.batches.ways import Way

TARGET_BYTES = 1_000_000
"""Of a new batch: as Java's producers may be told to pack, within what topics take unless they are told otherwise."""
_MOST_PER_TARGET = 8
"""A new batch has at most so many times its size when it is decompressed, however well it is compressed."""
_MARGIN = 0.9
"""How much of what a batch of before would have filled is filled: records differ."""
_MOST_STRETCHES = 4096
_ENDLESS = 2**62
Step = Callable[[Any, Any, Any, int], int]
"""A loop, which fills `out` by `state` and `stretches`, up to so many bytes: a code of `loop_fields.py`."""


class Why(str, Enum):
    """Why packing stops."""

    TOO_LARGE = "it is larger than the target topic takes, alone and compressed"
    NO_KEY = "it has no key and the target topic is compacted"
    EARLY = "its timestamp is too old for the target topic"
    LATE = "its timestamp lies too far in the future for the target topic"
    BROKEN = "its batch is damaged"
    NO_TIME = "its batch has a timestamp beyond what is counted with here"


class Stop(NamedTuple):
    """Where packing stops: everything before `offset` is packed."""

    offset: int
    why: Why
    sentence: str
    end: int
    """The offset behind what it is about: behind the record, or behind the batch that is damaged."""


@dataclass(frozen=True)
class Packed:
    """A batch to be written: complete but for its author and its checksum (`readdress`, `seal`)."""

    batch: Batch
    """Its header; the base offset is that of its first record on the source."""
    data: memoryview
    stretches: Sequence[OffsetRange]
    """Source offsets of its records, cut where one is missing."""
    content_bytes: int
    """Of keys and values; of a whole batch as it lies there."""
    last_timestamp: int
    is_whole: bool = False
    """It is as it came."""
    is_merged: bool = False
    """It is of batches that came, and nobody has looked at its records."""

    @property
    def is_unseen(self) -> bool:
        """Whether a record that the target refuses may be in it."""
        return self.is_whole or self.is_merged


def whole(batch: Batch, data: memoryview) -> Packed:
    """A batch that goes as it came."""
    offsets = OffsetRange(batch.base_offset, batch.end)
    return Packed(batch, data, (offsets,), batch.size, batch.max_timestamp, is_whole=True)


@dataclass(frozen=True)
class Packing:
    """What was packed, in order."""

    pieces: list[Packed]
    stop: Stop | None = None


class _Raw(NamedTuple):
    """Records of a new batch before they are compressed."""

    records: memoryview
    number: int
    """How many."""
    first_time: int
    max_time: int
    last_time: int
    content_bytes: int
    stretches: Sequence[OffsetRange]


class Packer:
    """Fills new batches, one behind the other."""

    def __init__(
        self,
        way: Way,
        codec: str,
        level: int | None,
        *,
        target_bytes: int,
        max_bytes: int,
        room: int = _ENDLESS,
    ) -> None:
        """All of them together have at most `room` bytes before they are compressed.

        Raises CodecError for a codec that there is not.
        """
        if codec not in CODECS:
            raise CodecError(f"there is no codec {codec!r}")
        self._way, self._codec, self._level = way, codec, level
        self._number = CODECS.index(codec)
        self._target = max(1, min(target_bytes, max_bytes) - HEADER_BYTES)
        self._max = max_bytes
        self._room = room
        self._ratio = 1.0
        """How many times smaller batches get in their codec, as far as is known."""
        self.pieces: list[Packed] = []
        self.stop: Stop | None = None
        self._numbers = np.zeros(loop_fields.STATE, np.int64)
        self._state = way.array(self._numbers)
        self._rows = np.zeros((_MOST_STRETCHES, 2), np.int64)
        self._stretches = way.array(self._rows)
        self._out = np.empty(0, np.uint8)
        self.begin_source()

    def begin_source(self, ratio: float = 1.0) -> None:
        """What comes next is read from its beginning; `ratio` is how many times smaller it was compressed."""
        self._numbers[[loop_fields.ROW, loop_fields.AT]] = 0, -1
        if not self.pieces and not self.number(loop_fields.RECORDS):
            self._ratio = ratio
            self._open()

    def number(self, place: int) -> int:
        """A number of the state."""
        return int(self._numbers[place])

    def fill(self, step: Step) -> int:
        """Let a loop go to its end: its last code, which is `FULL` where it stopped at a record that does not fit."""
        while True:
            code = step(self._place, self._state, self._stretches, self._close)
            if code != loop_fields.FULL:
                return code
            if not (self._finish_one() if self.number(loop_fields.RECORDS) else self._enlarge()):
                return code

    def finish(self, stop: Stop | None) -> Packing:
        """Close the last batch; `stop` is why there is no more. One that does not fit comes before it."""
        if self.stop is None and self.number(loop_fields.RECORDS):
            self._finish_one()
        return Packing(self.pieces, self.stop or stop)

    def _open(self) -> None:
        """Make room for a new batch."""
        self._numbers[loop_fields.UPTO : loop_fields.WANTED] = 0
        self._numbers[loop_fields.CONTENT] = 0
        scale = 1.0 if self._codec == NONE else min(max(1.0, self._ratio * _MARGIN), _MOST_PER_TARGET)
        self._close = min(int(self._target * scale), self._room)
        self._take_memory(self._close)

    def _take_memory(self, size: int) -> None:
        if self._codec == NONE or len(self._out) < HEADER_BYTES + size:
            self._out = np.empty(HEADER_BYTES + size, np.uint8)
            self._place = self._way.array(self._out[HEADER_BYTES:])

    def _enlarge(self) -> bool:
        """Make room for one record that is larger than a batch is wanted to be."""
        wanted = self.number(loop_fields.WANTED)
        if self._codec == NONE and HEADER_BYTES + wanted > self._max:
            self._stop_at(self.number(loop_fields.ASKED))
            return False
        self._close = wanted
        self._take_memory(wanted)
        return True

    def _finish_one(self) -> bool:
        numbers, used = self._numbers.tolist(), self.number(loop_fields.UPTO)
        raw = _Raw(
            self._out.data[HEADER_BYTES : HEADER_BYTES + used],
            numbers[loop_fields.RECORDS],
            numbers[loop_fields.FIRST_TIME],
            numbers[loop_fields.MAX_TIME],
            numbers[loop_fields.LAST_TIME],
            numbers[loop_fields.CONTENT],
            self._stretches_of(numbers[loop_fields.STRETCHES]),
        )
        is_fine = self._add_plain(raw) if self._codec == NONE else self._add(raw)
        self._room -= used if self._room < _ENDLESS else 0
        self._open()
        return is_fine

    def _stretches_of(self, number: int) -> Sequence[OffsetRange]:
        rows = self._rows[:number]
        return Stretches(rows.copy()) if number > FEW else tuple(map(OffsetRange._make, rows.tolist()))

    def _add_plain(self, raw: _Raw) -> bool:
        used = HEADER_BYTES + len(raw.records)
        whole = self._out.data[:used]
        self._append(raw, whole if 2 * used >= len(self._out) else memoryview(bytearray(whole)))
        return True

    def _add(self, raw: _Raw) -> bool:
        """Compress records; where they are too large, each half of them by itself."""
        packed = compress(self._codec, raw.records, self._level)
        if HEADER_BYTES + len(packed) <= self._max:
            self._ratio = len(raw.records) / len(packed)
            self._append(raw, memoryview(bytearray(HEADER_BYTES) + packed))
            return True
        if raw.number == 1:
            self._stop_at(raw.stretches[0].start)
            return False
        middle = raw.number // 2
        return all(self._add(self._part(raw, start, end)) for start, end in ((0, middle), (middle, raw.number)))

    def _part(self, raw: _Raw, start: int, end: int) -> _Raw:
        """Records `start` to before `end` of a batch, as a batch of their own."""
        size = len(raw.records) + loop_fields.LONG * raw.number
        out, numbers = np.empty(size, np.uint8), np.zeros(loop_fields.STATE, np.int64)
        numbers[loop_fields.AT] = -1
        base, (place,) = self._way.memory([raw.records])
        table = [place, place + len(raw.records), 0, raw.first_time, loop_fields.NO_STAMP, raw.number, raw.number - 1]
        array = self._way.array
        code = self._way.merge(
            base,
            array(np.array([table], np.int64)),
            array(out),
            array(numbers),
            array(np.zeros((1, 2), np.int64)),
            array(np.array([start, end, size, -_ENDLESS, _ENDLESS, 0], np.int64)),
            array(np.zeros(loop_fields.FIELDS, np.int64)),
        )
        assert code == loop_fields.DONE
        found = numbers.tolist()
        return _Raw(
            out.data[: found[loop_fields.UPTO]],
            end - start,
            found[loop_fields.FIRST_TIME],
            found[loop_fields.MAX_TIME],
            found[loop_fields.LAST_TIME],
            found[loop_fields.CONTENT],
            tuple(_cut(raw.stretches, start, end)),
        )

    def _append(self, raw: _Raw, data: memoryview) -> None:
        batch = Batch(
            at=0,
            size=len(data),
            base_offset=raw.stretches[0].start,
            magic=MAGIC,
            attributes=self._number,
            last_delta=raw.number - 1,
            base_timestamp=raw.first_time,
            max_timestamp=raw.max_time,
            records=raw.number,
        )
        write_header(data, batch)
        self.pieces.append(Packed(batch, data, raw.stretches, raw.content_bytes, raw.last_time))

    def _stop_at(self, offset: int) -> None:
        sentence = f"the record at offset {offset}: {Why.TOO_LARGE.value} ({self._max} bytes, {self._codec})"
        self.stop = Stop(offset, Why.TOO_LARGE, sentence, offset + 1)


def _cut(stretches: Iterable[OffsetRange], start: int, end: int) -> Iterator[OffsetRange]:
    """The offsets of the records `start` to before `end` of a batch."""
    for first, behind in stretches:
        count = behind - first
        if start < count and end > 0:
            yield OffsetRange(first + max(0, start), first + min(count, end))
        start -= count
        end -= count
