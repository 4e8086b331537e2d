"""Where a micro-batch ends, and whether it is over: read from the logs in the query's checkpoint directory.

The rows of a batch do not tell: a range may end on transaction markers or on compacted offsets. What a query does, its
status tells in words only.
"""

from __future__ import annotations

import json
from pathlib import Path

from srm_spark.core.model import TopicPartition


def is_amid_a_batch(checkpoint: Path) -> bool:
    """Whether a batch has begun, its ends being known, and is not over; while ends are asked for none has."""
    return _newest(checkpoint / "offsets") > _newest(checkpoint / "commits")


def _newest(log: Path) -> int:
    """The number of the newest batch in it; -1 without any. Files of other names are being written."""
    names = (path.name for path in log.iterdir()) if log.is_dir() else ()
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def batch_ends(checkpoint: Path, batch_id: int) -> dict[TopicPartition, int]:
    """Source offset behind the range of each partition in a batch; the log's lines are version, metadata, offsets."""
    lines = (checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
    topics: dict[str, dict[str, int]] = json.loads(lines[2])
    return {
        TopicPartition(topic, int(partition)): end
        for topic, partitions in topics.items()
        for partition, end in partitions.items()
    }
