"""Puts records that cannot be copied aside, one stretch at a time, so that their partition can go on behind it.

Everything before the stretch is on the target and recorded; what is put aside is acknowledged before progress passes
it. So no record behind it is written before both, and a crash leaves at worst records that are put aside once more,
which takes the place of the first time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import closing

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Writer
from srm_spark.core.limits import Route, refusal, unsized
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.quarantine import QuarantinedRecord, SourcePlace, encode_content
from srm_spark.core.tail import TailRecord
from srm_spark.core.wording import count
from srm_spark.errors import SourceUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.refused.quarantine import QuarantineWriter
from srm_spark.flow.refused.unreadable import is_unreadable
from srm_spark.kafka.batches.ways import is_used
from srm_spark.kafka.producers import codec_of
from srm_spark.kafka.records import read_range

log = logging.getLogger(__name__)

_CHUNK_RECORDS = 1000
_CHUNK_BYTES = 16_777_216
"""What is in memory at a time; one record more when that is larger."""
SECONDS = 30.0
"""Progress is recorded so often, and somebody can look whether the flow is still ours."""


class Quarantining:
    """Puts records of one generation of a flow into quarantine."""

    def __init__(
        self,
        settings: FlowSettings,
        routes: Mapping[str, Route],
        topic_ids: Mapping[str, str],
        writer: Writer,
        *,
        seconds: float = SECONDS,
    ) -> None:
        """`seconds` is how long one call may take."""
        self._settings = settings
        self._routes = routes
        self._topic_ids = topic_ids
        self._seconds = seconds
        self._store = QuarantineWriter(settings, writer)

    def put(self, partition: TopicPartition, offsets: OffsetRange, reason: Failure | None = None) -> int:
        """Put aside the records at the start of `offsets` that cannot be copied; the offset behind the last one.

        `reason` is why the first one was refused; None looks for it. What takes too long is left to the next call.
        Raises SourceUnavailable, and ProgressFailed where the store does not acknowledge.
        """
        end, deadline = offsets.start, time.monotonic() + self._seconds
        for chunk in _chunks(self._refused(partition, offsets, reason)):
            self._store.put(chunk)
            first, last = chunk[0][0], chunk[-1][0]
            end = last.place.offset + 1
            log.warning(
                "flow=%s partition=%s offsets %s to %s are in quarantine, in %s (%s): %s",
                self._settings.flow,
                partition,
                first.place.offset,
                last.place.offset,
                self._settings.quarantine_topic,
                count(len(chunk), "record"),
                first.why,
            )
            if time.monotonic() > deadline:
                break
        return end

    def _refused(
        self, partition: TopicPartition, offsets: OffsetRange, reason: Failure | None
    ) -> Iterator[tuple[QuarantinedRecord, bytes]]:
        settings, topic_id = self._settings, self._topic_ids.get(partition.topic)
        records = read_range(settings.source, settings.consumer, partition, offsets, SourceUnavailable)
        with closing(records):
            for record in records:
                known = reason if record.offset == offsets.start else None
                why = known or self._refusal(partition, record)
                if why is None:
                    return
                content = encode_content(record)
                place = SourcePlace(settings.flow, partition, topic_id, record.offset)
                now_ms = int(time.time() * 1000)
                yield (
                    QuarantinedRecord(place, why, record.timestamp, record.is_append_time, len(content), now_ms),
                    content,
                )

    def _refusal(self, partition: TopicPartition, record: TailRecord) -> Failure | None:
        if is_unreadable(record) and not is_used(self._settings.batch.in_loop):
            what = "is beyond what Spark's Kafka source reads (nanoseconds taken for milliseconds?)"
            return Failure(FailureKind.TIMESTAMP_OVERFLOW, f"the timestamp {record.timestamp} {what}")
        if (stamp := self._settings.stamp) is not None:
            headers = stamp.headers(partition, record.offset, record.headers)
            if headers is None:
                return None  # never copied
            record = record._replace(headers=tuple(headers))
        limits = self._routes[partition.topic].limits
        if codec_of(self._settings.producer, limits) is not None:
            limits = unsized(limits)  # only the target knows what it takes of a compressed one
        return refusal(partition, record, limits, int(time.time() * 1000))


def _chunks(entries: Iterator[tuple[QuarantinedRecord, bytes]]) -> Iterator[list[tuple[QuarantinedRecord, bytes]]]:
    chunk: list[tuple[QuarantinedRecord, bytes]] = []
    size = 0
    for one in entries:
        chunk.append(one)
        size += one[0].size
        if len(chunk) >= _CHUNK_RECORDS or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
