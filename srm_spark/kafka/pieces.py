"""Reads a range of a partition to compare it: batches as they lie there, or records where a client library has to read.

That one reads where compiled loops cannot run, where its login alone is made, and logs of old message formats.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.pieces import Piece, Sealed
from srm_spark.core.record_batch import HEADER_BYTES
from srm_spark.errors import FlowError, SourceUnavailable
from srm_spark.kafka.batches.runs import RunReader
from srm_spark.kafka.batches.sources import Part
from srm_spark.kafka.batches.unpacking import unpack
from srm_spark.kafka.clients import options
from srm_spark.kafka.fetch import Fetch, fetch_options
from srm_spark.kafka.ranges import brokers_of, lent
from srm_spark.kafka.records import read_range

_LOOK_SECONDS = 0.2
_SILENT_SECONDS = 60.0
_WAIT_MS = 10
_ONE_RECORD = {"fetch.max.bytes": "65536", "max.partition.fetch.bytes": "65536"}
"""Where nobody wants its neighbours; a larger batch comes all the same."""
_COMMITTED = {"isolation.level": "read_committed"}


def read_pieces(
    cluster: ClusterSettings,
    properties: Mapping[str, str],
    partition: TopicPartition,
    offsets: OffsetRange,
    error: type[FlowError],
    *,
    role: str,
) -> Generator[Piece]:
    """What is in `offsets`, in order; ends behind the last record even if markers or compacted offsets follow it.

    `role` is part of the client id, which quotas and broker logs show.
    Raises `error` where the cluster refuses, gives nothing for a minute, or has a batch that is damaged.
    """
    # Named after what is done, not after the partition: the next one uses the same connections.
    fitting = _ONE_RECORD if offsets.end - offsets.start == 1 else {}
    rendered = options(cluster, {**_COMMITTED, **properties, **fitting}, f"{role}|pieces")
    fetch = Fetch(fetch_options(rendered), cluster.alias, _SILENT_SECONDS)
    brokers = brokers_of(fetch)
    if brokers is None:
        yield from read_range(cluster, properties, partition, offsets, error)
        return
    reader = RunReader(brokers, fetch, {partition: offsets}, wait_ms=_WAIT_MS)
    try:
        with lent(fetch, brokers, reader):
            yield from _sealed(reader, partition, offsets)
            left = reader.hand_over()
    except SourceUnavailable as failure:
        raise (failure if error is SourceUnavailable else error(str(failure))) from None
    if (hold := reader.holds.get(partition)) is not None:
        raise error(f"cluster {cluster.alias}: {partition} cannot be read at offset {hold.offset}: {hold.why}")
    if partition in left:
        yield from read_range(cluster, properties, partition, left[partition], error)


def _sealed(reader: RunReader, partition: TopicPartition, offsets: OffsetRange) -> Generator[Piece]:
    silent_since = time.monotonic()
    while reader.is_busy:
        for part in reader.parts(_LOOK_SECONDS):
            if part[0].records and not part[0].is_control:
                yield _seal(partition, part, offsets)
            silent_since = time.monotonic()  # behind who took it: that may have lasted, and is no silence
        silent_since = max(silent_since, reader.moved_at)
        if reader.is_gone or (reader.is_busy and time.monotonic() - silent_since > _SILENT_SECONDS):
            raise SourceUnavailable(reader.silence(time.monotonic() - silent_since))


def _seal(partition: TopicPartition, part: Part, offsets: OffsetRange) -> Sealed:
    batch, data = part
    start, end = offsets
    return Sealed(
        batch, data[HEADER_BYTES : batch.size], start, end, lambda: list(unpack(partition, [part], start, end))
    )
