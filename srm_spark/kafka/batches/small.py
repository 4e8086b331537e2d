"""A few records as batches, by kafka-python: the compiled loops cost a process 120 MB and half a second to load."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from kafka.record.default_records import DefaultRecordBatchBuilder

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.record_batch import MAGIC, batches_in
from srm_spark.kafka.batches.packer import Packed

_BATCH_BYTES = 65_536
"""Any topic takes that; a record that is larger is a batch of its own."""


def small_batches(records: Iterable[ControlRecord], target_bytes: int = _BATCH_BYTES) -> Iterator[Packed]:
    """Records of one partition in order, in batches that nobody has written yet, uncompressed.

    Records without a timestamp get the time of now.
    """
    now = int(time.time() * 1000)
    builder, number = _builder(target_bytes), 0
    for record in records:
        timestamp = now if record.timestamp is None else record.timestamp
        row = (timestamp, record.key, record.value, list(record.headers.items()))
        if builder.append(number, *row) is None:
            yield _packed(builder)
            builder, number = _builder(target_bytes), 0
            builder.append(number, *row)
        number += 1
    if number:
        yield _packed(builder)


def _builder(target_bytes: int) -> DefaultRecordBatchBuilder:
    return DefaultRecordBatchBuilder(MAGIC, 0, 0, -1, -1, -1, target_bytes)


def _packed(builder: DefaultRecordBatchBuilder) -> Packed:
    data = memoryview(bytearray(builder.build()))
    (batch,) = batches_in(data)
    return Packed(batch, data, (), batch.size, batch.max_timestamp)
