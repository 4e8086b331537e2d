"""Every record of a topic beside its copy, as fast as they can be fetched, so that it can follow each run.

Whether our own copies are right is judged by plain consumers (`kafka.compare`), for the first one of a workload; this
reads both sides as our tasks do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.errors import SourceUnavailable, SrmError
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.fetch import Fetch, fetch_options
from srm_spark.kafka.ranges import RangeReader

_TIMEOUT_SECONDS = 60.0


def check_same(source: str, target: str, topic: str, remote_topic: str, *, is_part: bool = False) -> None:
    """Compare all committed records of a topic with its copy, or those that it has where it is part of one.

    Raises SrmError on the first difference.
    """
    count = ClusterClient(ClusterSettings("source", source), SourceUnavailable).topics()[topic]
    for number in range(count):
        left, right = _runs(source, TopicPartition(topic, number)), _runs(target, TopicPartition(remote_topic, number))
        if differs := difference(left, right, is_part=is_part):
            raise SrmError(f"{remote_topic}-{number} is not a copy: {differs}")


def difference(left: Iterator[Run], right: Iterator[Run], *, is_part: bool = False) -> str | None:
    """The first difference between the records of both; None where there is none. Offsets may differ.

    Of a part the right side may end before the left one.
    """
    here, there, seen = next(left, None), next(right, None), 0
    while here is not None and there is not None:
        count = min(here.count, there.count)
        if what := _differing(here.head(count), there.head(count)):
            return f"{what} differ among the {count} records behind the first {seen}"
        seen += count
        here = here.slice(count, here.count) if here.count > count else next(left, None)
        there = there.slice(count, there.count) if there.count > count else next(right, None)
    if there is None and (here is None or is_part):
        return None
    return f"the {'copy' if there is None else 'source'} ends after {seen} records"


def _runs(servers: str, partition: TopicPartition) -> Iterator[Run]:
    end = ClusterClient(ClusterSettings("bench", servers), SourceUnavailable).end_offsets([partition])[partition]
    options = fetch_options({"bootstrap.servers": servers, "isolation.level": "read_committed"})
    return iter(RangeReader(Fetch(options, "bench", _TIMEOUT_SECONDS), {partition: OffsetRange(0, end)}))


def _differing(here: Run, there: Run) -> str | None:
    if not np.array_equal(here.timestamps, there.timestamps):
        return "timestamps"
    if not here.keys.equals(there.keys):
        return "keys"
    if not here.values.equals(there.values):
        return "values"
    return None if _have_same_headers(here.headers, there.headers) else "headers"


def _have_same_headers(here: pa.Array, there: pa.Array) -> bool:
    """A record without headers may have an empty list or none, by what lies beside it in its run."""
    counts = (pc.fill_null(pc.list_value_length(headers), 0) for headers in (here, there))
    return bool(next(counts).equals(next(counts)) and here.flatten().equals(there.flatten()))
