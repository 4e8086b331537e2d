"""Where a micro-batch ends: read from the offset log in the query's checkpoint directory.

The rows of a batch do not tell: a range may end on transaction markers or on compacted offsets.
"""

from __future__ import annotations

import json
from pathlib import Path

from srm_spark.core.model import TopicPartition


def batch_ends(checkpoint: Path, batch_id: int) -> dict[TopicPartition, int]:
    """Source offset behind the range of each partition in a batch; the log's lines are version, metadata, offsets."""
    lines = (checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
    topics: dict[str, dict[str, int]] = json.loads(lines[2])
    return {
        TopicPartition(topic, int(partition)): end
        for topic, partitions in topics.items()
        for partition, end in partitions.items()
    }
