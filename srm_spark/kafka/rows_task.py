"""Writes rows that Spark's source has read, inside an executor, unless their topics are others by now."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from srm_spark.kafka.clients import LastError
from srm_spark.kafka.fetch import Fetch
from srm_spark.kafka.producers import options_key
from srm_spark.kafka.topic_ids import TopicIds
from srm_spark.kafka.writer import WriteTask


@dataclass(frozen=True)
class RowsTask:
    """What every task of one pass does; shipped to the executors, so it holds plain values only."""

    fetch: Fetch
    """How the source is reached, and of which topics the rows are."""
    write: WriteTask

    def __call__(self, batches: Iterator[pa.RecordBatch], slot: int = 0) -> Iterator[pa.RecordBatch]:
        """Write all rows; yields one batch of report rows.

        Raises SourceChanged where a topic was created anew or is gone, SourceUnavailable where nobody says so.
        """
        return self.write(self._of_these_topics(batches), slot)

    def _of_these_topics(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches, each looked at once it is here, before it is written: Spark knows topics by their names alone."""
        for batch in batches:
            if batch.num_rows and self.fetch.topic_ids:
                _asking(self.fetch).check(self.fetch.topic_ids, self.fetch.cluster, self.fetch.timeout)
            yield batch


_lock = threading.Lock()
_kept: dict[object, TopicIds] = {}
"""By the options of their client: one lasts as long as its process."""


def _asking(fetch: Fetch) -> TopicIds:
    with _lock:
        key = options_key(fetch.options)
        if key not in _kept:
            _kept[key] = TopicIds(fetch.options, LastError())
        return _kept[key]
