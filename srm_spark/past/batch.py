"""One micro-batch of metrics topics: records → cells, in tasks of Spark → one commit of the table of history."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa

from srm_spark.core.history import Cells, Gathered, MetricsRecord, add_to
from srm_spark.core.history_rows import Position, cells_in, positions_in, table_of
from srm_spark.core.model import TopicPartition
from srm_spark.spark import DataFrame
from srm_spark.spark.arrow import collected
from srm_spark.state.history_table import HISTORY_COLUMNS, HistoryTable

log = logging.getLogger(__name__)


class HistoryBatch:
    """The batch function of a query that reads on from what is counted."""

    def __init__(
        self,
        table: HistoryTable,
        known: Mapping[TopicPartition, Position],
        topic_ids: Mapping[str, str],
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        """`known` is how far is counted; `topic_ids` those of the topics that are read now. Each batch calls `tidy`."""
        self._table, self._known, self._topic_ids, self._tidy = table, dict(known), topic_ids, tidy

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Count the records of a batch."""
        began = time.monotonic()
        task = partial(gather, now=int(time.time() * 1000))
        rows = collected(frame.drop("headers").mapInArrow(task, HISTORY_COLUMNS))
        cells: Cells = {}
        add_to(cells, cells_in(rows))
        positions = {
            partition: position._replace(topic_id=self._topic_ids.get(partition.topic))
            for partition, position in positions_in(rows).items()
        }
        if positions:
            self._table.add(cells, positions, self._known)
            self._known |= positions
            log.debug("batch=%d cells=%d seconds=%.1f", batch_id, len(cells), time.monotonic() - began)
            self._tidy()


def gather(batches: Iterable[pa.RecordBatch], now: int) -> Iterator[pa.RecordBatch]:
    """What a task makes of its records: rows of cells, and of how far it has read. `now` in milliseconds."""
    gathered = Gathered()
    for batch in batches:
        gathered.add(_records(batch), now)
    positions = {TopicPartition(*read): Position(end, None) for read, end in gathered.next_offsets.items()}
    yield from table_of(gathered.cells, positions).to_batches()


def _records(batch: pa.RecordBatch) -> Iterator[MetricsRecord]:
    columns = [batch.column(name).to_pylist() for name in ("topic", "partition", "offset")]
    stamps = batch.column("timestamp").cast(pa.int64()).to_pylist()  # microseconds
    times = (None if stamp is None else stamp // 1000 for stamp in stamps)
    keys, values = (batch.column(name).to_pylist() for name in ("key", "value"))
    return map(MetricsRecord, *columns, times, keys, values)
