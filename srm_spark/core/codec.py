"""Bytes of the records that srm-spark shares with MirrorMaker 2, and of its own progress header.

A record here is one heartbeat, checkpoint, offset sync or Connect source offset: key and value as Kafka stores them.
No I/O: clients of any kind hand the bytes in and out. The formats are those of `Heartbeat`, `Checkpoint` and
`OffsetSync` in MirrorMaker 2.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from srm_spark.core.failure_wordings import recorded
from srm_spark.core.intervals import FEW, Intervals, as_lists
from srm_spark.core.losses import loss_fields, loss_of
from srm_spark.core.model import (
    Checkpoint,
    Heartbeat,
    Interval,
    LogIdentity,
    OffsetRange,
    OffsetSync,
    PausedPartition,
    ProgressDetail,
    Provenance,
    TopicPartition,
)
from srm_spark.errors import CodecError

VERSION = 0
"""The only version of heartbeats and checkpoints; MirrorMaker 2 refuses any other."""
PROGRESS_HEADER = "srm.progress"
"""Record header of a source offset that carries the `ProgressDetail`; Connect does not look at headers."""
PROGRESS_DETAIL_VERSION = 1
PROVENANCE_HEADER = "srm-provenance"
"""Record header of a copy that says where it was first written."""
ORIGINAL_TIMESTAMP_HEADER = "srm-original-timestamp"
"""Record header of a copy whose timestamp was changed: what it was, milliseconds as decimal digits."""
_AGAIN = "again"
INTERVALS_PER_RECORD = 20_000
"""Of a progress record: about 600 KB of header; brokers refuse records above 1 MB by default."""


class EncodedRecord(NamedTuple):
    """Key and value, ready for a producer."""

    key: bytes
    value: bytes


class ProgressKey(NamedTuple):
    """Whose source offset it is: connector name, source alias, source partition."""

    connector: str
    source_alias: str
    partition: TopicPartition


class MapKey(NamedTuple):
    """Which part of a partition's offset map: its source partition and first source offset."""

    partition: TopicPartition
    start: int
    is_again: bool = False
    """It is one of second copies that do not count yet."""


def encode_heartbeat(heartbeat: Heartbeat) -> EncodedRecord:
    """Key and value of a heartbeat (`Heartbeat`)."""
    key = _string(heartbeat.source) + _string(heartbeat.target)
    return EncodedRecord(key, _pack(">hq", VERSION, heartbeat.timestamp))


def decode_heartbeat(key: bytes | None, value: bytes | None) -> Heartbeat:
    """Read a heartbeat (`Heartbeat`); anything else raises `CodecError`."""
    keys, values = _Reader("heartbeat key", key), _Reader("heartbeat value", value)
    values.version()
    return Heartbeat(source=keys.string(), target=keys.string(), timestamp=values.int64())


def encode_checkpoint(checkpoint: Checkpoint) -> EncodedRecord:
    """Key and value of a checkpoint (`Checkpoint`); a deleted one cannot be written, on purpose."""
    key = _string(checkpoint.group) + _string(checkpoint.partition.topic) + _pack(">i", checkpoint.partition.partition)
    # Clients report absent commit metadata as None; on the wire it must be "", a null makes MirrorMaker 2 throw.
    metadata = _string(checkpoint.metadata or "")
    return EncodedRecord(key, _pack(">hqq", VERSION, checkpoint.upstream, checkpoint.downstream) + metadata)


def decode_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint:
    """Read a checkpoint (`Checkpoint`); a tombstone or another version raises `CodecError`."""
    keys, values = _Reader("checkpoint key", key), _Reader("checkpoint value", value)
    values.version()
    return Checkpoint(
        group=keys.string(),
        partition=TopicPartition(keys.string(), keys.int32()),
        upstream=values.int64(),
        downstream=values.int64(),
        metadata=values.string(),
    )


def encode_offset_sync(sync: OffsetSync) -> EncodedRecord:
    """Key and value of an offset sync (`OffsetSync`); a deleted one cannot be written, on purpose."""
    key = _string(sync.partition.topic) + _pack(">i", sync.partition.partition)
    return EncodedRecord(key, _pack(">qq", sync.upstream, sync.downstream))


def decode_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync:
    """Read an offset sync (`OffsetSync`); a tombstone raises `CodecError`."""
    keys, values = _Reader("offset sync key", key), _Reader("offset sync value", value)
    partition = TopicPartition(keys.string(), keys.int32())
    return OffsetSync(partition, upstream=values.int64(), downstream=values.int64())


def encode_provenance(provenance: Provenance) -> bytes:
    """Value of the provenance header: version, alias, topic, number of further aliases, these, partition, offset.

    Types as in checkpoints: int16, strings with an int16 length, int32 and int64. The offset stands last, so the copies
    of one partition that came no further way differ in their last 8 bytes only.
    """
    first, via = _string(provenance.alias) + _string(provenance.partition.topic), provenance.via
    way = _pack(">h", len(via)) + b"".join(_string(alias) for alias in via)
    return _pack(">h", VERSION) + first + way + _pack(">iq", provenance.partition.partition, provenance.offset)


def decode_provenance(value: bytes | None) -> Provenance:
    """Read a provenance header; anything else raises `CodecError`."""
    values = _Reader("provenance header", value)
    values.version()
    alias, topic = values.string(), values.string()
    via = tuple(values.string() for _ in range(values.int16()))
    return Provenance(alias, TopicPartition(topic, values.int32()), values.int64(), via)


def progress_key(connector: str, source_alias: str, partition: TopicPartition) -> bytes:
    """Key of a Connect source offset, to the byte: MirrorMaker 2 looks it up by bytes (`OffsetStorageReaderImpl`)."""
    cluster, topic = _jackson(source_alias), _jackson(partition.topic)
    text = f'[{_jackson(connector)},{{"cluster":{cluster},"partition":{partition.partition:d},"topic":{topic}}}]'
    return _utf8(text)


def decode_progress_key(key: bytes | None) -> ProgressKey | None:
    """Read the key of a source offset; None for other connectors' keys and for spellings MirrorMaker 2 cannot find."""
    match _parse_json(key):
        case [
            str(connector),
            {"cluster": str(alias), "partition": int(number), "topic": str(topic)},
        ] if not isinstance(number, bool):
            partition = TopicPartition(topic, number)
        case _:
            return None
    # Same fields in another order or spacing are another key to Connect, and to log compaction.
    try:
        canonical = progress_key(connector, alias, partition)
    except CodecError:
        return None
    return ProgressKey(connector, alias, partition) if canonical == key else None


def progress_value(last_offset: int) -> bytes:
    """Value of a source offset: the last source offset replicated, so a reader resumes one behind it.

    -1 says that nothing was replicated yet; MirrorMaker 2 takes it for no offset at all.
    """
    if last_offset < -1:
        raise CodecError(f"source offset {last_offset} cannot be committed: it must be -1 or more")
    return _utf8(f'{{"offset":{last_offset:d}}}')


def decode_progress_value(value: bytes | None) -> int | None:
    """Last source offset replicated; None where it was reset (tombstone, null or negative)."""
    if value is None:
        return None
    match _parse_json(value):
        case None if value.strip() == b"null":
            return None
        case {"offset": None}:
            return None
        case {"offset": int(offset)} if not isinstance(offset, bool):
            return offset if offset >= 0 else None
        case _:
            raise CodecError(f'source offset value {value[:80]!r} is not {{"offset":N}}: delete or reset that offset')


def map_key(partition: TopicPartition, start: int, *, is_again: bool = False) -> bytes:
    """Key of a part of the offset map: source partition and first source offset, as compact JSON.

    That of second copies, which do not count yet, has the word `again` behind them.
    """
    fields = [partition.topic, partition.partition, start, *([_AGAIN] if is_again else [])]
    return _utf8(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))


def decode_map_key(key: bytes | None) -> MapKey | None:
    """Read the key of a part of the offset map; None for anything else."""
    match _parse_json(key):
        case [str(topic), int(number), int(start)] if not isinstance(number, bool):
            return MapKey(TopicPartition(topic, number), start)
        case [str(topic), int(number), int(start), str(word)] if word == _AGAIN and not isinstance(number, bool):
            return MapKey(TopicPartition(topic, number), start, is_again=True)
        case _:
            return None


def encode_progress_detail(detail: ProgressDetail) -> bytes:
    """Value of the `srm.progress` header: compact JSON, versioned."""
    hold = None if detail.hold is None else _hold_fields(detail.hold)
    document = {
        "v": PROGRESS_DETAIL_VERSION,
        "source": detail.source,
        "target_end": detail.target_end,
        "intervals": as_lists(detail.intervals),
        "hold": hold,
        "topic_id": detail.topic_id,
        "bytes": detail.bytes,
        "latency_ms": detail.latency_ms,
        "zero_timestamps": detail.zero_timestamps,
        "lost": [loss_fields(loss) for loss in detail.lost],
        **{name: value for name, value in detail.logs._asdict().items() if name != "topic_id" and value is not None},
        **{name: count for name, count in (("whole", detail.whole), ("merged", detail.merged)) if count},
    }
    return _utf8(json.dumps(document, separators=(",", ":"), ensure_ascii=False))


def progress_records(
    connector: str, source_alias: str, partition: TopicPartition, detail: ProgressDetail
) -> Iterator[tuple[bytes, bytes, dict[str, bytes]]]:
    """Key, value and headers of the records that say how far a partition has come; usually one."""
    key = progress_key(connector, source_alias, partition)
    for part in split_detail(detail):
        yield key, progress_value(part.source.end - 1), {PROGRESS_HEADER: encode_progress_detail(part)}


def split_detail(detail: ProgressDetail, most: int = INTERVALS_PER_RECORD) -> Iterator[ProgressDetail]:
    """Cut a detail with many intervals into several that fit into a record; together they say the same."""
    intervals, start, left = detail.intervals, detail.source.start, detail.bytes
    while len(intervals) > most:
        part, intervals = intervals[:most], intervals[most:]
        end = part[-1].upstream_end
        yield ProgressDetail(OffsetRange(start, end), part[-1].downstream_end, part, logs=detail.logs)
        start = end
    yield replace(detail, source=OffsetRange(start, detail.source.end), intervals=intervals, bytes=left)


def decode_progress_detail(header: bytes | None) -> ProgressDetail | None:
    """Read the `srm.progress` header; None when absent, malformed or of a version this reader does not know."""
    document = _parse_json(header)
    if not isinstance(document, dict) or document.get("v") != PROGRESS_DETAIL_VERSION:
        return None
    try:
        start, end = document["source"]
        return ProgressDetail(
            source=OffsetRange(_offset(start), _offset(end)),
            target_end=None if document["target_end"] is None else _offset(document["target_end"]),
            intervals=_intervals(document["intervals"], start, end),
            hold=_hold(document["hold"]),
            logs=_logs(document),
            bytes=_offset(document["bytes"]),
            latency_ms=None if document["latency_ms"] is None else int(document["latency_ms"]),
            zero_timestamps=_offset(document["zero_timestamps"]),
            lost=tuple(loss_of(fields) for fields in document["lost"]),
            whole=_offset(document.get("whole", 0)),
            merged=_offset(document.get("merged", 0)),
        )
    except (KeyError, TypeError, ValueError):
        return None


def murmur2(data: bytes) -> int:
    """Kafka's murmur2 of a record key, as the signed 32-bit number Java computes."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    whole = len(data) & ~3
    state = 0x9747B28C ^ len(data)
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        mixed = word * multiplier & mask
        mixed = (mixed ^ mixed >> 24) * multiplier & mask
        state = state * multiplier & mask ^ mixed
    if whole < len(data):
        state = (state ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    state = (state ^ state >> 13) * multiplier & mask
    state ^= state >> 15
    return state - (1 << 32) if state >> 31 else state


def partition_for_key(key: bytes, partitions: int) -> int:
    """Partition that Kafka's Java producer picks for a key; compaction needs every writer to agree."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class _Reader:
    """Takes fields off the front of a record; bytes left over belong to a later version and are ignored."""

    def __init__(self, what: str, data: bytes | None) -> None:
        self._what = what
        if data is None:
            self._fail("null; tombstones are never valid here")
        self._data = data
        self._at = 0

    def version(self) -> None:
        version = self.int16()
        if version != VERSION:
            self._fail(f"version {version}, expected {VERSION}; it was written by a newer program")

    def int16(self) -> int:
        return int(self._unpack(">h"))

    def int32(self) -> int:
        return int(self._unpack(">i"))

    def int64(self) -> int:
        return int(self._unpack(">q"))

    def string(self) -> str:
        length = self.int16()
        raw = self._data[self._at : self._at + length] if length >= 0 else b""
        if len(raw) != length:
            self._fail(f"string of length {length} at byte {self._at - 2} of {len(self._data)}")
        self._at += length
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            self._fail(f"not UTF-8: {error}")

    def _unpack(self, layout: str) -> Any:
        try:
            (number,) = struct.unpack_from(layout, self._data, self._at)
        except struct.error:
            self._fail(f"ends at byte {len(self._data)}, a number of {struct.calcsize(layout)} is due at {self._at}")
        self._at += struct.calcsize(layout)
        return number

    def _fail(self, why: str) -> NoReturn:
        raise CodecError(f"{self._what}: {why}")


def _string(text: str) -> bytes:
    raw = _utf8(text)
    if len(raw) > 0x7FFF:
        raise CodecError(f"string of {len(raw)} bytes cannot be written, at most 32767 fit: {text[:40]!r}…")
    return _pack(">h", len(raw)) + raw


def _pack(layout: str, *numbers: int) -> bytes:
    try:
        return struct.pack(layout, *numbers)
    except struct.error as error:
        raise CodecError(f"{numbers} cannot be written as {layout}: {error}") from error


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CodecError(f"{text!r} is not valid Unicode: {error.reason}") from error


def _jackson(text: str) -> str:
    """JSON string as Connect's JsonConverter spells it: capital hex digits, astral characters as two escapes."""
    return re.sub(r"\\(?:u[0-9a-f]{4}|.)|[\U00010000-\U0010ffff]", _respell, json.dumps(text, ensure_ascii=False))


def _respell(match: re.Match[str]) -> str:
    spelled = match[0]
    if spelled.startswith("\\"):
        return f"\\u{spelled[2:].upper()}" if len(spelled) > 2 else spelled
    high_and_low = spelled.encode("utf-16-be").hex().upper()
    return f"\\u{high_and_low[:4]}\\u{high_and_low[4:]}"


def _parse_json(data: bytes | None) -> Any:
    """The document, or None where there is none."""
    try:
        return None if data is None else json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def _offset(number: Any) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(number)
    return number


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _intervals(rows: Any, start: int, end: int) -> Sequence[Interval]:
    """The intervals of a header; ValueError unless they ascend on both sides within the source range."""
    if len(rows) > FEW:
        return _many_intervals(rows, start, end)
    downstream_end = 0
    intervals = tuple(Interval(_offset(source), _offset(target), _offset(count)) for source, target, count in rows)
    for interval in intervals:
        if interval.count < 1 or interval.upstream < start or interval.downstream < downstream_end:
            raise ValueError(interval)
        start, downstream_end = interval.upstream_end, interval.downstream_end
    if start > end:
        raise ValueError(intervals)
    return intervals


def _many_intervals(rows: Any, start: int, end: int) -> Intervals:
    numbers = np.array(rows)  # ValueError where they are not all of one length
    if numbers.dtype != np.int64 or numbers.ndim != 2 or numbers.shape[1] != Intervals.width:
        raise TypeError(rows)
    found = Intervals(numbers)
    if found[0].upstream < start or found[0].downstream < 0 or found[-1].upstream_end > end or not found.is_ascending:
        raise ValueError(rows)
    return found


def _hold(document: Any) -> PausedPartition | None:
    if document is None:
        return None
    return PausedPartition(_offset(document["offset"]), recorded(_text(document["reason"]), document.get("kind")))


def _hold_fields(hold: PausedPartition) -> dict[str, Any]:
    return {"offset": hold.offset, "reason": hold.why.sentence, "kind": hold.why.kind.value}


def _logs(document: Any) -> LogIdentity:
    topic_id, remote_id = document["topic_id"], document.get("remote_id")
    epoch, remote_epoch = document.get("epoch"), document.get("remote_epoch")
    return LogIdentity(
        None if topic_id is None else _text(topic_id),
        None if epoch is None else _offset(epoch),
        None if remote_id is None else _text(remote_id),
        None if remote_epoch is None else _offset(remote_epoch),
    )
