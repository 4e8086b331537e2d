"""The Delta table of one flow's losses: a row per range of offsets that one side has no longer, or never got."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from srm_spark.core.model import Flow, KeptLoss
from srm_spark.spark import SparkSession
from srm_spark.spark.arrow import frame_of
from srm_spark.state.map_table import PROPERTIES

_SCHEMA = pa.schema(
    [
        ("flow", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("cause", pa.string()),
        ("source_start", pa.int64()),
        ("source_end", pa.int64()),
        ("target_start", pa.int64()),
        ("target_end", pa.int64()),
        ("found_at", pa.timestamp("us", tz="UTC")),
    ]
)


class LossTable:
    """Writes the table of one flow, always as a whole: losses are few. What Spark or Delta refuses is raised."""

    def __init__(self, session: SparkSession, flow: Flow, path: str) -> None:
        """`path` is a folder or a URI that driver and executors reach."""
        self.path = path
        self._session = session
        self._flow = str(flow)

    def replace(self, losses: Sequence[KeptLoss]) -> None:
        """Write everything that is known."""
        rows = pa.Table.from_pylist([self._row(kept) for kept in losses], schema=_SCHEMA)
        writer = frame_of(self._session, rows).coalesce(1).write.format("delta").mode("overwrite")
        writer.option("overwriteSchema", "true").options(**PROPERTIES).save(self.path)

    def _row(self, kept: KeptLoss) -> dict[str, object]:
        source, target = kept.loss.offsets, kept.loss.target
        return {
            "flow": self._flow,
            "topic": kept.partition.topic,
            "partition": kept.partition.partition,
            "topic_id": kept.topic_id,
            "cause": kept.loss.cause.value,
            "source_start": source.start,
            "source_end": source.end,
            "target_start": None if target is None else target.start,
            "target_end": None if target is None else target.end,
            "found_at": kept.found_at * 1000,
        }
