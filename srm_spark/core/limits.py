"""What a target topic accepts. Checked before a record is produced: librdkafka drops the whole batch of a refused
record and still writes what comes behind it.

Sizes are those of records as they are. Brokers count compressed bytes, so one that is too large may fit after all where
the producer compresses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from srm_spark.core.codec import ORIGINAL_TIMESTAMP_HEADER
from srm_spark.core.header_names import REPLACED, raw_name
from srm_spark.core.model import RefusedPolicy, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.core.tail import TailRecord
from srm_spark.failure import Failure, FailureKind

_BATCH_OVERHEAD = 61
"""Bytes of a record batch's header (message format 2)."""
_RECORD_OVERHEAD = 36
"""At most so many bytes of varints, attributes and lengths per record."""
_ANY_SIZE = 2**62
_SPARE = 1.25
"""Other versions and levels of a codec compress a few percent less."""
_FIXED_IN_RECORD = 3
"""Attributes, and the deltas of timestamp and offset of a batch's first record."""
_MARGIN_MS = 600_000
"""How far inside the limits a fixed timestamp lies, at most: brokers compare it later, by their own clocks."""


@dataclass(frozen=True)
class Limits:
    """Limits of one target topic; None is no limit."""

    max_bytes: int = 1_048_588
    """`max.message.bytes`: of a whole record batch."""
    before_ms: int | None = None
    """`message.timestamp.before.max.ms`; ages beyond it are refused."""
    after_ms: int | None = None
    """`message.timestamp.after.max.ms`; later ones are refused."""
    needs_key: bool = False
    """Compacted topics refuse records without a key."""
    codec: str = ""
    """`compression.type`, where it is a codec; the broker would compress anew what comes in another one."""
    keeps_batches: bool = True
    """`compression.type` is `producer`: the broker stores batches as they come."""

    @property
    def batch_bytes(self) -> int:
        """Largest `batch.size` that no batch of this topic may exceed, rounded so that few producers serve all."""
        for size in (1_000_000, 500_000, 100_000, 16_384):
            if size + _BATCH_OVERHEAD <= self.max_bytes:
                return size
        return 1


@dataclass(frozen=True)
class Route:
    """Where the records of one source topic go."""

    remote_topic: str
    limits: Limits
    policy: RefusedPolicy = RefusedPolicy.HOLD
    """For records outside of these limits."""

    def remote(self, partition: TopicPartition) -> TopicPartition:
        """Where the records of a source partition go."""
        return TopicPartition(self.remote_topic, partition.partition)


def first_refused(run: Run, limits: Limits, now_ms: int) -> tuple[int, Failure] | None:
    """Index in the run of the first record that the topic would refuse, with the reason; None if it takes all."""
    refusals: list[tuple[int, Failure]] = []
    if limits.needs_key and run.keys.null_count:
        index = int(np.argmax(run.keys.is_null().to_numpy(zero_copy_only=False)))
        refusals.append((index, Failure(FailureKind.NO_KEY, "the record has no key and the target topic is compacted")))
    refusals.extend(_bad_timestamps(run, limits, now_ms))
    refusals.extend(_replaced_names(run))
    sizes = run.sizes()
    suspects = np.flatnonzero(sizes + (_BATCH_OVERHEAD + _RECORD_OVERHEAD) > limits.max_bytes)
    for index in suspects.tolist():
        size = _exact_size(run, index)
        if size > limits.max_bytes:
            reason = f"the record takes {size} bytes and the target topic's max.message.bytes is {limits.max_bytes}"
            refusals.append((index, Failure(FailureKind.TOO_LARGE, reason)))
            break
    return min(refusals, key=itemgetter(0)) if refusals else None


def refusal(partition: TopicPartition, record: TailRecord, limits: Limits, now_ms: int) -> Failure | None:
    """Why the topic would refuse a record, with the headers that its copy gets; None if it takes it."""
    refused = first_refused(Run.of(partition, [record]), limits, now_ms)
    return None if refused is None else refused[1]


def is_too_large_only(run: Run, limits: Limits, now_ms: int) -> bool:
    """Whether nothing but their size speaks against records."""
    return first_refused(run, unsized(limits), now_ms) is None


def unsized(limits: Limits) -> Limits:
    """The same for records of any size."""
    return replace(limits, max_bytes=_ANY_SIZE)


def will_fit(run: Run, limits: Limits, codec: str) -> bool:
    """Whether the only record of `run` fits for certain in that codec: compressed here, with room to spare."""
    if codec != limits.codec and not limits.keeps_batches:
        return False
    ((key, value, _, headers),) = run.records()
    fields = [key, value, *(field for name, content in headers or () for field in (raw_name(name), content))]
    content = b"".join(field for field in fields if field is not None)
    compressed = len(pa.Codec(codec).compress(content)) + _BATCH_OVERHEAD + _RECORD_OVERHEAD + 10 * len(fields)
    return compressed * _SPARE <= limits.max_bytes


def clamp(run: Run, limits: Limits, now_ms: int) -> Run:
    """Timestamps outside of the limits are moved inside; one more header of these records says what they were."""
    early, late = _early(run, limits, now_ms), _late(run, limits, now_ms)
    changed = early | late
    if not changed.any():
        return run
    timestamps = run.timestamps.copy()
    if limits.before_ms is not None and early.any():
        timestamps[early] = now_ms - limits.before_ms + min(_MARGIN_MS, limits.before_ms // 2)
    if limits.after_ms is not None and late.any():
        timestamps[late] = now_ms + limits.after_ms - min(_MARGIN_MS, limits.after_ms // 2)
    headers = [each or [] for each in run.header_lists()]
    for index in np.flatnonzero(changed).tolist():
        original = str(int(run.timestamps[index])).encode()
        headers[index] = [*headers[index], (ORIGINAL_TIMESTAMP_HEADER, original)]
    return replace(run, timestamps=timestamps, stamped=headers)


def _bad_timestamps(run: Run, limits: Limits, now_ms: int) -> list[tuple[int, Failure]]:
    refusals: list[tuple[int, Failure]] = []
    early, late = _early(run, limits, now_ms), _late(run, limits, now_ms)
    if early.any():
        index = int(np.argmax(early))
        key = f"message.timestamp.before.max.ms is {limits.before_ms}"
        sentence = f"the timestamp {run.timestamps[index]} is too old: the target topic's {key}"
        refusals.append((index, Failure(FailureKind.TIMESTAMP_OUT_OF_RANGE, sentence)))
    if late.any():
        index = int(np.argmax(late))
        key = f"message.timestamp.after.max.ms is {limits.after_ms}"
        sentence = f"the timestamp {run.timestamps[index]} lies in the future: the target topic's {key}"
        refusals.append((index, Failure(FailureKind.TIMESTAMP_OUT_OF_RANGE, sentence)))
    return refusals


def _replaced_names(run: Run) -> list[tuple[int, Failure]]:
    """The first name of a header that Spark's source may have changed."""
    if not (run.is_decoded and run.has_headers and pc.any(pc.match_substring(run.names, REPLACED)).as_py()):
        return []
    for index, headers in enumerate(run.header_lists()):
        for name, _ in headers or ():
            if REPLACED in name:
                reason = f"the name of its header {name!a} may not be UTF-8, and Spark's Kafka source decodes names"
                reason = f"{reason}; pip install 'srm-spark[compiled]', which reads it as it is"
                return [(index, Failure(FailureKind.HEADER_NAME, reason))]
    return []


def _early(run: Run, limits: Limits, now_ms: int) -> npt.NDArray[np.bool_]:
    if limits.before_ms is None:
        return np.zeros(run.count, np.bool_)
    # -1 is no timestamp; the producer sends now
    return (run.timestamps >= 0) & (run.timestamps < now_ms - limits.before_ms)


def _late(run: Run, limits: Limits, now_ms: int) -> npt.NDArray[np.bool_]:
    if limits.after_ms is None:
        return np.zeros(run.count, np.bool_)
    return run.timestamps > now_ms + limits.after_ms


def _exact_size(run: Run, index: int) -> int:
    """Bytes of the batch that holds this record alone and uncompressed, as the broker counts them."""
    key, value, _, headers = next(run.slice(index, index + 1).records())
    pairs = [(raw_name(name), content) for name, content in headers or ()]
    fields = [key, value, *(field for pair in pairs for field in pair)]
    body = _FIXED_IN_RECORD + _varint(len(pairs)) + sum(_field(field) for field in fields)
    return _BATCH_OVERHEAD + _varint(body) + body


def _field(content: str | bytes | None) -> int:
    return 1 if content is None else _varint(len(content)) + len(content)


def _varint(number: int) -> int:
    """Bytes of a length in Kafka's format: zigzag, seven bits a byte."""
    return max(1, ((2 * number).bit_length() + 6) // 7)
